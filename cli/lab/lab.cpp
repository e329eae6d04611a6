#include "lab.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "../help/guess.hpp"
#include "lab/training_hash.hpp"

namespace loom::core::cli {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

Error unknown_kind(const std::string& word) {
  std::vector<std::string> known;
  for (const KindNetwork& k : kind_networks()) known.emplace_back(k.kind);
  return Error{Code::invalid_argument,
               fmt::format("--kind: unknown layer kind '{}'; known are {}{}", loom::printable(word),
                           list_of(known), did_you_mean(word, known)),
               {},
               -1};
}

}  // namespace loom::core::cli

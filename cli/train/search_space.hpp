// The search space of `loom search`: options of `loom train` with their values or ranges, and the
// choice for each trial. A trial is a function of the seed and its number.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "loom/result.hpp"

namespace loom::cli {

// One option: values to choose from, or a range.
struct TriedOption {
  std::string name;                 // without its dashes: "rate"
  std::vector<std::string> values;  // empty: from low to high
  double low = 0, high = 0;
  bool logarithmic = false, whole = false;
};

// The options of a trial and their values, in the order of the space.
using TrialValues = std::vector<std::pair<std::string, std::string>>;

class SearchSpace {
 public:
  // "rate=0.0001..0.1:log", "batch=8..64", "optimizer=adam,lion". Errors: invalid_argument.
  Status add(const std::string& text);
  bool empty() const { return options_.empty(); }

  // Trial `number`, from 0, of a random search.
  TrialValues drawn(uint64_t seed, int64_t number) const;
  // Every combination; the last option changes first. Errors: invalid_argument (a range, or more
  // than `most`).
  Result<std::vector<TrialValues>> grid(int64_t most) const;

 private:
  std::vector<TriedOption> options_;
};

}  // namespace loom::cli

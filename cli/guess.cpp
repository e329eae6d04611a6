#include "guess.hpp"

#include <algorithm>

#include "console.hpp"

namespace loom::cli {
namespace {

// Edits from a to b, with swapped neighbours as one edit (optimal string alignment).
size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t other = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + other});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string closest(std::string_view word, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 64;  // what is longer is no slip of a finger
  if (word.size() > kLongest) return {};
  const std::string wanted = lower(word);
  std::string best;
  size_t least = std::max<size_t>(1, wanted.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const size_t distance = edits(wanted, lower(candidate));
    if (distance < least && distance < candidate.size()) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::string guess = closest(word, known);
  return guess.empty() ? std::string() : "; did you mean '" + guess + "'?";
}

}  // namespace loom::cli

#include "base/names.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom::core {
namespace {

// Edits from a to b, with swapped neighbours as one edit.
size_t edits_between(std::string_view a, std::string_view b) {
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
  constexpr size_t kLongest = 64;  // longer words are not typing errors
  if (word.size() > kLongest) return {};
  const std::string requested = to_lower_ascii(word);
  std::string best;
  size_t least = std::max<size_t>(1, requested.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const size_t distance = edits_between(requested, to_lower_ascii(candidate));
    if (distance < least && distance < candidate.size()) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

Error unknown_word(std::string_view what, std::string_view word,
                   const std::vector<std::string>& known) {
  std::string message =
      cat("unknown ", what, " '", printable(word), "'; choose from ", join(known, ", "));
  if (const std::string near = closest(word, known); !near.empty())
    message += cat("; did you mean '", near, "'?");
  return invalid(message);
}

Result<size_t> position_of(std::string_view what, std::span<const std::string_view> names,
                           std::string_view word) {
  const std::string requested = to_lower_ascii(word);
  const auto found = std::find(names.begin(), names.end(), requested);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  return unknown_word(what, word, {names.begin(), names.end()});
}

}  // namespace loom::core

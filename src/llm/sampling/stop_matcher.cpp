#include "llm/sampling/stop_matcher.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core {
namespace {

// Length of the longest suffix of `text` that is a proper prefix of `stop`.
size_t overlap(std::string_view text, std::string_view stop) {
  for (size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n) {
    if (text.substr(text.size() - n) == stop.substr(0, n)) return n;
  }
  return 0;
}

}  // namespace

Result<StopMatcher> StopMatcher::create(std::vector<std::string> stops) {
  for (const std::string& stop : stops) {
    if (stop.empty()) return invalid("a stop string must not be empty");
    if (!text::is_valid_utf8(stop))
      return invalid(cat("the stop string '", printable(stop), "' is not UTF-8"));
  }
  StopMatcher matcher;
  matcher.stops_ = std::move(stops);
  return matcher;
}

std::string_view StopMatcher::push(std::string_view text) {
  out_.clear();
  if (found_) return {};
  held_ += text;
  size_t end = std::string::npos, hold = 0;
  for (const std::string& stop : stops_) {
    end = std::min(end, held_.find(stop));
    hold = std::max(hold, overlap(held_, stop));
  }
  found_ = end != std::string::npos;
  if (!found_) end = held_.size() - hold;
  out_.assign(held_, 0, end);
  held_.erase(0, found_ ? held_.size() : end);
  return out_;
}

std::string_view StopMatcher::finish() {
  out_.clear();
  out_.swap(held_);
  return out_;
}

}  // namespace loom::core

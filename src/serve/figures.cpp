#include "serve/figures.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom::core {
namespace {

std::string heading(std::string_view name, std::string_view type, std::string_view help) {
  return cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

}  // namespace

void Histogram::add(double seconds) {
  const auto bucket = std::ranges::lower_bound(kBounds, seconds) - kBounds.begin();
  const std::lock_guard lock(mutex_);
  ++counts_[static_cast<size_t>(bucket)];
  sum_ += seconds;
}

std::string Histogram::text(std::string_view name, std::string_view help) const {
  std::string out = heading(name, "histogram", help);
  const std::lock_guard lock(mutex_);
  int64_t below = 0;
  for (size_t i = 0; i < kBounds.size(); ++i) {
    below += counts_[i];
    out += cat(name, "_bucket{le=\"", kBounds[i], "\"} ", below, "\n");
  }
  below += counts_.back();
  return out + cat(name, "_bucket{le=\"+Inf\"} ", below, "\n", name, "_sum ", sum_, "\n", name,
                   "_count ", below, "\n");
}

std::string metric(std::string_view name, std::string_view type, std::string_view help,
                   double value) {
  return cat(heading(name, type, help), name, " ", value, "\n");
}

}  // namespace loom::core

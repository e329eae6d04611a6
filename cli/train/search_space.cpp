#include "search_space.hpp"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "../shared/console.hpp"

namespace loom::cli {
namespace {

Error try_error(const std::string& text, std::string_view what) {
  return Error{Code::invalid_argument, fmt::format("--try {}: {}", printable(text), what), {}, -1};
}

bool read_bound(std::string_view text, double& to) {
  const char* last = text.data() + text.size();
  const auto [end, code] = std::from_chars(text.data(), last, to);
  return code == std::errc() && end == last && std::isfinite(to);
}

// The mixing function of SplitMix64 (Steele, Lea and Flood, 2014): a number in [0, 1).
double uniform_of(uint64_t seed, uint64_t number, uint64_t option) {
  uint64_t z = seed * 0x9E3779B97F4A7C15u + number * 0xD1B54A32D192ED03u + option + 1;
  for (int i = 0; i < 2; ++i) {
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
  }
  return static_cast<double>(z >> 11) * 0x1p-53;
}

std::string drawn_value(const TriedOption& option, double u) {
  if (!option.values.empty()) {
    const auto count = static_cast<double>(option.values.size());
    return option.values[static_cast<size_t>(u * count)];
  }
  const double top = option.whole ? option.high + 1 : option.high;
  double value = option.logarithmic
                     ? std::exp(std::log(option.low) + u * std::log(top / option.low))
                     : option.low + u * (top - option.low);
  if (option.whole) return fmt::format("{:.0f}", std::min(std::floor(value), option.high));
  return fmt::format("{:.4g}", value);
}

Status read_range(const std::string& text, std::string_view range, TriedOption& option) {
  constexpr std::string_view kLog = ":log";
  option.logarithmic = range.ends_with(kLog);
  if (option.logarithmic) range.remove_suffix(kLog.size());
  const size_t dots = range.find("..");
  const std::string_view low = range.substr(0, dots), high = range.substr(dots + 2);
  if (!read_bound(low, option.low) || !read_bound(high, option.high) || option.low >= option.high)
    return try_error(text, "a range is LOW..HIGH, two numbers that rise");
  if (option.logarithmic && option.low <= 0)
    return try_error(text, "a range with :log begins above 0");
  option.whole = range.find_first_of(".eE") == dots && high.find_first_of(".eE") == high.npos;
  return {};
}

}  // namespace

Status SearchSpace::add(const std::string& text) {
  const size_t equals = text.find('=');
  TriedOption option;
  option.name = text.substr(0, equals);
  if (equals == std::string::npos || option.name.empty() || equals + 1 == text.size())
    return try_error(text, "give OPTION=VALUES, as rate=0.0001..0.1:log or optimizer=adam,lion");
  while (option.name.starts_with("-")) option.name.erase(0, 1);
  for (const TriedOption& known : options_) {
    if (known.name == option.name) return try_error(text, "occurs twice");
  }
  const std::string values = text.substr(equals + 1);
  if (values.find("..") != std::string::npos) {
    LOOM_TRY(read_range(text, values, option));
  } else {
    option.values = split_list(values);
    if (option.values.empty()) return try_error(text, "has no values");
  }
  options_.push_back(std::move(option));
  return {};
}

TrialValues SearchSpace::drawn(uint64_t seed, int64_t number) const {
  TrialValues out;
  for (size_t i = 0; i < options_.size(); ++i) {
    const double u = uniform_of(seed, static_cast<uint64_t>(number), i);
    out.emplace_back(options_[i].name, drawn_value(options_[i], u));
  }
  return out;
}

Result<std::vector<TrialValues>> SearchSpace::grid(int64_t most) const {
  std::vector<TrialValues> all = {{}};
  for (const TriedOption& option : options_) {
    if (option.values.empty())
      return try_error(option.name, "a grid takes values, no range; give some: 0.001,0.01");
    std::vector<TrialValues> longer;
    for (const TrialValues& trial : all) {
      for (const std::string& value : option.values) {
        longer.push_back(trial);
        longer.back().emplace_back(option.name, value);
      }
    }
    all = std::move(longer);
    if (static_cast<int64_t>(all.size()) > most)
      return try_error(option.name, fmt::format("the grid has more than {} trials", most));
  }
  return all;
}

}  // namespace loom::cli

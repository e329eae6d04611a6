#include "grid/rope_table.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/numbers/dmath.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr double kPi = 3.14159265358979323846;

// theta^(-2j/width)
double plain_frequency(double theta, int64_t width, int64_t j) {
  const double exponent = 2.0 * static_cast<double>(j) / static_cast<double>(width);
  return dmath::exp(-exponent * dmath::log(theta));
}

// Llama 3.1: long waves are stretched by the factor, short ones are kept, those between are
// blended.
double llama3_frequency(const RopeSpec& spec, double plain) {
  const double original = static_cast<double>(spec.original_positions);
  const double wavelength = 2 * kPi / plain;
  if (wavelength < original / spec.high_freq) return plain;
  if (wavelength > original / spec.low_freq) return plain / spec.factor;
  const double smooth = (original / wavelength - spec.low_freq) / (spec.high_freq - spec.low_freq);
  return (1 - smooth) * plain / spec.factor + smooth * plain;
}

// YaRN (Peng et al., 2023): the index of the frequency that turns `turns` times within the original
// positions.
double yarn_index(const RopeSpec& spec, double turns) {
  const double length = static_cast<double>(spec.original_positions) / (turns * 2 * kPi);
  return static_cast<double>(spec.width) * dmath::log(length) / (2 * dmath::log(spec.theta));
}
// Frequencies up to `low` are kept, those from `high` on are stretched.
double yarn_frequency(const RopeSpec& spec, double plain, int64_t j) {
  double low = yarn_index(spec, spec.beta_fast), high = yarn_index(spec, spec.beta_slow);
  if (spec.truncate) {
    low = __builtin_floor(low);
    high = __builtin_ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(spec.width - 1));
  if (low == high) high += 0.001;
  const double ramp = std::clamp((static_cast<double>(j) - low) / (high - low), 0.0, 1.0);
  return plain / spec.factor * ramp + plain * (1 - ramp);
}

// The base of dynamic scaling for texts of `length` positions.
double dynamic_theta(const RopeSpec& spec, int64_t length) {
  if (length <= spec.original_positions) return spec.theta;
  const double share = static_cast<double>(length) / static_cast<double>(spec.original_positions);
  const double width = static_cast<double>(spec.width);
  const double growth = spec.factor * share - (spec.factor - 1);
  return spec.theta * dmath::exp(width / (width - 2) * dmath::log(growth));
}

// The frequencies for texts of `length` positions, rounded to f32.
Result<std::vector<float>> frequencies(const RopeSpec& spec, int64_t length) {
  const std::string& kind = spec.scaling;
  std::vector<double> divisors;
  if (kind == "longrope") {
    const bool longer = length > spec.original_positions;
    LOOM_ASSIGN(divisors, rope_factors(longer ? spec.long_factors : spec.short_factors));
    if (static_cast<int64_t>(divisors.size()) != spec.width / 2) {
      return invalid(cat(longer ? "rope_long" : "rope_short", " has ", divisors.size(),
                         " numbers; longrope needs ", spec.width / 2));
    }
  }
  const double theta = kind == "dynamic" ? dynamic_theta(spec, length) : spec.theta;
  std::vector<float> all;
  for (int64_t j = 0; j < spec.width / 2; ++j) {
    double f = plain_frequency(theta, spec.width, j);
    if (kind == "linear") f = f / spec.factor;
    if (kind == "llama3") f = llama3_frequency(spec, f);
    if (kind == "yarn") f = yarn_frequency(spec, f, j);
    if (kind == "longrope") f = f / divisors[static_cast<size_t>(j)];
    all.push_back(static_cast<float>(f));
  }
  return all;
}

// The slope of head h (Press, Smith and Lewis, 2022). The first n heads, n the largest power of 2,
// have 2^(-alibi (h + 1) / n). The others have every second slope of twice as many heads.
float slope(const RopeSpec& spec, int64_t h) {
  int64_t n = 1;
  while (2 * n <= spec.slopes) n *= 2;
  const int64_t numerator = h < n ? 2 * (h + 1) : 2 * (h - n) + 1;
  const double exponent = spec.alibi * static_cast<double>(numerator) / static_cast<double>(2 * n);
  return static_cast<float>(spec.alibi_scale * dmath::exp(-exponent * dmath::log(2.0)));
}

}  // namespace

Result<std::vector<double>> rope_factors(std::string_view text) {
  std::vector<double> all;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    double value = 0;
    const auto [last, error] = std::from_chars(text.data(), text.data() + end, value);
    if (error != std::errc() || last != text.data() + end || !(value > 0) || value > 1e6) {
      return invalid(cat("'", printable(text.substr(0, end)),
                         "' is not a factor of longrope; they are numbers from 0 to 1000000"));
    }
    all.push_back(value);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

Result<RopeTable> RopeTable::make(const RopeSpec& spec, int64_t positions, int64_t length) {
  constexpr std::string_view kKinds[] = {"", "linear", "llama3", "yarn", "dynamic", "longrope"};
  if (std::ranges::find(kKinds, spec.scaling) == std::end(kKinds)) {
    return unsupported(cat("rope_scaling '", printable(spec.scaling),
                           "' is not known; use linear, llama3, yarn, dynamic or longrope"));
  }
  RopeTable table;
  table.spec_ = spec;
  if (spec.numbers > 0) {
    LOOM_TRY(table.count(std::min(positions, spec.numbers)));
    return table;
  }
  const int64_t half = spec.width / 2;
  PositionTable& made = table.table_;
  LOOM_ASSIGN(table.memory_, Buffer::allocate((2 * positions * half + spec.slopes) * 4));
  auto* values = reinterpret_cast<float*>(table.memory_.data());
  if (spec.slopes > 0) {
    made.slopes = f32_vector(values + 2 * positions * half, spec.slopes);
    for (int64_t h = 0; h < spec.slopes; ++h) made.slopes.f32()[h] = slope(spec, h);
  }
  if (half == 0) return table;
  made.cos = f32_matrix(values, positions, half);
  made.sin = f32_matrix(values + positions * half, positions, half);
  LOOM_ASSIGN(const std::vector<float> all, frequencies(spec, length > 0 ? length : positions));
  const auto scale = static_cast<float>(spec.attention);
  for (int64_t j = 0; j < half; ++j) {
    for (int64_t p = 0; p < positions; ++p) {
      const float angle = static_cast<float>(p) * all[static_cast<size_t>(j)];
      made.cos.f32_row(p)[j] = static_cast<float>(dmath::cos(angle)) * scale;
      made.sin.f32_row(p)[j] = static_cast<float>(dmath::sin(angle)) * scale;
    }
  }
  return table;
}

Status RopeTable::count(int64_t positions) {
  LOOM_ASSIGN(memory_, Buffer::allocate(positions * 4));
  Tensor& numbers = table_.numbers;
  numbers.dtype = DType::i32;
  numbers.shape = Shape{positions};
  numbers.row_stride = positions;
  numbers.data = memory_.data();
  for (int64_t p = 0; p < positions; ++p) numbers.i32()[p] = static_cast<int32_t>(p);
  return {};
}

}  // namespace loom::core

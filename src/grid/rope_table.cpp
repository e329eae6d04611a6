#include "grid/rope_table.hpp"

#include <algorithm>

#include "base/numbers/dmath.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr double kPi = 3.14159265358979323846;

// theta^(-2j/width) in f32, then scaled.
float frequency(const RopeSpec& spec, int64_t j) {
  const double exponent = 2.0 * static_cast<double>(j) / static_cast<double>(spec.width);
  const double plain = dmath::exp(-exponent * dmath::log(spec.theta));
  if (spec.scaling == "linear") return static_cast<float>(plain / spec.factor);
  if (spec.scaling != "llama3") return static_cast<float>(plain);
  // Llama 3.1: long waves are stretched by the factor, short ones are kept, those between are
  // blended.
  const double original = static_cast<double>(spec.original_positions);
  const double wavelength = 2 * kPi / plain;
  if (wavelength < original / spec.high_freq) return static_cast<float>(plain);
  if (wavelength > original / spec.low_freq) return static_cast<float>(plain / spec.factor);
  const double smooth = (original / wavelength - spec.low_freq) / (spec.high_freq - spec.low_freq);
  return static_cast<float>((1 - smooth) * plain / spec.factor + smooth * plain);
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

Result<RopeTable> RopeTable::make(const RopeSpec& spec, int64_t positions) {
  const bool known = spec.scaling.empty() || spec.scaling == "linear" || spec.scaling == "llama3";
  if (!known)
    return unsupported(
        cat("rope_scaling '", printable(spec.scaling), "' is not known; use linear or llama3"));
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
  for (int64_t j = 0; j < half; ++j) {
    const float freq = frequency(spec, j);
    for (int64_t p = 0; p < positions; ++p) {
      const float angle = static_cast<float>(p) * freq;
      made.cos.f32_row(p)[j] = static_cast<float>(dmath::cos(angle));
      made.sin.f32_row(p)[j] = static_cast<float>(dmath::sin(angle));
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

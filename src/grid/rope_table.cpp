#include "grid/rope_table.hpp"

#include "base/dmath.hpp"
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
  // Llama 3.1: long waves are stretched by the factor, short ones kept, those between blended.
  const double original = static_cast<double>(spec.original_positions);
  const double wavelength = 2 * kPi / plain;
  if (wavelength < original / spec.high_freq) return static_cast<float>(plain);
  if (wavelength > original / spec.low_freq) return static_cast<float>(plain / spec.factor);
  const double smooth = (original / wavelength - spec.low_freq) / (spec.high_freq - spec.low_freq);
  return static_cast<float>((1 - smooth) * plain / spec.factor + smooth * plain);
}

}  // namespace

Result<RopeTable> RopeTable::make(const RopeSpec& spec, int64_t positions) {
  const bool known = spec.scaling.empty() || spec.scaling == "linear" || spec.scaling == "llama3";
  if (!known)
    return unsupported(
        cat("rope_scaling '", printable(spec.scaling), "' is not known; use linear or llama3"));
  const int64_t half = spec.width / 2;
  RopeTable table;
  table.spec_ = spec;
  LOOM_ASSIGN(table.memory_, Buffer::allocate(2 * positions * half * 4));
  auto* values = reinterpret_cast<float*>(table.memory_.data());
  table.cos_ = f32_matrix(values, positions, half);
  table.sin_ = f32_matrix(values + positions * half, positions, half);
  for (int64_t j = 0; j < half; ++j) {
    const float freq = frequency(spec, j);
    for (int64_t p = 0; p < positions; ++p) {
      const float angle = static_cast<float>(p) * freq;
      table.cos_.f32_row(p)[j] = static_cast<float>(dmath::cos(angle));
      table.sin_.f32_row(p)[j] = static_cast<float>(dmath::sin(angle));
    }
  }
  return table;
}

}  // namespace loom::core

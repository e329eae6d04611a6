// OCP OFP8: E4M3 (bias 7, no infinity, NaN = s.1111.111, max 448) and E5M2 (bias 15, IEEE-like, max
// 57344), and the power-of-two scale E8M0 of OCP MX. Nearest even, subnormals both ways, saturating
// unless asked otherwise.
#include "dtype/codecs/codec.hpp"
#include "dtype/elements.hpp"

namespace loom::core {
namespace {

// The field of |q|. Above `max_field` it either saturates or becomes `overflow`.
template <int kMant, int kMinExp>
uint32_t fp8_field(double a, uint32_t max_field, uint32_t overflow, bool saturate) {
  const double max = magnitude_of<kMant, kMinExp>(max_field);
  if (saturate) return round_magnitude<kMant, kMinExp>(a > max ? max : a);
  if (a >= 2 * max) return overflow;
  const uint32_t field = round_magnitude<kMant, kMinExp>(a);
  return field > max_field ? overflow : field;
}

}  // namespace

uint8_t e4m3_code(double q, bool saturate) {
  const uint32_t sign = sign_bit(q) ? 0x80u : 0u;
  if (is_nan(q)) return static_cast<uint8_t>(sign | 0x7fu);
  return static_cast<uint8_t>(sign | fp8_field<3, -6>(abs_of(q), 0x7eu, 0x7fu, saturate));
}

uint8_t e5m2_code(double q, bool saturate) {
  const uint32_t sign = sign_bit(q) ? 0x80u : 0u;
  if (is_nan(q)) return static_cast<uint8_t>(sign | 0x7eu);
  return static_cast<uint8_t>(sign | fp8_field<2, -14>(abs_of(q), 0x7bu, 0x7cu, saturate));
}

uint8_t e4m3_from_f32(float x, bool saturate) {
  return e4m3_code(x, saturate);
}

uint8_t e5m2_from_f32(float x, bool saturate) {
  return e5m2_code(x, saturate);
}

float f32_from_e4m3(uint8_t code) {
  const uint32_t sign = static_cast<uint32_t>(code & 0x80u) << 24;
  const uint32_t field = code & 0x7fu;
  if (field == 0x7fu) return f32_from_bits(sign | 0x7fc00000u);
  return f32_from_bits(sign | f32_bits(static_cast<float>(magnitude_of<3, -6>(field))));
}

// The upper half of a binary16.
float f32_from_e5m2(uint8_t code) {
  return f32_from_f16(static_cast<uint16_t>(code << 8));
}

float f32_from_e8m0(uint8_t code) {
  if (code == 0xff) return f32_from_bits(0x7fc00000u);
  return code == 0 ? 0x1p-127f : f32_from_bits(static_cast<uint32_t>(code) << 23);
}

}  // namespace loom::core

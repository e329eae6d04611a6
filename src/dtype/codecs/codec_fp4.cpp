// OCP MX E2M1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; no infinity, no NaN.
// Nearest even, saturating at 6. NaN becomes 0.
// E3M0 and NF4 have no conversion of their own outside encode_value.
#include "dtype/codecs/codec.hpp"
#include "dtype/elements.hpp"

namespace loom::core {

uint8_t e2m1_from_f32(float x) {
  return e2m1_code(x);
}

float f32_from_e2m1(uint8_t code) {
  const float a = static_cast<float>(kLevelsE2M1[code & 7]) * 0.5f;
  return (code & 8) != 0 ? -a : a;
}

}  // namespace loom::core

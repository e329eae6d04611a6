#include "dtype/codecs/loom1_codes.hpp"

#include "base/numbers/bits.hpp"
#include "dtype/codecs/codec.hpp"

namespace loom::core {
namespace {

constexpr int kLastType = 20;
constexpr double kNan = __builtin_nan("");
constexpr double kFp4[8] = {0, 0.75, 1, 1.5, 2, 3, kNan, kNan};

int64_t sign_extended(uint64_t code, int bits) {
  const int up = 64 - bits;
  return static_cast<int64_t>(code << up) >> up;
}

// 2^e for small e.
double power(int e) {
  double p = 1;
  for (; e > 0; --e) p *= 2;
  for (; e < 0; ++e) p *= 0.5;
  return p;
}

// Exponent 15 of E4M3 is an ordinary exponent. Subnormals are (1 + m/8) 2^-10 and (1 + m/4) 2^-15,
// unlike any standard, but the original's encoder never writes them.
double small_float(uint64_t code, int mantissa, int bias) {
  const int field = static_cast<int>(code & 0x7f), ones = 1 << mantissa;
  const int exponent = field >> mantissa, m = field & (ones - 1);
  const double sign = (code & 0x80) != 0 ? -1 : 1;
  if (field == 0) return sign * 0.0;
  if (mantissa == 2 && exponent == 31) return m == 0 ? sign * __builtin_inf() : kNan;
  const double fraction = 1.0 + static_cast<double>(m) / ones;
  return sign * fraction * power(exponent == 0 ? -bias - (mantissa == 3 ? 3 : 0) : exponent - bias);
}

}  // namespace

bool loom1_has(DType dtype) {
  return static_cast<int>(dtype) <= kLastType;
}

bool loom1_scaled(DType dtype) {
  return dtype_info(dtype).kind != NumberKind::ieee;
}

uint64_t loom1_bytes(DType dtype, uint64_t count) {
  return (count * static_cast<uint64_t>(dtype_info(dtype).bits) + 7) / 8;
}

double loom1_value(DType dtype, uint64_t code) {
  const DTypeInfo& info = dtype_info(dtype);
  switch (dtype) {
    case DType::f64: return bit_cast<double>(code);
    case DType::f32: return static_cast<double>(f32_from_bits(static_cast<uint32_t>(code)));
    case DType::f16: return static_cast<double>(f32_from_f16(static_cast<uint16_t>(code)));
    case DType::bf16: return static_cast<double>(f32_from_bf16(static_cast<uint16_t>(code)));
    case DType::f8e4m3: return small_float(code, 3, 7);
    case DType::f8e5m2: return small_float(code, 2, 15);
    case DType::f4: return (code & 8) != 0 ? -kFp4[code & 7] : kFp4[code & 7];
    case DType::ternary: return code == 2 ? kNan : static_cast<double>(sign_extended(code, 2));
    case DType::binary: return (code & 1) != 0 ? 1 : -1;
    default: break;
  }
  if (info.kind == NumberKind::uint) return static_cast<double>(code);
  return static_cast<double>(sign_extended(code, info.bits));
}

void loom1_unpack(DType dtype, std::span<const std::byte> bytes, double scale,
                  std::span<float> out) {
  const auto bits = static_cast<size_t>(dtype_info(dtype).bits);
  const double factor = loom1_scaled(dtype) ? scale : 1.0;
  for (size_t i = 0; i < out.size(); ++i) {
    uint64_t code = 0;
    if (bits >= 8) {
      for (size_t b = bits / 8; b-- > 0;)
        code = code << 8 | static_cast<uint64_t>(bytes[i * (bits / 8) + b]);
    } else {
      const size_t shift = 8 - bits - i * bits % 8;
      code = static_cast<uint64_t>(bytes[i * bits / 8]) >> shift & ((uint64_t{1} << bits) - 1);
    }
    out[i] = static_cast<float>(loom1_value(dtype, code) * factor);
  }
}

uint32_t loom1_word_field(const std::byte* words, int bits, uint64_t i) {
  const uint64_t per_word = 32 / static_cast<uint64_t>(bits);
  const auto word = load_le<uint32_t>(words + i / per_word * 4);
  const uint64_t shift = i % per_word * static_cast<uint64_t>(bits);
  return word >> shift & ((uint32_t{1} << bits) - 1);
}

}  // namespace loom::core

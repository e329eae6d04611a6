// encode_value, decode_value and simulate for every type, put together from the families'
// conversions. Codes are the stored codes of R16. IEEE types follow IEEE 754 (overflow is
// infinity); all others saturate.
#include "dtype/codecs/codec.hpp"

#include "dtype/elements.hpp"

namespace loom::core {
namespace {

// f64 to a 16-bit IEEE format in one rounding.
template <int kMant, int kMinExp>
uint64_t ieee16_code(double v) {
  constexpr uint32_t kInfinity = 0x7fffu & ~((1u << kMant) - 1u);
  const uint64_t sign = sign_bit(v) ? 0x8000u : 0u;
  const double a = abs_of(v);
  if (is_nan(v)) {
    const uint64_t payload = (bit_cast<uint64_t>(v) & 0xfffffffffffffu) >> (52 - kMant);
    return sign | kInfinity | 1u << (kMant - 1) | payload;
  }
  if (a >= 0x1p128) return sign | kInfinity;
  const uint32_t field = round_magnitude<kMant, kMinExp>(a);
  return sign | (field > kInfinity ? kInfinity : field);
}

// NaN is narrowed explicitly, because its payload depends on the machine.
uint64_t f32_code(double v) {
  if (!is_nan(v)) return f32_bits(static_cast<float>(v));
  const uint64_t u = bit_cast<uint64_t>(v);
  return (u >> 32 & 0x80000000u) | 0x7fc00000u | (u >> 29 & 0x3fffffu);
}

double f64_from_f32_code(uint32_t code) {
  if ((code & 0x7fffffffu) <= 0x7f800000u) return static_cast<double>(f32_from_bits(code));
  const uint64_t sign = static_cast<uint64_t>(code & 0x80000000u) << 32;
  return bit_cast<double>(sign | 0x7ff8000000000000u |
                          static_cast<uint64_t>(code & 0x3fffffu) << 29);
}

uint64_t mask_of(const DTypeInfo& info) {
  return ~uint64_t{0} >> (64 - info.bits);
}

// q4_0, q5_0 and q8_0: signed blocks of 32 of GGUF.
bool gguf_rounds(const DTypeInfo& info) {
  return info.scale == ScaleRule::f16 && info.zero == ZeroRule::none;
}

// q is v / step, or v * inv for the GGUF blocks.
uint64_t integer_code_of(const DTypeInfo& info, double q, double zero) {
  if (gguf_rounds(info)) {
    const auto f = static_cast<float>(q);
    if (info.bits == 4) return gguf_code<4>(f);
    return info.bits == 5 ? gguf_code<5>(f) : gguf_code_q8(f);
  }
  const double code = integer_code(q, zero, int_range(info));
  return static_cast<uint64_t>(static_cast<int64_t>(code) + info.code_bias) & mask_of(info);
}

double integer_of_code(const DTypeInfo& info, uint64_t code) {
  if (info.kind == NumberKind::uint) return static_cast<double>(code);
  if (info.levels == Levels::direct) return static_cast<double>(code) - info.code_bias;
  const int unused = 64 - info.bits;
  return static_cast<double>(static_cast<int64_t>(code << unused) >> unused);
}

uint64_t ieee_code(DType dtype, double v) {
  switch (dtype) {
    case DType::f64: return bit_cast<uint64_t>(v);
    case DType::f32: return f32_code(v);
    case DType::f16: return ieee16_code<10, -14>(v);
    default: return ieee16_code<7, -126>(v);
  }
}

double ieee_of_code(DType dtype, uint64_t code) {
  switch (dtype) {
    case DType::f64: return bit_cast<double>(code);
    case DType::f32: return f64_from_f32_code(static_cast<uint32_t>(code));
    case DType::f16: return f64_from_f32_code(f32_bits(f32_from_f16(static_cast<uint16_t>(code))));
    default: return f64_from_f32_code(static_cast<uint32_t>(code) << 16);
  }
}

uint64_t fp_code(const DTypeInfo& info, double q) {
  if (info.levels == Levels::e2m1) return e2m1_code(q);
  if (info.levels == Levels::e3m0) return e3m0_code(q);
  return info.dtype == DType::f8e4m3 ? e4m3_code(q, true) : e5m2_code(q, true);
}

double fp_of_code(const DTypeInfo& info, uint64_t code) {
  const auto byte = static_cast<uint8_t>(code);
  if (info.dtype == DType::f8e4m3) return static_cast<double>(f32_from_e4m3(byte));
  if (info.dtype == DType::f8e5m2) return static_cast<double>(f32_from_e5m2(byte));
  const double a = static_cast<double>(level_of(info, code & 7)) * info.level_unit;
  return (code & 8) != 0 ? -a : a;
}

// GGUF divides in f32, by the d that was not yet rounded to f16.
double gguf_quotient(double v, const Scale& scale) {
  const auto step = static_cast<float>(scale.step);
  const float guess = step == 0 ? 0.0f : 1.0f / step;
  const float inv = scale.inv != 0 ? static_cast<float>(scale.inv) : guess;
  return static_cast<double>(static_cast<float>(v) * inv);
}

// Types whose blocks have an offset or small integer scales.
double simulate_block(const DTypeInfo& info, double v, const Scale& s) {
  uint8_t code;
  if (info.zero == ZeroRule::f16) {
    code = gguf_code_above(static_cast<float>(v), static_cast<float>(s.origin),
                           static_cast<float>(s.inv), static_cast<float>(int_range(info).hi));
  } else {
    code = block_code(info, v, s);
  }
  const double value = static_cast<double>(code - info.code_bias) * s.step;
  return info.shifted() ? value + s.offset : value;
}

}  // namespace

uint64_t encode_value(DType dtype, double v) {
  const DTypeInfo& info = dtype_info(dtype);
  switch (info.kind) {
    case NumberKind::ieee: return ieee_code(dtype, v);
    case NumberKind::fp: return fp_code(info, v);
    case NumberKind::binary: return binary_code(v);
    case NumberKind::codebook: return nf4_code(v);
    default: return integer_code_of(info, v, 0.0);
  }
}

double decode_value(DType dtype, uint64_t code) {
  const DTypeInfo& info = dtype_info(dtype);
  code &= mask_of(info);
  switch (info.kind) {
    case NumberKind::ieee: return ieee_of_code(dtype, code);
    case NumberKind::fp: return fp_of_code(info, code);
    case NumberKind::binary: return code != 0 ? 1.0 : -1.0;
    case NumberKind::codebook: return static_cast<double>(kLevelsNF4[code]);
    default: return integer_of_code(info, code);
  }
}

double simulate(DType dtype, double v, const Scale& scale) {
  const DTypeInfo& info = dtype_info(dtype);
  if (info.kind == NumberKind::ieee) return decode_value(dtype, encode_value(dtype, v));
  if (info.shifted() || info.super_block > 0) return simulate_block(info, v, scale);
  const double q = gguf_rounds(info) ? gguf_quotient(v, scale) : v / divisor(scale.step);
  if (info.kind == NumberKind::sint || info.kind == NumberKind::uint ||
      info.kind == NumberKind::ternary) {
    return (integer_of_code(info, integer_code_of(info, q, scale.zero)) - scale.zero) * scale.step;
  }
  double value = decode_value(dtype, encode_value(dtype, q));
  if (info.integer_path()) value += 0.0;  // levels are integers: they have no -0
  return value * scale.step;
}

}  // namespace loom::core

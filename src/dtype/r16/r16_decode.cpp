// Decodes the R16 layout. This is the slow, obvious half of the format; faster kernels must agree
// bit for bit. A value is (code's level) * step in one rounding to f32, or exact in f64. If blocks
// have offsets, the product is exact and the sum is rounded once.
#include <array>
#include <cstring>

#include "base/numbers/bits.hpp"
#include "dtype/codecs/codec.hpp"
#include "dtype/codecs/super_block.hpp"
#include "dtype/elements.hpp"
#include "dtype/r16/planes.hpp"
#include "dtype/r16/r16.hpp"

namespace loom::core {
namespace {

struct Row {
  const R16& g;
  const DTypeInfo& info;
  const std::byte* group;
  int64_t lane;
};

Row row_of(const R16& g, const std::byte* data, int64_t row) {
  return {g, dtype_info(g.dtype), data + row / kR16Rows * g.group_bytes, row % kR16Rows};
}

template <class T>
T load(const std::byte* at, int64_t index) {
  return load_le<T>(at + index * static_cast<int64_t>(sizeof(T)));
}

double row_scale(const Row& r) {
  const std::byte* at = r.group + r.g.row_scales;
  if (!r.g.has_row_scale) return 1.0;
  if (r.info.compute == ComputeType::f64) return load<double>(at, r.lane);
  return static_cast<double>(load<float>(at, r.lane));
}

// The zero point of scale block `block`; for types with one scale per row, that of the row.
double zero_point(const Row& r, int64_t block) {
  const std::byte* at = r.group + r.g.zeros;
  if (r.info.zero == ZeroRule::code) {
    at = r.group + r.g.block_scales + block * r.g.scale_block_bytes + r.g.block_zeros;
    return static_cast<double>(load<uint8_t>(at, r.lane));
  }
  if (!r.info.affine()) return 0.0;
  if (r.info.compute == ComputeType::f64) return load<double>(at, r.lane);
  return static_cast<double>(load<int32_t>(at, r.lane));
}

R16Super super_of(const Row& r, int64_t super_block) {
  const std::byte* at = r.group + r.g.super_scales + super_block * r.g.super_bytes;
  const float scale = f32_from_f16(load<uint16_t>(at, r.lane));
  const bool takes = r.info.zero == ZeroRule::small;
  return {scale, takes ? f32_from_f16(load<uint16_t>(at, kR16Rows + r.lane)) : 0.0f};
}

R16Small small_of(const Row& r, int64_t block) {
  const std::byte* at = r.group + r.g.block_scales + block * r.g.scale_block_bytes;
  return get_small(r.info, at + r.lane);
}

// The offset that is added to the values of scale block `block` of a shifted type.
float block_offset(const Row& r, int64_t block) {
  if (r.info.zero == ZeroRule::small) {
    const R16Super super = super_of(r, block * r.info.block / r.info.super_block);
    return -(super.least * static_cast<float>(small_of(r, block).least));
  }
  const std::byte* at = r.group + r.g.block_scales + block * r.g.scale_block_bytes;
  return f32_from_f16(load<uint16_t>(at + r.g.block_zeros, r.lane));
}

// The multiplier of a level (integer path) or an nf4 value of scale block `block`.
float block_step(const Row& r, int64_t block) {
  const std::byte* at = r.group + r.g.block_scales + block * r.g.scale_block_bytes;
  switch (r.info.scale) {
    case ScaleRule::f16: return f32_from_f16(load<uint16_t>(at, r.lane));
    case ScaleRule::e8m0: return f32_from_e8m0(load<uint8_t>(at, r.lane)) * r.info.level_unit;
    case ScaleRule::e4m3:
      return f32_from_e4m3(load<uint8_t>(at, r.lane)) * static_cast<float>(row_scale(r));
    case ScaleRule::absmax64: return load<float>(at, r.lane);
    case ScaleRule::u4:
    case ScaleRule::u6:
    case ScaleRule::i6:
    case ScaleRule::i8:
      return super_of(r, block * r.info.block / r.info.super_block).scale *
             static_cast<float>(small_of(r, block).scale);
    default: return static_cast<float>(row_scale(r));
  }
}

// ---- wide types ----

template <class Code, class T, class Value>
void decode_wide(const Row& r, int64_t k0, int64_t n, T* out, Value value) {
  const std::byte* codes = r.group + r.g.codes;
  for (int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<T>(value(load<Code>(codes, (k0 + i) * kR16Rows + r.lane)));
  }
}

template <class Code, class T>
void decode_wide_integers(const Row& r, int64_t k0, int64_t n, T* out) {
  const double scale = row_scale(r), zero = zero_point(r, 0);
  decode_wide<Code>(r, k0, n, out,
                    [=](Code code) { return (static_cast<double>(code) - zero) * scale; });
}

template <class T>
void decode_wide_row(const Row& r, int64_t k0, int64_t n, T* out) {
  const double scale = row_scale(r);
  switch (r.info.dtype) {
    case DType::f64: return decode_wide<double>(r, k0, n, out, [](double x) { return x; });
    case DType::f32: return decode_wide<float>(r, k0, n, out, [](float x) { return x; });
    case DType::f16: return decode_wide<uint16_t>(r, k0, n, out, f32_from_f16);
    case DType::bf16: return decode_wide<uint16_t>(r, k0, n, out, f32_from_bf16);
    case DType::f8e4m3:
      return decode_wide<uint8_t>(
          r, k0, n, out, [=](uint8_t c) { return static_cast<double>(f32_from_e4m3(c)) * scale; });
    case DType::f8e5m2:
      return decode_wide<uint8_t>(
          r, k0, n, out, [=](uint8_t c) { return static_cast<double>(f32_from_e5m2(c)) * scale; });
    case DType::i16: return decode_wide_integers<int16_t>(r, k0, n, out);
    case DType::i32: return decode_wide_integers<int32_t>(r, k0, n, out);
    case DType::i64: return decode_wide_integers<int64_t>(r, k0, n, out);
    case DType::u16: return decode_wide_integers<uint16_t>(r, k0, n, out);
    case DType::u32: return decode_wide_integers<uint32_t>(r, k0, n, out);
    case DType::u64: return decode_wide_integers<uint64_t>(r, k0, n, out);
    default: return;
  }
}

// ---- k-groups ----

// The 32 codes of block b of one row.
void codes_of(const Row& r, int64_t b, uint8_t (&codes)[kR16Block]) {
  get_codes(r.g, r.group + r.g.codes + b * r.g.block_code_bytes() + r.lane * 4, codes);
}

// Levels (integer path) or nf4 values of n codes, times their step.
template <class T>
void decode_codes(const Row& r, const uint8_t* codes, int64_t n, T step, T zero, T* out) {
  if (r.info.levels == Levels::none) {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(kLevelsNF4[codes[i] & 15]) * step;
  } else if (r.info.levels == Levels::direct) {
    const T offset = zero + static_cast<T>(r.info.code_bias);
    for (int64_t i = 0; i < n; ++i) out[i] = (static_cast<T>(codes[i]) - offset) * step;
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(level_of(r.info, codes[i])) * step;
  }
}

// Types whose values are level * step + offset: the product is exact, so there is one rounding.
template <class T>
void decode_shifted(const Row& r, const uint8_t* codes, int64_t n, T step, T offset, T* out) {
  const T bias = static_cast<T>(r.info.code_bias);
  for (int64_t i = 0; i < n; ++i) out[i] = (static_cast<T>(codes[i]) - bias) * step + offset;
}

template <class T>
void decode_k_groups(const Row& r, int64_t k0, int64_t n, T* out) {
  const int span = r.info.block == 16 ? 16 : 32;  // these values share a step for certain
  const int64_t scale_block = r.info.block > 0 ? r.info.block : r.g.blocks * kR16Block;
  uint8_t codes[kR16Block];
  int64_t held = -1;
  for (int64_t k = k0, end = k0 + n; k < end;) {
    if (k / kR16Block != held) codes_of(r, held = k / kR16Block, codes);
    const int64_t stop = (k / span + 1) * span < end ? (k / span + 1) * span : end;
    const int64_t block = k / scale_block;
    const T step = static_cast<T>(block_step(r, block));
    if (r.info.shifted()) {
      const T offset = static_cast<T>(block_offset(r, block));
      decode_shifted(r, codes + k % kR16Block, stop - k, step, offset, out);
    } else {
      const T zero = static_cast<T>(zero_point(r, block));
      decode_codes(r, codes + k % kR16Block, stop - k, step, zero, out);
    }
    out += stop - k;
    k = stop;
  }
}

template <class T>
void decode_row(const Row& r, int64_t k0, int64_t n, T* out) {
  if (r.g.wide) return decode_wide_row(r, k0, n, out);
  decode_k_groups(r, k0, n, out);
}

using CodeValues = std::array<float, 256>;
constexpr size_t kDTypes = 0
#define LOOM_DTYPE(...) +1
#include "dtype/dtypes.def"
#undef LOOM_DTYPE
    ;

CodeValues code_values(const DTypeInfo& info) {
  CodeValues values{};
  for (uint32_t code = 0; info.bits <= 8 && code < 1u << info.bits; ++code) {
    if (info.dtype == DType::f8e4m3) {
      values[code] = f32_from_e4m3(static_cast<uint8_t>(code));
    } else if (info.dtype == DType::f8e5m2) {
      values[code] = f32_from_e5m2(static_cast<uint8_t>(code));
    } else if (info.levels == Levels::none) {
      values[code] = kLevelsNF4[code & 15];
    } else {
      values[code] = static_cast<float>(level_of(info, code));
    }
  }
  return values;
}

}  // namespace

const float* r16_code_values(DType dtype) {
  // Not a vector, because it is made at the first use, which may be the first token.
  static const std::array<CodeValues, kDTypes> tables = [] {
    std::array<CodeValues, kDTypes> all;
    for (const DTypeInfo& info : dtype_table())
      all[static_cast<size_t>(info.dtype)] = code_values(info);
    return all;
  }();
  return tables[static_cast<size_t>(dtype)].data();
}

void r16_decode(const R16& g, const std::byte* data, int64_t row, int64_t k0, int64_t n,
                float* out) {
  decode_row(row_of(g, data, row), k0, n, out);
}

void r16_decode_f64(const R16& g, const std::byte* data, int64_t row, int64_t k0, int64_t n,
                    double* out) {
  decode_row(row_of(g, data, row), k0, n, out);
}

int32_t r16_level(const R16& g, const std::byte* data, int64_t row, int64_t k) {
  const Row r = row_of(g, data, row);
  const auto bits_at = [&](const R16Slot& slot, int bits) {
    return std::to_integer<uint32_t>(r.group[slot.byte]) >> slot.shift & ((1u << bits) - 1u);
  };
  uint32_t code = bits_at(r16_slot(g, r.lane, k), g.low_bits);
  if (g.low_bits < g.bits)
    code |= bits_at(r16_high_slot(g, r.lane, k), g.bits - g.low_bits) << g.low_bits;
  const int64_t block = r.info.block > 0 ? k / r.info.block : 0;
  return level_of(r.info, code) - static_cast<int32_t>(zero_point(r, block));
}

float r16_step(const R16& g, const std::byte* data, int64_t row, int64_t block) {
  return block_step(row_of(g, data, row), block);
}

float r16_offset(const R16& g, const std::byte* data, int64_t row, int64_t block) {
  const Row r = row_of(g, data, row);
  return r.info.shifted() ? block_offset(r, block) : 0.0f;
}

R16Super r16_super(const R16& g, const std::byte* data, int64_t row, int64_t super_block) {
  return super_of(row_of(g, data, row), super_block);
}

R16Small r16_small(const R16& g, const std::byte* data, int64_t row, int64_t block) {
  return small_of(row_of(g, data, row), block);
}

}  // namespace loom::core

// r16_pack: row-major f32 or f64 to the R16 layout, one group of sixteen rows at a time. Missing
// rows are packed as rows of zeros with step 0, and missing k as zeros. So every byte of a group is
// written, and equal inputs give equal bytes.
#include <cstring>

#include "base/numbers/bits.hpp"
#include "base/numbers/rng.hpp"
#include "dtype/codecs/super_block.hpp"
#include "dtype/elements.hpp"
#include "dtype/r16/planes.hpp"
#include "dtype/r16/r16_store.hpp"

namespace loom::core {
namespace {

constexpr int64_t kSpan = 64;  // values of a row that are processed at a time

// Lanes [begin, end) of a group are packed: all sixteen, or one.
struct Group {
  const R16& g;
  const DTypeInfo& info;
  const float* src;     // row `begin` of the group,
  const double* src64;  // or this if the source is f64
  int lanes;            // rows that exist
  std::byte* dst;
  Scale scale[kR16Rows];
  float tensor_scale = 0;  // nvfp4
  const R16Dither* dither = nullptr;
  int64_t first_row = 0;  // of the matrix: lane 0
  FrozenRanges held = {};
  int begin = 0, end = kR16Rows;

  int present() const { return lanes < end ? lanes : end; }
  // The offset of the lane's first value in the source.
  int64_t offset(int lane) const { return (lane - begin) * g.cols; }
};

// Distance of adjacent values of the type around q (in steps): the maximum change by rounding.
double spacing(const DTypeInfo& info, double q) {
  int mantissa = 0, lowest = 0;
  switch (info.dtype) {
    case DType::f16: mantissa = 10, lowest = -14; break;
    case DType::bf16: mantissa = 7, lowest = -126; break;
    case DType::f8e4m3: mantissa = 3, lowest = -6; break;
    case DType::f8e5m2: mantissa = 2, lowest = -14; break;
    default: return 1.0;
  }
  const int exponent = static_cast<int>(bit_cast<uint64_t>(abs_of(q)) >> 52) - 1023;
  return pow2((exponent > lowest ? exponent : lowest) - mantissa);
}

// out = x plus a uniform number from half a spacing below to half above, so that rounding to the
// nearest is right on average.
void dither_span(const Group& group, int lane, int64_t k0, int64_t n, const float* x, float* out) {
  const R16Dither& d = *group.dither;
  const double step = group.g.has_row_scale ? divisor(group.scale[lane].step) : 1.0;
  const Rng rng(d.seed, d.stream);
  const uint64_t base =
      (d.step << 40) + static_cast<uint64_t>((group.first_row + lane) * group.g.cols + k0);
  for (int64_t i = 0; i < n; ++i) {
    const double q = static_cast<double>(x[i]) / step;
    const double u = static_cast<double>(rng.uniform(base + static_cast<uint64_t>(i))) - 0.5;
    out[i] = static_cast<float>((q + u * spacing(group.info, q)) * step);
  }
}

TensorRange row_range(const Group& group, int lane) {
  const int64_t cols = group.g.cols;
  return group.src64 != nullptr ? range_of(group.src64 + group.offset(lane), cols, 1)
                                : range_of(group.src + group.offset(lane), cols, 1);
}

// `row`: of the matrix, or 0 for the whole of it.
Scale frozen_scale(const Group& group, const TensorRange& range, int64_t row) {
  const int values = r16_frozen_values(group.info.dtype);
  if (group.held.values == nullptr || values == 0) return range_scale(group.info, range);
  float* held = group.held.values + row * values;
  return range_scale(group.info, frozen_range(group.info, range, held, group.held.band));
}

void choose_row_scales(Group& group, ScaleScope scope, const TensorRange& range) {
  const bool whole = scope == ScaleScope::per_tensor;
  for (int lane = group.begin; lane < group.end; ++lane) {
    group.scale[lane] = Scale{0.0, 0.0, 0.0};
    if (lane >= group.lanes) continue;
    group.scale[lane] = whole ? frozen_scale(group, range, 0)
                              : frozen_scale(group, row_range(group, lane), group.first_row + lane);
  }
}

void store_row_scales(const Group& group) {
  const R16& g = group.g;
  for (int lane = group.begin; lane < group.end; ++lane) {
    if (group.info.scale == ScaleRule::e4m3) {
      store(group.dst + g.row_scales, lane, lane < group.lanes ? group.tensor_scale : 0.0f);
    } else {
      store_row_scale(g, group.info, lane, group.scale[lane], group.dst);
    }
  }
}

// ---- wide types: element (k, lane) ----

// Encodes values of f64 sources directly if codes are f64; otherwise rounds them to f32 first.
template <class Code, class Source, class Encode>
void pack_wide_from(const Group& group, const Source* src, Encode encode) {
  using Value = std::conditional_t<std::is_same_v<Code, double>, Source, float>;
  constexpr int64_t kTile = kSpan;  // keeps the tile of the output in L1 for all sixteen rows
  const R16& g = group.g;
  std::byte* codes = group.dst + g.codes;
  for (int64_t k0 = 0; k0 < g.cols; k0 += kTile) {
    const int64_t k1 = k0 + kTile < g.cols ? k0 + kTile : g.cols;
    for (int lane = group.begin; lane < group.present(); ++lane) {
      const Source* span = src + group.offset(lane) + k0;
      float dithered[kSpan];
      if constexpr (std::is_same_v<Source, float>) {
        if (group.dither != nullptr) {
          dither_span(group, lane, k0, k1 - k0, span, dithered);
          span = dithered;
        }
      }
      for (int64_t k = k0; k < k1; ++k) {
        const auto value = static_cast<Value>(span[k - k0]);
        store(codes, k * kR16Rows + lane, static_cast<Code>(encode(value, lane)));
      }
    }
  }
}

template <class Code, class Encode>
void pack_wide(const Group& group, Encode encode) {
  if (group.src64 != nullptr) return pack_wide_from<Code>(group, group.src64, encode);
  pack_wide_from<Code>(group, group.src, encode);
}

template <class Code>
void pack_wide_integers(const Group& group) {
  const IntRange range = int_range(group.info);
  pack_wide<Code>(group, [&](float x, int lane) {
    const Scale& s = group.scale[lane];
    return static_cast<int64_t>(integer_code(x / divisor(s.step), s.zero, range));
  });
}

void pack_wide_group(const Group& group) {
  const auto scaled = [&](float x, int lane) { return x / divisor(group.scale[lane].step); };
  switch (group.info.dtype) {
    case DType::f64: return pack_wide<double>(group, [](auto x, int) { return x; });
    case DType::f32: return pack_wide<uint32_t>(group, [](float x, int) { return f32_bits(x); });
    case DType::f16:
      return pack_wide<uint16_t>(group, [](float x, int) { return f16_from_f32(x); });
    case DType::bf16:
      return pack_wide<uint16_t>(group, [](float x, int) { return bf16_from_f32(x); });
    case DType::f8e4m3:
      return pack_wide<uint8_t>(
          group, [&](float x, int lane) { return e4m3_code(scaled(x, lane), true); });
    case DType::f8e5m2:
      return pack_wide<uint8_t>(
          group, [&](float x, int lane) { return e5m2_code(scaled(x, lane), true); });
    default: break;
  }
  if (group.info.bits == 16) return pack_wide_integers<uint16_t>(group);
  if (group.info.bits == 32) return pack_wide_integers<uint32_t>(group);
  pack_wide_integers<uint64_t>(group);
}

// ---- k-groups: blocks of 32 k ----

using EncodeSpan = void (*)(const DTypeInfo&, const float*, int, const Scale&, uint8_t*);

void encode_direct(const DTypeInfo& info, const float* x, int n, const Scale& s, uint8_t* codes) {
  const IntRange range = int_range(info);
  const double step = divisor(s.step);
  for (int i = 0; i < n; ++i) {
    const double level = small_integer_code(x[i] / step, s.zero, range);
    codes[i] = static_cast<uint8_t>(static_cast<int32_t>(level) + info.code_bias);
  }
}

template <uint8_t (*kCode)(double)>
void encode_quotient(const DTypeInfo&, const float* x, int n, const Scale& s, uint8_t* codes) {
  const double step = divisor(s.step);
  for (int i = 0; i < n; ++i) codes[i] = kCode(x[i] / step);
}

template <uint8_t (*kCode)(float)>
void encode_gguf(const DTypeInfo&, const float* x, int n, const Scale& s, uint8_t* codes) {
  const auto inv = static_cast<float>(s.inv);
  for (int i = 0; i < n; ++i) codes[i] = kCode(x[i] * inv);
}

void encode_above(const DTypeInfo& info, const float* x, int n, const Scale& s, uint8_t* codes) {
  const auto origin = static_cast<float>(s.origin), inv = static_cast<float>(s.inv);
  const auto top = static_cast<float>(int_range(info).hi);
  for (int i = 0; i < n; ++i) codes[i] = gguf_code_above(x[i], origin, inv, top);
}

EncodeSpan encoder_of(const DTypeInfo& info) {
  switch (info.levels) {
    case Levels::twice: return encode_quotient<binary_code>;
    case Levels::e2m1: return encode_quotient<e2m1_code>;
    case Levels::e3m0: return encode_quotient<e3m0_code>;
    case Levels::none: return encode_quotient<nf4_code>;
    case Levels::direct: break;
  }
  if (info.zero == ZeroRule::f16) return encode_above;
  if (info.scale != ScaleRule::f16 || info.zero == ZeroRule::code) return encode_direct;
  if (info.bits == 4) return encode_gguf<gguf_code<4>>;
  return info.bits == 5 ? encode_gguf<gguf_code<5>> : encode_gguf<gguf_code_q8>;
}

// Values that are packed together: complete scale blocks and super-blocks.
constexpr int64_t kMaxChunk = kMaxBlockValues;
int64_t chunk_values(const DTypeInfo& info) {
  const int64_t values = block_values(info);
  return values > 64 ? values : 64;
}

// Values [k0, k0 + chunk) of one row, zero past the end of the matrix.
const float* chunk_of(const Group& group, int lane, int64_t k0, float (&padded)[kMaxChunk]) {
  const R16& g = group.g;
  const int64_t chunk = chunk_values(group.info);
  const int64_t left = lane < group.lanes ? g.cols - k0 : 0;
  if (group.src64 != nullptr) {
    const double* wide = group.src64 + (left > 0 ? group.offset(lane) + k0 : 0);
    for (int64_t i = 0; i < chunk; ++i) padded[i] = i < left ? static_cast<float>(wide[i]) : 0.0f;
    return padded;
  }
  const float* x = group.src + (left > 0 ? group.offset(lane) + k0 : 0);
  if (group.dither != nullptr && left > 0) {
    const int64_t n = left < chunk ? left : chunk;
    for (int64_t i = n; i < chunk; ++i) padded[i] = 0.0f;
    dither_span(group, lane, k0, n, x, padded);
    return padded;
  }
  if (left >= chunk) return x;
  for (int64_t i = 0; i < chunk; ++i) padded[i] = i < left ? x[i] : 0.0f;
  return padded;
}

void pack_block(const Group& group, int lane, int64_t b, const uint8_t (&codes)[kR16Block]) {
  const R16& g = group.g;
  std::byte* at = group.dst + g.codes + b * g.block_code_bytes() + lane * 4;
  const int64_t used = g.cols - b * kR16Block;
  const bool zeroless = group.info.kind == NumberKind::binary || group.info.shifted();
  if (zeroless && used < kR16Block) {
    uint8_t kept[kR16Block] = {};  // no code has value zero: padding is code 0 by definition
    std::memcpy(kept, codes, static_cast<size_t>(used));
    return put_codes(g, kept, at);
  }
  put_codes(g, codes, at);
}

// The number of existing values of a lane from k on, at most `count`.
int existing(const Group& group, int lane, int64_t k, int64_t count) {
  const int64_t left = lane < group.lanes ? group.g.cols - k : 0;
  return static_cast<int>(left < 0 ? 0 : left < count ? left : count);
}

void pack_chunk(const Group& group, int lane, int64_t k0, const float* x, EncodeSpan encode) {
  const R16& g = group.g;
  const int block = group.info.block;
  const int span = block == 16 ? 16 : 32;  // these share a scale for certain
  Scale scale = group.scale[lane];
  const int64_t end = (k0 + chunk_values(group.info)) / kR16Block;
  for (int64_t b = k0 / kR16Block; b < g.blocks && b < end; ++b) {
    uint8_t codes[kR16Block];
    for (int64_t k = b * kR16Block; k < (b + 1) * kR16Block; k += span) {
      if (block > 0 && k % block == 0) {
        const int n = existing(group, lane, k, block);
        const BlockScale chosen = block_scale(group.info, x + k - k0, n, group.tensor_scale);
        store_block_scale(g, group.info, k / block, lane, chosen, group.dst);
        scale = chosen.scale;
      }
      encode(group.info, x + k - k0, span, scale, codes + k % kR16Block);
    }
    pack_block(group, lane, b, codes);
  }
}

void pack_super_block(const Group& group, int lane, int64_t k0, const float* x) {
  const int64_t values = group.info.super_block;
  BlockFields fields;
  quantize_super_block(group.info, x, existing(group, lane, k0, values), fields);
  put_fields(group.g, fields, lane, k0 / values, group.dst);
}

void pack_k_groups(const Group& group) {
  const EncodeSpan encode = encoder_of(group.info);
  const int64_t chunk = chunk_values(group.info);
  float padded[kMaxChunk];
  for (int64_t k0 = 0; k0 < group.g.cols; k0 += chunk) {
    for (int lane = group.begin; lane < group.end; ++lane) {
      const float* x = chunk_of(group, lane, k0, padded);
      if (group.info.super_block > 0) {
        pack_super_block(group, lane, k0, x);
      } else {
        pack_chunk(group, lane, k0, x, encode);
      }
    }
  }
}

// Clears bytes that packing does not reach: gaps between sections, and the codes of absent rows and
// of the tail.
void clear_unwritten(const Group& group) {
  const R16& g = group.g;
  const bool full = group.lanes == kR16Rows;
  std::memset(group.dst, 0, static_cast<size_t>(g.codes));
  if (g.wide && !full) std::memset(group.dst, 0, static_cast<size_t>(g.group_bytes));
  const int64_t tail = g.group_bytes < 64 ? g.group_bytes : 64;
  if (g.wide && full) std::memset(group.dst + g.group_bytes - tail, 0, static_cast<size_t>(tail));
}

void pack_lanes(Group& group, ScaleScope scope, const TensorRange& range) {
  if (group.g.has_row_scale) {
    choose_row_scales(group, scope, range);
    store_row_scales(group);
  }
  if (group.g.wide) {
    pack_wide_group(group);
  } else {
    pack_k_groups(group);
  }
}

// One of src and src64 is null.
void pack_groups(const R16& g, const float* src, const double* src64, int64_t first, int64_t count,
                 ScaleScope scope, const TensorRange& range, std::byte* dst,
                 const FrozenRanges& held = {}, const R16Dither* dither = nullptr) {
  const DTypeInfo& info = dtype_info(g.dtype);
  if (g.group_bytes == 0) return;
  for (int64_t row = 0; row < count; row += kR16Rows) {
    const int64_t left = count - row;
    Group group{g,
                info,
                src == nullptr ? nullptr : src + row * g.cols,
                src64 == nullptr ? nullptr : src64 + row * g.cols,
                static_cast<int>(left < kR16Rows ? left : kR16Rows),
                dst + (first + row) / kR16Rows * g.group_bytes,
                {},
                0.0f,
                dither,
                first + row,
                held};
    clear_unwritten(group);
    if (info.scale == ScaleRule::e4m3) group.tensor_scale = nvfp4_tensor_scale(amax_of(range));
    pack_lanes(group, scope, range);
  }
}

}  // namespace

void r16_pack(const R16& g, const float* src, int64_t first, int64_t count, ScaleScope scope,
              const TensorRange& range, std::byte* dst, const FrozenRanges& held) {
  pack_groups(g, src, nullptr, first, count, scope, range, dst, held);
}

void r16_pack(const R16& g, const double* src, int64_t first, int64_t count, ScaleScope scope,
              const TensorRange& range, std::byte* dst) {
  pack_groups(g, nullptr, src, first, count, scope, range, dst);
}

void r16_pack_stochastic(const R16& g, const float* src, int64_t first, int64_t count,
                         const R16Dither& dither, std::byte* dst, const FrozenRanges& held) {
  pack_groups(g, src, nullptr, first, count, ScaleScope::per_row, {}, dst, held, &dither);
}

void r16_pack_row(const R16& g, const float* src, int64_t row, const R16Dither* dither,
                  std::byte* dst, const FrozenRanges& held) {
  const int64_t first = row / kR16Rows * kR16Rows, left = g.rows - first;
  const auto lane = static_cast<int>(row - first);
  const auto lanes = static_cast<int>(left < kR16Rows ? left : kR16Rows);
  std::byte* const at = dst + row / kR16Rows * g.group_bytes;
  Group group{g, dtype_info(g.dtype), src, nullptr, lanes, at, {}, 0.0f, dither, first, held};
  group.begin = lane;
  group.end = lane + 1;
  if (g.group_bytes > 0) pack_lanes(group, ScaleScope::per_row, {});
}

}  // namespace loom::core

// quantize_rows and pack: activations to q8 blocks of 32, weights to R16.
// A q8 block: scale = absmax / 127, code = nearest even of x * (127 / absmax). If a block holds an
// infinity or a NaN, its codes are 0 and its scale is that value. So 0 * scale makes its sums NaN.
// A block too small to invert becomes zeros.
#include "backend/reference/kernels.hpp"
#include "base/numbers/bits.hpp"
#include "ops/fmath.hpp"

namespace loom::core::reference {
namespace {

constexpr int32_t kInfinityBits = 0x7f800000;

// Largest magnitude of n values, compared as bits: NaN above infinity.
int32_t absmax_bits(const float* x, int64_t n) {
  int32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int32_t magnitude = fmath::bits(x[i]) & 0x7fffffff;
    if (magnitude > largest) largest = magnitude;
  }
  return largest;
}

struct BlockScale {
  float scale, inverse;
};

BlockScale block_scale(int32_t bits) {
  const float absmax = fmath::from_bits<float>(bits);
  if (bits >= kInfinityBits) return {absmax, 0.0f};
  if (bits == 0) return {0.0f, 0.0f};
  const float inverse = 127.0f / absmax;
  if (inverse == __builtin_inff()) return {0.0f, 0.0f};
  return {absmax / 127.0f, inverse};
}

int8_t q8_code(float scaled) {
  if (scaled != scaled) return 0;
  int32_t code = fmath::round_to_int<float>(scaled);
  if (code > 127) code = 127;
  if (code < -127) code = -127;
  return static_cast<int8_t>(code);
}

}  // namespace

template <class T>
void quantize_rows(const QuantizeRowsArgs& args, const Lane& lane) {
  const Q8Rows& q = args.q;
  const LaneRange rows = lane.range(q.rows);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    for (int64_t block = 0; block < q.blocks; ++block) {
      const int64_t k0 = block * 32;
      const int64_t n = q.cols - k0 < 32 ? q.cols - k0 : 32;
      const float* x = args.x.f32_row(r) + k0;
      int8_t* codes = q.codes + r * q.padded_cols() + k0;
      const BlockScale scale = block_scale(absmax_bits(x, n));
      int32_t sum = 0, half_sum = 0;
      for (int64_t i = 0; i < 32; ++i) {
        codes[i] = i < n ? q8_code(x[i] * scale.inverse) : int8_t{0};
        sum += codes[i];
        if (i < 16) half_sum += codes[i];
      }
      q.scales[r * q.blocks + block] = scale.scale;
      q.sums[r * q.blocks + block] = sum;
      q.half_sums[r * q.blocks + block] = half_sum;
    }
  }
}
LOOM_REFERENCE_BODY_F32(quantize_rows, QuantizeRowsArgs);

namespace {

R16Dither dither_of(const PackArgs& args) {
  const float step = args.step.empty() ? 0.0f : args.step.f32()[0];
  return {args.seed, args.stream, static_cast<uint64_t>(step)};
}

void pack_rows(const PackArgs& args, const R16& w, const FrozenRanges& held, const Lane& lane) {
  const R16Dither dither = dither_of(args);
  const LaneRange range = lane.range(args.rows.shape.count());
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t row = args.rows.i32()[i];
    if (row < 0) continue;
    r16_pack_row(w, args.src.f32() + row * w.cols, row, args.stochastic ? &dither : nullptr,
                 args.w.data, held);
  }
}

}  // namespace

template <class T>
void pack(const PackArgs& args, const Lane& lane) {
  const R16 w = r16_geometry(args.w.dtype, args.w.shape[0], args.w.shape[1]);
  const FrozenRanges held{args.ranges.f32(), args.band};
  if (!args.rows.empty()) return pack_rows(args, w, held, lane);
  const T* src = args.src.values<T>();
  const bool whole = args.scope == ScaleScope::per_tensor;
  LaneRange rows = lane.range(w.rows, kR16Rows);
  // One scale for all rows: lane 0 packs all rows, so the frozen ranges have one writer.
  if (whole && !args.ranges.empty()) rows = {0, lane.index == 0 ? w.rows : 0};
  if (rows.begin == rows.end) return;
  src += rows.begin * w.cols;
  const int64_t count = rows.end - rows.begin;
  TensorRange range;
  if (whole || dtype_info(w.dtype).scale == ScaleRule::e4m3) {
    range = tensor_range(args.src.values<T>(), w.rows * w.cols);
  }
  if constexpr (std::is_same_v<T, float>) {
    if (args.stochastic) {
      return r16_pack_stochastic(w, src, rows.begin, count, dither_of(args), args.w.data, held);
    }
    return r16_pack(w, src, rows.begin, count, args.scope, range, args.w.data, held);
  } else {
    r16_pack(w, src, rows.begin, count, args.scope, range, args.w.data);
  }
}
LOOM_REFERENCE_BODY(pack, PackArgs);

}  // namespace loom::core::reference

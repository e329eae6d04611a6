// R16: the packed layout of all weight matrices [rows][cols], in memory, on the device, in files.
//
// Sixteen output rows form a group. Inside it the k-th codes of the sixteen rows are adjacent. So a
// vector register holds one k (or four) of sixteen outputs on every instruction set. A group is
// [row scales][zero points][super-block scales][block scales][codes], each section 64-byte aligned.
//
// Codes are those of codec.hpp: level + code_bias if levels are direct, two's complement from int16
// up.
//
// Wide (float-path types): element (k, lane) at (k*16 + lane) * bytes.
//
// K-groups (integer-path types and nf4): blocks of 32 k. Group g = (k%32)/4 of a block is in the
// 64-byte vector g % bits, shifted left by bits*(g / bits); byte lane*4 + k%4. So 8-bit codes need
// no shift, 4-bit codes one mask or one shift, and no type needs a shuffle. Codes of 3, 5 and 6
// bits are in two consecutive planes of each block: the low 2, 4 or 4 bits in the layout of that
// width, then the high 1, 1 or 2 bits likewise (docs/decisions/0022).
//
// Rows are padded to 16 and k to 32 (wide: k is not padded) with codes of value zero. Binary types
// and types whose blocks have an offset are padded with code 0. The steps and offsets of absent
// rows are 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/inline.hpp"
#include "base/numbers/checked.hpp"
#include "dtype/dtype.hpp"

namespace loom::core {

constexpr int64_t kR16Rows = 16;
constexpr int64_t kR16Block = 32;

struct R16 {
  DType dtype = DType::f32;
  int64_t rows = 0, cols = 0;
  int64_t groups = 0;  // ceil(rows / 16)
  int64_t blocks = 0;  // k-blocks of 32 (k-group types), or 0
  bool wide = true;
  int bits = 32, low_bits = 32;  // of a code, and of its low plane
  // Byte offsets inside a group.
  int64_t row_scales = 0;    // f32[16] (f64[16] if compute is f64), includes level_unit
  int64_t zeros = 0;         // i32[16] (f64[16] if compute is f64); affine types only
  int64_t super_scales = 0;  // per super-block: f16[16] of steps, f16[16] subtracted
  // Per scale block: f16[16], e8m0[16], e4m3[16], f32[16] or i8[16]; then, if blocks have zeros,
  // these: u8[16] or f16[16]. Scales of 4 bits share a byte with their zeros, which are in the high
  // bits.
  int64_t block_scales = 0;
  int64_t codes = 0;
  int64_t group_bytes = 0;
  int64_t super_bytes = 0;        // of one super-block in its section
  int64_t scale_block_bytes = 0;  // of one block of scales, including zeros
  int64_t block_zeros = 0;        // offset of the zeros in it
  bool has_row_scale = false;

  LOOM_INLINE int64_t bytes() const { return groups * group_bytes; }
  LOOM_INLINE int64_t block_code_bytes() const { return kR16Rows * kR16Block * bits / 8; }
};

// Geometry of a [rows][cols] matrix in `dtype`; rows, cols >= 0.
R16 r16_geometry(DType dtype, int64_t rows, int64_t cols);

// The location of code (row, k) of a k-group type, or of its low bits if there are two planes: byte
// offset inside the group, and left shift inside that byte.
struct R16Slot {
  int64_t byte;
  int shift;
};
LOOM_INLINE R16Slot r16_plane_slot(const R16& g, int64_t plane, int bits, int64_t lane, int64_t k) {
  const int64_t quad = (k % kR16Block) / 4;
  const int64_t block = g.codes + (k / kR16Block) * g.block_code_bytes() + plane;
  return {block + quad % bits * 64 + lane * 4 + k % 4, static_cast<int>(bits * (quad / bits))};
}
LOOM_INLINE R16Slot r16_slot(const R16& g, int64_t lane, int64_t k) {
  return r16_plane_slot(g, 0, g.low_bits, lane, k);
}
// The location of the high bits, for types of two planes.
LOOM_INLINE R16Slot r16_high_slot(const R16& g, int64_t lane, int64_t k) {
  return r16_plane_slot(g, int64_t{64} * g.low_bits, g.bits - g.low_bits, lane, k);
}

enum class ScaleScope : uint8_t { per_row, per_tensor };

// Packs rows [first, first + count) of a row-major f32 matrix; `src` points at row `first`. `first`
// is a multiple of 16, and so is count unless the matrix ends there. `dst` is the whole matrix;
// every byte of the touched groups is written. `range` is read only for per_tensor and nvfp4.
struct TensorRange {
  float min = 0, max = 0;  // of the finite values, always including 0
  double mean_abs = 0;
  float grid = 0;  // g > 0 if every value is one of -g, 0, g; else 0
};
TensorRange tensor_range(const float* values, int64_t count);

// The ranges from which scales were computed, kept from one packing to the next, so that scales do
// not follow every small change. A range is kept while the new one is inside it and is at least (1
// - band) of it. Otherwise it is replaced, so no value of a row is ever clamped. Each row
// (per_tensor: the tensor) has the largest or mean magnitude, or the ends of the range; zeros mean
// none yet.
struct FrozenRanges {
  float* values = nullptr;  // [rows][r16_frozen_values()]; null: new scales each time
  float band = 0.125f;
};
// 2 for types with a zero point, 1 for other types with one scale per row. 0 if there is no scale
// or the format defines a scale per block.
int r16_frozen_values(DType dtype);

void r16_pack(const R16& g, const float* src, int64_t first, int64_t count, ScaleScope scope,
              const TensorRange& range, std::byte* dst, const FrozenRanges& held = {});
// From f64: exact for f64 weights; for other types every value is rounded to f32 first.
TensorRange tensor_range(const double* values, int64_t count);
void r16_pack(const R16& g, const double* src, int64_t first, int64_t count, ScaleScope scope,
              const TensorRange& range, std::byte* dst);

// The same with stochastic rounding, for types without block scales (f16, bf16, fp8, integers up to
// 16 bits). A value between two neighbours becomes one of them, with probabilities that make its
// mean exact. Value i of the matrix draws number i of (seed, stream) at `step`. Scales are those of
// the unrounded rows.
struct R16Dither {
  uint64_t seed = 0, stream = 0, step = 0;
};
bool r16_can_dither(DType dtype);
void r16_pack_stochastic(const R16& g, const float* src, int64_t first, int64_t count,
                         const R16Dither& dither, std::byte* dst, const FrozenRanges& held = {});

// Packs only row `row`, from its values `src`, into a packed matrix; bytes of other rows are
// unchanged. Scales are per row. Rounding is stochastic if `dither` is set. Not for types with a
// scale of the whole tensor.
bool r16_packs_rows(DType dtype);
void r16_pack_row(const R16& g, const float* src, int64_t row, const R16Dither* dither,
                  std::byte* dst, const FrozenRanges& held = {});

// Decoded values of row `row`, k in [k0, k0 + n): exactly the values of the type, rounded to f32
// (f64 variant: exact).
void r16_decode(const R16& g, const std::byte* data, int64_t row, int64_t k0, int64_t n,
                float* out);
void r16_decode_f64(const R16& g, const std::byte* data, int64_t row, int64_t k0, int64_t n,
                    double* out);

// Copies row `row` of one packed matrix into another of the same geometry, codes and scales
// included. Bytes of other rows are unchanged.
void r16_copy_row(const R16& g, const std::byte* from, int64_t row, std::byte* to);
// Whether kernels may read a matrix from outside. Kernels accept every code and scale, but a zero
// point must be a code.
bool r16_valid(const R16& g, const std::byte* data);

// Types of 8 bits or less: the value of each code before zero point and step. 256 values; those
// past the codes of the type are 0.
const float* r16_code_values(DType dtype);

// Integer-path types: the level of one weight (without zero point and bias), and the step and
// offset of scale block `block` (one scale per row: any block): value = level * step + offset. The
// offset is 0 if the type is not shifted().
int32_t r16_level(const R16& g, const std::byte* data, int64_t row, int64_t k);
float r16_step(const R16& g, const std::byte* data, int64_t row, int64_t block);
float r16_offset(const R16& g, const std::byte* data, int64_t row, int64_t block);

// Types of super-blocks: the numbers of a super-block, and the small integers of a block:
// step = scale * small scale, offset = -(least * small least), both exact in f32.
struct R16Super {
  float scale, least;
};
struct R16Small {
  int32_t scale, least;
};
R16Super r16_super(const R16& g, const std::byte* data, int64_t row, int64_t super_block);
R16Small r16_small(const R16& g, const std::byte* data, int64_t row, int64_t block);

}  // namespace loom::core

// R16: the one packed layout of weight matrices [rows][cols], in memory, on the device, in files.
//
// Sixteen output rows form a group; inside it the k-th codes of the sixteen rows stand side by
// side, so a vector register holds one k (or four) of sixteen outputs on every instruction set.
// A group is [row scales][zero points][super-block scales][block scales][codes], each section
// 64-byte aligned.
//
// Codes are those of codec.hpp: level + code_bias where levels are direct, two's complement from
// int16 up.
//
// Wide (float-path types): element (k, lane) at (k*16 + lane) * bytes.
//
// K-groups (integer-path types and nf4): blocks of 32 k; group g = (k%32)/4 of a block is found in
// the 64-byte vector g % bits, shifted left by bits*(g / bits); byte lane*4 + k%4. So 8-bit codes
// need no shift, 4-bit codes one mask or one shift, and no type needs a shuffle. Codes of 3, 5 and
// 6 bits lie in two planes, one after the other in each block: the low 2, 4 or 4 bits as codes of
// that width do, and then the high 1, 1 or 2 bits likewise (docs/decisions/0022).
//
// Rows are padded to 16 and k to 32 (wide: k is not padded) with codes of value zero (binary and
// types whose blocks have an offset: with code 0); the steps and offsets of absent rows are 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/checked.hpp"
#include "base/inline.hpp"
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
  int64_t row_scales = 0;    // f32[16] (f64[16] when compute is f64), level_unit multiplied in
  int64_t zeros = 0;         // i32[16] (f64[16] when compute is f64); affine types only
  int64_t super_scales = 0;  // per super-block: f16[16] of the steps, f16[16] of what is taken off
  // Per scale block: f16[16], e8m0[16], e4m3[16], f32[16] or i8[16]; then, where blocks have zeros,
  // those: u8[16] or f16[16]. Scales of 4 bits have their zeros above them, in one byte.
  int64_t block_scales = 0;
  int64_t codes = 0;
  int64_t group_bytes = 0;
  int64_t super_bytes = 0;        // of one super-block in its section
  int64_t scale_block_bytes = 0;  // of one block of scales, zeros and all
  int64_t block_zeros = 0;        // where in it the zeros begin
  bool has_row_scale = false;

  LOOM_INLINE int64_t bytes() const { return groups * group_bytes; }
  LOOM_INLINE int64_t block_code_bytes() const { return kR16Rows * kR16Block * bits / 8; }
};

// Geometry of a [rows][cols] matrix in `dtype`; rows, cols >= 0.
R16 r16_geometry(DType dtype, int64_t rows, int64_t cols);

// Where code (row, k) of a k-group type lies, or its low bits if there are two planes: byte offset
// inside the group, and left shift inside that byte.
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
// The same of the high bits; for types of two planes.
LOOM_INLINE R16Slot r16_high_slot(const R16& g, int64_t lane, int64_t k) {
  return r16_plane_slot(g, int64_t{64} * g.low_bits, g.bits - g.low_bits, lane, k);
}

enum class ScaleScope : uint8_t { per_row, per_tensor };

// Packs rows [first, first + count) of a row-major f32 matrix; `src` points at row `first`; `first`
// is a multiple of 16 and count too unless the matrix ends there. `dst` is the whole matrix;
// every byte of the groups touched is written. `range` is read only for per_tensor and nvfp4.
struct TensorRange {
  float min = 0, max = 0;  // of the finite values, always spanning 0
  double mean_abs = 0;
  float grid = 0;  // g > 0 when every value is one of -g, 0, g; else 0
};
TensorRange tensor_range(const float* values, int64_t count);

// The ranges that scales were taken from, kept from one packing to the next so that scales do not
// follow every small change: a range is kept while the new one lies inside it and is at least
// (1 - band) of it, so that nothing a row holds is ever clamped, and replaced otherwise. Per row
// (per_tensor: once) the largest or mean magnitude, or the ends of the range; zeros: none yet.
struct FrozenRanges {
  float* values = nullptr;  // [rows][r16_frozen_values()]; null: every packing takes new scales
  float band = 0.125f;
};
// 2 for types with a zero point, 1 for the others with one scale per row, 0 where there is none or
// the format defines a scale per block.
int r16_frozen_values(DType dtype);

void r16_pack(const R16& g, const float* src, int64_t first, int64_t count, ScaleScope scope,
              const TensorRange& range, std::byte* dst, const FrozenRanges& held = {});
// From f64: exact for f64 weights; for the others every value is rounded to f32 first.
TensorRange tensor_range(const double* values, int64_t count);
void r16_pack(const R16& g, const double* src, int64_t first, int64_t count, ScaleScope scope,
              const TensorRange& range, std::byte* dst);

// The same with stochastic rounding, for types without block scales (f16, bf16, fp8, integers up to
// 16 bits): a value between two neighbours becomes one or the other, with the chances that make its
// mean exact. Value i of the matrix draws number i of (seed, stream) at `step`. Scales are those of
// the unrounded rows.
struct R16Dither {
  uint64_t seed = 0, stream = 0, step = 0;
};
bool r16_can_dither(DType dtype);
void r16_pack_stochastic(const R16& g, const float* src, int64_t first, int64_t count,
                         const R16Dither& dither, std::byte* dst, const FrozenRanges& held = {});

// Packs row `row` alone, `src` being its values, into a matrix that is packed: bytes of other rows
// stay. Scales are of the row; rounding is stochastic when `dither` is given. Not for types with a
// scale of the whole tensor.
bool r16_packs_rows(DType dtype);
void r16_pack_row(const R16& g, const float* src, int64_t row, const R16Dither* dither,
                  std::byte* dst, const FrozenRanges& held = {});

// Decoded values of row `row`, k in [k0, k0 + n). Exactly what the type represents, rounded to f32
// (f64 variant: exact).
void r16_decode(const R16& g, const std::byte* data, int64_t row, int64_t k0, int64_t n,
                float* out);
void r16_decode_f64(const R16& g, const std::byte* data, int64_t row, int64_t k0, int64_t n,
                    double* out);

// Copies row `row` of one packed matrix into another of the same geometry: codes and scales as they
// are, bytes of other rows stay.
void r16_copy_row(const R16& g, const std::byte* from, int64_t row, std::byte* to);
// Whether kernels may read a matrix that comes from outside: every code and scale is a number to
// them, but a zero point must be a code.
bool r16_valid(const R16& g, const std::byte* data);

// Types of 8 bits or less: what each code stands for before zero point and step. 256 values, those
// beyond the codes of the type 0.
const float* r16_code_values(DType dtype);

// Integer-path types: the level (zero point and bias taken off) of one weight, and the step and the
// offset of scale block `block` (one scale per row: any block): value = level * step + offset. The
// offset is 0 where the type is not shifted().
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

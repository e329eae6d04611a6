// Sizes and offsets of the R16 layout. All arithmetic on shapes is here; packing and decoding only
// read it. Callers must ensure that rows * cols * 8 fits int64 (for files, the reader does).
// Sections that a type does not have are empty.
#include "dtype/r16/r16.hpp"

namespace loom::core {
namespace {

bool has_row_scale(ScaleRule rule) {
  return rule == ScaleRule::row || rule == ScaleRule::affine || rule == ScaleRule::absmean ||
         rule == ScaleRule::meanabs || rule == ScaleRule::e4m3;
}

int64_t block_scale_bytes(ScaleRule rule) {
  switch (rule) {
    case ScaleRule::f16: return kR16Rows * 2;
    case ScaleRule::e8m0: return kR16Rows;
    case ScaleRule::e4m3: return kR16Rows;
    case ScaleRule::absmax64: return kR16Rows * 4;
    case ScaleRule::u4:
    case ScaleRule::u6:
    case ScaleRule::i6:
    case ScaleRule::i8: return kR16Rows;
    default: return 0;
  }
}

int64_t block_zero_bytes(const DTypeInfo& info) {
  switch (info.zero) {
    case ZeroRule::f16: return kR16Rows * 2;
    case ZeroRule::code: return kR16Rows;
    case ZeroRule::small: return info.scale == ScaleRule::u4 ? 0 : kR16Rows;  // half a byte
    default: return 0;
  }
}

int64_t blocks_of(int64_t k, int values) {
  return values > 0 ? ceil_div(k, values) : 0;
}

}  // namespace

R16 r16_geometry(DType dtype, int64_t rows, int64_t cols) {
  const DTypeInfo& info = dtype_info(dtype);
  R16 g;
  g.dtype = dtype;
  g.rows = rows;
  g.cols = cols;
  g.groups = ceil_div(rows, kR16Rows);
  g.wide = !info.integer_path() && info.kind != NumberKind::codebook;
  g.bits = info.bits;
  g.low_bits = info.low_bits;
  g.blocks = g.wide ? 0 : ceil_div(cols, kR16Block);
  g.has_row_scale = has_row_scale(info.scale);
  g.block_zeros = block_scale_bytes(info.scale);
  g.scale_block_bytes = g.block_zeros + block_zero_bytes(info);
  if (info.super_block > 0) g.super_bytes = kR16Rows * (info.zero == ZeroRule::small ? 4 : 2);

  const int64_t vector = kR16Rows * (info.compute == ComputeType::f64 ? 8 : 4);
  const int64_t k = g.blocks * kR16Block;
  g.row_scales = 0;
  g.zeros = g.row_scales + (g.has_row_scale ? vector : 0);
  g.super_scales = g.zeros + (info.affine() ? vector : 0);
  g.block_scales = g.super_scales + round_up(blocks_of(k, info.super_block) * g.super_bytes, 64);
  g.codes = g.block_scales + round_up(blocks_of(k, info.block) * g.scale_block_bytes, 64);
  const int64_t code_bytes =
      g.wide ? cols * kR16Rows * (info.bits / 8) : g.blocks * g.block_code_bytes();
  g.group_bytes = g.codes + round_up(code_bytes, 64);
  return g;
}

int r16_frozen_values(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  if (info.affine()) return 2;
  return has_row_scale(info.scale) && info.block == 0 ? 1 : 0;
}

bool r16_packs_rows(DType dtype) {
  return dtype_info(dtype).scale != ScaleRule::e4m3;
}

bool r16_can_dither(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  const bool scaled = info.scale == ScaleRule::none || info.scale == ScaleRule::row ||
                      info.scale == ScaleRule::affine;
  const bool number = info.kind == NumberKind::ieee || info.kind == NumberKind::fp ||
                      info.kind == NumberKind::sint || info.kind == NumberKind::uint;
  return scaled && number && info.bits >= 8 && info.bits <= 16;
}

}  // namespace loom::core

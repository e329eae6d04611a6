// One row of a packed matrix as bytes: the parts of a group that belong to a lane. Also the
// requirements on an external packed matrix before kernels may read it.
#include <cstring>

#include "dtype/r16/r16.hpp"

namespace loom::core {
namespace {

// Bytes of one number in the sections of row scales and zero points.
int64_t section_bytes(const R16& g) {
  return dtype_info(g.dtype).compute == ComputeType::f64 ? 8 : 4;
}

int64_t scale_bytes(const R16& g, const DTypeInfo& info) {
  if (info.block == 0) return 0;
  return ceil_div(g.blocks * kR16Block, info.block) * g.scale_block_bytes;
}

// Calls fn(offset in the group, bytes) for every run of bytes of one lane.
template <class Fn>
void for_lane(const R16& g, int64_t lane, Fn&& fn) {
  const DTypeInfo& info = dtype_info(g.dtype);
  const int64_t one = section_bytes(g);
  if (g.has_row_scale) fn(g.row_scales + lane * one, one);
  if (info.affine()) fn(g.zeros + lane * one, one);
  const int64_t scale = g.block_zeros / kR16Rows;
  const int64_t zero = g.scale_block_bytes / kR16Rows - scale;
  for (int64_t at = g.block_scales; at < g.block_scales + scale_bytes(g, info);
       at += g.scale_block_bytes) {
    fn(at + lane * scale, scale);
    if (zero > 0) fn(at + g.block_zeros + lane * zero, zero);
  }
  const int64_t supers =
      info.super_block > 0 ? ceil_div(g.blocks * kR16Block, info.super_block) : 0;
  for (int64_t at = 0; at < supers * g.super_bytes; at += kR16Rows * 2)
    fn(g.super_scales + at + lane * 2, int64_t{2});
  const int64_t wide = g.bits / 8;
  for (int64_t k = 0; k < g.cols && g.wide; ++k) fn(g.codes + (k * kR16Rows + lane) * wide, wide);
  // A byte of the other types holds codes of one lane only.
  for (int64_t v = 0; v < g.blocks * g.bits; ++v) fn(g.codes + v * 64 + lane * 4, int64_t{4});
}

}  // namespace

void r16_copy_row(const R16& g, const std::byte* from, int64_t row, std::byte* to) {
  const int64_t group = row / kR16Rows * g.group_bytes;
  for_lane(g, row % kR16Rows, [&](int64_t offset, int64_t bytes) {
    std::memcpy(to + group + offset, from + group + offset, static_cast<size_t>(bytes));
  });
}

namespace {

bool block_zeros_valid(const R16& g, const DTypeInfo& info, const std::byte* group) {
  for (int64_t at = 0; at < scale_bytes(g, info); at += g.scale_block_bytes) {
    for (int64_t lane = 0; lane < kR16Rows; ++lane) {
      const std::byte zero = group[g.block_scales + at + g.block_zeros + lane];
      if (std::to_integer<int>(zero) >= 1 << g.bits) return false;
    }
  }
  return true;
}

}  // namespace

bool r16_valid(const R16& g, const std::byte* data) {
  const DTypeInfo& info = dtype_info(g.dtype);
  for (int64_t group = 0; info.zero == ZeroRule::code && group < g.groups; ++group)
    if (!block_zeros_valid(g, info, data + group * g.group_bytes)) return false;
  if (!info.affine() || info.compute == ComputeType::f64) return true;
  for (int64_t group = 0; group < g.groups; ++group) {
    for (int64_t lane = 0; lane < kR16Rows; ++lane) {
      int32_t zero = 0;
      std::memcpy(&zero, data + group * g.group_bytes + g.zeros + lane * 4, 4);
      if (zero < 0 || zero >= (int32_t{1} << g.bits)) return false;
    }
  }
  return true;
}

}  // namespace loom::core

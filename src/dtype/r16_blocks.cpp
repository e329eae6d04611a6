// GGUF pairs value j with j + 16 in a byte (q8_0: a signed byte each) after the scale; R16 has the
// scales of sixteen rows side by side and the codes in four-value runs. Both number levels alike:
// q4_0 from -8, e2m1 by its bits; q8_0 is signed in GGUF and has a bias of 128 here.
#include "dtype/r16_blocks.hpp"

#include <cstring>

#include "dtype/scale.hpp"

namespace loom {
namespace {

int64_t scale_bytes(const R16& g) {
  return g.scale_block_bytes / kR16Rows;
}

// Lane `lane` of a group has no row: what packing a row of zeros gives.
void clear(const R16& g, int64_t lane, std::byte* group) {
  static constexpr float kZeros[kR16Block] = {};
  const DTypeInfo& info = dtype_info(g.dtype);
  const BlockScale zero = block_scale(info, kZeros, kR16Block, 0.0f);
  for (int64_t b = 0; b < g.blocks; ++b) {
    std::memcpy(group + g.block_scales + b * g.scale_block_bytes + lane * scale_bytes(g),
                &zero.stored, static_cast<size_t>(scale_bytes(g)));
  }
  const int codes = info.code_bias | (g.bits == 4 ? info.code_bias << 4 : 0);
  for (int64_t k = 0; k < g.cols; ++k)
    group[r16_slot(g, lane, k).byte] = static_cast<std::byte>(codes);
}

// The code of value j of a block's code bytes.
int code_at(const std::byte* codes, int bits, int j) {
  if (bits == 8) return std::to_integer<int>(codes[j]) ^ 0x80;
  const int pair = std::to_integer<int>(codes[j % 16]);
  return j < 16 ? pair & 15 : pair >> 4;
}

}  // namespace

int64_t gguf_block_bytes(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  if (info.block != kR16Block || !info.integer_path()) return 0;
  if (info.scale == ScaleRule::f16) return 2 + kR16Block * info.bits / 8;
  if (info.scale == ScaleRule::e8m0 && info.levels == Levels::e2m1) return 1 + kR16Block / 2;
  return 0;
}

bool r16_put_blocks(const R16& g, const std::byte* blocks, int64_t row, std::byte* matrix) {
  const int64_t header = scale_bytes(g), size = gguf_block_bytes(g.dtype), lane = row % kR16Rows;
  const int mask = (1 << g.bits) - 1;
  std::byte* group = matrix + row / kR16Rows * g.group_bytes;
  for (int64_t b = 0; b < g.blocks; ++b, blocks += size) {
    if (header == 1 && blocks[0] == std::byte{255}) return false;
    std::byte* scale = group + g.block_scales + b * g.scale_block_bytes + lane * header;
    std::memcpy(scale, blocks, static_cast<size_t>(header));
    for (int j = 0; j < kR16Block; ++j) {
      const R16Slot slot = r16_slot(g, lane, b * kR16Block + j);
      const int rest = std::to_integer<int>(group[slot.byte]) & ~(mask << slot.shift);
      group[slot.byte] =
          static_cast<std::byte>(rest | code_at(blocks + header, g.bits, j) << slot.shift);
    }
  }
  if (row + 1 < g.rows) return true;
  for (int64_t absent = lane + 1; absent < kR16Rows; ++absent) clear(g, absent, group);
  return true;
}

void r16_get_blocks(const R16& g, const std::byte* matrix, int64_t row, std::byte* blocks) {
  const int64_t header = scale_bytes(g), size = gguf_block_bytes(g.dtype), lane = row % kR16Rows;
  const int mask = (1 << g.bits) - 1;
  const std::byte* group = matrix + row / kR16Rows * g.group_bytes;
  for (int64_t b = 0; b < g.blocks; ++b, blocks += size) {
    std::memcpy(blocks, group + g.block_scales + b * g.scale_block_bytes + lane * header,
                static_cast<size_t>(header));
    std::byte* codes = blocks + header;
    for (int j = 0; j < kR16Block; ++j) {
      const R16Slot slot = r16_slot(g, lane, b * kR16Block + j);
      const int code = std::to_integer<int>(group[slot.byte]) >> slot.shift & mask;
      if (g.bits == 8) {
        codes[j] = static_cast<std::byte>(code ^ 0x80);
      } else if (j < 16) {
        codes[j] = static_cast<std::byte>(code);
      } else {
        codes[j - 16] |= static_cast<std::byte>(code << 4);
      }
    }
  }
}

}  // namespace loom

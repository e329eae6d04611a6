// How large pieces of work should be, from the sizes of caches and the limits of a GPU, each with
// its reason. Pure functions: they choose sizes of tiles, which no result depends on
// (docs/numerics.md), and the doctor shows them beside what the kernels use.
#pragma once

#include <cstdint>
#include <string>

namespace loom::core {

struct Tile {
  int64_t size = 0;    // rows, units or places of a piece
  std::string reason;  // "64 rows: K and V of 64 x 4 bytes fill 32768 of 32768 bytes"
};

// One level: the tables of the original, for caches of the first level of `l1` bytes and elements
// of `bytes` each.
Tile attention_tile(int64_t l1, int64_t head_dim, int64_t bytes);     // rows of K and V
Tile dense_tile(int64_t l1, int64_t in, int64_t out, int64_t bytes);  // units
Tile recurrent_tile(int64_t l1, int64_t in, int64_t hidden, int64_t bytes, int64_t gates);
struct ConvTiling {
  int64_t channels = 1, filters = 1, kernel = 3, stride = 1, padding = 0, out = 1;
  int axes = 1;
};
Tile conv_tile(int64_t l1, const ConvTiling& shape, int64_t bytes);  // places along each axis

// Three levels, for products of matrices: kc x nr of the right one fits half of the first cache, mc
// x kc of the left one half of the second, kc x nc the share of the last. kc is whole chunks of
// 256, along which sums are rounded (docs/numerics.md), mc and nc are whole tiles of 16.
struct ProductBlocks {
  int64_t mc = 0, kc = 0, nc = 0;
  std::string reason;
};
ProductBlocks product_blocks(int64_t l1, int64_t l2, int64_t last_share, int64_t bytes);

// Of a GPU: bytes that a workgroup shares, and invocations of one; 0: not known.
struct GpuLimits {
  int64_t workgroup_bytes = 0, invocations = 0;
};
// Rows of K and V, as f32, in half of the storage.
Tile gpu_attention_tile(const GpuLimits& limits, int64_t head_dim);
// Invocations of a workgroup for products; `large`: for devices that run many at a time. `bytes`:
// of an element.
Tile gpu_product_tile(const GpuLimits& limits, int64_t bytes, bool large);

}  // namespace loom::core

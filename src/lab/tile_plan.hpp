// Recommended sizes of work pieces, from cache sizes and GPU limits, each with its reason. Pure
// functions: they choose tile sizes, which never affect results (docs/numerics.md). The doctor
// shows them next to those that the kernels use.
#pragma once

#include <cstdint>
#include <string>

namespace loom::core {

struct Tile {
  int64_t size = 0;    // rows, units or positions of a piece
  std::string reason;  // "64 rows: K and V of 64 x 4 bytes fill 32768 of 32768 bytes"
};

// One level: the tables of the original project, for first-level caches of `l1` bytes and elements
// of `bytes` each.
Tile attention_tile(int64_t l1, int64_t head_dim, int64_t bytes);     // rows of K and V
Tile dense_tile(int64_t l1, int64_t in, int64_t out, int64_t bytes);  // units
Tile recurrent_tile(int64_t l1, int64_t in, int64_t hidden, int64_t bytes, int64_t gates);
struct ConvTiling {
  int64_t channels = 1, filters = 1, kernel = 3, stride = 1, padding = 0, out = 1;
  int axes = 1;
};
Tile conv_tile(int64_t l1, const ConvTiling& shape, int64_t bytes);  // positions along each axis

// Three levels, for matrix products. kc x nr of the right matrix fits half of the first cache, and
// mc x kc of the left one half of the second. kc x nc fits the share of the last. kc is a multiple
// of 256, the chunk along which sums are rounded (docs/numerics.md); mc and nc are multiples of 16.
struct ProductBlocks {
  int64_t mc = 0, kc = 0, nc = 0;
  std::string reason;
};
ProductBlocks product_blocks(int64_t l1, int64_t l2, int64_t last_share, int64_t bytes);

// GPU limits: shared bytes and invocations of a workgroup; 0 means unknown.
struct GpuLimits {
  int64_t workgroup_bytes = 0, invocations = 0;
};
// Rows of K and V, as f32, in half of the storage.
Tile gpu_attention_tile(const GpuLimits& limits, int64_t head_dim);
// Invocations of a workgroup for products; `large`: for devices that run many at a time. `bytes`:
// of an element.
Tile gpu_product_tile(const GpuLimits& limits, int64_t bytes, bool large);

}  // namespace loom::core

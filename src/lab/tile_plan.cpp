#include "lab/tile_plan.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/text.hpp"

namespace loom::core {
namespace {

// The largest candidate up to the limit; the first if there is none.
int64_t largest_within(std::span<const int64_t> candidates, int64_t limit) {
  int64_t best = candidates[0];
  for (const int64_t c : candidates) {
    if (c <= limit) best = c;
  }
  return best;
}

constexpr int64_t kUnitCandidates[] = {8, 16, 32, 64, 128, 256};

Tile units_tile(int64_t l1, int64_t each, const char* what) {
  const int64_t size = largest_within(kUnitCandidates, l1 / std::max<int64_t>(each, 1));
  return {size,
          cat(size, " ", what, " of ", each, " bytes take ", size * each, " of ", l1, " bytes")};
}

int64_t power(int64_t base, int exponent) {
  int64_t out = 1;
  for (int i = 0; i < exponent; ++i) out *= base;
  return out;
}

int64_t down_to(int64_t value, int64_t step) {
  return value / step * step;
}

}  // namespace

Tile attention_tile(int64_t l1, int64_t head_dim, int64_t bytes) {
  const int64_t each = 2 * std::max<int64_t>(head_dim, 1) * bytes;
  int64_t rows = std::clamp<int64_t>(l1 / each, 8, 256);
  rows = rows < 16 ? down_to(rows, 8) : down_to(rows, 16);
  return {rows, cat(rows, " rows of K and V, ", each, " bytes each, take ", rows * each, " of ", l1,
                    " bytes")};
}

Tile dense_tile(int64_t l1, int64_t in, int64_t out, int64_t bytes) {
  Tile tile = units_tile(l1, in * bytes, "units");
  const int64_t most = std::max(in, out);
  if (tile.size > most) tile = {most, cat(most, " units: the layer has no more")};
  return tile;
}

Tile recurrent_tile(int64_t l1, int64_t in, int64_t hidden, int64_t bytes, int64_t gates) {
  return units_tile(l1, gates * bytes * (in + hidden), "units");
}

Tile conv_tile(int64_t l1, const ConvTiling& s, int64_t bytes) {
  constexpr int64_t kCandidates[] = {4, 8, 16, 32, 64, 128};
  const int64_t most[] = {128, 64, 32};
  const int64_t limit = l1 / 4 * 3;
  Tile tile{4, "4 places: nothing larger fits"};
  for (const int64_t c : kCandidates) {
    if (c > most[s.axes - 1]) continue;
    const int64_t num_positions = std::min(c, s.out), filters = std::min(c, s.filters);
    const int64_t span = (num_positions - 1) * s.stride + s.kernel + 2 * s.padding;
    const int64_t takes = 4 * s.channels * power(span, s.axes) +
                          filters * s.channels * power(s.kernel, s.axes) * bytes +
                          8 * filters * power(num_positions, s.axes);
    if (takes <= limit)
      tile = {c, cat(c, " places: input, weights and sums take ", takes, " of ", limit,
                     " bytes, three quarters of the cache")};
  }
  if (tile.size > s.out) tile = {s.out, cat(s.out, " places: the output has no more")};
  return tile;
}

ProductBlocks product_blocks(int64_t l1, int64_t l2, int64_t last_share, int64_t bytes) {
  constexpr int64_t kTile = 16, kChunk = 256, kMax = 1 << 16;
  ProductBlocks out;
  const int64_t depth = l1 / 2 / (kTile * bytes);
  out.kc = std::clamp(down_to(depth, kChunk), kChunk, kMax);
  out.mc = std::clamp(down_to(l2 / 2 / (out.kc * bytes), kTile), kTile, kMax);
  out.nc = std::clamp(down_to(last_share / (out.kc * bytes), kTile), kTile, kMax);
  out.reason = cat(out.kc, " deep: ", depth,
                   " fit half of the first cache, and sums are rounded in "
                   "chunks of ",
                   kChunk, "; ", out.mc, " rows take ", out.mc * out.kc * bytes, " of ", l2 / 2,
                   " bytes of the second; ", out.nc, " columns take ", out.nc * out.kc * bytes,
                   " of ", last_share, " bytes of the last");
  return out;
}

Tile gpu_attention_tile(const GpuLimits& limits, int64_t head_dim) {
  constexpr int64_t kRowBytes = 2 * 4, kUsualHead = 64, kUnknown = 32;
  const int64_t each = (head_dim > 0 ? head_dim : kUsualHead) * kRowBytes;
  int64_t rows = limits.workgroup_bytes > 0 ? limits.workgroup_bytes / 2 / each : kUnknown;
  if (limits.invocations > 0) rows = std::min(rows, limits.invocations);
  rows = down_to(std::clamp<int64_t>(rows, 8, 64), 8);
  // The smallest size may exceed half of a small storage, but never all of it.
  while (rows > 1 && limits.workgroup_bytes > 0 && rows * each > limits.workgroup_bytes) rows /= 2;
  return {rows, cat(rows, " rows of K and V, ", each, " bytes each, take ", rows * each, " of ",
                    limits.workgroup_bytes, " bytes of a workgroup")};
}

Tile gpu_product_tile(const GpuLimits& limits, int64_t bytes, bool large) {
  const int64_t more = bytes < 4 ? std::min<int64_t>(4, 4 / std::max<int64_t>(bytes, 1)) : 1;
  const int64_t base = gpu_attention_tile(limits, 64).size;
  const int64_t known = limits.invocations > 0 ? limits.invocations : 256;
  int64_t size =
      large ? std::clamp<int64_t>(down_to(std::min<int64_t>(known / 4 * more, 128), 64), 64, 128)
            : std::clamp<int64_t>(down_to(std::min<int64_t>(base * more, 64), 32), 32, 64);
  const int64_t requested = size;
  if (limits.invocations > 0) size = std::min(size, limits.invocations);
  return {size, cat(size, " invocations", size < requested ? ", all that a workgroup has" : "",
                    ": elements of ", bytes, " bytes")};
}

}  // namespace loom::core

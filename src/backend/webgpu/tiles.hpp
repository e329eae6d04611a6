// Products in tiles: what gemm, matmul of many rows, matmul_dx and squared_distance share. A
// workgroup makes a square of the output. Its kernel stages 16 k of both sides in workgroup memory,
// four values along the side at a time, and multiplies what is staged in registers.
//
// A kernel sees
//   side                         outputs of the tile in each direction
//   left_put(k, q, v)            stages v = rows 4q .. 4q + 3 of the left side at k < 16
//   right_put(k, q, v)           likewise of the right side
//   Tile                         the sums of one invocation; var t: Tile
//   tile_step(&t, lane)          adds the staged products, between two workgroupBarrier()
//   tile_end(&t)                 after the last step
//   tile_rows(lane, i), tile_cols(lane, j)  first of the four rows (columns) of quarter i, j <
//   quads tile_part(&t, i, j)          its sums: column r of the matrix holds four columns of row r
#pragma once

#include "backend/webgpu/frame.hpp"

namespace loom::webgpu {

// The shape of a tile: across x across invocations with quads x quads squares of 4 x 4 sums each.
struct TileShape {
  int across = 8, quads = 2;
  int64_t side() const { return across * quads * 4; }
  int lanes() const { return across * across; }
};

// The shape for an output of rows x cols: large tiles read less, small ones leave more to share.
TileShape tile_shape(int64_t rows, int64_t cols);

// How two values make a term of the sum.
enum class Term : uint8_t { product, squared_difference };

// Adds the shared text; the call is then run with as many workgroups as there are tiles.
Call& tiles(Call& call, const TileShape& shape, Term term = Term::product);
Status run_tiles(Call& call, const TileShape& shape, int64_t rows, int64_t cols);

}  // namespace loom::webgpu

// Products in tiles: what gemm, matmul of many rows, matmul_dx and squared_distance share. A
// workgroup makes a square of the output. Its kernel stages 16 k of both sides in workgroup memory,
// four values along the side at a time, and multiplies what is staged in registers.
//
// A kernel sees
//   side                         outputs of the tile in each direction
//   left_put(k, q, v)            stages v = rows 4q .. 4q + 3 of the left side at k < 16
//   right_put(k, q, v)           likewise of the right side
//   tile_begin(z), tile_end(z)   the k that workgroup z of the split sums: a multiple of 16 first
//   Tile                         the sums of one invocation; var t = Tile()
//   tile_step(&t, lane)          adds the staged products, between two workgroupBarrier()
//   tile_store(&t, group, lane)  after the last step: calls out(row, col, sum, z, need) for its
//                                outputs, with what out_needs(row, col) read before
// and values rows, cols, depth. It gives a main, and out() and out_needs() by the text of the op.
#pragma once

#include "backend/webgpu/frame.hpp"

namespace loom::webgpu {

// The shape of a tile: across x across invocations with quads x quads squares of 4 x 4 sums each.
struct TileShape {
  int across = 8, quads = 2;
  int64_t side() const { return across * quads * 4; }
  int lanes() const { return across * across; }
};

// How an output of rows x cols, each a sum of depth terms, is cut: large tiles read less, small
// ones leave more to share. Long sums of few outputs are split, and the parts added afterwards in
// their order.
struct TilePlan {
  TileShape shape;
  int64_t rows = 0, cols = 0, depth = 0;
  int64_t splits = 1, span = 0;
  int64_t tall = 0;  // so many whole rows per workgroup instead of a tile (matmul_narrow.cpp)
};
TilePlan tile_plan(int64_t rows, int64_t cols, int64_t depth);

// How two values make a term of the sum.
enum class Term : uint8_t { product, squared_difference };

// Adds the shared text and the values.
Call& tiles(Call& call, const TilePlan& plan, Term term = Term::product);
// For a plan with splits: sends the parts of the sums to memory; `add` then adds them.
Status run_parts(Frame& frame, Call& call, const TilePlan& plan, Call& add);
Call adding_parts(Frame& frame);
Status run_whole(Call& call, const TilePlan& plan);

// Runs a kernel over tiles. output(call) adds what out() needs to the call that makes the outputs.
template <class Output>
Status run_tiles(Frame& frame, Call& call, const TilePlan& plan, Output output) {
  if (plan.splits == 1) {
    output(call);
    return run_whole(call, plan);
  }
  Call add = adding_parts(frame);
  output(add);
  return run_parts(frame, call, plan, add);
}

}  // namespace loom::webgpu

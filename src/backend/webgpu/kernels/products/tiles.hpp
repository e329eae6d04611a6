// Products in tiles: the shared part of gemm, matmul of many rows, matmul_dx and squared_distance.
// A workgroup makes a rectangle of the output. It stages some k of both sides in workgroup memory,
// four values along the side at a time, and multiplies them in registers.
//
// The text of an op defines:
//   left_four(row, k)         rows row .. row + 3 of the left side at k; row may exceed the last.
//   right_four(col, k)        for stage_quads(): the same of the right side.
//   right_block(col, k)       for stage_blocks(): a mat4x4 whose column j is that of k + j.
//   out_needs(row, col)       former values that an output needs.
//   out(row, col, sum, z, need)  stores an output from its sum and those values.
// k is below depth rounded up to the step. Constant ragged is 1 if some k exceed depth; these must
// count as 0 on the left and be finite on the right. Values rows, cols and depth exist.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// The shape of a tile: down x across invocations, each with quads_down x quads_across squares of 4
// x 4 sums. The shape changes no bit of a result: every sum adds its terms in the order of k, and
// is closed and added up every 256 k.
struct TileShape {
  int down = 8, across = 8;
  int quads_down = 2, quads_across = 2;
  int step = 16;  // k that are staged at a time
  // 1: the next k are loaded before the staged ones are multiplied. 2: they are also staged in a
  // second buffer, which saves a barrier.
  int ahead = 0;
  int band = 8;  // adjacent invocations are in bands of this many columns
  int64_t rows() const { return int64_t{4} * down * quads_down; }
  int64_t cols() const { return int64_t{4} * across * quads_across; }
  int lanes() const { return down * across; }
  int64_t bytes() const { return (rows() + cols()) * step * (ahead == 2 ? 8 : 4); }
  bool operator==(const TileShape& other) const = default;
};

// The properties of a product that determine its best shape.
struct Product {
  enum class Kind : uint8_t { gemm, matmul, matmul_dx, squared_distance };
  Kind kind = Kind::gemm;
  int64_t rows = 0, cols = 0, depth = 0;
  DType dtype = DType::f32;  // of weights
  bool a_transposed = false, b_transposed = false;
};

// Chooses the shape of a product; see variants.hpp.
class Shapes {
 public:
  virtual ~Shapes() = default;
  virtual TileShape shape_for(const Product& product, const TileShape& rule) = 0;
};

// The cut of an output of rows x cols, each a sum of depth terms. Large tiles read less; small
// tiles leave more parallelism. Long sums of few outputs are split, and their parts are added
// afterwards in order.
struct TilePlan {
  TileShape shape;
  int64_t rows = 0, cols = 0, depth = 0;
  int64_t splits = 1, span = 0;
  int64_t tall = 0;  // whole rows per workgroup, in place of a tile (matmul_narrow.cpp)
};
// By the rule, or with the shape of the frame's Shapes. Splits are always those of the rule.
TilePlan tile_plan(int64_t rows, int64_t cols, int64_t depth);
TilePlan tile_plan(Frame& frame, const Product& product);

// The combination of two values into a term of the sum.
enum class Term : uint8_t { product, squared_difference };

// Adds the shared text and the values. Adjacent invocations read along k, or along the side.
enum class Along : uint8_t { side, k };
Call& tiles(Call& call, const TilePlan& plan, Along left, Term term = Term::product);
Call& stage_quads(Call& call, Along right);
Call& stage_blocks(Call& call, Along right);
// For a plan with splits: writes the parts of the sums to memory; `add` then adds them.
Status run_parts(Frame& frame, Call& call, const TilePlan& plan, Call& add);
Call adding_parts(Frame& frame);
Status run_whole(Call& call, const TilePlan& plan);

// Runs a kernel over tiles. output(call) adds the operands of out() to the call that makes outputs.
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

}  // namespace loom::core::webgpu

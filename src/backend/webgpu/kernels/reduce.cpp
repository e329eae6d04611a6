// reduce, reduce_cols: sums that may cancel, so they use the order of rule 4 of docs/numerics.md.
// There are blocks of 4096, and in each 32 lanes whose halves are joined; blocks are joined in
// order.
#include "backend/webgpu/kernels/kernels.hpp"

namespace loom::core::webgpu::kernels {
namespace {

constexpr int64_t kBlock = 4096;

// A workgroup of 32 per block of a row. Eight values are loaded before the first is added. A second
// dispatch joins the results of several blocks.
constexpr Kernel kReduce{"reduce", R"(
fn join(a: f32, b: f32) -> f32 { return select(a + b, max(a, b), kind == 3u); }
fn run(i: u32, lane: u32) {
  let row = i / p.blocks;
  let begin = i % p.blocks * 4096u;
  let end = min(begin + 4096u, p.cols);
  let start = select(0.0, -infinity(), kind == 3u);
  var v = start;
  for (var c = begin + lane; c < end; c += 256u) {
    var got: array<f32, 8>;
    for (var j = 0u; j < 8u; j++) {
      let x = x_at(row * p.x_row + min(c + 32u * j, end - 1u));
      got[j] = select(start, select(x, x * x, kind == 2u), c + 32u * j < end);
    }
    for (var j = 0u; j < 8u; j++) { v = join(v, got[j]); }
  }
  if (kind == 3u) { v = group_max(lane, v); } else { v = group_sum(lane, v); }
  if (kind == 1u && p.blocks == 1u) { v = v / f32(p.cols); }
  if (lane == 0u) { y_set(i, v); }
}
)"};

constexpr Kernel kJoinRow{"reduce_join", R"(
fn run(row: u32) {
  var v = part_at(row * p.blocks);
  for (var b = 1u; b < p.blocks; b++) {
    let part = part_at(row * p.blocks + b);
    v = select(v + part, max(v, part), kind == 3u);
  }
  if (kind == 1u) { v = v / f32(p.cols); }
  y_set(row, v);
}
)"};

// A workgroup has 8 columns and a block of 4096 rows. Adjacent invocations read adjacent columns,
// lane % 8, and every 32nd row (every 8th if there are few) from lane / 8 on. A second dispatch
// joins the results of several blocks.
constexpr Kernel kReduceCols{"reduce_cols", R"(
var<workgroup> parts: array<f32, lanes>;
fn run(i: u32, lane: u32) {
  let block = i / p.tiles;
  let c = i % p.tiles * 8u + lane % 8u;
  let end = min((block + 1u) * 4096u, p.n);
  var v = 0.0;
  if (c < p.cols) {
    for (var r = block * 4096u + lane / 8u; r < end; r += lanes / 8u) {
      v += x_at(r * p.x_row + c);
    }
  }
  parts[lane] = v;
  workgroupBarrier();
  for (var half = lanes / 2u; half >= 8u; half /= 2u) {
    if (lane < half) { parts[lane] += parts[lane + half]; }
    workgroupBarrier();
  }
  if (lane < 8u && c < p.cols) {
    let at = block * p.cols + c;
    var sum = parts[lane];
    if (accumulate != 0u) { sum = y_at(at) + sum; }
    y_set(at, sum);
  }
}
)"};

constexpr Kernel kJoinBlocks{"reduce_cols_join", R"(
fn run(c: u32) {
  var sum = part_at(c);
  for (var b = 1u; b < p.blocks; b++) { sum += part_at(b * p.cols + c); }
  if (accumulate != 0u) { sum = y_at(c) + sum; }
  y_set(c, sum);
}
)"};

}  // namespace

Status reduce(Frame& frame, const ReduceArgs& args) {
  const int64_t rows = args.x.rows(), cols = args.x.cols();
  const int64_t blocks = cols > kBlock ? (cols + kBlock - 1) / kBlock : 1;
  Call call(frame, kReduce);
  call.read("x", args.x).value("x_row", args.x.row_stride).value("cols", cols);
  call.value("blocks", blocks).constant("kind", static_cast<int64_t>(args.kind)).lanes(32);
  if (blocks == 1) return call.write("y", args.y).rows(rows);
  if (rows == 0) return {};
  LOOM_ASSIGN(const BufferSlice slice, frame.temporary(rows * blocks * 4));
  LOOM_TRY(call.floats("y", slice, Access::write).rows(rows * blocks));
  return Call(frame, kJoinRow)
      .floats("part", slice, Access::read)
      .write("y", args.y)
      .value("cols", cols)
      .value("blocks", blocks)
      .constant("kind", static_cast<int64_t>(args.kind))
      .items(rows);
}

Status reduce_cols(Frame& frame, const ReduceColsArgs& args) {
  const int64_t rows = args.x.rows(), cols = args.x.cols();
  const int64_t blocks = rows > kBlock ? (rows + kBlock - 1) / kBlock : 1;
  const int64_t tiles = (cols + 7) / 8;
  const bool one = blocks == 1;
  BufferSlice slice;
  if (!one && cols > 0) {
    LOOM_ASSIGN(slice, frame.temporary(blocks * cols * 4));
  }
  Call call(frame, kReduceCols);
  call.read("x", args.x).value("x_row", args.x.row_stride).value("n", rows);
  call.value("cols", cols).value("tiles", tiles).lanes(rows <= 256 ? 64 : 256).beside(1024);
  call.constant("accumulate", int64_t{one && args.accumulate});
  if (one) return call.update("y", args.y).rows(tiles);
  if (cols == 0) return {};
  LOOM_TRY(call.floats("y", slice, Access::update).rows(tiles * blocks));
  return Call(frame, kJoinBlocks)
      .floats("part", slice, Access::read)
      .update("y", args.y)
      .value("cols", cols)
      .value("blocks", blocks)
      .constant("accumulate", int64_t{args.accumulate})
      .items(cols);
}

}  // namespace loom::core::webgpu::kernels

// reduce, reduce_cols: sums that may cancel, so that their order is that of rule 4 of
// docs/numerics.md: blocks of 4096, in each 32 lanes whose halves are joined, blocks in order.
#include "backend/webgpu/kernels.hpp"

namespace loom::webgpu::kernels {
namespace {

constexpr int64_t kBlock = 4096;

// A workgroup per row; 32 invocations per block, `lanes / 32` blocks at a time.
constexpr Kernel kReduce{"reduce", R"(
var<workgroup> parts: array<f32, lanes>;
fn join(a: f32, b: f32) -> f32 {
  if (kind == 3u) { return max(a, b); }
  return a + b;
}
fn run(row: u32, lane: u32) {
  let start = select(0.0, -infinity(), kind == 3u);
  var total = start;
  let rounds = (p.blocks + lanes / 32u - 1u) / (lanes / 32u);
  for (var round = 0u; round < rounds; round++) {
    let block = round * (lanes / 32u) + lane / 32u;
    let end = min((block + 1u) * 4096u, p.cols);
    var v = start;
    for (var c = block * 4096u + lane % 32u; c < end; c += 32u) {
      let x = x_at(row * p.x_row + c);
      v = join(v, select(x, x * x, kind == 2u));
    }
    parts[lane] = v;
    workgroupBarrier();
    for (var half = 16u; half > 0u; half /= 2u) {
      if (lane % 32u < half) { parts[lane] = join(parts[lane], parts[lane + half]); }
      workgroupBarrier();
    }
    if (lane == 0u) {
      for (var b = 0u; b < lanes; b += 32u) {
        if (round * (lanes / 32u) + b / 32u < p.blocks) { total = join(total, parts[b]); }
      }
    }
    workgroupBarrier();
  }
  if (kind == 1u) { total = total / f32(p.cols); }
  if (lane == 0u) { y_set(row, total); }
}
)"};

// A workgroup has 8 columns and a block of 4096 rows: neighbouring invocations read neighbouring
// columns, lane % 8, and every 32nd row from lane / 8 on. Results of several blocks are joined by
// a second dispatch.
constexpr Kernel kReduceCols{"reduce_cols", R"(
var<workgroup> parts: array<f32, lanes>;
fn run(i: u32, lane: u32) {
  let block = i / p.tiles;
  let c = i % p.tiles * 8u + lane % 8u;
  let end = min((block + 1u) * 4096u, p.n);
  var v = 0.0;
  if (c < p.cols) {
    for (var r = block * 4096u + lane / 8u; r < end; r += 32u) { v += x_at(r * p.x_row + c); }
  }
  parts[lane] = v;
  workgroupBarrier();
  for (var half = 128u; half >= 8u; half /= 2u) {
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
  const int64_t blocks = (args.x.cols() + kBlock - 1) / kBlock;
  return Call(frame, kReduce)
      .read("x", args.x)
      .write("y", args.y)
      .value("x_row", args.x.row_stride)
      .value("cols", args.x.cols())
      .value("blocks", blocks)
      .constant("kind", static_cast<int64_t>(args.kind))
      .lanes(blocks > 1 ? 256 : 32)
      .rows(args.x.rows());
}

Status reduce_cols(Frame& frame, const ReduceColsArgs& args) {
  const int64_t rows = args.x.rows(), cols = args.x.cols();
  const int64_t blocks = rows > kBlock ? (rows + kBlock - 1) / kBlock : 1;
  const int64_t tiles = (cols + 7) / 8;
  const bool one = blocks == 1;
  Place place;
  if (!one && cols > 0) {
    LOOM_ASSIGN(place, frame.temporary(blocks * cols * 4));
  }
  Call call(frame, kReduceCols);
  call.read("x", args.x).value("x_row", args.x.row_stride).value("n", rows);
  call.value("cols", cols).value("tiles", tiles).lanes(256);
  call.constant("accumulate", int64_t{one && args.accumulate});
  if (one) return call.update("y", args.y).rows(tiles);
  if (cols == 0) return {};
  LOOM_TRY(call.floats("y", place, Access::update).rows(tiles * blocks));
  return Call(frame, kJoinBlocks)
      .floats("part", place, Access::read)
      .update("y", args.y)
      .value("cols", cols)
      .value("blocks", blocks)
      .constant("accumulate", int64_t{args.accumulate})
      .items(cols);
}

}  // namespace loom::webgpu::kernels

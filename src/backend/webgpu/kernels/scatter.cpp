// scatter_add_rows, distinct_rows: the first row with an id owns all rows with it. It is found by a
// search of all earlier ids. There are no atomics on values: the order of a sum is that of the
// rows.
#include "backend/webgpu/kernels/kernels.hpp"
#include "base/numbers/checked.hpp"

namespace loom::core::webgpu::kernels {
namespace {

// A workgroup per row of dy and stretch of columns. It leaves if its id occurs earlier. Otherwise
// it walks the ids from its row on, `lanes` at a time. Invocations that find the id queue up in
// `places`, in order. Then each adds its columns of the queued rows, with eight loads in flight.
constexpr Kernel kScatter{"scatter_add_rows", R"(
var<workgroup> shared_id: i32;
var<workgroup> seen: atomic<u32>;
var<workgroup> found: u32;
var<workgroup> flags: array<u32, lanes>;
var<workgroup> places: array<u32, lanes>;
fn run(item: u32, lane: u32) {
  let row = item / p.stretches;
  if (lane == 0u) {
    shared_id = ids_at(row);
    atomicStore(&seen, 0u);
  }
  let id = workgroupUniformLoad(&shared_id);
  if (id == p_skip()) { return; }
  var earlier = 0u;
  for (var i = lane; i < row; i += lanes) {
    if (ids_at(i) == id) { earlier = 1u; }
  }
  if (earlier == 1u) { atomicStore(&seen, 1u); }
  workgroupBarrier();
  if (lane == 0u) { found = atomicLoad(&seen); }
  if (workgroupUniformLoad(&found) == 1u) { return; }

  let c0 = (item % p.stretches) * lanes * 2u + lane;
  let c1 = c0 + lanes;
  let at = u32(id) * p.table_s;
  var y0 = 0.0;
  var y1 = 0.0;
  if (c0 < p.cols) { y0 = table_at(at + c0); }
  if (c1 < p.cols) { y1 = table_at(at + c1); }
  for (var begin = row; begin < p.count; begin += lanes) {
    let i = begin + lane;
    var same = false;
    if (i < p.count) { same = ids_at(i) == id; }
    flags[lane] = select(0u, 1u, same);
    if (lane == 0u) { atomicStore(&seen, 0u); }
    workgroupBarrier();
    if (same) {
      atomicAdd(&seen, 1u);
      var rank = 0u;
      for (var j = 0u; j < lane; j++) { rank += flags[j]; }
      places[rank] = i;
    }
    workgroupBarrier();
    if (lane == 0u) { found = atomicLoad(&seen); }
    let n = workgroupUniformLoad(&found);
    for (var j = 0u; j < n; j += 8u) {
      var v0: array<f32, 8>;
      var v1: array<f32, 8>;
      for (var k = 0u; k < 8u; k++) {
        let begins = places[min(j + k, n - 1u)] * p.dy_s;
        v0[k] = dy_at(begins + min(c0, p.cols - 1u));
        v1[k] = dy_at(begins + min(c1, p.cols - 1u));
      }
      for (var k = 0u; k < min(8u, n - j); k++) {
        y0 += v0[k];
        y1 += v1[k];
      }
    }
    workgroupBarrier();
  }
  if (c0 < p.cols) { table_set(at + c0, y0); }
  if (c1 < p.cols) { table_set(at + c1, y1); }
}
fn p_skip() -> i32 { return bitcast<i32>(p.skip); }
)"};

// A workgroup per id: the smallest index that holds it.
constexpr Kernel kDistinct{"distinct_rows", R"(
var<workgroup> place: atomic<u32>;
fn run(row: u32, lane: u32) {
  let id = ids_at(row);
  if (lane == 0u) { atomicStore(&place, row); }
  workgroupBarrier();
  for (var i = lane; i < row; i += lanes) {
    if (ids_at(i) == id) {
      atomicMin(&place, i);
      break;
    }
  }
  workgroupBarrier();
  if (lane == 0u) {
    let first = i32(atomicLoad(&place));
    let skipped = id == bitcast<i32>(p.skip);
    first_set(row, select(first, -1, skipped));
    rows_set(row, select(-1, id, first == i32(row) && !skipped));
  }
}
)"};

constexpr int kScatterLanes = 128;

}  // namespace

Status scatter_add_rows(Frame& frame, const ScatterAddRowsArgs& args) {
  const int64_t stretches = ceil_div(args.table.cols(), int64_t{2} * kScatterLanes);
  return Call(frame, kScatter)
      .read("dy", args.dy)
      .ids("ids", args.ids)
      .update("table", args.table)
      .value("cols", args.table.cols())
      .value("count", args.dy.rows())
      .value("stretches", stretches)
      .value("skip", args.skip)
      .lanes(kScatterLanes)
      .rows(args.dy.rows() * stretches);
}

Status distinct_rows(Frame& frame, const DistinctRowsArgs& args) {
  return Call(frame, kDistinct)
      .ids("ids", args.ids)
      .ids("rows", args.rows, Access::write)
      .ids("first", args.first, Access::write)
      .value("skip", args.skip)
      .lanes(128)
      .rows(args.ids.shape.count());
}

}  // namespace loom::core::webgpu::kernels

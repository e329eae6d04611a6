// attend_dx in two passes, both of which compute the weights again from q and k. The pass by rows
// computes the two softmax numbers of every query, rowsum(P * dP), and dq. The pass by columns
// computes dk and dv of a tile of positions. It sums over the heads that share them, ascending, and
// over the rows that see them.
#include "backend/webgpu/kernels/attention/attend.hpp"
#include "backend/webgpu/kernels/kernels.hpp"

namespace loom::core::webgpu::kernels {
namespace {

// Walks over the positions three times. dP - rowsum(P * dP) nearly cancels if one weight is large,
// so the sum must be that of the rounded weights. stats: largest score, sum of exponentials,
// rowsum(P * dP) of a query.
constexpr Kernel kRows{"attend_dx_rows", R"(
var<workgroup> dot: array<f32, size>;

// 0: q . k; 1: dy . v.
fn tile_value(which: u32, i: u32, d: u32) -> f32 {
  if (which == 0u) { return q_at(origin[i].x * p.q_s + origin[i].y + d); }
  return dy_at(origin[i].x * p.dy_s + origin[i].y + d);
}
fn lane_value(which: u32, j: u32, d: u32) -> f32 {
  let position = min(at.start + j, p.length - 1u);
  if (which == 0u) { return key_at(at, position, d); }
  return value_at(at, position, d);
}

fn dot4(i: u32) -> vec4<f32> { return vec4(dot[i], dot[i + 1u], dot[i + 2u], dot[i + 3u]); }

// P of 64 positions.
fn weights_of(s: array<vec4<f32>, quads>) -> array<vec4<f32>, quads> {
  var x = s;
  for (var v = 0u; v < quads; v++) {
    let i = 4u * v;
    let m = vec4(largest[i], largest[i + 1u], largest[i + 2u], largest[i + 3u]);
    let total = vec4(sums[i], sums[i + 1u], sums[i + 2u], sums[i + 3u]);
    x[v] = select(exp4(x[v] - m) / total, vec4(0.0), x[v] <= vec4(lowest));
  }
  return x;
}

// Adds their part of rowsum(P * dP).
fn dot_step(lane: u32) {
  let s = scores(lane);
  let share = weights_of(s);
  let d_weight = dots(1u, lane);
  for (var v = 0u; v < quads; v++) {
    weight[v * 65u + lane] =
        select(share[v] * d_weight[v], vec4(0.0), s[v] <= vec4(lowest));
  }
  let sum = weight_sum(lane);
  if (lane < size) { dot[lane] += sum; }
}

// weight: dS.
fn slope_step(lane: u32) {
  let s = scores(lane);
  let share = weights_of(s);
  let d_weight = dots(1u, lane);
  for (var v = 0u; v < quads; v++) {
    var x = share[v] * (d_weight[v] - dot4(4u * v));
    if (p.soft_cap > 0.0) {
      let bent = s[v] / p.soft_cap;
      x *= 1.0 - bent * bent;
    }
    weight[v * 65u + lane] = select(x * p.scale, vec4(0.0), s[v] <= vec4(lowest));
  }
  workgroupBarrier();
}

fn run(row: u32, lane: u32) {
  let first_query = row % p.tiles * size;
  let head = row / p.tiles;
  at = RowAt(head / p.kv_heads, head % p.kv_heads, first_query, 0u);
  begin_tile(lane, 0u);
  if (lane < size) { dot[lane] = 0.0; }
  let queries = p.rows * p.share;
  let begin = seen_begin(first_query / p.share);
  let end = seen_end((min(first_query + size, queries) - 1u) / p.share);
  for (var start = begin; start < end; start += 64u) {
    at.start = start;
    softmax_step(lane);
  }
  for (var start = begin; start < end; start += 64u) {
    at.start = start;
    dot_step(lane);
  }
  if (lane < size) {
    let query = at.query + lane;
    if (query < queries) {
      let to = ((at.sequence * p.kv_heads + at.kv_head) * queries + query) * 3u;
      stats_set(to, largest[lane]);
      stats_set(to + 1u, sums[lane]);
      stats_set(to + 2u, dot[lane]);
    }
  }
  var acc = array<vec4<f32>, quads * widths>();
  for (var start = begin; start < end; start += 64u) {
    at.start = start;
    slope_step(lane);
    let last = min(end - start, 64u);
    for (var w = 0u; w < widths; w++) {
      let d = w * 64u + lane;
      if (d >= p.head_width) { continue; }
      for (var j = 0u; j < last; j++) {
        let x = select(key_at(at, start + j, d), 0.0, has_mask && shut[j] != 0u);
        for (var v = 0u; v < quads; v++) { acc[w * quads + v] += x * weight[v * 65u + j]; }
      }
    }
  }
  for (var w = 0u; w < widths; w++) {
    let d = w * 64u + lane;
    if (d >= p.head_width) { continue; }
    for (var i = 0u; i < size; i++) {
      if (at.query + i >= queries) { continue; }
      dq_set(origin[i].x * p.dq_s + origin[i].y + d, acc[w * quads + i / 4u][i % 4u]);
    }
  }
}
)"};

// The tile holds positions. A lane has a row first, then a value of dk and dv.
constexpr Kernel kColumns{"attend_dx_columns", R"(
struct RowAt { sequence: u32, kv_head: u32, head: u32, position: u32, start: u32 }
var<private> at: RowAt;
var<workgroup> weight: array<vec4<f32>, 65u * quads>;
var<workgroup> slope: array<vec4<f32>, 65u * quads>;

fn tile_value(which: u32, i: u32, d: u32) -> f32 {
  let row = at.sequence * p.rows + min(at.position + i, p.rows - 1u);
  if (which == 0u) { return k_at(row * p.k_s + at.kv_head * p.head_width + d); }
  return v_at(row * p.v_s + at.kv_head * p.head_width + d);
}
fn lane_value(which: u32, j: u32, d: u32) -> f32 {
  let row = at.sequence * p.rows + min(at.start + j, p.rows - 1u);
  if (which == 0u) { return q_at(row * p.q_s + at.head * p.head_width + d); }
  return dy_at(row * p.dy_s + at.head * p.head_width + d);
}

// weight, slope: P and dS of 64 rows.
fn row_step(lane: u32) {
  let s = dots(0u, lane);
  let d_weight = dots(1u, lane);
  let row = at.start + lane;
  let from_row = seen_begin(row);
  let end = select(0u, seen_end(row), row < p.rows);
  let query = min(row, p.rows - 1u) * p.share + at.head % p.share;
  let stat = ((at.sequence * p.kv_heads + at.kv_head) * p.rows * p.share + query) * 3u;
  let largest = stats_at(stat);
  let sum = stats_at(stat + 1u);
  let dot = stats_at(stat + 2u);
  for (var v = 0u; v < quads; v++) {
    let position = vec4(at.position + 4u * v) + vec4(0u, 1u, 2u, 3u);
    var on = (position >= vec4(from_row)) & (position < vec4(end)) & vec4(sum > 0.0);
    if (has_mask) { on = on & vec4(open(position.x), open(position.y), open(position.z),
                                   open(position.w)); }
    var x = s[v] * p.scale;
    var bend = vec4(1.0);
    if (p.soft_cap > 0.0) {
      let bent = tanh4(x / p.soft_cap);
      x = bent * p.soft_cap;
      bend = 1.0 - bent * bent;
    }
    let share = exp4(x - largest) / sum;
    weight[v * 65u + lane] = select(vec4(0.0), share, on);
    slope[v * 65u + lane] =
        select(vec4(0.0), share * (d_weight[v] - dot) * bend * p.scale, on);
  }
}
fn open(position: u32) -> bool {
  return mask_at(at.sequence * p.mask_row + min(position, p.rows - 1u)) != 0.0;
}

fn run(row: u32, lane: u32) {
  let first = row % p.tiles * size;
  let kv = row / p.tiles;
  at = RowAt(kv / p.kv_heads, kv % p.kv_heads, 0u, first, 0u);
  let last = min(first + size, p.rows) - 1u;
  var begin = select(0u, first, causal == 1u);
  var end = p.rows;
  if (p.window > 0u) {
    if (first + 1u > p.window) { begin = max(begin, first + 1u - p.window); }
    end = min(end, last + p.window);
  }
  var dk = array<vec4<f32>, quads * widths>();
  var dv = array<vec4<f32>, quads * widths>();
  for (var h = 0u; h < p.share; h++) {
    at.head = at.kv_head * p.share + h;
    for (var start = begin; start < end; start += 64u) {
      at.start = start;
      row_step(lane);
      workgroupBarrier();
      for (var w = 0u; w < widths; w++) {
        let d = w * 64u + lane;
        if (d >= p.head_width) { continue; }
        for (var j = 0u; j < min(end - start, 64u); j++) {
          let x = lane_value(1u, j, d);
          let y = lane_value(0u, j, d);
          for (var v = 0u; v < quads; v++) {
            dv[w * quads + v] += x * weight[v * 65u + j];
            dk[w * quads + v] += y * slope[v * 65u + j];
          }
        }
      }
    }
  }
  for (var w = 0u; w < widths; w++) {
    let d = w * 64u + lane;
    if (d >= p.head_width) { continue; }
    for (var i = 0u; i < size; i++) {
      if (first + i >= p.rows) { continue; }
      let to = at.sequence * p.rows + first + i;
      let column = at.kv_head * p.head_width + d;
      dk_set(to * p.dk_s + column, dk[w * quads + i / 4u][i % 4u]);
      dv_set(to * p.dv_s + column, dv[w * quads + i / 4u][i % 4u]);
    }
  }
}
)"};

}  // namespace

Status attend_dx(Frame& frame, const AttendDxArgs& args) {
  if (!args.row_positions.empty()) return unsupported("attend_dx: no kernel for rows of documents");
  if (!args.slopes.empty() || !args.sinks.empty())
    return unsupported("attend_dx: no kernel for ALiBi or sinks");
  const int64_t length = args.q.rows() / args.sequences;
  const AttendWork work{
      args.sequences, length,      args.heads, args.kv_heads, args.q.cols() / args.heads, 0, length,
      args.window,    args.causal, args.scale, args.soft_cap};
  if (length == 0) return {};
  LOOM_ASSIGN(const BufferSlice stats, frame.temporary(args.q.rows() * args.heads * 3 * 4));

  const AttendTile queries(work.width, length * work.share());
  const int64_t query_tiles = ceil_div(length * work.share(), queries.size());
  Call rows(frame, kRows);
  rows.text(kQueries).text(kFromRows).read("q", args.q).read("k", args.k).read("v", args.v);
  rows.read("dy", args.dy).read("mask", args.mask).write("dq", args.dq);
  rows.read("slopes", args.slopes).read("sinks", args.sinks);
  rows.floats("stats", stats, Access::write).value("mask_row", args.mask.row_stride);
  LOOM_TRY(describe(rows, work, queries, query_tiles, true)
               .rows(query_tiles * work.kv_heads * work.sequences));

  const AttendTile positions(work.width, length, 2);
  const int64_t tiles = ceil_div(length, positions.size());
  Call columns(frame, kColumns);
  columns.read("q", args.q).read("k", args.k).read("v", args.v).read("dy", args.dy);
  columns.read("mask", args.mask).write("dk", args.dk).write("dv", args.dv);
  columns.floats("stats", stats, Access::read).value("mask_row", args.mask.row_stride);
  return describe(columns, work, positions, tiles, true)
      .rows(tiles * work.kv_heads * work.sequences);
}

}  // namespace loom::core::webgpu::kernels

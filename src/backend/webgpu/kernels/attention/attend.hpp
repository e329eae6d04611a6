// The shared parts of attention, attend and attend_dx. A workgroup of 64 lanes holds a tile of 4 *
// quads vectors: queries, or keys in a gradient. It multiplies them with 64 other vectors at a
// time, one per lane.
#pragma once

#include <algorithm>
#include <string_view>

#include "backend/webgpu/wgsl/frame.hpp"
#include "base/numbers/checked.hpp"

namespace loom::core::webgpu {

constexpr int64_t kAttendLanes = 64;

// The cut of a head of some width: every lane holds `quads` vec4 for each of `widths` values of it.
struct AttendTile {
  // products: the number of such blocks that a kernel holds.
  AttendTile(int64_t width, int64_t vectors, int64_t products = 1)
      : widths(ceil_div(width, kAttendLanes)) {
    while (quads < 4 && quads * 4 < vectors && quads * 2 * widths * products <= 8) quads *= 2;
  }
  int64_t size() const { return quads * 4; }
  // Uses smaller tiles if there would be fewer workgroups than a large GPU runs concurrently.
  void fill(int64_t vectors, int64_t groups) {
    constexpr int64_t kEnough = 192;
    while (quads > 1 && ceil_div(vectors, size()) * groups < kEnough) quads /= 2;
  }
  int64_t widths, quads = 1;
};

// dots(which, lane): the products of the lane's vector with the vectors of the tile. The values
// come from lane_value(which, j, d) and tile_value(which, i, d). Workgroup memory holds `depth`
// values of every tile vector at a time. With `staged` it holds those of the lanes too, because
// adjacent lanes would read from different rows. Sums are cut as in rule 2 of docs/numerics.md.
// Every lane calls it.
constexpr std::string_view kDots = R"(
const size = 4u * quads;
var<workgroup> tile: array<vec4<f32>, quads * depth>;
var<workgroup> stage: array<f32, 1u + staged * 65u * depth>;
fn dots(which: u32, lane: u32) -> array<vec4<f32>, quads> {
  var sum = array<vec4<f32>, quads>();
  var total = array<vec4<f32>, quads>();
  for (var d0 = 0u; d0 < p.head_width; d0 += depth) {
    let n = min(depth, p.head_width - d0);
    if (widths > 4u && d0 > 0u && d0 % 256u == 0u) {
      for (var v = 0u; v < quads; v++) { total[v] += sum[v]; }
      sum = array<vec4<f32>, quads>();
    }
    workgroupBarrier();
    for (var i = lane; i < quads * depth; i += lanes) {
      let d = i % depth;
      let at = i / depth * 4u;
      if (d < n) {
        tile[d * quads + i / depth] =
            vec4(tile_value(which, at, d0 + d), tile_value(which, at + 1u, d0 + d),
                 tile_value(which, at + 2u, d0 + d), tile_value(which, at + 3u, d0 + d));
      }
    }
    if (staged == 1u) {
      for (var i = lane; i < lanes * depth; i += lanes) {
        let d = i % depth;
        if (d < n) { stage[d * 65u + i / depth] = lane_value(which, i / depth, d0 + d); }
      }
    }
    workgroupBarrier();
    // Eight reads are under way at a time.
    var d = 0u;
    for (; staged == 0u && d + 8u <= n; d += 8u) {
      let at = d0 + d;
      let a = vec4(lane_value(which, lane, at), lane_value(which, lane, at + 1u),
                   lane_value(which, lane, at + 2u), lane_value(which, lane, at + 3u));
      let b = vec4(lane_value(which, lane, at + 4u), lane_value(which, lane, at + 5u),
                   lane_value(which, lane, at + 6u), lane_value(which, lane, at + 7u));
      for (var v = 0u; v < quads; v++) {
        let to = d * quads + v;
        sum[v] += a.x * tile[to];
        sum[v] += a.y * tile[to + quads];
        sum[v] += a.z * tile[to + 2u * quads];
        sum[v] += a.w * tile[to + 3u * quads];
        sum[v] += b.x * tile[to + 4u * quads];
        sum[v] += b.y * tile[to + 5u * quads];
        sum[v] += b.z * tile[to + 6u * quads];
        sum[v] += b.w * tile[to + 7u * quads];
      }
    }
    for (; d < n; d++) {
      var x = 0.0;
      if (staged == 1u) { x = stage[d * 65u + lane]; } else { x = lane_value(which, lane, d0 + d); }
      for (var v = 0u; v < quads; v++) { sum[v] += x * tile[d * quads + v]; }
    }
  }
  if (widths > 4u) {
    for (var v = 0u; v < quads; v++) { sum[v] += total[v]; }
  }
  return sum;
}
)";

// Which positions row `row` of a sequence sees: [begin, end).
constexpr std::string_view kSeen = R"(
const lowest = -3.4e38;
fn seen_end(row: u32) -> u32 {
  let at = p.first + row;
  if (causal == 1u) { return at + 1u; }
  return select(p.length, min(p.length, at + p.window), p.window > 0u);
}
fn seen_begin(row: u32) -> u32 {
  let after = p.first + row + 1u;
  return select(0u, after - p.window, p.window > 0u && after > p.window);
}
fn exp4(x: vec4<f32>) -> vec4<f32> {
  return vec4(loom_exp(x.x), loom_exp(x.y), loom_exp(x.z), loom_exp(x.w));
}
fn tanh4(x: vec4<f32>) -> vec4<f32> {
  return vec4(loom_tanh(x.x), loom_tanh(x.y), loom_tanh(x.z), loom_tanh(x.w));
}
)";

// A tile of queries, row by row, against 64 positions at a time. Queries are (row, head) pairs that
// share keys and values.
constexpr std::string_view kQueries = R"(
struct RowAt { sequence: u32, kv_head: u32, query: u32, start: u32 }
var<private> at: RowAt;
var<workgroup> origin: array<vec2<u32>, size>;
var<workgroup> sees_from: array<vec4<u32>, quads>;
var<workgroup> sees_to: array<vec4<u32>, quads>;
var<workgroup> tile_slope: array<vec4<f32>, quads>;
var<workgroup> tile_row: array<vec4<f32>, quads>;
var<workgroup> shut: array<u32, 64>;
var<workgroup> weight: array<vec4<f32>, 65u * quads>;
var<workgroup> partial: array<f32, 64>;
var<workgroup> largest: array<f32, size>;
var<workgroup> factor: array<f32, size>;
var<workgroup> sums: array<f32, size>;

// ALiBi: the slope of four queries times their distance from a position.
fn slope_term(v: u32, position: u32) -> vec4<f32> {
  return tile_slope[v] * abs(tile_row[v] - vec4(f32(position)));
}

// One lane per query, one per four of them. The sink counts in the first split.
fn begin_tile(lane: u32, split: u32) {
  if (lane < size) {
    let query = min(at.query + lane, p.rows * p.share - 1u);
    let head = at.kv_head * p.share + query % p.share;
    origin[lane] = vec2(at.sequence * p.rows + query / p.share, head * p.head_width);
    let sink = has_sinks && split == 0u;
    largest[lane] = select(lowest, sinks_at(head), sink);
    sums[lane] = select(0.0, 1.0, sink);
  }
  if (lane < quads) {
    var begin: vec4<u32>;
    var end: vec4<u32>;
    for (var c = 0u; c < 4u; c++) {
      let query = at.query + 4u * lane + c;
      let row = query / p.share;
      tile_slope[lane][c] = slopes_at(at.kv_head * p.share + query % p.share);
      tile_row[lane][c] = f32(p.first + row);
      begin[c] = seen_begin(row);
      end[c] = select(0u, seen_end(row), row < p.rows);
    }
    sees_from[lane] = begin;
    sees_to[lane] = end;
  }
}

fn scores(lane: u32) -> array<vec4<f32>, quads> {
  var s = dots(0u, lane);
  let position = at.start + lane;
  let off = hidden(at, position);
  shut[lane] = u32(off);
  for (var v = 0u; v < quads; v++) {
    var x = s[v] * p.scale;
    if (p.soft_cap > 0.0) { x = tanh4(x / p.soft_cap) * p.soft_cap; }
    if (has_slopes) { x -= slope_term(v, position); }
    let on = (vec4(position) >= sees_from[v]) & (vec4(position) < sees_to[v]) & vec4(!off);
    s[v] = select(vec4(lowest), x, on);
    weight[v * 65u + lane] = s[v];
  }
  return s;
}

// The sums of `weight`, of query `lane` for the first lanes, in the order of rule 4 of
// docs/numerics.md for up to 64 positions: 32 virtual lanes, of which a lane has size / 2.
fn virtual_lane(q: u32, j: u32) -> f32 {
  let i = q / 4u * 65u + j;
  return weight[i][q % 4u] + weight[i + 32u][q % 4u];
}
fn weight_sum(lane: u32) -> f32 {
  const parts = 64u / size;
  workgroupBarrier();
  let q = lane % size;
  var x = vec4(0.0);
  for (var i = 0u; i < size / 4u; i++) {
    let j = lane / size + i * parts;
    x[i] = virtual_lane(q, j) + virtual_lane(q, j + 16u);
  }
  partial[lane] = (x.x + x.z) + (x.y + x.w);
  workgroupBarrier();
  for (var n = 32u; n >= size; n /= 2u) {
    if (lane < n) { partial[lane] += partial[lane + n]; }
    workgroupBarrier();
  }
  return partial[lane];
}

// Scores become exponentials under the largest score so far; factor: what older sums shrink by.
fn softmax_step(lane: u32) -> array<vec4<f32>, quads> {
  var s = scores(lane);
  let q = lane % size;
  workgroupBarrier();
  var m = lowest;
  for (var j = lane / size; j < 64u; j += 64u / size) {
    m = max(m, weight[q / 4u * 65u + j][q % 4u]);
  }
  partial[lane] = m;
  workgroupBarrier();
  if (lane < size) {
    let old = largest[lane];
    m = old;
    for (var i = lane; i < 64u; i += size) { m = max(m, partial[i]); }
    largest[lane] = m;
    factor[lane] = loom_exp(old - m);
  }
  workgroupBarrier();
  for (var v = 0u; v < quads; v++) {
    let m4 = vec4(largest[4u * v], largest[4u * v + 1u], largest[4u * v + 2u],
                  largest[4u * v + 3u]);
    s[v] = select(exp4(s[v] - m4), vec4(0.0), s[v] <= vec4(lowest));
    weight[v * 65u + lane] = s[v];
  }
  let sum = weight_sum(lane);
  if (lane < size) { sums[lane] = sums[lane] * factor[lane] + sum; }
  return s;
}
)";

// Reads keys and values from plain rows, with a mask.
constexpr std::string_view kFromRows = R"(
fn key_at(at: RowAt, position: u32, d: u32) -> f32 {
  let row = at.sequence * p.rows + min(position, p.length - 1u);
  return k_at(row * p.k_s + at.kv_head * p.head_width + d);
}
fn value_at(at: RowAt, position: u32, d: u32) -> f32 {
  return v_at((at.sequence * p.rows + position) * p.v_s + at.kv_head * p.head_width + d);
}
fn hidden(at: RowAt, position: u32) -> bool {
  return has_mask && position < p.length && mask_at(at.sequence * p.mask_row + position) == 0.0;
}
)";

// The size of an attention, as its kernels count it.
struct AttendWork {
  int64_t sequences, rows, heads, kv_heads, width;  // rows of a sequence
  int64_t first, length, window;
  bool causal;
  float scale, soft_cap;
  int64_t share() const { return heads / kv_heads; }
};

inline Call& describe(Call& call, const AttendWork& work, const AttendTile& tile, int64_t tiles,
                      bool staged) {
  constexpr int64_t kFar = int64_t{1} << 30;
  return call.text(kDots)
      .text(kSeen)
      .value("rows", work.rows)
      .value("head_width", work.width)
      .value("kv_heads", work.kv_heads)
      .value("share", work.share())
      .value("first", work.first)
      .value("length", work.length)
      .value("window", std::min(work.window, kFar))
      .value("scale", work.scale)
      .value("soft_cap", work.soft_cap)
      .value("tiles", tiles)
      .constant("causal", work.causal ? 1 : 0)
      .constant("quads", tile.quads)
      .constant("widths", tile.widths)
      .constant("depth", staged ? 16 : 64)
      .constant("staged", staged ? 1 : 0);
}

}  // namespace loom::core::webgpu

// WGSL that attention, attend and attend_dx share. A workgroup of 64 lanes holds a tile of 4 *
// quads vectors (queries, or keys in a gradient) against 64 others at a time, one per lane.
#pragma once

#include <algorithm>
#include <string_view>

#include "base/checked.hpp"

namespace loom::webgpu {

constexpr int64_t kAttendLanes = 64;

// How a head of some width is cut: every lane keeps `quads` vec4 for each of `widths` values of it.
struct AttendTile {
  // products: how many such blocks a kernel keeps.
  AttendTile(int64_t width, int64_t vectors, int64_t products = 1)
      : widths(ceil_div(width, kAttendLanes)) {
    while (quads < 4 && quads * 4 < vectors && quads * 2 * widths * products <= 8) quads *= 2;
  }
  int64_t size() const { return quads * 4; }
  int64_t widths, quads = 1;
};

// dots(which, lane): the products of the lane's vector with the vectors of the tile, which come
// from lane_value(which, j, d) and tile_value(which, i, d). `depth` values of every vector at a
// time lie in workgroup memory; with `staged` those of the lanes too, because neighbours would read
// from different rows. Sums are cut as rule 2 of docs/numerics.md has it. Every lane calls.
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
    for (var d = 0u; d < n; d++) {
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

}  // namespace loom::webgpu

// matmul of many rows, and squared_distance: tiles of the output (tiles.hpp), w decoded once per
// tile. With quantised rows the tile is one of integers.
#include "backend/webgpu/kernels.hpp"
#include "backend/webgpu/products.hpp"
#include "backend/webgpu/tiles.hpp"
#include "backend/webgpu/weights.hpp"
#include "base/checked.hpp"

namespace loom::webgpu {
namespace {

// Places beyond the matrices are read at the last row or k; beyond the last k both sides are 0.
constexpr Kernel kMany{"matmul_many", R"(
fn x_four(row: u32, k: u32) -> vec4<f32> {
  let j = min(vec4<u32>(row, row + 1u, row + 2u, row + 3u), vec4<u32>(p.rows - 1u)) * p.x_s;
  if (ragged == 0u) {
    return vec4<f32>(x_at(j.x + k), x_at(j.y + k), x_at(j.z + k), x_at(j.w + k));
  }
  let i = min(k, p.depth - 1u);
  let v = vec4<f32>(x_at(j.x + i), x_at(j.y + i), x_at(j.z + i), x_at(j.w + i));
  return select(vec4<f32>(), v, k < p.depth);
}
fn column(w: vec4<f32>, k: u32) -> vec4<f32> {
  return select(vec4<f32>(), w, ragged == 0u || k < p.depth);
}
@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row0 = group.y * side;
  let col0 = group.x * side;
  var t = Tile();
  for (var k0 = tile_begin(group.z); k0 < tile_end(group.z); k0 += 16u) {
    for (var u = lane; u < side * 4u; u += lanes) {
      left_put(u % 16u, u / 16u, x_four(row0 + u / 16u * 4u, k0 + u % 16u));
    }
    for (var u = lane; u < side; u += lanes) {
      let q = u % (side / 4u);
      let k = u / (side / 4u) * 4u;
      var w = mat4x4<f32>();
      if (ragged == 0u || k0 + k < p.depth) { w = w_block(min(col0 + 4u * q, p.last), k0 + k); }
      right_put(k, q, column(w[0], k0 + k));
      right_put(k + 1u, q, column(w[1], k0 + k + 1u));
      right_put(k + 2u, q, column(w[2], k0 + k + 2u));
      right_put(k + 3u, q, column(w[3], k0 + k + 3u));
    }
    workgroupBarrier();
    tile_step(&t, lane);
    workgroupBarrier();
  }
  tile_store(&t, group, lane);
}
)"};

constexpr std::string_view kOut = R"(
fn out(row: u32, col: u32, sum: f32, z: u32) { y_set(row * p.y_s + col, finish(sum, col)); }
)";

constexpr std::string_view kKeep = R"(
fn out(row: u32, col: u32, sum: f32, z: u32) { y_set(row * p.y_s + col, sum); }
)";

// Four codes a word on both sides; an invocation makes 4 x 4 outputs. A block is 32 k; its integer
// sums are scaled and added before the next.
constexpr Kernel kManyQ8{"matmul_many_q8", R"(
const side: u32 = across * 4u;
const half: u32 = select(8u, 4u, w_span == 16u);
var<workgroup> left: array<vec4<u32>, side * 2u>;
var<workgroup> right: array<vec4<u32>, side * 2u>;
var<workgroup> left_scale: array<vec4<f32>, side / 4u>;
var<workgroup> left_sum: array<vec4<i32>, side / 4u>;
var<workgroup> right_step: array<vec4<f32>, side / 2u>;
fn slot(k: u32, q: u32) -> u32 { return k * (side / 4u) + (q ^ (k % 8u)); }
fn dots(a: u32, w: vec4<u32>) -> vec4<i32> {
  return vec4<i32>(dot4I8Packed(a, w.x), dot4I8Packed(a, w.y), dot4I8Packed(a, w.z),
                   dot4I8Packed(a, w.w));
}
fn stage(b: u32, row0: u32, col0: u32, lane: u32) {
  for (var u = lane; u < side * 2u; u += lanes) {
    let row = row0 + u / 8u * 4u;
    let at = (min(vec4<u32>(row, row + 1u, row + 2u, row + 3u), vec4<u32>(p.rows - 1u)) *
              p.blocks + b) * 8u + u % 8u;
    left[slot(u % 8u, u / 8u)] = vec4<u32>(a_word(at.x), a_word(at.y), a_word(at.z), a_word(at.w));
  }
  for (var u = lane; u < side * 2u; u += lanes) {
    let q = u % (side / 4u);
    let k = u / (side / 4u);
    let row = min(col0 + 4u * q, p.last);
    let words = w_words(w_line(w_base(row), row % 16u, b * 32u + 4u * k));
    right[slot(k, q)] =
      vec4<u32>(w_levels(w_codes(words.x, 4u * k)), w_levels(w_codes(words.y, 4u * k)),
                w_levels(w_codes(words.z, 4u * k)), w_levels(w_codes(words.w, 4u * k)));
  }
  if (lane < side / 4u) {
    let row = row0 + lane * 4u;
    let at = min(vec4<u32>(row, row + 1u, row + 2u, row + 3u), vec4<u32>(p.rows - 1u)) *
             p.blocks + b;
    left_scale[lane] =
      vec4<f32>(scales_at(at.x), scales_at(at.y), scales_at(at.z), scales_at(at.w));
    left_sum[lane] = bitcast<vec4<i32>>(
      vec4<u32>(sums_word(at.x), sums_word(at.y), sums_word(at.z), sums_word(at.w)));
    let n = min(col0 + lane * 4u, p.last);
    right_step[lane] = w_steps(w_base(n), n % 16u, b * 32u);
    if (w_span == 16u) {
      right_step[lane + side / 4u] = w_steps(w_base(n), n % 16u, b * 32u + 16u);
    }
  }
}
@compute @workgroup_size(lanes)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row0 = group.y * side;
  let col0 = group.x * side;
  let row = lane / across;
  let col = lane % across;
  let n = min(col0 + 4u * col, p.last);
  let offsets = w_offsets(w_base(n), n % 16u);
  var sums = array<vec4<f32>, 4>();
  for (var b = 0u; b < p.blocks; b++) {
    stage(b, row0, col0, lane);
    workgroupBarrier();
    for (var first = 0u; first < 8u; first += half) {
      var s = array<vec4<i32>, 4>();
      for (var k = first; k < first + half; k++) {
        let a = left[slot(k, row)];
        let w = right[slot(k, col)];
        for (var r = 0u; r < 4u; r++) { s[r] += dots(a[r], w); }
      }
      let step = right_step[col + first / 4u * (side / 4u)];
      for (var r = 0u; r < 4u; r++) {
        if (w_affine || w_bias != 0) { s[r] -= offsets * left_sum[row][r]; }
        sums[r] += vec4<f32>(s[r]) * (step * left_scale[row][r]);
      }
    }
    workgroupBarrier();
  }
  for (var r = 0u; r < 4u; r++) {
    let at = row0 + row * 4u + r;
    for (var c = 0u; c < 4u; c++) {
      let to = col0 + col * 4u + c;
      if (at < p.rows && to < p.cols) { y_set(at * p.y_s + to, finish(sums[r][c], to)); }
    }
  }
}
)"};

// The first of the last four rows of w: those beyond are read there, and not stored.
int64_t last_four(const Tensor& w) {
  return (w.shape[0] - 1) / 4 * 4;
}

Status matmul_q8(Frame& frame, const MatmulArgs& args) {
  const int64_t rows = args.y.rows(), cols = args.y.cols();
  const int across = rows > 32 && cols > 32 ? 16 : 8;
  const int64_t side = across * 4;
  Call call(frame, kManyQ8);
  return weights(call, args.w, WeightView::quads)
      .value("rows", rows)
      .value("cols", cols)
      .value("blocks", ceil_div(args.w.shape[1], kR16Block))
      .value("last", last_four(args.w))
      .words("a", args.q8.codes)
      .words("sums", args.q8.sums)
      .read("scales", f32_vector(args.q8.scales, args.q8.rows * args.q8.blocks))
      .read("bias", args.bias)
      .write("y", args.y)
      .value("activation", static_cast<int64_t>(args.activation))
      .constant("across", across)
      .lanes(across * across)
      .text(kFinish)
      .groups(ceil_div(cols, side), ceil_div(rows, side));
}

}  // namespace

Status matmul_many(Frame& frame, const MatmulArgs& args) {
  if (args.use_q8) return matmul_q8(frame, args);
  const int64_t depth = args.w.shape[1];
  const TilePlan plan = tile_plan(args.y.rows(), args.y.cols(), depth);
  Call call(frame, kMany);
  tiles(weights(call, args.w, WeightView::quads), plan)
      .read("x", args.x)
      .value("last", last_four(args.w))
      .constant("ragged", depth % 16 != 0 ? 1 : 0);
  return run_tiles(frame, call, plan, [&](Call& c) {
    c.read("bias", args.bias)
        .write("y", args.y)
        .value("activation", static_cast<int64_t>(args.activation))
        .text(kFinish)
        .text(kOut);
  });
}

Status kernels::squared_distance(Frame& frame, const SquaredDistanceArgs& args) {
  const int64_t rows = args.y.rows(), cols = args.y.cols(), depth = args.c.shape[1];
  if (rows == 0 || cols == 0) return {};
  if (depth == 0) {
    FillArgs zeros;
    zeros.y = args.y;
    return fill(frame, zeros);
  }
  const TilePlan plan = tile_plan(rows, cols, depth);
  Call call(frame, kMany);
  tiles(weights(call, args.c, WeightView::quads), plan, Term::squared_difference)
      .read("x", args.x)
      .value("last", last_four(args.c))
      .constant("ragged", depth % 16 != 0 ? 1 : 0);
  return run_tiles(frame, call, plan, [&](Call& c) { c.write("y", args.y).text(kKeep); });
}

}  // namespace loom::webgpu

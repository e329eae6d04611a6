#include "backend/webgpu/kernels/products/tiles.hpp"

#include <algorithm>

#include "base/numbers/checked.hpp"

namespace loom::core::webgpu {
namespace {

// Quads of one k are permuted by its low bits. This avoids bank conflicts for staging along k and
// along the side. Sums of 256 k are closed and added up: a long chain would lose bits.
constexpr std::string_view kTile = R"(
const tile_rows: u32 = down * quads_down * 4u;
const tile_cols: u32 = across * quads_across * 4u;
const left_items: u32 = tile_rows / 4u * step;
const left_each: u32 = (left_items + lanes - 1u) / lanes;
const halves: u32 = select(1u, 2u, ahead == 2u);
var<workgroup> left: array<vec4<f32>, left_items * halves>;
var<workgroup> right: array<vec4<f32>, tile_cols / 4u * step * halves>;
fn left_slot(k: u32, q: u32, half: u32) -> u32 {
  return half * left_items + k * (tile_rows / 4u) + (q ^ (k % 8u));
}
fn right_slot(k: u32, q: u32, half: u32) -> u32 {
  return (half * step + k) * (tile_cols / 4u) + (q ^ (k % 8u));
}

struct Next { x: array<vec4<f32>, left_each>, w: array<Right, right_each> }
// Of item u of so many quads and so many k: k, and the quad.
fn place(u: u32, quads: u32, ks: u32, along_k: u32) -> vec2<u32> {
  if (along_k == 1u) { return vec2<u32>(u % ks, u / ks); }
  return vec2<u32>(u / quads, u % quads);
}
fn left_place(u: u32) -> vec2<u32> { return place(u, tile_rows / 4u, step, left_along_k); }
fn is_left(u: u32) -> bool { return left_items % lanes == 0u || u < left_items; }
fn is_right(u: u32) -> bool { return right_items % lanes == 0u || u < right_items; }
fn fetch(next: ptr<function, Next>, row0: u32, col0: u32, k0: u32, lane: u32) {
  for (var n = 0u; n < left_each; n++) {
    let u = lane + n * lanes;
    let at = left_place(u);
    if (is_left(u)) { (*next).x[n] = left_four(row0 + 4u * at.y, k0 + at.x); }
  }
  for (var n = 0u; n < right_each; n++) {
    let u = lane + n * lanes;
    if (is_right(u)) { (*next).w[n] = right_fetch(u, col0, k0); }
  }
}
fn stage(next: ptr<function, Next>, half: u32, lane: u32) {
  for (var n = 0u; n < left_each; n++) {
    let u = lane + n * lanes;
    let at = left_place(u);
    if (is_left(u)) { left[left_slot(at.x, at.y, half)] = (*next).x[n]; }
  }
  for (var n = 0u; n < right_each; n++) {
    let u = lane + n * lanes;
    if (is_right(u)) { right_stage(u, (*next).w[n], half); }
  }
}

struct Sums { a: mat4x4<f32>, b: mat4x4<f32>, c: mat4x4<f32>, d: mat4x4<f32> }
struct Tile { chunk: Sums, total: Sums, steps: u32 }
fn tile_close(t: ptr<function, Tile>) {
  (*t).total.a += (*t).chunk.a;
  if (quads_across == 2u) { (*t).total.b += (*t).chunk.b; }
  if (quads_down == 2u) { (*t).total.c += (*t).chunk.c; }
  if (quads_across == 2u && quads_down == 2u) { (*t).total.d += (*t).chunk.d; }
  (*t).chunk = Sums();
}
fn lane_row(lane: u32) -> u32 { return lane / band % down; }
fn lane_col(lane: u32) -> u32 { return lane % band + lane / (band * down) * band; }
fn tile_step(t: ptr<function, Tile>, half: u32, lane: u32) {
  let row = lane_row(lane);
  let col = lane_col(lane);
  for (var k = 0u; k < step; k++) {
    let x = left[left_slot(k, row, half)];
    let w = right[right_slot(k, col, half)];
    var x2 = x;
    var w2 = w;
    if (quads_down == 2u) { x2 = left[left_slot(k, row + down, half)]; }
    if (quads_across == 2u) { w2 = right[right_slot(k, col + across, half)]; }
    (*t).chunk.a += tile_terms(x, w);
    if (quads_across == 2u) { (*t).chunk.b += tile_terms(x, w2); }
    if (quads_down == 2u) { (*t).chunk.c += tile_terms(x2, w); }
    if (quads_across == 2u && quads_down == 2u) { (*t).chunk.d += tile_terms(x2, w2); }
  }
  (*t).steps++;
  if ((*t).steps % (256u / step) == 0u) { tile_close(t); }
}
fn tile_begin(z: u32) -> u32 { return z * p.span; }
fn tile_end(z: u32) -> u32 { return min((z + 1u) * p.span, p.depth); }
fn tile_part(t: ptr<function, Tile>, i: u32, j: u32) -> mat4x4<f32> {
  if (i == 0u) {
    if (j == 0u) { return (*t).total.a; }
    return (*t).total.b;
  }
  if (j == 0u) { return (*t).total.c; }
  return (*t).total.d;
}
fn tile_store(t: ptr<function, Tile>, group: vec3<u32>, lane: u32) {
  tile_close(t);
  for (var i = 0u; i < quads_down; i++) {
    let row0 = group.y * tile_rows + (lane_row(lane) + i * down) * 4u;
    for (var j = 0u; j < quads_across; j++) {
      let col0 = group.x * tile_cols + (lane_col(lane) + j * across) * 4u;
      let part = tile_part(t, i, j);
      // Asked for before anything is written: a read behind a write waits for memory on its own.
      var needs: array<f32, 16>;
      for (var n = 0u; n < 16u; n++) {
        needs[n] = out_needs(min(row0 + n / 4u, p.rows - 1u), min(col0 + n % 4u, p.cols - 1u));
      }
      for (var r = 0u; r < 4u; r++) {
        for (var c = 0u; c < 4u; c++) {
          if (row0 + r < p.rows && col0 + c < p.cols) {
            out(row0 + r, col0 + c, part[r][c], group.z, needs[r * 4u + c]);
          }
        }
      }
    }
  }
}
fn run(group: vec3<u32>, lane: u32) {
  let row0 = group.y * tile_rows;
  let col0 = group.x * tile_cols;
  let end = tile_end(group.z);
  var t = Tile();
  var next: Next;
  var half = 0u;
  if (ahead != 0u) { fetch(&next, row0, col0, tile_begin(group.z), lane); }
  for (var k0 = tile_begin(group.z); k0 < end; k0 += step) {
    if (ahead == 0u) { fetch(&next, row0, col0, k0, lane); }
    stage(&next, half, lane);
    workgroupBarrier();
    if (ahead != 0u && k0 + step < end) { fetch(&next, row0, col0, k0 + step, lane); }
    tile_step(&t, half, lane);
    if (halves == 1u) { workgroupBarrier(); } else { half = 1u - half; }
  }
  tile_store(&t, group, lane);
}
)";

// The right side a quad at a time, and four k of a quad at a time.
constexpr std::string_view kQuads = R"(
struct Right { v: vec4<f32> }
const right_items: u32 = tile_cols / 4u * step;
const right_each: u32 = (right_items + lanes - 1u) / lanes;
fn right_place(u: u32) -> vec2<u32> { return place(u, tile_cols / 4u, step, right_along_k); }
fn right_fetch(u: u32, col0: u32, k0: u32) -> Right {
  let at = right_place(u);
  return Right(right_four(col0 + 4u * at.y, k0 + at.x));
}
fn right_stage(u: u32, r: Right, half: u32) {
  let at = right_place(u);
  right[right_slot(at.x, at.y, half)] = r.v;
}
)";

constexpr std::string_view kBlocks = R"(
struct Right { v: mat4x4<f32> }
const right_items: u32 = tile_cols / 4u * step / 4u;
const right_each: u32 = (right_items + lanes - 1u) / lanes;
fn right_place(u: u32) -> vec2<u32> { return place(u, tile_cols / 4u, step / 4u, right_along_k); }
fn right_fetch(u: u32, col0: u32, k0: u32) -> Right {
  let at = right_place(u);
  return Right(right_block(col0 + 4u * at.y, k0 + 4u * at.x));
}
fn right_stage(u: u32, r: Right, half: u32) {
  let at = right_place(u);
  right[right_slot(at.x * 4u, at.y, half)] = r.v[0];
  right[right_slot(at.x * 4u + 1u, at.y, half)] = r.v[1];
  right[right_slot(at.x * 4u + 2u, at.y, half)] = r.v[2];
  right[right_slot(at.x * 4u + 3u, at.y, half)] = r.v[3];
}
)";

constexpr std::string_view kProduct = R"(
fn tile_terms(x: vec4<f32>, w: vec4<f32>) -> mat4x4<f32> {
  return mat4x4<f32>(x.x * w, x.y * w, x.z * w, x.w * w);
}
)";

constexpr std::string_view kSquaredDifference = R"(
fn tile_terms(x: vec4<f32>, w: vec4<f32>) -> mat4x4<f32> {
  let a = x.x - w;
  let b = x.y - w;
  let c = x.z - w;
  let d = x.w - w;
  return mat4x4<f32>(a * a, b * b, c * c, d * d);
}
)";

constexpr std::string_view kOutPart = R"(
fn out_needs(row: u32, col: u32) -> f32 { return 0.0; }
fn out(row: u32, col: u32, sum: f32, z: u32, need: f32) {
  part_set((z * p.rows + row) * p.cols + col, sum);
}
)";

// A workgroup has 32 values; eight lanes share the parts of one.
constexpr Kernel kAddParts{"add_parts", R"(
var<workgroup> sums: array<f32, 256>;
fn run(row: u32, lane: u32) {
  let i = row * 32u + lane % 32u;
  let last = min(i, p.values - 1u);
  let need = out_needs(last / p.cols, last % p.cols);
  var sum = 0.0;
  if (i < p.values) {
    for (var z = lane / 32u; z < p.splits; z += 8u) { sum += part_at(z * p.values + i); }
  }
  sums[lane] = sum;
  workgroupBarrier();
  if (lane >= 32u || i >= p.values) { return; }
  for (var z = 1u; z < 8u; z++) { sum += sums[z * 32u + lane]; }
  out(i / p.cols, i % p.cols, sum, 0u, need);
}
)"};

// Square shapes, which the rule and its splits are based on.
constexpr TileShape kRule[] = {
    {16, 16, 2, 2, 16, 1, 16}, {8, 8, 2, 2, 16, 1, 8}, {8, 8, 1, 1, 16, 1, 8}};

}  // namespace

TilePlan tile_plan(int64_t rows, int64_t cols, int64_t depth) {
  // Enough workgroups for the multiprocessors of a large GPU; the fewest terms that are worth a
  // part; the limit of bytes of parts.
  constexpr int64_t kEnough = 96, kPart = 1024, kBytes = int64_t{64} << 20;
  // If even the smallest tiles are few, one long tile would take longer than adding up parts.
  constexpr int64_t kShortPart = 128;
  const auto parts_of = [&](int64_t terms) {
    return std::clamp<int64_t>(kBytes / (rows * cols * 4), 1, std::max<int64_t>(depth / terms, 1));
  };
  const int64_t most = parts_of(kPart);
  TilePlan plan;
  int64_t count = 0;
  for (const TileShape& shape : kRule) {
    plan.shape = shape;
    count = ceil_div(rows, shape.rows()) * ceil_div(cols, shape.cols());
    const bool filled = std::min(rows, cols) * 2 > shape.rows();
    if (filled && count * most >= kEnough) break;
  }
  plan.rows = rows;
  plan.cols = cols;
  plan.depth = depth;
  const int64_t splits = std::clamp<int64_t>(2 * kEnough / count, 1,
                                             2 * count < kEnough ? parts_of(kShortPart) : most);
  plan.span = round_up(ceil_div(depth, splits), kShortPart);
  plan.splits = ceil_div(depth, plan.span);
  return plan;
}

TilePlan tile_plan(Frame& frame, const Product& product) {
  TilePlan plan = tile_plan(product.rows, product.cols, product.depth);
  TileShape twice = plan.shape;
  twice.ahead = 2;
  if (plan.shape == kRule[0] && twice.bytes() <= frame.adapter().max_workgroup_memory) {
    plan.shape = twice;
  }
  if (frame.shapes() != nullptr) plan.shape = frame.shapes()->shape_for(product, plan.shape);
  return plan;
}

Call& tiles(Call& call, const TilePlan& plan, Along left, Term term) {
  const TileShape& shape = plan.shape;
  return call.value("rows", plan.rows)
      .value("cols", plan.cols)
      .value("depth", plan.depth)
      .value("span", plan.span)
      .constant("down", shape.down)
      .constant("across", shape.across)
      .constant("quads_down", shape.quads_down)
      .constant("quads_across", shape.quads_across)
      .constant("step", shape.step)
      .constant("ahead", shape.ahead)
      .constant("band", shape.band)
      .constant("ragged", plan.depth % shape.step != 0 ? 1 : 0)
      .constant("left_along_k", left == Along::k ? 1 : 0)
      .lanes(shape.lanes())
      .beside(shape.bytes())
      .text(term == Term::product ? kProduct : kSquaredDifference)
      .text(kTile);
}

Call& stage_quads(Call& call, Along right) {
  return call.constant("right_along_k", right == Along::k ? 1 : 0).text(kQuads);
}

Call& stage_blocks(Call& call, Along right) {
  return call.constant("right_along_k", right == Along::k ? 1 : 0).text(kBlocks);
}

Status run_whole(Call& call, const TilePlan& plan) {
  if (plan.tall > 0) {
    return call.groups(ceil_div(plan.cols, int64_t{4}), ceil_div(plan.rows, plan.tall),
                       plan.splits);
  }
  return call.groups(ceil_div(plan.cols, plan.shape.cols()), ceil_div(plan.rows, plan.shape.rows()),
                     plan.splits);
}

Call adding_parts(Frame& frame) {
  return {frame, kAddParts};
}

Status run_parts(Frame& frame, Call& call, const TilePlan& plan, Call& add) {
  LOOM_ASSIGN(const BufferSlice part, frame.temporary(plan.splits * plan.rows * plan.cols * 4));
  LOOM_TRY(run_whole(call.floats("part", part, Access::write).text(kOutPart), plan));
  return add.floats("part", part, Access::read)
      .value("cols", plan.cols)
      .value("splits", plan.splits)
      .value("values", plan.rows * plan.cols)
      .lanes(256)
      .beside(1024)
      .rows(ceil_div(plan.rows * plan.cols, int64_t{32}));
}

}  // namespace loom::core::webgpu

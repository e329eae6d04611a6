#include "backend/webgpu/tiles.hpp"

#include <algorithm>

#include "base/checked.hpp"

namespace loom::webgpu {
namespace {

// Quads of one k are permuted by its low bits, so that neither staging along k nor along the side
// makes lanes meet in a bank. Sums of 256 k are closed and added up: a long chain would lose bits.
constexpr std::string_view kTile = R"(
const side: u32 = across * quads * 4u;
var<workgroup> left: array<vec4<f32>, side * 4u>;
var<workgroup> right: array<vec4<f32>, side * 4u>;
fn tile_slot(k: u32, q: u32) -> u32 { return k * (side / 4u) + (q ^ (k % 8u)); }
fn left_put(k: u32, q: u32, v: vec4<f32>) { left[tile_slot(k, q)] = v; }
fn right_put(k: u32, q: u32, v: vec4<f32>) { right[tile_slot(k, q)] = v; }

struct Sums { a: mat4x4<f32>, b: mat4x4<f32>, c: mat4x4<f32>, d: mat4x4<f32> }
struct Tile { chunk: Sums, total: Sums, steps: u32 }

fn tile_close(t: ptr<function, Tile>) {
  (*t).total.a += (*t).chunk.a;
  if (quads == 2u) {
    (*t).total.b += (*t).chunk.b;
    (*t).total.c += (*t).chunk.c;
    (*t).total.d += (*t).chunk.d;
  }
  (*t).chunk = Sums();
}
fn tile_step(t: ptr<function, Tile>, lane: u32) {
  let row = lane / across;
  let col = lane % across;
  for (var k = 0u; k < 16u; k++) {
    let x = left[tile_slot(k, row)];
    let w = right[tile_slot(k, col)];
    (*t).chunk.a += tile_terms(x, w);
    if (quads == 2u) {
      let x2 = left[tile_slot(k, row + across)];
      let w2 = right[tile_slot(k, col + across)];
      (*t).chunk.b += tile_terms(x, w2);
      (*t).chunk.c += tile_terms(x2, w);
      (*t).chunk.d += tile_terms(x2, w2);
    }
  }
  (*t).steps++;
  if ((*t).steps % 16u == 0u) { tile_close(t); }
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
  for (var i = 0u; i < quads; i++) {
    let row0 = group.y * side + (lane / across + i * across) * 4u;
    for (var j = 0u; j < quads; j++) {
      let col0 = group.x * side + (lane % across + j * across) * 4u;
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

}  // namespace

TilePlan tile_plan(int64_t rows, int64_t cols, int64_t depth) {
  // Enough workgroups for the multiprocessors of a large GPU; terms that are worth a part; bytes of
  // parts.
  constexpr int64_t kEnough = 96, kPart = 1024, kBytes = int64_t{64} << 20;
  // Where even the smallest tiles are few, a step of one takes longer than adding up.
  constexpr int64_t kShortPart = 128;
  const auto parts_of = [&](int64_t terms) {
    return std::clamp<int64_t>(kBytes / (rows * cols * 4), 1, std::max<int64_t>(depth / terms, 1));
  };
  const int64_t most = parts_of(kPart);
  TilePlan plan;
  int64_t count = 0;
  for (const TileShape shape : {TileShape{16, 2}, TileShape{8, 2}, TileShape{8, 1}}) {
    plan.shape = shape;
    count = ceil_div(rows, shape.side()) * ceil_div(cols, shape.side());
    const bool filled = std::min(rows, cols) * 2 > shape.side();
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

Call& tiles(Call& call, const TilePlan& plan, Term term) {
  return call.value("rows", plan.rows)
      .value("cols", plan.cols)
      .value("depth", plan.depth)
      .value("span", plan.span)
      .constant("across", plan.shape.across)
      .constant("quads", plan.shape.quads)
      .lanes(plan.shape.lanes())
      .beside(plan.shape.side() * 128)
      .text(term == Term::product ? kProduct : kSquaredDifference)
      .text(kTile);
}

Status run_whole(Call& call, const TilePlan& plan) {
  if (plan.tall > 0) {
    return call.groups(ceil_div(plan.cols, int64_t{4}), ceil_div(plan.rows, plan.tall),
                       plan.splits);
  }
  const int64_t side = plan.shape.side();
  return call.groups(ceil_div(plan.cols, side), ceil_div(plan.rows, side), plan.splits);
}

Call adding_parts(Frame& frame) {
  return {frame, kAddParts};
}

Status run_parts(Frame& frame, Call& call, const TilePlan& plan, Call& add) {
  LOOM_ASSIGN(const Place part, frame.temporary(plan.splits * plan.rows * plan.cols * 4));
  LOOM_TRY(run_whole(call.floats("part", part, Access::write).text(kOutPart), plan));
  return add.floats("part", part, Access::read)
      .value("cols", plan.cols)
      .value("splits", plan.splits)
      .value("values", plan.rows * plan.cols)
      .lanes(256)
      .beside(1024)
      .rows(ceil_div(plan.rows * plan.cols, int64_t{32}));
}

}  // namespace loom::webgpu

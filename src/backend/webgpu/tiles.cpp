#include "backend/webgpu/tiles.hpp"

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
fn tile_end(t: ptr<function, Tile>) { tile_close(t); }
fn tile_rows(lane: u32, i: u32) -> u32 { return (lane / across + i * across) * 4u; }
fn tile_cols(lane: u32, j: u32) -> u32 { return (lane % across + j * across) * 4u; }
fn tile_part(t: ptr<function, Tile>, i: u32, j: u32) -> mat4x4<f32> {
  if (i == 0u) {
    if (j == 0u) { return (*t).total.a; }
    return (*t).total.b;
  }
  if (j == 0u) { return (*t).total.c; }
  return (*t).total.d;
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

}  // namespace

TileShape tile_shape(int64_t rows, int64_t cols) {
  // Enough tiles for the multiprocessors of a large GPU, or the next smaller.
  constexpr int64_t kMany = 96;
  const auto count = [&](const TileShape& shape) {
    return ceil_div(rows, shape.side()) * ceil_div(cols, shape.side());
  };
  for (const TileShape shape : {TileShape{16, 2}, TileShape{8, 2}}) {
    if (count(shape) >= kMany) return shape;
  }
  return {8, 1};
}

Call& tiles(Call& call, const TileShape& shape, Term term) {
  return call.constant("across", shape.across)
      .constant("quads", shape.quads)
      .lanes(shape.lanes())
      .text(term == Term::product ? kProduct : kSquaredDifference)
      .text(kTile);
}

Status run_tiles(Call& call, const TileShape& shape, int64_t rows, int64_t cols) {
  return call.groups(ceil_div(cols, shape.side()), ceil_div(rows, shape.side()));
}

}  // namespace loom::webgpu

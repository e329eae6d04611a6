// conv, conv_dx, conv_dw as products of matrices (conv_shape.hpp) in tiles. A workgroup has a tile
// of results and gathers 16 terms of each of its rows and columns into workgroup memory. Every lane
// adds up a block of 4 x 4.
#include <algorithm>

#include "backend/webgpu/kernels/elementwise.hpp"
#include "backend/webgpu/kernels/kernels.hpp"
#include "backend/webgpu/kernels/products/conv_shape.hpp"
#include "base/numbers/checked.hpp"

namespace loom::core::webgpu::kernels {
namespace {

constexpr int64_t kColumns = 64;  // of a tile

// A lane's 4 columns are 16 apart and its rows `quads` apart, so that adjacent lanes gather
// adjacent values. Low tiles have few lanes, which would mostly wait for memory. For them several
// slices of a workgroup alternate, `deep` terms each, and their sums are added at the end. The op
// defines fill, after_fill and emit; lane is that of the slice.
constexpr std::string_view kProduct = R"(
const quads = tile_rows / 4u;
const slice_lanes = quads * 16u;
const a_line = quads + 1u;
const b_line = 17u;
const a_slice = deep * a_line;
const b_slice = deep * b_line;
var<workgroup> a_tile: array<vec4<f32>, slices * a_slice>;
var<workgroup> b_tile: array<vec4<f32>, slices * b_slice>;
var<private> sum: array<vec4<f32>, 4>;
var<private> total: array<vec4<f32>, 4>;

fn multiply(lane: u32, slice: u32) {
  for (var k = 0u; k < deep; k++) {
    let a = a_tile[slice * a_slice + k * a_line + lane / 16u];
    let b = b_tile[slice * b_slice + k * b_line + lane % 16u];
    sum[0] += a.x * b;
    sum[1] += a.y * b;
    sum[2] += a.z * b;
    sum[3] += a.w * b;
  }
}
fn fold() {
  for (var i = 0u; i < 4u; i++) {
    total[i] += sum[i];
    sum[i] = vec4(0.0);
  }
}

fn product(lane_of_all: u32, first_row: u32, first_column: u32, begin: u32, end: u32) {
  let lane = lane_of_all % slice_lanes;
  let slice = lane_of_all / slice_lanes;
  let step = deep * slices;
  for (var k = begin; k < end; k += step) {
    workgroupBarrier();
    fill(lane, slice, first_row, k + slice * deep, end);
    workgroupBarrier();
    multiply(lane, slice);
    after_fill(lane, slice, k + step + slice * deep);
    if ((k + step - begin) % p.chunk == 0u) { fold(); }
  }
  fold();
  for (var i = 0u; slices > 1u && i < 4u; i++) {
    workgroupBarrier();
    if (slice > 0u) { b_tile[(slice - 1u) * slice_lanes + lane] = total[i]; }
    workgroupBarrier();
    for (var other = 1u; slice == 0u && other < slices; other++) {
      total[i] += b_tile[(other - 1u) * slice_lanes + lane];
    }
  }
  if (slice > 0u) { return; }
  // Asked for before anything is written: a read behind a write waits for memory on its own.
  var needs: array<f32, 16>;
  for (var n = 0u; n < 16u; n++) {
    needs[n] = emit_needs(min(first_row + lane / 16u + quads * (n % 4u), p.rows - 1u),
                          min(first_column + lane % 16u + n / 4u * 16u, p.columns - 1u));
  }
  for (var c = 0u; c < 4u; c++) {
    let column = first_column + lane % 16u + 16u * c;
    if (column >= p.columns) { continue; }
    for (var i = 0u; i < 4u; i++) {
      let row = first_row + lane / 16u + quads * i;
      if (row < p.rows) { emit(row, column, total[i][c], needs[4u * c + i]); }
    }
  }
}
)";

// conv and conv_dx: the weights are the rows. A lane keeps the positions of 4 columns, and lanes
// look up the next terms for all.
constexpr std::string_view kWeightRows = R"(
var<workgroup> terms: array<vec4<i32>, slices * deep>;
var<private> places: array<vec4<i32>, 4>;

fn after_fill(lane: u32, slice: u32, k: u32) {
  if (lane < deep) { terms[slice * deep + lane] = term(k + lane, p.terms); }
}
fn fill(lane: u32, slice: u32, first_row: u32, k0: u32, end: u32) {
  let k = k0 + lane / quads;
  if (lane / quads < deep) {
    var a = vec4(0.0);
    for (var i = 0u; i < 4u; i++) {
      let row = first_row + lane % quads + quads * i;
      if (row < p.rows && k < end) { a[i] = weight(row, k); }
    }
    a_tile[slice * a_slice + lane / quads * a_line + lane % quads] = a;
  }
  for (var j = lane / 16u; j < deep; j += quads) {
    let t = terms[slice * deep + j];
    b_tile[slice * b_slice + j * b_line + lane % 16u] =
        vec4(gather(places[0], t), gather(places[1], t),
                                           gather(places[2], t), gather(places[3], t));
  }
}
fn run(row: u32, lane: u32) {
  let first_column = row % p.column_tiles * 64u;
  let first_row = row / p.column_tiles % p.row_tiles * tile_rows;
  group = row / p.column_tiles / p.row_tiles;
  for (var i = 0u; i < 4u; i++) { places[i] = place(first_column + lane % 16u + 16u * i); }
  let slice = lane / slice_lanes;
  after_fill(lane % slice_lanes, slice, slice * deep);
  product(lane, first_row, first_column, 0u, p.terms);
}
)";

constexpr Kernel kConv{"conv", R"(
var<private> group: u32;
fn place(n: u32) -> vec4<i32> { return output_place(n, p.columns, group); }
fn term(k: u32, count: u32) -> vec4<i32> { return patch_term(k, count); }
fn gather(place: vec4<i32>, term: vec4<i32>) -> f32 { return seen(place, term); }
fn weight(row: u32, k: u32) -> f32 { return w_at(group * p.rows + row, k); }
fn emit_needs(row: u32, column: u32) -> f32 { return bias_at(group * p.rows + row); }
fn emit(row: u32, column: u32, v: f32, bias: f32) {
  let filter_ = group * p.rows + row;
  let to = column / outputs * p.y_s + filter_ * outputs + column % outputs;
  y_set(to, activate(kind, v + bias));
}
)"};

constexpr Kernel kConvDx{"conv_dx", R"(
var<private> group: u32;
fn place(n: u32) -> vec4<i32> { return input_place(n, p.columns, group); }
fn term(k: u32, count: u32) -> vec4<i32> { return tap_term(k, count); }
fn gather(place: vec4<i32>, term: vec4<i32>) -> f32 { return reached(place, term); }
fn weight(row: u32, k: u32) -> f32 {
  return w_at(group * p.filters + k % p.filters, row * taps + k / p.filters);
}
fn place_of(row: u32, column: u32) -> u32 {
  let channel = group * p.rows + row;
  return column / inputs * p.dx_s + channel * inputs + column % inputs;
}
// Of the three there is one: a bias makes no gradient, a slope takes one that is not added to.
fn emit_needs(row: u32, column: u32) -> f32 {
  if (has_bias) { return bias_at(group * p.rows + row); }
  if (accumulate == 1u) { return dx_at(place_of(row, column)); }
  return also_needs(place_of(row, column));
}
fn emit(row: u32, column: u32, v: f32, need: f32) {
  let to = place_of(row, column);
  let x = activate(kind, select(v, v + need, has_bias));
  dx_set(to, select(x, need + x, accumulate == 1u));
  also(to, x, need);
}
)"};

constexpr std::string_view kNothingElse = R"(
fn also_needs(to: u32) -> f32 { return 0.0; }
fn also(to: u32, x: f32, need: f32) {}
)";
constexpr std::string_view kSlope = R"(
fn also_needs(to: u32) -> f32 { return at_at(to); }
fn also(to: u32, x: f32, need: f32) { dz_set(to, x * activate_dx(slope, need)); }
)";

// A lane has one of 16 outputs at a time. The outputs may be split over workgroups; part holds
// their sums, [parts][filters][patch].
constexpr Kernel kConvDw{"conv_dw", R"(
var<workgroup> terms: array<vec4<i32>, 64>;
var<private> group: u32;
var<private> part_number: u32;
fn after_fill(lane: u32, slice: u32, k: u32) {}
fn fill(lane: u32, slice: u32, first_row: u32, k0: u32, end: u32) {
  let k = k0 + lane % deep;
  if (lane / deep < quads) {
    var a = vec4(0.0);
    let from_dy = k / outputs * p.dy_row + group * p.rows * outputs + k % outputs;
    for (var i = 0u; i < 4u; i++) {
      let row = first_row + lane / deep + quads * i;
      if (row < p.rows && k < end) { a[i] = dy_at(from_dy + row * outputs); }
    }
    a_tile[slice * a_slice + lane % deep * a_line + lane / deep] = a;
  }
  let at = output_place(k, end, group);
  for (var j = lane / deep; j < 16u; j += slice_lanes / deep) {
    b_tile[slice * b_slice + lane % deep * b_line + j] =
        vec4(seen(at, terms[j]), seen(at, terms[j + 16u]),
                                           seen(at, terms[j + 32u]), seen(at, terms[j + 48u]));
  }
}
fn emit_needs(row: u32, column: u32) -> f32 {
  if (has_part || accumulate == 0u) { return 0.0; }
  return dw_at((group * p.rows + row) * p.dw_s + column);
}
fn emit(row: u32, column: u32, v: f32, before: f32) {
  let filter_ = group * p.rows + row;
  if (has_part) {
    part_set((part_number * p.groups * p.rows + filter_) * p.columns + column, v);
    return;
  }
  dw_set(filter_ * p.dw_s + column, select(v, before + v, accumulate == 1u));
}
fn run(row: u32, lane: u32) {
  let first_column = row % p.column_tiles * 64u;
  let first_row = row / p.column_tiles % p.row_tiles * tile_rows;
  group = row / p.column_tiles / p.row_tiles % p.groups;
  part_number = row / p.column_tiles / p.row_tiles / p.groups;
  let begin = row / p.column_tiles / p.row_tiles / p.groups * p.per_part;
  if (lane < 64u) { terms[lane] = patch_term(first_column + lane, p.columns); }
  product(lane, first_row, first_column, begin, min(begin + p.per_part, p.terms));
}
)"};

// A workgroup has 32 values; eight lanes share the parts of one.
constexpr Kernel kAddParts{"conv_add_parts", R"(
var<workgroup> sums: array<f32, 256>;
fn run(row: u32, lane: u32) {
  let i = row * 32u + lane % 32u;
  var sum = 0.0;
  if (i < p.values) {
    for (var n = lane / 32u; n < p.parts; n += 8u) { sum += part_at(n * p.values + i); }
  }
  sums[lane] = sum;
  workgroupBarrier();
  if (lane >= 32u || i >= p.values) { return; }
  for (var n = 1u; n < 8u; n++) { sum += sums[n * 32u + lane]; }
  let to = i / p.columns * p.dw_s + i % p.columns;
  dw_set(to, select(sum, dw_at(to) + sum, accumulate == 1u));
}
)"};

struct Product : ConvProduct {
  int64_t tile_rows() const { return rows <= 16 ? 16 : rows <= 32 ? 32 : 64; }
  int64_t slices() const { return 64 / tile_rows(); }
  int64_t deep() const { return tile_rows() == 16 ? 8 : 16; }
  int64_t lanes() const { return slices() * (tile_rows() / 4) * (kColumns / 4); }
  int64_t row_tiles() const { return ceil_div(rows, tile_rows()); }
  int64_t column_tiles() const { return ceil_div(columns, kColumns); }
};

// chunk: terms that are summed separately, a multiple of 16.
Call& tiled(Call& call, const Product& product, int64_t chunk) {
  return call.text(kProduct)
      .value("chunk", chunk)
      .value("row_tiles", product.row_tiles())
      .value("column_tiles", product.column_tiles())
      .constant("tile_rows", product.tile_rows())
      .constant("slices", product.slices())
      .constant("deep", product.deep())
      .lanes(static_cast<int>(product.lanes()))
      .beside(16 * product.slices() * product.deep() * (product.tile_rows() / 4 + 18) + 1024);
}

constexpr int64_t kChunk = 256;  // of rule 2 of docs/numerics.md

}  // namespace

Status conv(Frame& frame, const ConvArgs& args) {
  const ConvShape& s = args.shape;
  const Product product{{s.filters / s.groups, args.x.rows() * s.out_positions(), s.patch()}};
  if (conv_is_direct(product)) return conv_direct(frame, args, product);
  Call call(frame, kConv);
  return tiled(conv_operands(call, args, product).text(kWeightRows), product, kChunk)
      .rows(product.row_tiles() * product.column_tiles() * s.groups);
}

Status conv_dx(Frame& frame, const ConvDxArgs& args) {
  return conv_dx_slope(frame, args, nullptr);
}

Status conv_dx_slope(Frame& frame, const ConvDxArgs& args, const UnaryDxArgs* slope) {
  const ConvShape& s = args.shape;
  const Product product{{s.channels / s.groups, args.dx.rows() * s.in_positions(),
                         s.taps() * (s.filters / s.groups)}};
  if (conv_dx_is_direct(product)) {
    LOOM_TRY(conv_dx_direct(frame, args, product));
    return slope != nullptr ? unary_dx(frame, *slope) : Status{};
  }
  Call call(frame, kConvDx);
  conv_dx_operands(call, args, product);
  if (slope != nullptr) {
    call.read("at", slope->x).write("dz", slope->dx).text(slope_text(slope->from_output));
    call.constant("slope", static_cast<int64_t>(slope->kind));
  }
  call.text(slope != nullptr ? kSlope : kNothingElse);
  // Sums the filters of a tap separately, if they fill tiles.
  const int64_t filters = s.filters / s.groups;
  const int64_t chunk = filters % 16 == 0 ? std::min(filters, kChunk) : kChunk;
  return tiled(call.text(kWeightRows), product, chunk)
      .rows(product.row_tiles() * product.column_tiles() * s.groups);
}

Status conv_dw(Frame& frame, const ConvDwArgs& args) {
  const ConvShape& s = args.shape;
  const Product product{{s.filters / s.groups, s.patch(), args.x.rows() * s.out_positions()}};
  if (conv_dw_is_direct(product)) return conv_dw_direct(frame, args, product);
  // Enough workgroups for a large device, each with enough terms to be worth its start.
  constexpr int64_t kGroups = 512, kMinTerms = 128;
  const int64_t tiles = product.row_tiles() * product.column_tiles() * s.groups;
  const int64_t per_part = std::max(
      kMinTerms, round_up(ceil_div(product.terms, std::max<int64_t>(kGroups / tiles, 1)), 16));
  const int64_t parts = std::max<int64_t>(ceil_div(product.terms, per_part), 1);
  BufferSlice part;
  if (parts > 1) {
    LOOM_ASSIGN(part, frame.temporary(parts * s.filters * product.columns * 4));
  }
  Call call(frame, kConvDw);
  parts > 1 ? call.floats("part", part, Access::write) : call.write("part", Tensor{});
  LOOM_TRY(tiled(conv_dw_operands(call, args, product), product, kChunk)
               .value("per_part", per_part)
               .rows(tiles * parts));
  if (parts == 1) return {};
  return Call(frame, kAddParts)
      .floats("part", part, Access::read)
      .update("dw", args.dw)
      .value("parts", parts)
      .value("columns", product.columns)
      .value("values", s.filters * product.columns)
      .constant("accumulate", args.accumulate ? 1 : 0)
      .lanes(256)
      .beside(1024)
      .rows(ceil_div(s.filters * product.columns, int64_t{32}));
}

}  // namespace loom::core::webgpu::kernels

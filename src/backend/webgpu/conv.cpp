// conv, conv_dx, conv_dw as products of matrices that are put together on the way: a workgroup has
// a tile of results, gathers 16 terms of each of its rows and columns into workgroup memory, and
// every lane adds up a block of 4 x 4. Per group of channels and filters:
//            rows      columns            terms, in the order of the sums
//   conv     filters   samples x outputs  channels x taps
//   conv_dx  channels  samples x inputs   taps x filters
//   conv_dw  filters   channels x taps    samples x outputs
// Where a group has one row or two, a tile would be empty: each value has then an invocation (a
// workgroup in conv_dw) of its own.
#include <algorithm>

#include "backend/webgpu/elementwise.hpp"
#include "backend/webgpu/kernels.hpp"
#include "backend/webgpu/weights.hpp"
#include "base/checked.hpp"

namespace loom::webgpu::kernels {
namespace {

constexpr int64_t kColumns = 64;  // of a tile

// A lane's 4 columns are 16 apart and its rows quads apart: neighbours gather neighbouring values.
// Low tiles have few lanes, which would wait for memory most of the time: there several slices of
// a workgroup take turns, `deep` terms each, and their sums are added at the end. fill, after_fill
// and emit are the op's; lane is that of the slice.
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
  for (var c = 0u; c < 4u; c++) {
    let column = first_column + lane % 16u + 16u * c;
    if (column >= p.columns) { continue; }
    for (var i = 0u; i < 4u; i++) {
      let row = first_row + lane / 16u + quads * i;
      if (row < p.rows) { emit(row, column, total[i][c]); }
    }
  }
}
)";

// Positions and taps as offsets of the three axes; x where their sample, channel or filter begins.
constexpr std::string_view kAxes = R"(
const nowhere = vec4<i32>(0, -1073741824, 0, 0);
fn inputs() -> u32 { return p.in0 * p.in1 * p.in2; }
fn outputs() -> u32 { return p.out0 * p.out1 * p.out2; }
fn tap_offsets(tap: u32) -> vec3<u32> {
  return vec3(tap / p.k2 / p.k1 * p.d0, tap / p.k2 % p.k1 * p.d1, tap % p.k2 * p.d2);
}
)";

// What output `n` (over samples) sees: place.yzw + term.yzw, zeros outside.
constexpr std::string_view kSeen = R"(
fn output_place(n: u32, count: u32, group: u32) -> vec4<i32> {
  if (n >= count) { return nowhere; }
  let o = n % outputs();
  let at = vec3(o / p.out2 / p.out1 * p.s0, o / p.out2 % p.out1 * p.s1, o % p.out2 * p.s2);
  return vec4<i32>(vec4(n / outputs() * p.x_row + group * p.channels * inputs(), at)) -
         vec4<i32>(vec4(0u, p.p0, p.p1, p.p2));
}
fn patch_term(k: u32, count: u32) -> vec4<i32> {
  if (k >= count) { return nowhere; }
  return vec4<i32>(vec4(k / p.taps * inputs(), tap_offsets(k % p.taps)));
}
fn seen(place: vec4<i32>, term: vec4<i32>) -> f32 {
  let at = vec3<u32>(place.yzw + term.yzw);
  if (any(at >= vec3(p.in0, p.in1, p.in2))) { return 0.0; }
  return x_at(u32(place.x + term.x) + (at.x * p.in1 + at.y) * p.in2 + at.z);
}
)";

// What input `n` (over samples) reaches by a tap: an output of a filter.
constexpr std::string_view kReached = R"(
fn input_place(n: u32, count: u32, group: u32) -> vec4<i32> {
  if (n >= count) { return nowhere; }
  let i = n % inputs();
  let at = vec3(i / p.in2 / p.in1 + p.p0, i / p.in2 % p.in1 + p.p1, i % p.in2 + p.p2);
  return vec4<i32>(vec4(n / inputs() * p.dy_row + group * p.filters * outputs(), at));
}
fn tap_term(k: u32, count: u32) -> vec4<i32> {
  if (k >= count) { return -nowhere; }
  return vec4<i32>(vec4(k % p.filters * outputs(), tap_offsets(k / p.filters)));
}
fn reached(place: vec4<i32>, term: vec4<i32>) -> f32 {
  let from_tap = place.yzw - term.yzw;
  if (any(from_tap < vec3(0))) { return 0.0; }
  var at = vec3<u32>(from_tap);
  if (strided == 1u) {
    let stride = vec3(p.s0, p.s1, p.s2);
    at /= stride;
    if (any(at * stride != vec3<u32>(from_tap))) { return 0.0; }
  }
  if (any(at >= vec3(p.out0, p.out1, p.out2))) { return 0.0; }
  return dy_at(u32(place.x + term.x) + (at.x * p.out1 + at.y) * p.out2 + at.z);
}
)";

// conv and conv_dx: the weights are the rows, a lane keeps the places of 4 columns, and lanes find
// the terms to come for all.
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
      vec4(gather(places[0], t), gather(places[1], t), gather(places[2], t), gather(places[3], t));
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
fn emit(row: u32, column: u32, v: f32) {
  let filter_ = group * p.rows + row;
  let to = column / outputs() * p.y_s + filter_ * outputs() + column % outputs();
  y_set(to, activate(kind, v + bias_at(filter_)));
}
)"};

constexpr Kernel kConvDx{"conv_dx", R"(
var<private> group: u32;
fn place(n: u32) -> vec4<i32> { return input_place(n, p.columns, group); }
fn term(k: u32, count: u32) -> vec4<i32> { return tap_term(k, count); }
fn gather(place: vec4<i32>, term: vec4<i32>) -> f32 { return reached(place, term); }
fn weight(row: u32, k: u32) -> f32 {
  return w_at(group * p.filters + k % p.filters, row * p.taps + k / p.filters);
}
fn emit(row: u32, column: u32, v: f32) {
  let channel = group * p.rows + row;
  let to = column / inputs() * p.dx_s + channel * inputs() + column % inputs();
  let x = activate(kind, v + bias_at(channel));
  dx_set(to, select(x, dx_at(to) + x, accumulate == 1u));
  also(to, x);
}
)"};

constexpr std::string_view kNothingElse = R"(
fn also(to: u32, x: f32) {}
)";
constexpr std::string_view kSlope = R"(
fn also(to: u32, x: f32) { dz_set(to, x * activate_dx(slope, at_at(to))); }
)";

// A lane has one of 16 outputs at a time. The outputs may be split over workgroups; part: their
// sums, [parts][filters][patch].
constexpr Kernel kConvDw{"conv_dw", R"(
var<workgroup> terms: array<vec4<i32>, 64>;
var<private> group: u32;
var<private> part_number: u32;
fn after_fill(lane: u32, slice: u32, k: u32) {}
fn fill(lane: u32, slice: u32, first_row: u32, k0: u32, end: u32) {
  let k = k0 + lane % deep;
  if (lane / deep < quads) {
    var a = vec4(0.0);
    let from_dy = k / outputs() * p.dy_row + group * p.rows * outputs() + k % outputs();
    for (var i = 0u; i < 4u; i++) {
      let row = first_row + lane / deep + quads * i;
      if (row < p.rows && k < end) { a[i] = dy_at(from_dy + row * outputs()); }
    }
    a_tile[slice * a_slice + lane % deep * a_line + lane / deep] = a;
  }
  let at = output_place(k, end, group);
  for (var j = lane / deep; j < 16u; j += slice_lanes / deep) {
    b_tile[slice * b_slice + lane % deep * b_line + j] =
      vec4(seen(at, terms[j]), seen(at, terms[j + 16u]), seen(at, terms[j + 32u]),
           seen(at, terms[j + 48u]));
  }
}
fn emit(row: u32, column: u32, v: f32) {
  let filter_ = group * p.rows + row;
  if (has_part) {
    part_set((part_number * p.groups * p.rows + filter_) * p.columns + column, v);
    return;
  }
  let to = filter_ * p.dw_s + column;
  dw_set(to, select(v, dw_at(to) + v, accumulate == 1u));
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

// One invocation per value.
constexpr Kernel kConvEach{"conv_each", R"(
fn run(i: u32) {
  let o = i % outputs();
  let filters = p.rows * p.groups;
  let filter_ = i / outputs() % filters;
  let sample = i / outputs() / filters;
  let place = output_place(sample * outputs() + o, p.columns, filter_ / p.rows);
  var total = 0.0;
  for (var k0 = 0u; k0 < p.terms; k0 += 256u) {
    var sum = 0.0;
    for (var k = k0; k < min(k0 + 256u, p.terms); k++) {
      sum += seen(place, patch_term(k, p.terms)) * w_at(filter_, k);
    }
    total += sum;
  }
  y_set(sample * p.y_s + filter_ * outputs() + o, activate(kind, total + bias_at(filter_)));
}
)"};

constexpr Kernel kConvDxEach{"conv_dx_each", R"(
fn run(i: u32) {
  let at = i % inputs();
  let channels = p.rows * p.groups;
  let channel = i / inputs() % channels;
  let group = channel / p.rows;
  let sample = i / inputs() / channels;
  let place = input_place(sample * inputs() + at, p.columns, group);
  var total = 0.0;
  for (var tap = 0u; tap < p.taps; tap++) {
    var sum = 0.0;
    for (var f = 0u; f < p.filters; f++) {
      sum += reached(place, tap_term(tap * p.filters + f, p.terms)) *
             w_at(group * p.filters + f, channel % p.rows * p.taps + tap);
    }
    total += sum;
  }
  let to = sample * p.dx_s + channel * inputs() + at;
  let x = activate(kind, total + bias_at(channel));
  dx_set(to, select(x, dx_at(to) + x, accumulate == 1u));
}
)"};

// One workgroup per value.
constexpr Kernel kConvDwEach{"conv_dw_each", R"(
fn run(row: u32, lane: u32) {
  let filter_ = row / p.columns;
  let term = patch_term(row % p.columns, p.columns);
  let group = filter_ / p.rows;
  var sum = 0.0;
  for (var k = lane; k < p.terms; k += lanes) {
    let y = dy_at(k / outputs() * p.dy_row + filter_ * outputs() + k % outputs());
    sum += y * seen(output_place(k, p.terms, group), term);
  }
  sum = group_sum(lane, sum);
  if (lane == 0u) {
    let to = filter_ * p.dw_s + row % p.columns;
    dw_set(to, select(sum, dw_at(to) + sum, accumulate == 1u));
  }
}
)"};

// The matrices of one group, see above.
struct Product {
  int64_t rows, columns, terms;
  bool one_by_one() const { return rows <= 2; }
  int64_t tile_rows() const { return rows <= 16 ? 16 : rows <= 32 ? 32 : 64; }
  int64_t slices() const { return 64 / tile_rows(); }
  int64_t deep() const { return tile_rows() == 16 ? 8 : 16; }
  int64_t lanes() const { return slices() * (tile_rows() / 4) * (kColumns / 4); }
  int64_t row_tiles() const { return ceil_div(rows, tile_rows()); }
  int64_t column_tiles() const { return ceil_div(columns, kColumns); }
};

Call& describe(Call& call, const ConvShape& s, const Product& product) {
  static constexpr std::string_view kNames[][3] = {{"in0", "in1", "in2"},
                                                   {"out0", "out1", "out2"},
                                                   {"s0", "s1", "s2"},
                                                   {"p0", "p1", "p2"},
                                                   {"d0", "d1", "d2"}};
  for (size_t a = 0; a < 3; ++a) {
    call.value(kNames[0][a], s.in[a]).value(kNames[1][a], s.out[a]);
    call.value(kNames[2][a], s.stride[a]).value(kNames[3][a], s.pad[a]);
    call.value(kNames[4][a], s.dilation[a]);
  }
  return call.text(kAxes)
      .value("k1", s.kernel[1])
      .value("k2", s.kernel[2])
      .value("taps", s.taps())
      .value("rows", product.rows)
      .value("columns", product.columns)
      .value("terms", product.terms);
}

// chunk: terms that are added up on their own, a multiple of 16.
Call& tiled(Call& call, const Product& product, int64_t chunk) {
  return call.text(kProduct)
      .value("chunk", chunk)
      .value("row_tiles", product.row_tiles())
      .value("column_tiles", product.column_tiles())
      .constant("tile_rows", product.tile_rows())
      .constant("slices", product.slices())
      .constant("deep", product.deep())
      .lanes(static_cast<int>(product.lanes()));
}

constexpr int64_t kChunk = 256;  // of rule 2 of docs/numerics.md

int64_t strided(const ConvShape& s) {
  return s.stride[0] > 1 || s.stride[1] > 1 || s.stride[2] > 1 ? 1 : 0;
}

}  // namespace

Status conv(Frame& frame, const ConvArgs& args) {
  const ConvShape& s = args.shape;
  const Product product{s.filters / s.groups, args.x.rows() * s.out_positions(), s.patch()};
  Call call(frame, product.one_by_one() ? kConvEach : kConv);
  call.read("x", args.x).read("bias", args.bias).write("y", args.y);
  describe(weights(call, args.w), s, product)
      .text(kSeen)
      .value("x_row", args.x.row_stride)
      .value("channels", s.channels / s.groups)
      .constant("kind", static_cast<int64_t>(args.activation));
  if (product.one_by_one()) {
    return call.value("groups", s.groups).items(s.filters * product.columns);
  }
  return tiled(call.text(kWeightRows), product, kChunk)
      .rows(product.row_tiles() * product.column_tiles() * s.groups);
}

Status conv_dx(Frame& frame, const ConvDxArgs& args) {
  return conv_dx_slope(frame, args, nullptr);
}

Status conv_dx_slope(Frame& frame, const ConvDxArgs& args, const UnaryDxArgs* slope) {
  const ConvShape& s = args.shape;
  const Product product{s.channels / s.groups, args.dx.rows() * s.in_positions(),
                        s.taps() * (s.filters / s.groups)};
  Call call(frame, product.one_by_one() ? kConvDxEach : kConvDx);
  call.read("dy", args.dy).read("bias", args.bias).update("dx", args.dx);
  describe(weights(call, args.w), s, product)
      .text(kReached)
      .value("dy_row", args.dy.row_stride)
      .value("filters", s.filters / s.groups)
      .constant("strided", strided(s))
      .constant("accumulate", args.accumulate ? 1 : 0)
      .constant("kind", static_cast<int64_t>(args.activation));
  if (product.one_by_one()) {
    LOOM_TRY(call.value("groups", s.groups).items(s.channels * product.columns));
    return slope != nullptr ? unary_dx(frame, *slope) : Status{};
  }
  if (slope != nullptr) {
    call.read("at", slope->x).write("dz", slope->dx).text(slope_text(slope->from_output));
    call.constant("slope", static_cast<int64_t>(slope->kind));
  }
  call.text(slope != nullptr ? kSlope : kNothingElse);
  // The filters of a tap on their own, where they fill tiles.
  const int64_t filters = s.filters / s.groups;
  const int64_t chunk = filters % 16 == 0 ? std::min(filters, kChunk) : kChunk;
  return tiled(call.text(kWeightRows), product, chunk)
      .rows(product.row_tiles() * product.column_tiles() * s.groups);
}

Status conv_dw(Frame& frame, const ConvDwArgs& args) {
  const ConvShape& s = args.shape;
  const Product product{s.filters / s.groups, s.patch(), args.x.rows() * s.out_positions()};
  const int64_t accumulate = args.accumulate ? 1 : 0;
  const auto describe_sources = [&](Call& call) -> Call& {
    call.read("x", args.x).read("dy", args.dy).update("dw", args.dw);
    return describe(call, s, product)
        .text(kSeen)
        .value("x_row", args.x.row_stride)
        .value("dy_row", args.dy.row_stride)
        .value("channels", s.channels / s.groups)
        .constant("accumulate", accumulate);
  };
  if (product.one_by_one()) {
    Call call(frame, kConvDwEach);
    return describe_sources(call).lanes(128).rows(s.filters * product.columns);
  }
  // Enough workgroups for a large device, each with enough terms to be worth its start.
  constexpr int64_t kGroups = 512, kFewestTerms = 128;
  const int64_t tiles = product.row_tiles() * product.column_tiles() * s.groups;
  const int64_t per_part = std::max(
      kFewestTerms, round_up(ceil_div(product.terms, std::max<int64_t>(kGroups / tiles, 1)), 16));
  const int64_t parts = std::max<int64_t>(ceil_div(product.terms, per_part), 1);
  Place part;
  if (parts > 1) {
    LOOM_ASSIGN(part, frame.temporary(parts * s.filters * product.columns * 4));
  }
  Call call(frame, kConvDw);
  parts > 1 ? call.floats("part", part, Access::write) : call.write("part", Tensor{});
  LOOM_TRY(tiled(describe_sources(call), product, kChunk)
               .value("groups", s.groups)
               .value("per_part", per_part)
               .rows(tiles * parts));
  if (parts == 1) return {};
  return Call(frame, kAddParts)
      .floats("part", part, Access::read)
      .update("dw", args.dw)
      .value("parts", parts)
      .value("columns", product.columns)
      .value("values", s.filters * product.columns)
      .constant("accumulate", accumulate)
      .lanes(256)
      .rows(ceil_div(s.filters * product.columns, int64_t{32}));
}

}  // namespace loom::webgpu::kernels

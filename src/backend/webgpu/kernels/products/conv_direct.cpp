// Convolutions without tiles. If a group has few filters, most of a tile would be empty. If
// everything is small, the barriers and parts of tiles would take longest.
#include <algorithm>

#include "backend/webgpu/kernels/products/conv_shape.hpp"
#include "base/numbers/checked.hpp"

namespace loom::core::webgpu {
namespace {

constexpr int64_t kSmallRows = 16;    // whose weights fit workgroup memory
constexpr int64_t kSmallTerms = 128;  // of a patch
constexpr int kFilters = 8;           // of a workgroup of conv_dw

// A workgroup has 64 columns and the filters of a group, four per invocation. The weights and the
// offsets of taps are in workgroup memory.
constexpr Kernel kConvFew{"conv_few", R"(
var<workgroup> filters: array<vec4<f32>, window * quads>;
var<workgroup> terms: array<vec4<i32>, window>;
fn run(row: u32, lane: u32) {
  let group = row / p.tiles;
  let n = row % p.tiles * 64u + lane % 64u;
  let quad = lane / 64u;
  for (var k = lane; k < window; k += lanes) { terms[k] = patch_term(k, window); }
  for (var i = lane; i < window * quads; i += lanes) {
    var v = vec4(0.0);
    for (var j = 0u; j < 4u; j++) {
      let filter_ = i % quads * 4u + j;
      if (filter_ < p.rows) { v[j] = w_at(group * p.rows + filter_, i / quads); }
    }
    filters[i] = v;
  }
  let place = output_place(n, p.columns, group);
  var bias = vec4(0.0);
  for (var j = 0u; j < 4u; j++) {
    bias[j] = bias_at(group * p.rows + min(quad * 4u + j, p.rows - 1u));
  }
  workgroupBarrier();
  var sum = vec4(0.0);
  for (var k = 0u; k < window; k += ahead) {
    var x: array<f32, ahead>;
    for (var j = 0u; j < ahead; j++) { x[j] = seen(place, terms[min(k + j, window - 1u)]); }
    for (var j = 0u; j < ahead; j++) {
      if (k + j < window) { sum += filters[(k + j) * quads + quad] * x[j]; }
    }
  }
  if (n >= p.columns) { return; }
  let to = n / outputs * p.y_s + n % outputs;
  for (var j = 0u; j < 4u; j++) {
    let filter_ = group * p.rows + quad * 4u + j;
    if (quad * 4u + j < p.rows) {
      y_set(to + filter_ * outputs, activate(kind, sum[j] + bias[j]));
    }
  }
}
)"};

// One invocation per value.
constexpr Kernel kConvEach{"conv_each", R"(
fn run(i: u32) {
  let o = i % outputs;
  let filters = p.rows * p.groups;
  let filter_ = i / outputs % filters;
  let sample = i / outputs / filters;
  let place = output_place(sample * outputs + o, p.columns, filter_ / p.rows);
  var total = 0.0;
  for (var k0 = 0u; k0 < p.terms; k0 += 256u) {
    var sum = 0.0;
    for (var k = k0; k < min(k0 + 256u, p.terms); k++) {
      sum += seen(place, patch_term(k, p.terms)) * w_at(filter_, k);
    }
    total += sum;
  }
  y_set(sample * p.y_s + filter_ * outputs + o, activate(kind, total + bias_at(filter_)));
}
)"};

constexpr Kernel kConvDxEach{"conv_dx_each", R"(
fn run(i: u32) {
  let at = i % inputs;
  let channels = p.rows * p.groups;
  let channel = i / inputs % channels;
  let group = channel / p.rows;
  let sample = i / inputs / channels;
  let place = input_place(sample * inputs + at, p.columns, group);
  var total = 0.0;
  for (var tap = 0u; tap < taps; tap++) {
    var sum = 0.0;
    for (var f = 0u; f < p.filters; f++) {
      sum += reached(place, tap_term(tap * p.filters + f, p.terms)) *
             w_at(group * p.filters + f, channel % p.rows * taps + tap);
    }
    total += sum;
  }
  let to = sample * p.dx_s + channel * inputs + at;
  let x = activate(kind, total + bias_at(channel));
  dx_set(to, select(x, dx_at(to) + x, accumulate == 1u));
}
)"};

// A workgroup has a tap and eight filters. Its invocations share the outputs.
constexpr Kernel kConvDwFew{"conv_dw_few", R"(
var<workgroup> parts: array<f32, 8u * lanes>;
var<workgroup> joined: array<f32, lanes>;
fn run(row: u32, lane: u32) {
  let column = row % p.columns;
  let first = row / p.columns % p.blocks * 8u;
  let group = row / p.columns / p.blocks;
  let term = patch_term(column, p.columns);
  let count = min(p.rows - first, 8u);
  var sum: array<f32, 8>;
  for (var from_ = lane; from_ < p.terms; from_ += 8u * lanes) {
    var x: array<f32, 8>;
    var dy: array<f32, 64>;
    for (var i = 0u; i < 8u; i++) {
      let n = from_ + i * lanes;
      x[i] = seen(output_place(n, p.terms, group), term);
      let last = min(n, p.terms - 1u);
      let at = last / outputs * p.dy_row + (group * p.rows + first) * outputs + last % outputs;
      for (var j = 0u; j < 8u; j++) { dy[i * 8u + j] = dy_at(at + min(j, count - 1u) * outputs); }
    }
    for (var i = 0u; i < 8u; i++) {
      for (var j = 0u; j < 8u; j++) { sum[j] += x[i] * dy[i * 8u + j]; }
    }
  }
  for (var j = 0u; j < 8u; j++) { parts[j * lanes + lane] = sum[j]; }
  workgroupBarrier();
  // Every 32 invocations join the parts of a filter, eight each, then one of them the rest.
  let j = lane / 32u;
  var v = 0.0;
  for (var i = lane % 32u; i < lanes; i += 32u) { v += parts[j * lanes + i]; }
  joined[lane] = v;
  workgroupBarrier();
  if (lane % 32u < 4u) {
    for (var i = 4u; i < 32u; i += 4u) { v += joined[lane + i]; }
    joined[lane] = v;
  }
  workgroupBarrier();
  if (lane % 32u == 0u && j < count) {
    let to = (group * p.rows + first + j) * p.dw_s + column;
    let all = (joined[lane] + joined[lane + 1u]) + (joined[lane + 2u] + joined[lane + 3u]);
    dw_set(to, select(all, dw_at(to) + all, accumulate == 1u));
  }
}
)"};

}  // namespace

bool conv_is_direct(const ConvProduct& product) {
  return product.rows <= 2 || (product.rows <= kSmallRows && product.terms <= kSmallTerms);
}

bool conv_dx_is_direct(const ConvProduct& product) {
  return product.rows <= 2;
}

// Every tap reads all outputs again; the limit keeps that from dominating.
bool conv_dw_is_direct(const ConvProduct& product) {
  constexpr int64_t kMaxReads = int64_t{4} << 20;
  return product.rows <= 2 || product.rows * product.columns * product.terms <= kMaxReads;
}

Status conv_direct(Frame& frame, const ConvArgs& args, const ConvProduct& product) {
  if (product.rows <= 2) {
    Call call(frame, kConvEach);
    return conv_operands(call, args, product).beside().items(args.shape.filters * product.columns);
  }
  const int64_t quads = ceil_div(product.rows, int64_t{4});
  const int64_t tiles = ceil_div(product.columns, int64_t{64});
  Call call(frame, kConvFew);
  return conv_operands(call, args, product)
      .value("tiles", tiles)
      .constant("window", product.terms)
      .constant("quads", quads)
      .constant("ahead", ceil_div(product.terms, ceil_div(product.terms, int64_t{16})))
      .lanes(static_cast<int>(64 * quads))
      .beside(16 * product.terms * (quads + 1))
      .rows(tiles * args.shape.groups);
}

Status conv_dx_direct(Frame& frame, const ConvDxArgs& args, const ConvProduct& product) {
  Call call(frame, kConvDxEach);
  return conv_dx_operands(call, args, product)
      .beside()
      .items(args.shape.channels * product.columns);
}

Status conv_dw_direct(Frame& frame, const ConvDwArgs& args, const ConvProduct& product) {
  const int64_t blocks = ceil_div(product.rows, int64_t{kFilters});
  Call call(frame, kConvDwFew);
  return conv_dw_operands(call, args, product)
      .value("blocks", blocks)
      .lanes(256)
      .beside(256 * 36)
      .rows(blocks * product.columns * args.shape.groups);
}

}  // namespace loom::core::webgpu

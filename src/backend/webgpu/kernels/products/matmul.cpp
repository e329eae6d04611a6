// matmul, and its kernels for few rows of x (decoding). A workgroup makes sixteen outputs, one
// group of w, for all rows. Four lanes share the sixteen rows of w, four each, so that adjacent
// lanes read adjacent words. Further lanes take other k. Sums of lanes are added in the order of a
// fixed tree.
#include "backend/webgpu/kernels/kernels.hpp"
#include "backend/webgpu/kernels/products/matmul_narrow.hpp"
#include "backend/webgpu/kernels/products/products.hpp"
#include "backend/webgpu/wgsl/weights.hpp"
#include "base/numbers/checked.hpp"

namespace loom::core::webgpu {

constexpr std::string_view kFinishText = R"(
fn finished(sum: f32, bias: f32) -> f32 {
  return activate(p.activation, select(sum, sum + bias, has_bias));
}
fn finish(sum: f32, n: u32) -> f32 { return finished(sum, bias_at(n)); }
)";
const std::string_view kFinish = kFinishText;

namespace {

// A workgroup has one group of outputs and one tile of `few` rows.
constexpr std::string_view kReduce = R"(
var<private> first_row: u32;
fn begin_tile(i: u32) -> u32 {
  first_row = i % p.row_tiles * few;
  return i / p.row_tiles;
}
fn reduce(sums: ptr<function, array<vec4<f32>, few>>, group: u32, lane: u32) {
  let col = group * 16u + lane_output(lane);
  for (var r = 0u; r < few; r++) {
    let sum = lane_sums((*sums)[r], lane);
    let row = first_row + r;
    if (lane < 16u && col < p.cols && row < p.rows) { y_set(row * p.y_s + col, finish(sum, col)); }
  }
}
)";

// Rows past the last one repeat it and are not stored.
constexpr std::string_view kX = R"(
fn x_four(r: u32, k: u32) -> vec4<f32> {
  let at = min(first_row + r, p.rows - 1u) * p.x_s + k;
  return vec4<f32>(x_at(at), x_at(at + 1u), x_at(at + 2u), x_at(at + 3u));
}
)";

constexpr std::string_view kXRagged = R"(
fn x_four(r: u32, k: u32) -> vec4<f32> {
  let row = min(first_row + r, p.rows - 1u) * p.x_s;
  let at = vec4<u32>(k, k + 1u, k + 2u, k + 3u);
  let j = min(at, vec4<u32>(p.depth - 1u)) + row;
  let v = vec4<f32>(x_at(j.x), x_at(j.y), x_at(j.z), x_at(j.w));
  return select(vec4<f32>(), v, at < vec4<u32>(p.depth));
}
)";

// Wide types: four rows by four k at a time.
constexpr Kernel kSmallWide{"matmul_few_wide", R"(
fn run(i: u32, lane: u32) {
  let group = begin_tile(i);
  let row = group * 16u + lane % 4u * 4u;
  var sums = array<vec4<f32>, few>();
  for (var k = lane / 4u * 4u; k < p.depth; k += lanes) {
    let w = w_block(row, k);
    for (var r = 0u; r < few; r++) { sums[r] += w * x_four(r, k); }
  }
  reduce(&sums, group, lane);
}
)"};

// Types of k-groups: four rows by a block of 32 k, one step for all of it (two of nvfp4).
constexpr Kernel kSmallGroups{"matmul_few_groups", R"(
fn run(i: u32, lane: u32) {
  let group = begin_tile(i);
  let base = group * p.w_group;
  let four = lane % 4u * 4u;
  let offsets = w_offsets(base, four);
  var sums = array<vec4<f32>, few>();
  for (var b = lane / 4u; b < p.blocks; b += lanes / 4u) {
    var terms = array<vec4<f32>, few>();
    for (var v = 0u; v < w_bits; v++) {
      let words = w_words(w_line(base, four, b * 32u + v * 4u));
      for (var h = 0u; h < 8u / w_bits; h++) {
        let k = b * 32u + (v + h * w_bits) * 4u;
        var w = mat4x4<f32>(w_values(w_codes(words.x, k), offsets.x),
                            w_values(w_codes(words.y, k), offsets.y),
                            w_values(w_codes(words.z, k), offsets.z),
                            w_values(w_codes(words.w, k), offsets.w));
        var steps = vec4<f32>(1.0);
        if (w_span == 16u) { steps = w_steps(base, four, k); }
        for (var r = 0u; r < few; r++) { terms[r] += (x_four(r, k) * w) * steps; }
      }
    }
    var steps = vec4<f32>(1.0);
    if (w_span != 16u) { steps = w_steps(base, four, b * 32u); }
    for (var r = 0u; r < few; r++) { sums[r] += terms[r] * steps; }
  }
  reduce(&sums, group, lane);
}
)"};

// Types of spans. The data around a block of 32 k is read once. It is converted twice, because some
// types have spans of 16.
constexpr Kernel kSmallSpans{"matmul_few_spans", R"(
fn run(i: u32, lane: u32) {
  let group = begin_tile(i);
  let base = group * p.w_group;
  let four = lane % 4u * 4u;
  var sums = array<vec4<f32>, few>();
  for (var b = lane / 4u; b < p.blocks; b += lanes / 4u) {
    let around = w_around(base, four, b * 32u);
    for (var from_k = b * 32u; from_k < b * 32u + 32u; from_k += 16u) {
      let span = w_span_of(around, four, from_k);
      for (var k = from_k; k < from_k + 16u; k += 4u) {
        let w = w_tile_in(span, w_fetch(base, four, k), k);
        for (var r = 0u; r < few; r++) { sums[r] += w * x_four(r, k); }
      }
    }
  }
  reduce(&sums, group, lane);
}
)"};

// With quantized rows of x the sum of a block, or of a span, is an exact integer.
constexpr std::string_view kDots = R"(
fn dots(a: u32, w: vec4<u32>) -> vec4<i32> {
  return vec4<i32>(dot4I8Packed(a, w.x), dot4I8Packed(a, w.y), dot4I8Packed(a, w.z),
                   dot4I8Packed(a, w.w));
}
)";

constexpr Kernel kSmallSpansQ8{"matmul_few_spans_q8", R"(
fn run(i: u32, lane: u32) {
  let group = begin_tile(i);
  let base = group * p.w_group;
  let four = lane % 4u * 4u;
  var sums = array<vec4<f32>, few>();
  for (var b = lane / 4u; b < p.blocks; b += lanes / 4u) {
    let around = w_around(base, four, b * 32u);
    for (var from_k = b * 32u; from_k < b * 32u + 32u; from_k += 16u) {
      let span = w_span_of(around, four, from_k);
      var terms = array<vec4<i32>, few>();
      var ones = array<i32, few>();
      for (var k = from_k; k < from_k + 16u; k += 4u) {
        let codes = w_codes_of(w_fetch(base, four, k), k);
        for (var r = 0u; r < few; r++) {
          let a = a_word(min(first_row + r, p.rows - 1u) * (p.blocks * 8u) + k / 4u);
          terms[r] += dots(a, codes);
          ones[r] += dot4I8Packed(a, 0x01010101u);
        }
      }
      for (var r = 0u; r < few; r++) {
        let row = f32(ones[r]);
        let sum = (vec4<f32>(terms[r]) - (span.zero + vec4<f32>(w_bias)) * row) * span.scale;
        let scale = scales_at(min(first_row + r, p.rows - 1u) * p.blocks + b);
        sums[r] += (sum + span.shift * row) * scale;
      }
    }
  }
  reduce(&sums, group, lane);
}
)"};

constexpr Kernel kSmallQ8{"matmul_few_q8", R"(
fn run(i: u32, lane: u32) {
  let group = begin_tile(i);
  let base = group * p.w_group;
  let four = lane % 4u * 4u;
  let offsets = w_offsets(base, four);
  var sums = array<vec4<f32>, few>();
  for (var b = lane / 4u; b < p.blocks; b += lanes / 4u) {
    var low = array<vec4<i32>, few>();
    var high = array<vec4<i32>, few>();
    for (var v = 0u; v < w_bits; v++) {
      let words = w_words(w_line(base, four, b * 32u + v * 4u));
      for (var h = 0u; h < 8u / w_bits; h++) {
        let k = (v + h * w_bits) * 4u;
        let levels = vec4<u32>(w_levels(w_codes(words.x, k)), w_levels(w_codes(words.y, k)),
                               w_levels(w_codes(words.z, k)), w_levels(w_codes(words.w, k)));
        for (var r = 0u; r < few; r++) {
          let a = a_word((min(first_row + r, p.rows - 1u) * p.blocks + b) * 8u + k / 4u);
          if (w_span == 16u && k >= 16u) {
            high[r] += dots(a, levels);
          } else {
            low[r] += dots(a, levels);
          }
        }
      }
    }
    let steps = w_steps(base, four, b * 32u);
    for (var r = 0u; r < few; r++) {
      let at = min(first_row + r, p.rows - 1u) * p.blocks + b;
      let scale = scales_at(at);
      if (w_affine || w_bias != 0) { low[r] -= offsets * bitcast<i32>(sums_word(at)); }
      sums[r] += vec4<f32>(low[r]) * (steps * scale);
      if (w_span == 16u) {
        sums[r] += vec4<f32>(high[r]) * (w_steps(base, four, b * 32u + 16u) * scale);
      }
    }
  }
  reduce(&sums, group, lane);
}
)"};

// No k: only the bias and the activation remain.
constexpr Kernel kNoDepth{"matmul_no_depth", R"(
fn run(i: u32) { y_set(i / p.cols * p.y_s + i % p.cols, finish(0.0, i % p.cols)); }
)"};

Call& finish(Call& call, const MatmulArgs& args) {
  return call.read("bias", args.bias)
      .write("y", args.y)
      .value("rows", args.y.rows())
      .value("cols", args.y.cols())
      .value("activation", static_cast<int64_t>(args.activation))
      .text(kFinish);
}

const Kernel& few_kernel(const MatmulArgs& args) {
  if (reads_rows(args.w.dtype)) return kSmallWide;
  if (reads_spans(args.w.dtype)) return args.use_q8 ? kSmallSpansQ8 : kSmallSpans;
  return args.use_q8 ? kSmallQ8 : kSmallGroups;
}

}  // namespace

Status matmul_few(Frame& frame, const MatmulArgs& args) {
  const int64_t rows = args.y.rows(), cols = args.y.cols(), depth = args.w.shape[1];
  const bool wide = reads_rows(args.w.dtype);
  const int64_t tile_rows = frame.rows_alone() ? 1 : rows <= 2 ? rows : (rows <= 4 ? 4 : 8);
  const int64_t row_tiles = ceil_div(rows, tile_rows);
  Call call(frame, few_kernel(args));
  weights(finish(call, args), args.w, WeightView::quads)
      .text(kReduce)
      .value("depth", depth)
      .value("blocks", ceil_div(depth, kR16Block))
      .value("row_tiles", row_tiles)
      .constant("few", tile_rows)
      .lanes(depth <= 512 ? 64 : (depth <= 2048 ? 128 : 256));
  if (args.use_q8) {
    call.words("a", args.q8.codes).words("sums", args.q8.sums).text(kDots);
    call.read("scales", f32_vector(args.q8.scales, args.q8.rows * args.q8.blocks));
  } else {
    call.read("x", args.x).text(depth % (wide ? 4 : kR16Block) != 0 ? kXRagged : kX);
  }
  return call.rows(ceil_div(cols, kR16Rows) * row_tiles);
}

Status kernels::matmul(Frame& frame, const MatmulArgs& args) {
  const int64_t rows = args.y.rows(), cols = args.y.cols();
  if (rows == 0 || cols == 0) return {};
  if (args.w.shape[1] == 0) {
    Call call(frame, kNoDepth);
    return finish(call, args).items(rows * cols);
  }
  if (frame.rows_alone()) return matmul_few(frame, args);
  if (is_narrow(args)) return matmul_narrow(frame, args);
  return rows <= kSmallRows ? matmul_few(frame, args) : matmul_many(frame, args);
}

}  // namespace loom::core::webgpu

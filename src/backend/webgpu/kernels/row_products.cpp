// The kernels of row_products.hpp. Every workgroup makes the row ready for itself, in its own
// memory, and sixteen outputs of it (of both matrices of a gated unit). What it reads first of the
// matrices is on its way while the row is made: the one does not wait for the other.
#include "backend/webgpu/kernels/row_products.hpp"

#include "backend/webgpu/kernels/attend_one.hpp"
#include "backend/webgpu/kernels/quantize.hpp"
#include "backend/webgpu/wgsl/weights.hpp"
#include "base/checked.hpp"

namespace loom::core::webgpu {
namespace {

constexpr int kLanes = 128;

// ---- the row: four of its values from k on ----

constexpr std::string_view kPlainRow = R"(
fn begin_row(lane: u32) {}
fn row_four(k: u32) -> vec4<f32> {
  return vec4<f32>(x_at(k), x_at(k + 1u), x_at(k + 2u), x_at(k + 3u));
}
)";

// As attention_join, but for the order of sums. Eight splits are on their way at a time.
constexpr std::string_view kJoinedRow = R"(
var<workgroup> join_largest: array<f32, most_sums>;
var<workgroup> join_weight: array<f32, most_sums>;
var<workgroup> join_sum: array<f32, most_sums>;
fn part_four(split: u32, d: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>(part_quad((split * p.line + d) / 4u));
}
fn begin_row(lane: u32) {
  let count = p.heads * p.splits;
  for (var i = lane; i < count; i += lanes) {
    let end = part_four(i, p.line - 4u);
    join_largest[i] = end.x;
    join_sum[i] = end.y;
  }
  workgroupBarrier();
  for (var i = lane; i < count; i += lanes) {
    let first = i / p.splits * p.splits;
    var largest = join_largest[first];
    for (var s = 1u; s < p.splits; s++) { largest = max(largest, join_largest[first + s]); }
    join_weight[i] = select(0.0, loom_exp(join_largest[i] - largest), join_sum[i] > 0.0);
  }
  workgroupBarrier();
}
fn row_four(k: u32) -> vec4<f32> {
  let first = k / p.head_width * p.splits;
  let end = first + p.splits;
  let d = k % p.head_width;
  var sum = vec4<f32>();
  var total = 0.0;
  for (var s = first; s < end; s += 8u) {
    var parts: array<vec4<f32>, 8>;
    for (var j = 0u; j < 8u; j++) { parts[j] = part_four(min(s + j, end - 1u), d); }
    for (var j = 0u; j < 8u; j++) {
      if (s + j >= end) { continue; }
      sum += join_weight[s + j] * parts[j];
      total += join_weight[s + j] * join_sum[s + j];
    }
  }
  return select(vec4<f32>(), sum / total, total > 0.0);
}
)";

// Lane j has the values 4j .. 4j + 3, and those 4 * lanes behind them, and so on.
constexpr std::string_view kReady = R"(
const row_quads: u32 = (depth / 4u + lanes - 1u) / lanes;
fn ready_row(first: bool, lane: u32) -> array<vec4<f32>, row_quads> {
  begin_row(lane);
  var mine: array<vec4<f32>, row_quads>;
  var gamma: array<vec4<f32>, row_quads>;
  var squares = 0.0;
  for (var i = 0u; i < row_quads; i++) {
    let at = lane + i * lanes;
    if (at >= depth / 4u) { continue; }
    mine[i] = row_four(4u * at);
    if (has_gamma) {
      gamma[i] = vec4<f32>(gamma_at(4u * at), gamma_at(4u * at + 1u), gamma_at(4u * at + 2u),
                           gamma_at(4u * at + 3u));
    }
  }
  if (normed == 1u) {
    for (var i = 0u; i < row_quads; i++) { squares += dot(mine[i], mine[i]); }
    let factor = 1.0 / sqrt(group_sum(lane, squares) / f32(depth) + p.eps);
    for (var i = 0u; i < row_quads; i++) {
      mine[i] *= factor;
      if (has_gamma) { mine[i] *= gamma[i]; }
    }
  }
  if (has_kept && first) {
    for (var i = 0u; i < row_quads; i++) {
      let at = lane + i * lanes;
      for (var j = 0u; j < 4u && at < depth / 4u; j++) { kept_set(4u * at + j, mine[i][j]); }
    }
  }
  return mine;
}
)";

constexpr std::string_view kFloats = R"(
var<workgroup> staged: array<vec4<f32>, depth / 4u>;
fn prepare(first: bool, lane: u32) {
  var mine = ready_row(first, lane);
  for (var i = 0u; i < row_quads; i++) {
    let at = lane + i * lanes;
    if (at < depth / 4u) { staged[at] = mine[i]; }
  }
  workgroupBarrier();
}
)";

// quantize_block() of quantize.cpp, into the memory of the workgroup.
constexpr std::string_view kCodes = R"(
var<workgroup> a_codes: array<u32, depth / 4u>;
var<workgroup> a_scales: array<f32, depth / 32u>;
var<workgroup> a_sums: array<i32, depth / 32u>;
fn codes_put(i: u32, word: u32) { a_codes[i] = word; }
fn scales_put(i: u32, bits: u32) { a_scales[i] = bitcast<f32>(bits); }
fn sums_put(i: u32, bits: u32) { a_sums[i] = bitcast<i32>(bits); }
fn halves_put(i: u32, bits: u32) {}
fn prepare(first: bool, lane: u32) {
  var mine = ready_row(first, lane);
  for (var i = 0u; i < row_quads; i++) {
    let at = lane + i * lanes;
    quantize_block(mine[i], at / 8u, at < depth / 4u, lane);
  }
}
)";

// ---- one lane's share of four outputs ----

// A lane has blocks of `unit` k, of four rows; the words of the next are asked for before those of
// one are used.
constexpr std::string_view kProduct = R"(
fn ahead(base: u32, lane: u32) -> Ahead { return fetch(base, lane % 4u * 4u, lane / 4u); }
fn product(base: u32, lane: u32, fetched: Ahead) -> vec4<f32> {
  let four = lane % 4u * 4u;
  let own = fixed_of(base, four);
  var now = fetched;
  var sum = vec4<f32>();
  for (var b = lane / 4u; b < depth / unit; b += lanes / 4u) {
    let next = fetch(base, four, b + lanes / 4u);
    sum += block_product(base, four, b, now, own);
    now = next;
  }
  return sum;
}
)";

constexpr std::string_view kWide = R"(
const unit = 4u;
struct Fixed { none: u32 }
fn fixed_of(base: u32, four: u32) -> Fixed { return Fixed(0u); }
struct Ahead { words: array<vec4<u32>, 4> }
fn fetch(base: u32, four: u32, block: u32) -> Ahead {
  let k = min(block, depth / unit - 1u) * unit;
  return Ahead(array<vec4<u32>, 4>(w_raw(base, four, k), w_raw(base, four, k + 1u),
                                   w_raw(base, four, k + 2u), w_raw(base, four, k + 3u)));
}
fn block_product(base: u32, four: u32, b: u32, now: Ahead, own: Fixed) -> vec4<f32> {
  let x = staged[b];
  return w_of_raw(now.words[0], base, four) * x.x + w_of_raw(now.words[1], base, four) * x.y +
         w_of_raw(now.words[2], base, four) * x.z + w_of_raw(now.words[3], base, four) * x.w;
}
)";

constexpr std::string_view kBlocks = R"(
const unit = 32u;
struct Fixed { offsets: vec4<i32> }
fn fixed_of(base: u32, four: u32) -> Fixed { return Fixed(w_offsets(base, four)); }
struct Ahead { words: array<vec4<u32>, w_bits>, steps: vec4<u32> }
fn fetch(base: u32, four: u32, block: u32) -> Ahead {
  let b = min(block, depth / unit - 1u);
  var a: Ahead;
  for (var v = 0u; v < w_bits; v++) { a.words[v] = w_words(w_line(base, four, b * 32u + v * 4u)); }
  if (w_span != 16u) { a.steps = w_step_words(base, four, b * 32u); }
  return a;
}
)";

constexpr std::string_view kBlockFloats = R"(
fn block_product(base: u32, four: u32, b: u32, now: Ahead, own: Fixed) -> vec4<f32> {
  var terms = vec4<f32>();
  for (var v = 0u; v < w_bits; v++) {
    let words = now.words[v];
    for (var h = 0u; h < 8u / w_bits; h++) {
      let k = b * 32u + (v + h * w_bits) * 4u;
      let w = mat4x4<f32>(w_values(w_codes(words.x, k), own.offsets.x),
                          w_values(w_codes(words.y, k), own.offsets.y),
                          w_values(w_codes(words.z, k), own.offsets.z),
                          w_values(w_codes(words.w, k), own.offsets.w));
      if (w_span == 16u) {
        terms += (staged[k / 4u] * w) * w_steps(base, four, k);
      } else {
        terms += staged[k / 4u] * w;
      }
    }
  }
  if (w_span != 16u) { terms *= w_steps_of(now.steps, four); }
  return terms;
}
)";

constexpr std::string_view kBlockQ8 = R"(
fn dots(a: u32, w: vec4<u32>) -> vec4<i32> {
  return vec4<i32>(dot4I8Packed(a, w.x), dot4I8Packed(a, w.y), dot4I8Packed(a, w.z),
                   dot4I8Packed(a, w.w));
}
fn block_product(base: u32, four: u32, b: u32, now: Ahead, own: Fixed) -> vec4<f32> {
  var low = vec4<i32>();
  var high = vec4<i32>();
  for (var v = 0u; v < w_bits; v++) {
    let words = now.words[v];
    for (var h = 0u; h < 8u / w_bits; h++) {
      let k = (v + h * w_bits) * 4u;
      let levels = vec4<u32>(w_levels(w_codes(words.x, k)), w_levels(w_codes(words.y, k)),
                             w_levels(w_codes(words.z, k)), w_levels(w_codes(words.w, k)));
      let a = a_codes[b * 8u + k / 4u];
      if (w_span == 16u && k >= 16u) { high += dots(a, levels); } else { low += dots(a, levels); }
    }
  }
  let scale = a_scales[b];
  if (w_affine || w_bias != 0) { low -= own.offsets * a_sums[b]; }
  if (w_span != 16u) { return vec4<f32>(low) * (w_steps_of(now.steps, four) * scale); }
  return vec4<f32>(low) * (w_steps(base, four, b * 32u) * scale) +
         vec4<f32>(high) * (w_steps(base, four, b * 32u + 16u) * scale);
}
)";

constexpr Kernel kGates{"products_gated", R"(
fn run(row: u32, lane: u32) {
  let base0 = p.base0 + row * p.w_group;
  let base1 = p.base1 + row * p.w_group;
  let ahead0 = ahead(base0, lane);
  let ahead1 = ahead(base1, lane);
  let n = row * 16u + lane_output(lane);
  let bias_gate = bias0_at(min(n, p.n0 - 1u));
  let bias_up = bias1_at(min(n, p.n0 - 1u));
  prepare(row == 0u, lane);
  var gate = lane_sums(product(base0, lane, ahead0), lane);
  var up = lane_sums(product(base1, lane, ahead1), lane);
  if (lane >= 16u || n >= p.n0) { return; }
  if (has_bias0) { gate += bias_gate; }
  if (has_bias1) { up += bias_up; }
  if (has_y0) { y0_set(n, gate); }
  if (has_y1) { y1_set(n, up); }
  out_set(n, activate(act, gate) * up);
}
)"};

// Matrices follow each other; a workgroup has a group of one of them.
constexpr Kernel kPlain{"products", R"(
struct Group { matrix: u32, group: u32, base: u32, count: u32 }
fn group_of(row: u32) -> Group {
  if (row < p.groups0) { return Group(0u, row, p.base0, p.n0); }
  let second = row - p.groups0;
  if (second < p.groups1) { return Group(1u, second, p.base1, p.n1); }
  return Group(2u, second - p.groups1, p.base2, p.n2);
}
fn bias_of(matrix: u32, n: u32) -> f32 {
  switch (matrix) {
    case 0u: { return bias0_at(n); }
    case 1u: { return bias1_at(n); }
    default: { return bias2_at(n); }
  }
}
fn run(row: u32, lane: u32) {
  let g = group_of(row);
  let base = g.base + g.group * p.w_group;
  let fetched = ahead(base, lane);
  let n = g.group * 16u + lane_output(lane);
  let bias = bias_of(g.matrix, min(n, g.count - 1u));
  let added = other_at(min(n, p.n0 - 1u));
  prepare(row == 0u, lane);
  let sum = lane_sums(product(base, lane, fetched), lane) + bias;
  if (lane >= 16u || n >= g.count) { return; }
  switch (g.matrix) {
    case 0u: {
      let y = activate(act, sum);
      if (has_y0) { y0_set(n, y); }
      if (has_out) { out_set(n, y + added); }
    }
    case 1u: { y1_set(n, sum); }
    default: { y2_set(n, sum); }
  }
}
)"};

// Where the groups of each matrix begin; matrices are counted from the one that lies lowest.
struct Lines {
  const Tensor* lowest = nullptr;
  int64_t base[RowProducts::kMost] = {}, groups[RowProducts::kMost] = {},
          n[RowProducts::kMost] = {};
};

Lines lines_of(const Frame& frame, const RowProducts& p) {
  Lines l;
  const auto begin = [&](const Tensor& w) { return frame.place(w.data).offset; };
  for (int64_t i = 0; i < p.count; ++i) {
    const Tensor& w = p.matrix[i]->w;
    if (l.lowest == nullptr || begin(w) < begin(*l.lowest)) l.lowest = &w;
  }
  for (int64_t i = 0; i < p.count; ++i) {
    l.base[i] = (begin(p.matrix[i]->w) - begin(*l.lowest)) / 4;
    l.n[i] = p.matrix[i]->y.cols();
    l.groups[i] = ceil_div(l.n[i], kR16Rows);
  }
  return l;
}

void read_row(Call& call, const RowProducts& p) {
  if (p.joined != nullptr) {
    call.text(kJoinedRow)
        .quads("part", p.joined->part)
        .constant("most_sums", kJoinedSums)
        .value("splits", p.joined->splits)
        .value("heads", p.joined->heads)
        .value("head_width", p.joined->width)
        .value("line", join_line(p.joined->width));
  } else {
    call.text(kPlainRow).read("x", p.x());
  }
  call.text(kReady)
      .read("gamma", p.norm != nullptr ? p.norm->gamma : Tensor{})
      .value("eps", p.norm != nullptr ? p.norm->eps : 0.0f)
      .constant("normed", p.norm != nullptr ? 1 : 0);
}

}  // namespace

bool row_fits(const RowProducts& p) {
  const R16 g = r16_geometry(p.matrix[0]->w.dtype, 16, p.depth());
  if (p.depth() <= 0 || p.depth() % kR16Block != 0) return false;
  if (p.quantize != nullptr && !reads_levels(g.dtype)) return false;
  // f64 weights have no rows at a time.
  if (dtype_info(g.dtype).compute != ComputeType::f32) return false;
  // The workgroup's 16 KiB, beside the sums of its lanes.
  const int64_t per_block = p.quantize != nullptr ? 32 + 8 : 128;
  const int64_t sums = p.joined != nullptr ? 3 * 4 * kJoinedSums : 0;
  const int64_t room = 16384 - 2 * kLanes * 16 - 3 * kLanes * 4 - sums;
  if (p.joined != nullptr && (p.joined->splits * p.joined->heads > kJoinedSums ||
                              p.joined->splits > kMostJoined || p.joined->width % 4 != 0)) {
    return false;
  }
  return p.depth() / kR16Block * per_block <= room;
}

Status run_row_products(Frame& frame, const RowProducts& p, const RowOutputs& out) {
  const MatmulArgs& first = *p.matrix[0];
  const Lines l = lines_of(frame, p);
  const bool wide = reads_rows(first.w.dtype);
  Call call(frame, p.gated != nullptr ? kGates : kPlain);
  weights(call, *l.lowest, WeightView::quads);
  read_row(call, p);
  if (p.quantize != nullptr) call.text(kQuantizeBlock);
  call.text(p.quantize != nullptr ? kCodes : kFloats).text(wide ? kWide : kBlocks);
  if (!wide) call.text(p.quantize != nullptr ? kBlockQ8 : kBlockFloats);
  call.text(kProduct)
      .write("kept", out.kept)
      .read("bias0", first.bias)
      .read("bias1", p.count > 1 ? p.matrix[1]->bias : Tensor{})
      .read("bias2", p.count > 2 ? p.matrix[2]->bias : Tensor{})
      .write("y0", out.y[0])
      .write("y1", out.y[1])
      .write("y2", out.y[2])
      .write("out", out.out)
      .read("other", p.other)
      .value("base0", l.base[0])
      .value("base1", l.base[1])
      .value("base2", l.base[2])
      .value("groups0", l.groups[0])
      .value("groups1", l.groups[1])
      .value("n0", l.n[0])
      .value("n1", l.n[1])
      .value("n2", l.n[2])
      .constant("depth", p.depth())
      .constant("act",
                static_cast<int64_t>(p.gated != nullptr ? p.gated->activation : first.activation))
      .lanes(kLanes);
  return call.rows(p.gated != nullptr ? l.groups[0] : l.groups[0] + l.groups[1] + l.groups[2]);
}

}  // namespace loom::core::webgpu

// The kernels of row_products.hpp. Every workgroup prepares the row for itself, in its own memory.
// It makes one or more groups of sixteen outputs, of both matrices of a gated unit. A row that is
// too long for that memory comes in pieces. The first loads of the matrices are issued before the
// row is prepared, so they overlap.
#include "backend/webgpu/kernels/products/row_products.hpp"

#include <algorithm>

#include "backend/webgpu/kernels/attention/attend_one.hpp"
#include "backend/webgpu/kernels/codes/quantize.hpp"
#include "backend/webgpu/kernels/products/row_share.hpp"
#include "backend/webgpu/wgsl/weights.hpp"
#include "base/numbers/checked.hpp"

namespace loom::core::webgpu {
namespace {

// ---- the row: four of its values from k on ----

constexpr std::string_view kPlainRow = R"(
fn begin_row(lane: u32) {}
fn row_at(k: u32) -> f32 { return x_at(x_row * p.x_s + k); }
fn row_four(k: u32) -> vec4<f32> {
  return vec4<f32>(row_at(k), row_at(k + 1u), row_at(k + 2u), row_at(k + 3u));
}
)";

// Like attention_join, except for the order of sums. Eight splits are in flight at a time.
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

// ---- a piece of the row in the memory of the workgroup: stage(), for values from `begin` on ----

// A row of plain floats; adjacent invocations read adjacent values. The factor of a norm is
// constant over the row, so it multiplies the final sums and nothing waits for it earlier.
constexpr std::string_view kStageOnes = R"(
var<private> squares: f32;
fn begin_pieces(lane: u32) {}
// What waits for memory is asked for together.
struct Staged { x: vec4<f32>, gamma: vec4<f32> }
fn four_from(at: u32) -> Staged {
  let k = min(at + vec4<u32>(0u, lanes, 2u * lanes, 3u * lanes), vec4<u32>(depth - 1u));
  return Staged(vec4<f32>(row_at(k.x), row_at(k.y), row_at(k.z), row_at(k.w)),
                vec4<f32>(gamma_at(k.x), gamma_at(k.y), gamma_at(k.z), gamma_at(k.w)));
}
fn keep_one(at: u32, count: u32, x: f32, gamma: f32) {
  if (at >= count) { return; }
  staged[at + at / 32u * 4u] = select(x, x * gamma, has_gamma);
  squares += x * x;
}
fn keep_four(at: u32, count: u32, four: Staged) {
  keep_one(at, count, four.x.x, four.gamma.x);
  keep_one(at + lanes, count, four.x.y, four.gamma.y);
  keep_one(at + 2u * lanes, count, four.x.z, four.gamma.z);
  keep_one(at + 3u * lanes, count, four.x.w, four.gamma.w);
}
fn stage(first: bool, begin: u32, lane: u32) {
  let count = min(piece, depth - begin);
  if (piece > 4u * lanes) {
    for (var at = lane; at < count; at += 16u * lanes) {
      let a = four_from(begin + at);
      let b = four_from(begin + at + 4u * lanes);
      let c = four_from(begin + at + 8u * lanes);
      let d = four_from(begin + at + 12u * lanes);
      keep_four(at, count, a);
      keep_four(at + 4u * lanes, count, b);
      keep_four(at + 8u * lanes, count, c);
      keep_four(at + 12u * lanes, count, d);
    }
  } else {
    keep_four(lane, count, four_from(begin + lane));
  }
  workgroupBarrier();
}
fn row_factor(first: bool, lane: u32) -> f32 {
  if (normed == 0u) { return 1.0; }
  let factor = 1.0 / sqrt(group_sum(lane, squares) / f32(depth) + p.eps);
  if (has_kept && first) {
    for (var k = lane; k < depth; k += lanes) {
      let x = row_at(k) * factor;
      kept_set(x_row * p.kept_row + k, select(x, x * gamma_at(k), has_gamma));
    }
  }
  return factor;
}
)";

// A row that is joined from an attention: four values at a time. Lane j has 4j .. 4j + 3, and the
// four that are 4 * lanes later.
constexpr std::string_view kStageJoined = R"(
fn begin_pieces(lane: u32) { begin_row(lane); }
fn stage(first: bool, begin: u32, lane: u32) {
  for (var at = lane; at < min(piece, depth - begin) / 4u; at += lanes) {
    let x = row_four(begin + 4u * at);
    let to = (at + at / 8u) * 4u;
    staged[to] = x.x;
    staged[to + 1u] = x.y;
    staged[to + 2u] = x.z;
    staged[to + 3u] = x.w;
  }
  workgroupBarrier();
}
fn row_factor(first: bool, lane: u32) -> f32 { return 1.0; }
)";

// Rows that are quantized: the same after a norm. In pieces, the norm reads the row once more.
constexpr std::string_view kReady = R"(
const row_quads: u32 = (piece / 4u + lanes - 1u) / lanes;
var<private> norm_factor: f32;
fn row_factor(first: bool, lane: u32) -> f32 { return 1.0; }
fn begin_pieces(lane: u32) {
  begin_row(lane);
  if (normed == 0u || pieces == 1u) { return; }
  var squares = 0.0;
  for (var at = lane; at < depth / 4u; at += lanes) {
    let v = row_four(4u * at);
    squares += dot(v, v);
  }
  norm_factor = 1.0 / sqrt(group_sum(lane, squares) / f32(depth) + p.eps);
}
fn ready_piece(first: bool, begin: u32, lane: u32) -> array<vec4<f32>, row_quads> {
  let count = min(piece, depth - begin) / 4u;
  var mine: array<vec4<f32>, row_quads>;
  var gamma: array<vec4<f32>, row_quads>;
  for (var i = 0u; i < row_quads; i++) {
    let at = lane + i * lanes;
    if (at >= count) { continue; }
    let k = begin + 4u * at;
    mine[i] = row_four(k);
    if (has_gamma) {
      gamma[i] = vec4<f32>(gamma_at(k), gamma_at(k + 1u), gamma_at(k + 2u), gamma_at(k + 3u));
    }
  }
  if (normed == 1u) {
    if (pieces == 1u) {
      var squares = 0.0;
      for (var i = 0u; i < row_quads; i++) { squares += dot(mine[i], mine[i]); }
      norm_factor = 1.0 / sqrt(group_sum(lane, squares) / f32(depth) + p.eps);
    }
    for (var i = 0u; i < row_quads; i++) {
      mine[i] *= norm_factor;
      if (has_gamma) { mine[i] *= gamma[i]; }
    }
  }
  if (has_kept && first) {
    for (var i = 0u; i < row_quads; i++) {
      let at = lane + i * lanes;
      let to = x_row * p.kept_row + begin + 4u * at;
      for (var j = 0u; j < 4u && at < count; j++) { kept_set(to + j, mine[i][j]); }
    }
  }
  return mine;
}
)";

// quantize_block() of quantize.cpp, into the memory of the workgroup.
constexpr std::string_view kStageCodes = R"(
fn codes_put(i: u32, word: u32) { a_codes[i] = word; }
fn scales_put(i: u32, bits: u32) { a_scales[i] = bitcast<f32>(bits); }
fn sums_put(i: u32, bits: u32) { a_sums[i] = bitcast<i32>(bits); }
fn halves_put(i: u32, bits: u32) {}
fn stage(first: bool, begin: u32, lane: u32) {
  var mine = ready_piece(first, begin, lane);
  for (var i = 0u; i < row_quads; i++) {
    let at = lane + i * lanes;
    quantize_block(mine[i], at / 8u, at < min(piece, depth - begin) / 4u, lane);
  }
}
)";

// ---- epilogues ----

// The rows share a group of outputs one after the other, while its weights are cached.
constexpr std::string_view kXRow = "var<private> x_row: u32;\n";

constexpr Kernel kGates{"products_gated", R"(
fn run(i: u32, lane: u32) {
  x_row = i % p.rows;
  let group = i / p.rows;
  let n = group * 16u + lane_output(lane);
  let bias_gate = bias0_at(min(n, p.n0 - 1u));
  let bias_up = bias1_at(min(n, p.n0 - 1u));
  let sums =
      products(p.base0 + group * p.w_group, p.base1 + group * p.w_group, group == 0u, lane);
  let factor = row_factor(group == 0u, lane);
  var gate = lane_sums(sums.s0, lane) * factor;
  var up = lane_sums(sums.s1, lane) * factor;
  if (lane >= 16u || n >= p.n0) { return; }
  if (has_bias0) { gate += bias_gate; }
  if (has_bias1) { up += bias_up; }
  if (has_y0) { y0_set(x_row * p.y0_row + n, gate); }
  if (has_y1) { y1_set(x_row * p.y1_row + n, up); }
  out_set(x_row * p.out_row + n, activate(act, gate) * up);
}
)"};

// Matrices follow each other. A workgroup has `many` groups of one of them, one or two. A second
// group past the last one repeats it and is not stored.
constexpr Kernel kPlain{"products", R"(
struct Group { matrix: u32, group: u32, base: u32, count: u32 }
fn group_of(row: u32) -> Group {
  if (row < p.groups0) { return Group(0u, row * many, p.base0, p.n0); }
  let second = row - p.groups0;
  if (second < p.groups1) { return Group(1u, second * many, p.base1, p.n1); }
  return Group(2u, (second - p.groups1) * many, p.base2, p.n2);
}
struct Needs { bias: f32, added: f32 }
fn needs_of(g: Group, n: u32) -> Needs {
  let at = min(n, g.count - 1u);
  let added = other_at(x_row * p.other_row + min(at, p.n0 - 1u));
  switch (g.matrix) {
    case 0u: { return Needs(bias0_at(at), added); }
    case 1u: { return Needs(bias1_at(at), added); }
    default: { return Needs(bias2_at(at), added); }
  }
}
fn store(g: Group, n: u32, sum: f32, needs: Needs, lane: u32) {
  if (lane >= 16u || n >= g.count) { return; }
  switch (g.matrix) {
    case 0u: {
      let y = activate(act, sum + needs.bias);
      if (has_y0) { y0_set(x_row * p.y0_row + n, y); }
      if (has_out) { out_set(x_row * p.out_row + n, y + needs.added); }
    }
    case 1u: { y1_set(x_row * p.y1_row + n, sum + needs.bias); }
    default: { y2_set(x_row * p.y2_row + n, sum + needs.bias); }
  }
}
fn run(i: u32, lane: u32) {
  x_row = i % p.rows;
  let row = i / p.rows;
  let g = group_of(row);
  let base = g.base + g.group * p.w_group;
  let n = g.group * 16u + lane_output(lane);
  let needs = needs_of(g, n);
  var more = needs;
  var next = base;
  if (many == 2u) {
    more = needs_of(g, n + 16u);
    if (g.group * 16u + 16u < g.count) { next += p.w_group; }
  }
  let sums = products(base, next, row == 0u, lane);
  let factor = row_factor(row == 0u, lane);
  store(g, n, lane_sums(sums.s0, lane) * factor, needs, lane);
  if (many == 2u) { store(g, n + 16u, lane_sums(sums.s1, lane) * factor, more, lane); }
}
)"};

// The first group of each matrix, relative to the matrix with the lowest address.
struct Lines {
  const Tensor* lowest = nullptr;
  int64_t base[RowProducts::kMax] = {}, groups[RowProducts::kMax] = {}, n[RowProducts::kMax] = {};
};

Lines lines_of(const Frame& frame, const RowProducts& p, int64_t num_rows) {
  Lines l;
  const auto begin = [&](const Tensor& w) { return frame.slice_of(w.data).offset; };
  for (int64_t i = 0; i < p.count; ++i) {
    const Tensor& w = p.matrix[i]->w;
    if (l.lowest == nullptr || begin(w) < begin(*l.lowest)) l.lowest = &w;
  }
  for (int64_t i = 0; i < p.count; ++i) {
    l.base[i] = (begin(p.matrix[i]->w) - begin(*l.lowest)) / 4;
    l.n[i] = p.matrix[i]->y.cols();
    l.groups[i] = ceil_div(ceil_div(l.n[i], kR16Rows), num_rows);
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
  if (p.quantize != nullptr) {
    call.text(kReady).text(kQuantizeBlock).text(kStageCodes);
  } else {
    call.text(p.joined != nullptr ? kStageJoined : kStageOnes);
  }
  call.read("gamma", p.norm != nullptr ? p.norm->gamma : Tensor{})
      .value("eps", p.norm != nullptr ? p.norm->eps : 0.0f)
      .constant("normed", p.norm != nullptr ? 1 : 0);
}

// The division of the work. Only lanes affects the order of a sum, and it depends on the sizes
// alone.
struct Plan {
  int lanes = 128;
  int64_t num_rows = 1;  // groups of outputs per workgroup
  int64_t piece = 0;     // values of the row that are in its memory at a time
};

int64_t all_groups(const RowProducts& p) {
  int64_t groups = 0;
  for (int64_t i = 0; i < p.count; ++i) groups += ceil_div(p.matrix[i]->y.cols(), kR16Rows);
  return groups;
}

// Bytes of a workgroup's memory that remain for the row, besides its sums.
int64_t room_for_row(const RowProducts& p, const AdapterReport& adapter, int lanes) {
  const int team = std::clamp(std::min(adapter.subgroup, lanes), 4, 32);
  int64_t taken = int64_t{lanes} / team * 4 * 2 * 16;
  if (p.norm != nullptr) taken += 2 * lanes * 4;
  if (p.quantize != nullptr) taken += lanes * 4;
  if (p.joined != nullptr) taken += 3 * 4 * kJoinedSums;
  return adapter.max_workgroup_memory - taken;
}

Plan plan_of(const RowProducts& p, const AdapterReport& adapter) {
  Plan plan;
  const int64_t groups = all_groups(p), depth = p.depth();
  // Few groups of long rows get more lanes, so that enough of a matrix is in flight.
  if (depth >= 4096 || (depth >= 2048 && groups <= 256)) plan.lanes = 256;
  // With many groups, one preparation of the row serves several.
  const bool little = dtype_info(p.matrix[0]->w.dtype).bits <= 8;
  if (p.gated == nullptr && groups >= 2048) plan.num_rows = little ? 2 : 1;
  if (p.gated != nullptr) plan.num_rows = 2;
  const int64_t per_block = p.quantize != nullptr ? 32 + 8 : 128 + 16;
  const int64_t whole = plan.lanes * 8;  // all lanes have an equal share
  int64_t most = room_for_row(p, adapter, plan.lanes) / per_block * kR16Block;
  if (most >= whole) most = most / whole * whole;
  plan.piece = depth;
  if (depth > most) {
    const int64_t pieces = ceil_div(depth, most);
    plan.piece =
        std::min(round_up(ceil_div(depth, pieces), most >= whole ? whole : kR16Block), most);
  }
  return plan;
}

}  // namespace

bool row_fits(const RowProducts& p) {
  const DType dtype = p.matrix[0]->w.dtype;
  if (p.depth() <= 0 || p.depth() % kR16Block != 0) return false;
  if (p.quantize != nullptr && !reads_levels(dtype)) return false;
  // f64 weights have no kernels that read rows.
  if (dtype_info(dtype).compute != ComputeType::f32) return false;
  return p.joined == nullptr || (p.joined->splits * p.joined->heads <= kJoinedSums &&
                                 p.joined->splits <= kMaxJoined && p.joined->width % 4 == 0);
}

Status run_row_products(Frame& frame, const RowProducts& p, const RowOutputs& out) {
  const MatmulArgs& first = *p.matrix[0];
  const Plan plan = plan_of(p, frame.adapter());
  const Lines l = lines_of(frame, p, p.gated != nullptr ? 1 : plan.num_rows);
  Call call(frame, p.gated != nullptr ? kGates : kPlain);
  weights(call, *l.lowest, WeightView::quads).text(kXRow);
  read_row(call, p);
  share_row(call, first.w.dtype, p.quantize != nullptr, plan.num_rows == 2);
  call.value("rows", p.rows)
      .value("kept_row", out.kept.row_stride)
      .value("y0_row", out.y[0].row_stride)
      .value("y1_row", out.y[1].row_stride)
      .value("y2_row", out.y[2].row_stride)
      .value("out_row", out.out.row_stride)
      .value("other_row", p.other.row_stride)
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
      .constant("piece", plan.piece)
      .constant("pieces", ceil_div(p.depth(), plan.piece))
      .constant("many", plan.num_rows)
      .constant("act",
                static_cast<int64_t>(p.gated != nullptr ? p.gated->activation : first.activation))
      .lanes(plan.lanes);
  return call.rows(p.rows * (l.groups[0] + (p.gated != nullptr ? 0 : l.groups[1] + l.groups[2])));
}

}  // namespace loom::core::webgpu

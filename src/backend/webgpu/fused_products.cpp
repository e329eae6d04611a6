// The products of one row: norm, quantise_rows, up to three matmul over the same x, then a gated
// unit or an addition, in one dispatch. Every workgroup makes x ready for itself, in its own
// memory, and sixteen outputs of it (of both matrices of a gated unit).
#include "backend/webgpu/peephole.hpp"
#include "backend/webgpu/quantise.hpp"
#include "backend/webgpu/weights.hpp"
#include "base/checked.hpp"

namespace loom::webgpu {
namespace {

constexpr int64_t kMost = 3;

// What a run of commands amounts to.
struct Products {
  const NormArgs* norm = nullptr;
  const QuantiseRowsArgs* quantise = nullptr;
  const MatmulArgs* matrix[kMost] = {};
  int64_t count = 0;
  const GatedArgs* gated = nullptr;
  const BinaryArgs* addition = nullptr;
  Tensor other;  // what is added
  int64_t commands = 0;

  const Tensor& x() const {
    if (norm != nullptr) return norm->x;
    return quantise != nullptr ? quantise->x : matrix[0]->x;
  }
  int64_t depth() const { return matrix[0]->w.shape[1]; }
};

bool row_of_floats(const Tensor& t) {
  return t.rows() == 1 && t.dtype == DType::f32;
}

// ---- x, ready in the memory of the workgroup ----

constexpr std::string_view kValue = R"(
fn value(k: u32, factor: f32) -> f32 {
  if (normed == 0u) { return x_at(k); }
  var v = x_at(k) * factor;
  if (has_gamma) { v = v * gamma_at(k); }
  return v;
}
fn four_values(k: u32, factor: f32, first: bool) -> vec4<f32> {
  let v = vec4<f32>(value(k, factor), value(k + 1u, factor), value(k + 2u, factor),
                    value(k + 3u, factor));
  if (has_kept && first) {
    for (var i = 0u; i < 4u; i++) { kept_set(k + i, v[i]); }
  }
  return v;
}
fn factor_of(lane: u32) -> f32 {
  if (normed == 0u) { return 1.0; }
  return row_moments(false, 0u, depth, p.eps, lane).y;
}
)";

constexpr std::string_view kFloats = R"(
var<workgroup> staged: array<vec4<f32>, depth / 4u>;
fn prepare(first: bool, lane: u32) {
  let factor = factor_of(lane);
  for (var i = lane; i < depth / 4u; i += lanes) { staged[i] = four_values(4u * i, factor, first); }
  workgroupBarrier();
}
)";

// quantise_block() of quantise.cpp, into the memory of the workgroup.
constexpr std::string_view kCodes = R"(
var<workgroup> a_codes: array<u32, depth / 4u>;
var<workgroup> a_scales: array<f32, depth / 32u>;
var<workgroup> a_sums: array<i32, depth / 32u>;
fn codes_put(i: u32, word: u32) { a_codes[i] = word; }
fn scales_put(i: u32, bits: u32) { a_scales[i] = bitcast<f32>(bits); }
fn sums_put(i: u32, bits: u32) { a_sums[i] = bitcast<i32>(bits); }
fn halves_put(i: u32, bits: u32) {}
fn prepare(first: bool, lane: u32) {
  let factor = factor_of(lane);
  for (var begin = 0u; begin < depth / 32u; begin += lanes / 8u) {
    let block = begin + lane / 8u;
    let inside = block < depth / 32u;
    var x = vec4<f32>();
    if (inside) { x = four_values(block * 32u + lane % 8u * 4u, factor, first); }
    quantise_block(x, block, inside, lane);
  }
}
)";

// ---- one lane's share of four outputs ----

constexpr std::string_view kWide = R"(
fn product(base: u32, lane: u32) -> vec4<f32> {
  let four = lane % 4u * 4u;
  var sum = vec4<f32>();
  for (var k = lane / 4u * 4u; k < depth; k += lanes) {
    let x = staged[k / 4u];
    sum += w_rows(base, four, k) * x.x + w_rows(base, four, k + 1u) * x.y +
           w_rows(base, four, k + 2u) * x.z + w_rows(base, four, k + 3u) * x.w;
  }
  return sum;
}
)";

constexpr std::string_view kGroups = R"(
fn product(base: u32, lane: u32) -> vec4<f32> {
  let four = lane % 4u * 4u;
  let offsets = w_offsets(base, four);
  var sum = vec4<f32>();
  for (var b = lane / 4u; b < depth / 32u; b += lanes / 4u) {
    var terms = vec4<f32>();
    for (var v = 0u; v < w_bits; v++) {
      let words = w_words(w_line(base, four, b * 32u + v * 4u));
      for (var h = 0u; h < 8u / w_bits; h++) {
        let k = b * 32u + (v + h * w_bits) * 4u;
        let w = mat4x4<f32>(w_values(w_codes(words.x, k), offsets.x),
                            w_values(w_codes(words.y, k), offsets.y),
                            w_values(w_codes(words.z, k), offsets.z),
                            w_values(w_codes(words.w, k), offsets.w));
        if (w_span == 16u) {
          terms += (staged[k / 4u] * w) * w_steps(base, four, k);
        } else {
          terms += staged[k / 4u] * w;
        }
      }
    }
    if (w_span != 16u) { terms *= w_steps(base, four, b * 32u); }
    sum += terms;
  }
  return sum;
}
)";

constexpr std::string_view kQ8 = R"(
fn dots(a: u32, w: vec4<u32>) -> vec4<i32> {
  return vec4<i32>(dot4I8Packed(a, w.x), dot4I8Packed(a, w.y), dot4I8Packed(a, w.z),
                   dot4I8Packed(a, w.w));
}
fn product(base: u32, lane: u32) -> vec4<f32> {
  let four = lane % 4u * 4u;
  let offsets = w_offsets(base, four);
  var sum = vec4<f32>();
  for (var b = lane / 4u; b < depth / 32u; b += lanes / 4u) {
    var low = vec4<i32>();
    var high = vec4<i32>();
    for (var v = 0u; v < w_bits; v++) {
      let words = w_words(w_line(base, four, b * 32u + v * 4u));
      for (var h = 0u; h < 8u / w_bits; h++) {
        let k = (v + h * w_bits) * 4u;
        let levels = vec4<u32>(w_levels(w_codes(words.x, k)), w_levels(w_codes(words.y, k)),
                               w_levels(w_codes(words.z, k)), w_levels(w_codes(words.w, k)));
        let a = a_codes[b * 8u + k / 4u];
        if (w_span == 16u && k >= 16u) { high += dots(a, levels); } else { low += dots(a, levels); }
      }
    }
    let scale = a_scales[b];
    if (w_affine || w_bias != 0) { low -= offsets * a_sums[b]; }
    sum += vec4<f32>(low) * (w_steps(base, four, b * 32u) * scale);
    if (w_span == 16u) { sum += vec4<f32>(high) * (w_steps(base, four, b * 32u + 16u) * scale); }
  }
  return sum;
}
)";

// Sums of lanes in the order of a fixed tree; then lane j has output j of the group.
constexpr std::string_view kJoined = R"(
var<workgroup> part: array<vec4<f32>, lanes>;
fn joined(sum: vec4<f32>, lane: u32) -> f32 {
  workgroupBarrier();
  part[lane] = sum;
  workgroupBarrier();
  for (var n = lanes / 2u; n >= 4u; n /= 2u) {
    if (lane < n) { part[lane] += part[lane + n]; }
    workgroupBarrier();
  }
  return part[lane % 16u / 4u][lane % 4u];
}
)";

constexpr Kernel kGates{"products_gated", R"(
fn run(row: u32, lane: u32) {
  prepare(row == 0u, lane);
  var gate = joined(product(p.base0 + row * p.w_group, lane), lane);
  var up = joined(product(p.base1 + row * p.w_group, lane), lane);
  let n = row * 16u + lane;
  if (lane >= 16u || n >= p.n0) { return; }
  if (has_bias0) { gate += bias0_at(n); }
  if (has_bias1) { up += bias1_at(n); }
  if (has_y0) { y0_set(n, gate); }
  if (has_y1) { y1_set(n, up); }
  out_set(n, activate(act, gate) * up);
}
)"};

// Matrices follow each other; a workgroup has a group of one of them.
constexpr Kernel kPlain{"products", R"(
fn run(row: u32, lane: u32) {
  prepare(row == 0u, lane);
  let second = row >= p.groups0;
  let third = row >= p.groups0 + p.groups1;
  var group = row;
  var base = p.base0;
  if (second) { group = row - p.groups0; base = p.base1; }
  if (third) { group = row - p.groups0 - p.groups1; base = p.base2; }
  var sum = joined(product(base + group * p.w_group, lane), lane);
  let n = group * 16u + lane;
  if (lane >= 16u) { return; }
  if (third) {
    if (n < p.n2) {
      if (has_bias2) { sum += bias2_at(n); }
      y2_set(n, sum);
    }
  } else if (second) {
    if (n < p.n1) {
      if (has_bias1) { sum += bias1_at(n); }
      y1_set(n, sum);
    }
  } else if (n < p.n0) {
    if (has_bias0) { sum += bias0_at(n); }
    sum = activate(act, sum);
    if (has_y0) { y0_set(n, sum); }
    if (has_out) { out_set(n, sum + other_at(n)); }
  }
}
)"};

// ---- which commands ----

// The matrices: of one type and depth, over one row, in one buffer of the device.
bool take_matrices(Frame& frame, std::span<const Command> rest, Products& p) {
  const Tensor* x =
      p.norm != nullptr ? &p.norm->y : (p.quantise != nullptr ? &p.quantise->x : nullptr);
  while (p.count < kMost) {
    const auto* m = args_at<MatmulArgs>(rest, static_cast<size_t>(p.commands));
    if (m == nullptr || m->x.rows() != 1 || m->x.dtype != DType::f32) break;
    if (m->use_q8 != (p.quantise != nullptr)) break;
    if (m->use_q8 && m->q8.codes != p.quantise->q.codes) break;
    if (x != nullptr && m->x.data != x->data) break;
    if (p.count > 0) {
      const MatmulArgs& first = *p.matrix[0];
      if (m->w.dtype != first.w.dtype || m->w.shape[1] != p.depth() ||
          m->activation != Activation::linear || first.activation != Activation::linear ||
          frame.place(m->w.data).buffer != frame.place(first.w.data).buffer) {
        break;
      }
    }
    x = &m->x;
    p.matrix[p.count++] = m;
    ++p.commands;
  }
  return p.count > 0;
}

void take_end(std::span<const Command> rest, Products& p) {
  const auto at = static_cast<size_t>(p.commands);
  const auto* gated = args_at<GatedArgs>(rest, at);
  if (p.count == 2 && gated != nullptr && gated->gate.data == p.matrix[0]->y.data &&
      gated->up.data == p.matrix[1]->y.data && row_of_floats(gated->y) &&
      gated->y.cols() == p.matrix[0]->y.cols()) {
    p.gated = gated;
    ++p.commands;
  }
  const auto* sum = args_at<BinaryArgs>(rest, at);
  if (p.count == 1 && sum != nullptr && sum->kind == BinaryKind::add && row_of_floats(sum->y) &&
      sum->a.cols() == sum->b.cols() && sum->b.rows() == 1) {
    const Tensor& y = p.matrix[0]->y;
    if (sum->a.data != y.data && sum->b.data != y.data) return;
    p.addition = sum;
    p.other = sum->a.data == y.data ? sum->b : sum->a;
    ++p.commands;
  }
}

bool take(Frame& frame, std::span<const Command> rest, Products& p) {
  const auto* norm = args_at<NormArgs>(rest, 0);
  if (norm != nullptr) {
    if (norm->kind != NormKind::rms || norm->segments != 1 || !row_of_floats(norm->x)) return false;
    p.norm = norm;
    ++p.commands;
  }
  const auto* quantise = args_at<QuantiseRowsArgs>(rest, static_cast<size_t>(p.commands));
  if (quantise != nullptr && row_of_floats(quantise->x)) {
    if (norm != nullptr && quantise->x.data != norm->y.data) return false;
    p.quantise = quantise;
    ++p.commands;
  }
  if (!take_matrices(frame, rest, p)) return false;
  take_end(rest, p);
  const R16 g = r16_geometry(p.matrix[0]->w.dtype, 16, p.depth());
  // What the workgroup's 16 KiB hold beside the sums; f64 weights have no rows at a time.
  const int64_t most = p.quantise != nullptr ? 8192 : 2048;
  return p.commands > 1 && p.depth() % kR16Block == 0 && p.depth() <= most && p.depth() > 0 &&
         dtype_info(g.dtype).compute == ComputeType::f32;
}

// The values that are written, and whether they may be while others of the dispatch still read.
struct Outputs {
  Tensor kept;  // of the norm
  Tensor y[kMost];
  Tensor out;
  bool safe = true;
};

Outputs outputs_of(const Products& p, std::span<const Command> after) {
  Outputs o;
  const bool ends = p.gated != nullptr || p.addition != nullptr;
  if (p.gated != nullptr) o.out = p.gated->y;
  if (p.addition != nullptr) o.out = p.addition->y;
  // The last command may write over what those before it made.
  const auto gone = [&](const Tensor& t) {
    const bool covered = ends && o.out.data <= t.data && o.out.end() >= t.end();
    return covered || dead(after, t);
  };
  if (p.norm != nullptr && !gone(p.norm->y)) o.kept = p.norm->y;
  for (int64_t i = 0; i < p.count; ++i) {
    if (!ends || !gone(p.matrix[i]->y)) o.y[i] = p.matrix[i]->y;
  }
  if (p.quantise != nullptr && !dead(after, p.quantise->q)) o.safe = false;
  const Tensor* written[] = {&o.kept, &o.y[0], &o.y[1], &o.y[2], &o.out};
  for (const Tensor* w : written) {
    if (overlap(*w, p.x())) o.safe = false;
    // A lane reads the value that it replaces.
    if (overlap(*w, p.other) && !(w == &o.out && w->data == p.other.data)) o.safe = false;
    for (const Tensor* v : written) {
      if (v != w && overlap(*w, *v)) o.safe = false;
    }
    for (int64_t i = 0; i < p.count; ++i) {
      if (overlap(*w, p.matrix[i]->bias)) o.safe = false;
    }
    if (p.norm != nullptr && overlap(*w, p.norm->gamma)) o.safe = false;
  }
  return o;
}

}  // namespace

Result<int64_t> fuse_products(Frame& frame, std::span<const Command> rest) {
  Products p;
  if (!take(frame, rest, p)) return 0;
  const Outputs out = outputs_of(p, rest.subspan(static_cast<size_t>(p.commands)));
  if (!out.safe) return 0;
  const MatmulArgs& first = *p.matrix[0];
  const R16 g = r16_geometry(first.w.dtype, first.w.shape[0], p.depth());
  // Matrices are counted from the one that lies lowest.
  const Tensor* lowest = &first.w;
  for (const MatmulArgs* m : std::span(p.matrix).first(static_cast<size_t>(p.count))) {
    if (frame.place(m->w.data).offset < frame.place(lowest->data).offset) lowest = &m->w;
  }
  int64_t base[kMost] = {}, groups[kMost] = {}, n[kMost] = {};
  for (int64_t i = 0; i < p.count; ++i) {
    base[i] = (frame.place(p.matrix[i]->w.data).offset - frame.place(lowest->data).offset) / 4;
    n[i] = p.matrix[i]->y.cols();
    groups[i] = ceil_div(n[i], kR16Rows);
  }
  if (p.gated != nullptr && n[0] != n[1]) return 0;
  Call call(frame, p.gated != nullptr ? kGates : kPlain);
  weights(call, *lowest, WeightView::quads)
      .text(kValue)
      .text(p.quantise != nullptr ? kQuantiseBlock : std::string_view())
      .text(p.quantise != nullptr ? kCodes : kFloats)
      .text(p.quantise != nullptr ? kQ8 : (g.wide ? kWide : kGroups))
      .text(kJoined)
      .read("x", p.x())
      .read("gamma", p.norm != nullptr ? p.norm->gamma : Tensor{})
      .write("kept", out.kept)
      .read("bias0", first.bias)
      .read("bias1", p.count > 1 ? p.matrix[1]->bias : Tensor{})
      .read("bias2", p.count > 2 ? p.matrix[2]->bias : Tensor{})
      .write("y0", out.y[0])
      .write("y1", out.y[1])
      .write("y2", out.y[2])
      .write("out", out.out)
      .read("other", p.other)
      .value("eps", p.norm != nullptr ? p.norm->eps : 0.0f)
      .value("base0", base[0])
      .value("base1", base[1])
      .value("base2", base[2])
      .value("groups0", groups[0])
      .value("groups1", p.count > 1 ? groups[1] : int64_t{1} << 30)
      .value("n0", n[0])
      .value("n1", n[1])
      .value("n2", n[2])
      .constant("depth", p.depth())
      .constant("normed", p.norm != nullptr ? 1 : 0)
      .constant("act",
                static_cast<int64_t>(p.gated != nullptr ? p.gated->activation : first.activation))
      .lanes(128);
  LOOM_TRY(call.rows(p.gated != nullptr ? groups[0] : groups[0] + groups[1] + groups[2]));
  return p.commands;
}

}  // namespace loom::webgpu

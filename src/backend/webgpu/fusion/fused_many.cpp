// Fusions for more rows than the decoding kernels take: norm and quantize_rows; up to three matmul
// over the same x, then a gated unit and its quantized rows, or an addition. All outputs of the
// commands are written, so later reads do not matter. But a fused dispatch may not write memory
// that another of its workgroups still reads.
#include "backend/webgpu/fusion/fused_many.hpp"

#include "backend/webgpu/fusion/commands.hpp"

#include "backend/webgpu/kernels/codes/quantize.hpp"
#include "backend/webgpu/kernels/products/products.hpp"
#include "backend/webgpu/wgsl/rows.hpp"

namespace loom::core::webgpu {
namespace {

struct Stretch {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
};

Stretch stretch(const Tensor& t) {
  if (t.empty()) return {};
  return {t.data, t.end()};
}

Stretch stretch(const Q8Rows& q) {
  return {reinterpret_cast<const std::byte*>(q.codes),
          reinterpret_cast<const std::byte*>(q.half_sums + q.rows * q.blocks)};
}

bool meet(const Stretch& a, const Stretch& b) {
  return a.begin < b.end && b.begin < a.end;
}

bool same_position(const Tensor& a, const Tensor& b) {
  return a.data == b.data && a.shape == b.shape && a.row_stride == b.row_stride;
}

bool all_floats(const Tensor& t) {
  return t.dtype == DType::f32 && t.layout == Layout::plain;
}

// Like norm, in the same order, with eight invocations per block of 32.
constexpr Kernel kNormQuantize{"norm_quantize", R"(
fn run(row: u32, lane: u32) {
  let x0 = row * p.x_s;
  let moments = row_moments(layer != 0u, x0, p.n, p.eps, lane);
  let mean = moments.x;
  let inverse = moments.y;
  for (var begin = 0u; begin < p.n; begin += lanes * 4u) {
    let at = begin + lane * 4u;
    var four = vec4<f32>();
    for (var i = 0u; i < 4u; i++) {
      let c = at + i;
      if (c < p.n) {
        var y = (x_at(x0 + c) - mean) * inverse;
        if (has_gamma) { y = y * gamma_at(c); }
        if (has_beta) { y = y + beta_at(c); }
        y_set(row * p.y_s + c, y);
        four[i] = y;
      }
    }
    quantize_block(four, row * p.blocks + at / 32u, at < p.n, lane);
  }
}
)"};

Result<int64_t> norm_and_quantize(Frame& frame, std::span<const Command> rest) {
  const NormArgs& norm = *args_at<NormArgs>(rest, 0);
  const auto* quantize = args_at<QuantizeRowsArgs>(rest, 1);
  const int64_t rows = norm.x.rows(), n = norm.x.cols();
  if (quantize == nullptr || norm.segments != 1 || rows <= kSmallRows || n == 0 || n % 32 != 0) {
    return 0;
  }
  if (!same_position(norm.y, quantize->x) || !all_floats(norm.x)) return 0;
  // In place is safe: each invocation writes only values whose last reader it is.
  if (meet(stretch(norm.y), stretch(norm.x))) return 0;
  Call call(frame, kNormQuantize);
  LOOM_TRY(quantized(call, quantize->q)
               .read("x", norm.x)
               .read("gamma", norm.gamma)
               .read("beta", norm.beta)
               .write("y", norm.y)
               .value("n", n)
               .value("blocks", quantize->q.blocks)
               .value("eps", norm.eps)
               .constant("layer", int64_t{norm.kind == NormKind::layer})
               .lanes(row_lanes(rows, n))
               .rows(rows));
  return 2;
}

bool same_input(const MatmulArgs& a, const MatmulArgs& b) {
  if (a.use_q8 != b.use_q8) return false;
  return a.use_q8 ? a.q8.codes == b.q8.codes : same_position(a.x, b.x);
}

Stretch input_of(const MatmulArgs& a) {
  return a.use_q8 ? stretch(a.q8) : stretch(a.x);
}

// Whether a product qualifies, and its output may be written while its input is read.
bool suits(const MatmulArgs& a) {
  if (a.y.rows() <= kSmallRows || a.y.cols() == 0 || a.w.shape[1] == 0 || !all_floats(a.y)) {
    return false;
  }
  if (!a.use_q8 && (!all_floats(a.x) || !small_product(a.y.rows(), a.y.cols()))) return false;
  return !meet(stretch(a.y), input_of(a)) && !meet(stretch(a.y), stretch(a.bias));
}

// Outputs of one dispatch do not overlap each other or its inputs.
bool apart(const MatmulArgs& a, const MatmulArgs& b) {
  return !meet(stretch(a.y), stretch(b.y)) && !meet(stretch(a.y), stretch(b.bias)) &&
         !meet(stretch(b.y), stretch(a.bias));
}

struct Run {
  Products products;
  const MatmulArgs* matmul[3] = {};
  int64_t commands = 0;
};

Run products_over_one_x(const Frame& frame, std::span<const Command> rest) {
  Run run;
  while (run.commands < 3) {
    const auto* next = args_at<MatmulArgs>(rest, static_cast<size_t>(run.commands));
    if (next == nullptr || !suits(*next)) break;
    const MatmulArgs& first = run.commands > 0 ? *run.matmul[0] : *next;
    bool fits = run.commands == 0 ||
                (same_input(first, *next) && first.activation == next->activation &&
                 first.y.rows() == next->y.rows() && mergeable(frame, first.w, next->w));
    for (int64_t i = 0; i < run.commands; ++i) fits = fits && apart(*run.matmul[i], *next);
    if (!fits) break;
    run.products.parts[run.commands] = {next->w, next->bias, next->y};
    run.matmul[run.commands++] = next;
  }
  if (run.commands == 0) return run;
  const MatmulArgs& first = *run.matmul[0];
  run.products.x = first.x;
  run.products.q8 = first.q8;
  run.products.use_q8 = first.use_q8;
  run.products.activation = first.activation;
  run.products.count = static_cast<int>(run.commands);
  return run;
}

// gated(gate, up), and its quantized rows.
void take_gated(std::span<const Command> rest, Run& run) {
  const auto* gated = args_at<GatedArgs>(rest, 2);
  if (gated == nullptr || run.commands != 2 || run.products.activation != Activation::linear) {
    return;
  }
  const MatmulArgs &gate = *run.matmul[0], &up = *run.matmul[1];
  if (!same_position(gated->gate, gate.y) || !same_position(gated->up, up.y) ||
      gate.y.cols() != up.y.cols() || !all_floats(gated->y)) {
    return;
  }
  const Stretch y = stretch(gated->y);
  if (meet(y, stretch(gate.y)) || meet(y, stretch(up.y)) || meet(y, input_of(gate)) ||
      meet(y, stretch(gate.bias)) || meet(y, stretch(up.bias))) {
    return;
  }
  run.products.gated = true;
  run.products.result = gated->y;
  run.products.activation = gated->activation;
  run.commands = 3;
  const auto* quantize = args_at<QuantizeRowsArgs>(rest, 3);
  if (quantize == nullptr || !same_position(quantize->x, gated->y) || gated->y.cols() % 32 != 0 ||
      meet(stretch(quantize->q), input_of(gate))) {
    return;
  }
  run.products.codes = &quantize->q;
  run.commands = 4;
}

// Adds the product to another tensor.
void take_addition(std::span<const Command> rest, Run& run) {
  const auto* binary = args_at<BinaryArgs>(rest, 1);
  if (binary == nullptr || run.commands != 1 || binary->kind != BinaryKind::add) return;
  const MatmulArgs& product = *run.matmul[0];
  const bool second = same_position(binary->b, product.y);
  if (!second && !same_position(binary->a, product.y)) return;
  const Tensor& other = second ? binary->a : binary->b;
  const Stretch y = stretch(binary->y);
  if (!(other.shape == product.y.shape) || !all_floats(other) || !all_floats(binary->y) ||
      meet(stretch(other), stretch(product.y)) || meet(y, stretch(product.y)) ||
      meet(y, input_of(product)) || meet(y, stretch(product.bias)) ||
      (meet(y, stretch(other)) && !same_position(binary->y, other))) {
    return;
  }
  run.products.other = other;
  run.products.result = binary->y;
  run.commands = 2;
}

Result<int64_t> products(Frame& frame, std::span<const Command> rest) {
  Run run = products_over_one_x(frame, rest);
  take_gated(rest, run);
  take_addition(rest, run);
  if (run.commands <= 1) return 0;
  LOOM_TRY(run_products(frame, run.products));
  return run.commands;
}

}  // namespace

Result<int64_t> fuse_many(Frame& frame, std::span<const Command> rest) {
  if (rest.empty()) return 0;
  if (rest[0].op == OpId::norm) return norm_and_quantize(frame, rest);
  if (rest[0].op == OpId::matmul) return products(frame, rest);
  return 0;
}

}  // namespace loom::core::webgpu

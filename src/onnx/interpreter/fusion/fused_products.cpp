// Products and convolutions with what ONNX Runtime's optimizer fuses into them (com.microsoft), and
// the inverse of a matrix. See parts.hpp.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "onnx/interpreter/families.hpp"
#include "onnx/interpreter/parts.hpp"
#include "onnx/interpreter/products.hpp"

namespace loom::core::evaluate {
namespace {

constexpr std::string_view kMs = "com.microsoft";

// The activation that attribute `activation` names; `parameters` give its attributes.
Result<Value> activated(const Call& c, const Value& x, Part (*parameters)(const Call&, Part)) {
  const std::string name = c.text("activation", "");
  if (name.empty()) return x;
  if (find_operator("", name) == nullptr) return c.not_done(cat("activation ", printable(name)));
  return parameters(c, Part(c, name)).value({&x});
}

std::vector<float> parameters_of(const Call& c) {
  const OnnxAttribute* a = c.node.find("activation_params");
  return a == nullptr ? std::vector<float>{} : a->reals;
}

// In the order in which ONNX Runtime writes them.
Part conv_parameters(const Call& c, Part part) {
  const std::vector<float> list = parameters_of(c);
  constexpr const char* kNames[] = {"alpha", "beta"};
  for (size_t i = 0; i < std::min<size_t>(list.size(), 2); ++i) part.set(kNames[i], list[i]);
  return part;
}

Result<Value> clipped(const Call& c, const Value& x) {
  const std::vector<float> list = parameters_of(c);
  if (list.size() != 2) return c.bad("Clip takes two activation_params");
  LOOM_ASSIGN(const Value low, real_row(c, {static_cast<double>(list[0])}));
  LOOM_ASSIGN(const Value high, real_row(c, {static_cast<double>(list[1])}));
  return Part(c, "Clip").value({&x, &low, &high});
}

Part conv_part(const Call& c) {
  Part part(c, "Conv");
  for (const char* name : {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"})
    part.keep(name);
  return part;
}

// act(conv(X, W) + B + Z).
Status fused_conv(const Call& c) {
  LOOM_ASSIGN(
      Value y,
      conv_part(c).with(c.prepared).value({optional(c, 0), optional(c, 1), optional(c, 2)}));
  if (c.has(3)) {
    if (c.value(3).dims != y.dims) return c.bad("a sum that does not fit");
    LOOM_ASSIGN(y, Part(c, "Add").value({&y, &c.value(3)}));
  }
  const bool clips = c.text("activation", "") == "Clip";
  LOOM_ASSIGN(y, clips ? clipped(c, y) : activated(c, y, conv_parameters));
  return c.give(std::move(y));
}
Part::PreparedResult prepare_fused_conv(const Call& c) {
  return conv_part(c).prepare({nullptr, optional(c, 1)});
}

Part gemm_part(const Call& c) {
  Part part(c, "Gemm");
  for (const char* name : {"alpha", "beta", "transA", "transB"}) part.keep(name);
  return part;
}
Part gemm_parameters(const Call&, Part part) {
  part.keep("activation_alpha", "alpha").keep("activation_beta", "beta");
  part.keep("activation_gamma", "gamma");
  return part;
}
Status fused_gemm(const Call& c) {
  LOOM_ASSIGN(
      Value y,
      gemm_part(c).with(c.prepared).value({optional(c, 0), optional(c, 1), optional(c, 2)}));
  LOOM_ASSIGN(y, activated(c, y, gemm_parameters));
  return c.give(std::move(y));
}
Part::PreparedResult prepare_fused_gemm(const Call& c) {
  return gemm_part(c).prepare({nullptr, optional(c, 1)});
}

// An operand as MatMul reads it. `batch`: its first axis comes after the batch axes. `turned`: then
// its last two axes are exchanged.
Result<Value> operand(const Call& c, size_t i, bool batch, bool transposed) {
  const Value& x = c.value(i);
  const int rank = x.rank();
  if (rank < 2 || (!batch && !transposed)) return x;
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (batch) std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (transposed) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return Part(c, "Transpose").set("perm", order).value({&x});
}

// alpha A B.
Status fused_matmul(const Call& c) {
  LOOM_TRY(c.same_type(0, 1));
  if (!is_real(c.value(0).type)) return c.bad("takes floats");
  const auto flag = [&](std::string_view name) { return c.integer(name, 0) != 0; };
  LOOM_ASSIGN(const Value a, operand(c, 0, flag("transBatchA"), flag("transA")));
  Value y;
  if (c.prepared != nullptr && a.type == OnnxType::f32) {
    LOOM_ASSIGN(y, matmul_packed(c, a, static_cast<const PackedMatrix&>(*c.prepared), nullptr));
  } else {
    LOOM_ASSIGN(const Value b, operand(c, 1, flag("transBatchB"), flag("transB")));
    LOOM_ASSIGN(const Value left, widen(c.rt.memory, a));
    LOOM_ASSIGN(const Value right, widen(c.rt.memory, b));
    LOOM_ASSIGN(y, matmul(c, left, right));
  }
  const double alpha = c.real("alpha", 1);
  if (alpha != 1) {
    LOOM_ASSIGN(const Value factor, real_row(c, {alpha}));
    LOOM_ASSIGN(const Value same, cast(c.rt.memory, factor, y.type));
    LOOM_ASSIGN(y, combine(c, Pair::mul, y, same));
  }
  return c.give_as(y, c.value(0).type);
}
Part::PreparedResult prepare_fused_matmul(const Call& c) {
  if (c.integer("transBatchB", 0) != 0) return {nullptr};
  return Part(c, "Gemm").keep("transB").prepare({nullptr, optional(c, 1)});
}

// The inverse of one matrix by elimination with pivots; false: it has none.
bool invert(std::vector<double>& a, double* y, int64_t n) {
  const auto at = [&](int64_t r, int64_t k) -> double& {
    return a[static_cast<size_t>(r * n + k)];
  };
  for (int64_t i = 0; i < n * n; ++i) y[i] = i / n == i % n ? 1 : 0;
  for (int64_t k = 0; k < n; ++k) {
    int64_t best = k;
    for (int64_t r = k + 1; r < n; ++r) {
      if (std::abs(at(r, k)) > std::abs(at(best, k))) best = r;
    }
    if (at(best, k) == 0) return false;
    for (int64_t j = 0; j < n && best != k; ++j) {
      std::swap(at(k, j), at(best, j));
      std::swap(y[k * n + j], y[best * n + j]);
    }
    const double by = 1 / at(k, k);
    for (int64_t j = 0; j < n; ++j) at(k, j) *= by, y[k * n + j] *= by;
    for (int64_t r = 0; r < n; ++r) {
      const double f = at(r, k);
      for (int64_t j = 0; r != k && j < n; ++j) {
        at(r, j) -= f * at(k, j);
        y[r * n + j] -= f * y[k * n + j];
      }
    }
  }
  return true;
}

Status inverse(const Call& c) {
  LOOM_ASSIGN(const Value x, c.as(0, OnnxType::f64));
  const int rank = x.rank();
  if (rank < 2 || x.last() != x.dims[static_cast<size_t>(rank - 2)])
    return c.bad("takes square matrices");
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, x.dims));
  const int64_t n = x.last(), size = n * n;
  for (int64_t i = 0; size > 0 && i < x.count(); i += size) {
    std::vector<double> a(x.data<double>() + i, x.data<double>() + i + size);
    if (!invert(a, y.data<double>() + i, n)) return c.bad("a matrix that has no inverse");
  }
  return c.give_as(y, c.value(0).type);
}

constexpr Operator kFusedProducts[] = {
    {kMs, "FusedConv", fused_conv,
     "aa?aa activation activation_params auto_pad dilations group kernel_shape pads strides", "",
     Operator::none, prepare_fused_conv},
    {kMs, "FusedGemm", fused_gemm,
     "aa?a activation activation_alpha activation_beta activation_gamma alpha beta transA transB",
     "", Operator::none, prepare_fused_gemm},
    {kMs, "FusedMatMul", fused_matmul, "aa alpha transA transB transBatchA transBatchB", "",
     Operator::none, prepare_fused_matmul},
    {kMs, "TransposeMatMul", fused_matmul, "aa alpha transA transB", "", Operator::none,
     prepare_fused_matmul},
    {kMs, "Inverse", inverse, "a"},
};

}  // namespace

std::span<const Operator> fused_product_operators() {
  return kFusedProducts;
}

}  // namespace loom::core::evaluate

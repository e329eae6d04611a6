// Losses as operators, and the updates of the preview of training: values, no gradients. Formulas:
// onnx.ai.
#include <algorithm>
#include <cmath>

#include "base/numbers/dmath.hpp"
#include "onnx/interpreter/families.hpp"
#include "onnx/operators/functions.hpp"
#include "onnx/operators/rows.hpp"

namespace loom::core::evaluate {
namespace {

// -sum or mean of x[n, target, d] with weights, x [N, C, ...] being logarithms of probabilities.
Status likelihood_loss(const Call& c, const Value& x) {
  const OnnxType type = c.value(0).type;
  LOOM_ASSIGN(const Dims target, c.int_list(1));
  const int64_t n = x.dims[0], classes = x.dims[1], inner = product(x.dims, 2, x.rank());
  Dims dims = x.dims;
  dims.erase(dims.begin() + 1);
  if (c.value(1).dims != dims) return c.bad("a class per place is needed");
  const std::string reduction = c.text("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    return c.bad("unknown reduction");
  const bool ignores = c.given("ignore_index");
  const int64_t ignored = c.integer("ignore_index", 0);
  Value weights;
  if (c.has(2)) {
    LOOM_ASSIGN(weights, c.as(2, OnnxType::f64));
    if (weights.count() != classes) return c.bad("a weight per class is needed");
  }
  LOOM_ASSIGN(Value each, c.make(OnnxType::f64, dims));
  double sum = 0, weight_sum = 0;
  for (int64_t i = 0; i < n * inner; ++i) {
    const int64_t k = target[static_cast<size_t>(i)];
    each.data<double>()[i] = 0;
    if (ignores && k == ignored) continue;
    if (k < 0 || k >= classes) return c.bad(cat("class ", k, " of ", classes));
    const double w = c.has(2) ? weights.data<double>()[k] : 1;
    const int64_t at = (i / inner * classes + k) * inner + i % inner;
    each.data<double>()[i] = -w * x.data<double>()[at];
    sum += each.data<double>()[i];
    weight_sum += w;
  }
  if (reduction == "none") return c.give_as(each, type);
  LOOM_ASSIGN(Value one, c.make(OnnxType::f64, {}));
  *one.data<double>() = reduction == "sum" ? sum : sum / weight_sum;
  return c.give_as(one, type);
}

Status negative_log_likelihood(const Call& c) {
  if (!is_real(c.value(0).type) || c.value(0).rank() < 2) return c.bad("takes floats [N, C, ...]");
  LOOM_ASSIGN(const Value x, c.as(0, OnnxType::f64));
  return likelihood_loss(c, x);
}

Status softmax_cross_entropy(const Call& c) {
  if (!is_real(c.value(0).type) || c.value(0).rank() < 2) return c.bad("takes floats [N, C, ...]");
  LOOM_ASSIGN(const Value x, c.as(0, OnnxType::f64));
  LOOM_ASSIGN(Value logs, c.make(OnnxType::f64, x.dims));
  const int64_t classes = x.dims[1], inner = product(x.dims, 2, x.rank());
  for (int64_t i = 0; i < x.dims[0] * inner; ++i) {
    const double* from = x.data<double>() + i / inner * classes * inner + i % inner;
    double* to = logs.data<double>() + (from - x.data<double>());
    double most = from[0], sum = 0;
    for (int64_t k = 1; k < classes; ++k) most = std::max(most, from[k * inner]);
    for (int64_t k = 0; k < classes; ++k) sum += dmath::exp(from[k * inner] - most);
    for (int64_t k = 0; k < classes; ++k) to[k * inner] = from[k * inner] - most - dmath::log(sum);
  }
  LOOM_TRY(c.give_as(logs, c.value(0).type, 1));
  return likelihood_loss(c, logs);
}

// Rate, step, then for n tensors: values, gradients and `states` states each.
template <class Update>
Status updated(const Call& c, size_t states, Update update) {
  const size_t groups = states + 2;
  if (c.in.size() < 2 + groups || (c.in.size() - 2) % groups != 0)
    return c.bad("values, gradients and states in equal number are needed");
  const size_t n = (c.in.size() - 2) / groups;
  LOOM_ASSIGN(const double rate, c.number(0, 0));
  LOOM_ASSIGN(const double step, c.number(1, 0));
  for (size_t k = 0; k < n; ++k) {
    Value part[4], out[4];
    for (size_t g = 0; g < groups; ++g) {
      LOOM_ASSIGN(part[g], c.as(2 + g * n + k, OnnxType::f64));
      if (part[g].dims != part[0].dims) return c.bad("tensors of different shapes");
      LOOM_ASSIGN(out[g], c.make(OnnxType::f64, part[0].dims));
    }
    for (int64_t i = 0; i < part[0].count(); ++i) {
      double v[4] = {};
      for (size_t g = 0; g < groups; ++g) v[g] = part[g].data<double>()[i];
      update(v, rate, step);
      for (size_t g = 0; g < groups; ++g) out[g].data<double>()[i] = v[g];
    }
    size_t to = 0;
    for (size_t g = 0; g < groups; ++g) {
      if (g == 1) continue;
      LOOM_TRY(c.give_as(out[g], c.value(2 + g * n + k).type, to++ * n + k));
    }
  }
  return {};
}

Status adagrad(const Call& c) {
  const double decay = c.real("decay_factor", 0), eps = c.real("epsilon", 1e-6F);
  const double norm = c.real("norm_coefficient", 0);
  return updated(c, 1, [=](double* v, double rate, double step) {
    const double g = norm * v[0] + v[1];
    v[2] += g * g;
    v[0] -= rate / (1 + step * decay) * g / (std::sqrt(v[2]) + eps);
  });
}

Status adam(const Call& c) {
  const double a = c.real("alpha", 0.9F), b = c.real("beta", 0.999F),
               eps = c.real("epsilon", 1e-6F);
  const double norm = c.real("norm_coefficient", 0), after = c.real("norm_coefficient_post", 0);
  return updated(c, 2, [=](double* v, double rate, double step) {
    const double g = norm * v[0] + v[1];
    v[2] = a * v[2] + (1 - a) * g;
    v[3] = b * v[3] + (1 - b) * g * g;
    const double by = step > 0 ? rate * std::sqrt(1 - pow(b, step)) / (1 - pow(a, step)) : rate;
    v[0] = (1 - after) * (v[0] - by * v[2] / (std::sqrt(v[3]) + eps));
  });
}

Status momentum(const Call& c) {
  const std::string mode = c.text("mode", "standard");
  const bool nesterov = mode == "nesterov";
  if (!nesterov && mode != "standard") return c.bad("unknown mode");
  const double a = c.real("alpha", 0), b = c.real("beta", 0), norm = c.real("norm_coefficient", 0);
  return updated(c, 1, [=](double* v, double rate, double step) {
    const double g = norm * v[0] + v[1];
    v[2] = a * v[2] + (step > 0 ? b : 1) * g;
    v[0] -= rate * (nesterov ? g + a * v[2] : v[2]);
  });
}

constexpr std::string_view kTraining = "ai.onnx.preview.training";
constexpr Operator kLosses[] = {
    {"", "NegativeLogLikelihoodLoss", negative_log_likelihood, "aa?a ignore_index reduction"},
    {"", "SoftmaxCrossEntropyLoss", softmax_cross_entropy, "aa?a ignore_index reduction"},
    {kTraining, "Adagrad", adagrad, "aaa+ decay_factor epsilon norm_coefficient"},
    {kTraining, "Adam", adam, "aaa+ alpha beta epsilon norm_coefficient norm_coefficient_post"},
    {kTraining, "Momentum", momentum, "aaa+ alpha beta mode norm_coefficient"},
};

}  // namespace

std::span<const Operator> loss_operators() {
  return kLosses;
}

}  // namespace loom::core::evaluate

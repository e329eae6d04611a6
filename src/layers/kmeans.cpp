// KMeans: soft assignment of each row to centres: p = softmax(-|x - c_k|^2 / (2 tau^2)). Mode
// "probabilities" gives act(p), "features" gives act(sum p_k c_k). Centres [clusters, width] train
// like any weight.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "ops/activation.hpp"

namespace loom::core {
namespace {

using namespace fields::kmeans;

void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  out.push_back({"centres", Shape{c.integer(kClusters), c.integer(kWidth)}, Init::normal1});
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  LOOM_TRY(parse_activation(c.text(kActivation)));
  if (in.rank() == 0 || in.last() != c.integer(kWidth)) {
    return invalid(cat("KMeans: input ", in.str(), " must end in ", c.integer(kWidth)));
  }
  if (c.text(kMode) == "features") return in;
  if (c.text(kMode) != "probabilities") {
    return invalid(cat("KMeans: unknown mode '", printable(c.text(kMode)),
                       "'; known are probabilities, features"));
  }
  Shape out = in;
  out[in.rank() - 1] = c.integer(kClusters);
  return out;
}

Result<Tensor> forward(ForwardCall& call) {
  const LayerConfig& c = call.config();
  LOOM_ASSIGN(const Shape shape, infer(c, call.x().shape));
  LOOM_ASSIGN(const Activation activation, parse_activation(c.text(kActivation)));
  const bool features = c.text(kMode) == "features";
  const Shape assigned{call.x().rows(), c.integer(kClusters)};
  LOOM_ASSIGN(const Tensor distances, call.tensor(assigned));
  LOOM_ASSIGN(const Tensor p, call.tensor(features ? assigned : shape));
  LOOM_TRY(call.ops().squared_distance({call.x(), call.param(0), distances}));
  const double tau = c.real(kTemperature);
  LOOM_TRY(call.ops().softmax({distances, p, static_cast<float>(-1.0 / (2.0 * tau * tau))}));
  Tensor y = p;
  if (features) {
    LOOM_ASSIGN(y, call.tensor(shape));
    LOOM_TRY(call.ops().matmul_dx({p, call.param(0), y}));  // p times the centres
  }
  if (activation == Activation::linear) return y;
  LOOM_ASSIGN(const Tensor out, call.tensor(shape));
  LOOM_TRY(call.ops().unary({y, out, static_cast<UnaryKind>(activation)}));
  return out;
}

LayerExample example() {
  return {Shape{5},
          {{LayerKind::kmeans, {{"clusters", 6}, {"width", 5}, {"mode", "features"}}},
           sketch_dense(5, 3)}};
}

}  // namespace

extern const LayerDef kKmeans;
const LayerDef kKmeans = {.kind = LayerKind::kmeans,
                          .name = "KMeans",
                          .fields = kFields,
                          .params = params,
                          .infer = infer,
                          .forward = forward,
                          .example = example};

}  // namespace loom::core

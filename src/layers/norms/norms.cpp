// RMSNorm: y = x / sqrt(mean(x^2) + eps) * gamma over the last axis (Zhang and Sennrich, 2019).
// LayerNorm: y = (x - mean) / sqrt(var + eps) * gamma + beta (Ba, Kiros and Hinton, 2016);
// gamma and beta are optional.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"

namespace loom::core {
namespace {

using namespace fields::rms_norm;
using fields::layer_norm::kBias;
using fields::layer_norm::kWeight;
static_assert(fields::layer_norm::kWidth == kWidth && fields::layer_norm::kEps == kEps);

void rms_params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  out.push_back({"gamma", Shape{c.integer(kWidth)}, Init::ones});
}

void layer_params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  if (c.flag(kWeight)) out.push_back({"gamma", Shape{c.integer(kWidth)}, Init::ones});
  if (c.flag(kBias)) out.push_back({"beta", Shape{c.integer(kWidth)}, Init::zeros});
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  if (in.rank() == 0 || in.last() != c.integer(kWidth)) {
    return invalid(cat(c.def->name, ": input ", in.str(), " must end in ", c.integer(kWidth)));
  }
  return in;
}

Result<Tensor> forward_norm(ForwardCall& call, NormKind kind) {
  LOOM_ASSIGN(const Tensor y, call.like(call.x()));
  NormArgs n;
  n.x = call.x();
  const bool layer = kind == NormKind::layer;
  const bool weight = !layer || call.config().flag(kWeight);
  if (weight) n.gamma = call.param(0);
  if (layer && call.config().flag(kBias)) n.beta = call.param(weight ? 1 : 0);
  n.y = y;
  n.eps = static_cast<float>(call.config().real(kEps));
  n.kind = kind;
  LOOM_TRY(call.ops().norm(n));
  return y;
}

Result<Tensor> forward_rms(ForwardCall& call) {
  return forward_norm(call, NormKind::rms);
}

Result<Tensor> forward_layer(ForwardCall& call) {
  return forward_norm(call, NormKind::layer);
}

LayerExample example_rms() {
  return {Shape{9}, {{LayerKind::rms_norm, {{"width", 9}}}, sketch_dense(9, 3)}};
}

LayerExample example_layer() {
  return {Shape{9}, {{LayerKind::layer_norm, {{"width", 9}}}, sketch_dense(9, 3)}};
}

}  // namespace

extern const LayerDef kRmsNorm;
const LayerDef kRmsNorm = {.kind = LayerKind::rms_norm,
                           .name = "RMSNorm",
                           .fields = kFields,
                           .ragged = true,
                           .params = rms_params,
                           .infer = infer,
                           .forward = forward_rms,
                           .example = example_rms};

extern const LayerDef kLayerNorm;
const LayerDef kLayerNorm = {.kind = LayerKind::layer_norm,
                             .name = "LayerNorm",
                             .fields = fields::layer_norm::kFields,
                             .ragged = true,
                             .params = layer_params,
                             .infer = infer,
                             .forward = forward_layer,
                             .example = example_layer};

}  // namespace loom::core

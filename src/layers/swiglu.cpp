// SwiGLU: y = Wd (act(Wg x + bg) * (Wu x + bu)) + bd (Shazeer, "GLU variants improve transformer",
// 2020). Wg, Wu [inner, width]; Wd [width, inner]. The gate's activation is a field, so this layer
// covers GeGLU and ReGLU too. sub_norm applies an RMS norm to the input of Wd (BitNet b1.58).
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "ops/activation.hpp"

namespace loom::core {
namespace {

using namespace fields::swiglu;
enum { kGate, kUp, kDown, kGateBias, kUpBias, kDownBias };

void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  const int64_t width = c.integer(kWidth), inner = c.integer(kInner);
  out.push_back(product_weight("gate", Shape{inner, width}));
  out.push_back(product_weight("up", Shape{inner, width}));
  out.push_back(product_weight("down", Shape{width, inner}));
  if (c.flag(kBias)) {
    out.push_back({"gate_bias", Shape{inner}});
    out.push_back({"up_bias", Shape{inner}});
    out.push_back({"down_bias", Shape{width}});
  }
  if (c.flag(kSubNorm)) out.push_back({"sub_norm", Shape{inner}, Init::ones});
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  if (in.rank() == 0 || in.last() != c.integer(kWidth)) {
    return invalid(cat("SwiGLU: input ", in.str(), " must end in ", c.integer(kWidth)));
  }
  LOOM_TRY(parse_activation(c.text(kActivation)));
  return in;
}

Shape inner_shape(const LayerConfig& c, const Shape& in) {
  Shape out = in;
  out[in.rank() - 1] = c.integer(kInner);
  return out;
}

Result<Tensor> sub_normed(ForwardCall& call, const Tensor& mixed) {
  const LayerConfig& c = call.config();
  if (!c.flag(kSubNorm)) return mixed;
  NormArgs n;
  n.x = mixed;
  LOOM_ASSIGN(n.y, call.like(mixed));
  n.gamma = call.param(c.flag(kBias) ? kDownBias + 1 : kDown + 1);
  n.eps = static_cast<float>(c.real(kSubNormEps));
  LOOM_TRY(call.ops().norm(n));
  return n.y;
}

Result<Tensor> forward(ForwardCall& call) {
  const LayerConfig& c = call.config();
  const Shape inner = inner_shape(c, call.x().shape);
  LOOM_ASSIGN(const Tensor gate, call.tensor(inner));
  LOOM_ASSIGN(const Tensor up, call.tensor(inner));
  LOOM_ASSIGN(Tensor mixed, call.tensor(inner));
  LOOM_ASSIGN(const Tensor y, call.like(call.x()));
  const auto bias = [&](size_t i) { return c.flag(kBias) ? call.param(i) : Tensor{}; };
  LOOM_TRY(call.product(kGate, {call.x(), {}, bias(kGateBias), gate}));
  LOOM_TRY(call.product(kUp, {call.x(), {}, bias(kUpBias), up}));
  LOOM_ASSIGN(const Activation activation, parse_activation(c.text(kActivation)));
  LOOM_TRY(call.ops().gated({gate, up, mixed, activation}));
  LOOM_ASSIGN(mixed, sub_normed(call, mixed));
  LOOM_TRY(call.product(kDown, {mixed, {}, bias(kDownBias), y}));
  return y;
}

LayerExample example() {
  return {Shape{9}, {{LayerKind::swiglu, {{"width", 9}, {"inner", 14}, {"bias", true}}}}};
}

}  // namespace

extern const LayerDef kSwiglu;
const LayerDef kSwiglu = {.kind = LayerKind::swiglu,
                          .name = "SwiGLU",
                          .fields = kFields,
                          .ragged = true,
                          .params = params,
                          .infer = infer,
                          .forward = forward,
                          .example = example};

}  // namespace loom::core

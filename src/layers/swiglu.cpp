// SwiGLU: y = Wd (act(Wg x + bg) * (Wu x + bu)) + bd (Shazeer, "GLU variants improve transformer",
// 2020). Wg, Wu [inner, width]; Wd [width, inner]. The gate's activation is a field, so GeGLU and
// ReGLU are this layer too.
#include "base/text.hpp"
#include "layers/layer.hpp"
#include "ops/activation.hpp"

namespace loom {
namespace {

enum { kWidth, kInner, kBias, kActivation };
constexpr FieldDesc kFields[] = {
    {"width", FieldType::integer, 1, 1, 1 << 24, "", "width of input and output", "input_height"},
    {"inner", FieldType::integer, 1, 1, 1 << 24, "", "width between the projections",
     "output_height"},
    {"bias", FieldType::boolean, 0, 0, 1, "", "biases on all three projections"},
    {"activation", FieldType::text, 0, 0, 0, "silu", "function applied to the gate"},
};
enum { kGate, kUp, kDown, kGateBias, kUpBias, kDownBias };

void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  const int64_t width = c.integer(kWidth), inner = c.integer(kInner);
  out.push_back({"gate", Shape{inner, width}, Init::glorot});
  out.push_back({"up", Shape{inner, width}, Init::glorot});
  out.push_back({"down", Shape{width, inner}, Init::glorot});
  if (!c.flag(kBias)) return;
  out.push_back({"gate_bias", Shape{inner}});
  out.push_back({"up_bias", Shape{inner}});
  out.push_back({"down_bias", Shape{width}});
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

Result<Tensor> forward(ForwardCall& call) {
  const LayerConfig& c = call.config();
  const Shape inner = inner_shape(c, call.x().shape);
  LOOM_ASSIGN(const Tensor gate, call.tensor(inner));
  LOOM_ASSIGN(const Tensor up, call.tensor(inner));
  LOOM_ASSIGN(const Tensor mixed, call.tensor(inner));
  LOOM_ASSIGN(const Tensor y, call.like(call.x()));
  const auto bias = [&](size_t i) { return c.flag(kBias) ? call.param(i) : Tensor{}; };
  LOOM_TRY(call.ops().matmul({call.x(), call.param(kGate), bias(kGateBias), gate}));
  LOOM_TRY(call.ops().matmul({call.x(), call.param(kUp), bias(kUpBias), up}));
  LOOM_ASSIGN(const Activation activation, parse_activation(c.text(kActivation)));
  LOOM_TRY(call.ops().gated({gate, up, mixed, activation}));
  LOOM_TRY(call.ops().matmul({mixed, call.param(kDown), bias(kDownBias), y}));
  return y;
}

}  // namespace

extern const LayerDef kSwiglu;
const LayerDef kSwiglu = {.kind = LayerKind::swiglu,
                          .name = "SwiGLU",
                          .fields = kFields,
                          .params = params,
                          .infer = infer,
                          .forward = forward};

}  // namespace loom

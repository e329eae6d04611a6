// Dense: y = act(x W^T + b), W [out, in]. Rows are all extents but the last.
#include "base/text.hpp"
#include "layers/layer.hpp"
#include "ops/activation.hpp"

namespace loom {
namespace {

enum { kIn, kOut, kBias, kActivation };
constexpr double kMaxExtent = 1 << 24;
constexpr FieldDesc kFields[] = {
    {"in", FieldType::integer, 1, 1, kMaxExtent, "", "width of the input"},
    {"out", FieldType::integer, 1, 1, kMaxExtent, "", "width of the output"},
    {"bias", FieldType::boolean, 1, 0, 1, "", "add a trained bias"},
    {"activation", FieldType::text, 0, 0, 0, "linear", "function applied to the result"},
};

void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  out.push_back({"weight", Shape{c.integer(kOut), c.integer(kIn)}, Init::glorot});
  if (c.flag(kBias)) out.push_back({"bias", Shape{c.integer(kOut)}, Init::zeros});
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  if (in.rank() == 0 || in.last() != c.integer(kIn)) {
    return invalid(cat("Dense: input ", in.str(), " must end in ", c.integer(kIn)));
  }
  LOOM_TRY(parse_activation(c.text(kActivation)));
  Shape out = in;
  out[in.rank() - 1] = c.integer(kOut);
  return out;
}

Result<Tensor> forward(ForwardCall& call) {
  LOOM_ASSIGN(const Shape shape, infer(call.config(), call.x().shape));
  LOOM_ASSIGN(Tensor y, call.output(shape));
  MatmulArgs m;
  m.x = call.x();
  m.w = call.param(0);
  if (call.config().flag(kBias)) m.bias = call.param(1);
  m.y = y;
  LOOM_ASSIGN(m.activation, parse_activation(call.config().text(kActivation)));
  LOOM_TRY(call.ops().matmul(m));
  return y;
}

}  // namespace

extern const LayerDef kDense;
const LayerDef kDense = {.kind = LayerKind::dense,
                         .name = "Dense",
                         .fields = kFields,
                         .params = params,
                         .infer = infer,
                         .forward = forward};

}  // namespace loom

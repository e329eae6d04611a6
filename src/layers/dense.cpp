// Dense: y = act(x W^T + b), W [out, in]. Rows are all extents but the last. If the last extent is
// not `in` but a whole sample has that many values, the sample is the row. y is multiplied by
// scale. Then soft_cap c > 0 gives c tanh(y / c), which keeps small values and bounds all by c.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "ops/activation.hpp"

namespace loom::core {
namespace {

using namespace fields::dense;

void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  // Rectifiers lose half of the variance; He's rule compensates.
  const bool rectifies = c.text(kActivation).find("relu") != std::string_view::npos;
  out.push_back(product_weight("weight", Shape{c.integer(kOut), c.integer(kIn)},
                               rectifies ? Init::he : Init::glorot));
  if (c.flag(kBias)) out.push_back({"bias", Shape{c.integer(kOut)}, Init::zeros});
}

bool flattens(const LayerConfig& c, const Shape& in) {
  return in.rank() > 2 && in.last() != c.integer(kIn) && in[0] > 0 &&
         in.count() == in[0] * c.integer(kIn);
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  LOOM_TRY(parse_activation(c.text(kActivation)));
  if (flattens(c, in)) return Shape{in[0], c.integer(kOut)};
  if (in.rank() == 0 || in.last() != c.integer(kIn)) {
    return invalid(cat("Dense: input ", in.str(), " must end in ", c.integer(kIn),
                       ", or have that many values per sample"));
  }
  Shape out = in;
  out[in.rank() - 1] = c.integer(kOut);
  return out;
}

Result<Tensor> capped(ForwardCall& call, const Tensor& x) {
  const auto value = static_cast<float>(call.config().real(kSoftCap));
  if (value == 0.0f) return x;
  LOOM_ASSIGN(const Tensor cap, call.constant(value));
  LOOM_ASSIGN(const Tensor small, call.like(x));
  LOOM_ASSIGN(const Tensor bent, call.like(x));
  LOOM_ASSIGN(const Tensor y, call.like(x));
  LOOM_TRY(call.ops().binary({x, cap, small, BinaryKind::div}));
  LOOM_TRY(call.ops().unary({small, bent, UnaryKind::tanh}));
  LOOM_TRY(call.ops().binary({bent, cap, y, BinaryKind::mul}));
  return y;
}

Result<Tensor> forward(ForwardCall& call) {
  LOOM_ASSIGN(const Shape shape, infer(call.config(), call.x().shape));
  LOOM_ASSIGN(const Tensor y, call.tensor(shape));
  MatmulArgs m;
  m.x = call.x();
  if (flattens(call.config(), m.x.shape))
    m.x = as_matrix(m.x, m.x.shape[0], call.config().integer(kIn));
  if (call.config().flag(kBias)) m.bias = call.param(1);
  m.y = y;
  LOOM_ASSIGN(m.activation, parse_activation(call.config().text(kActivation)));
  LOOM_TRY(call.product(0, m));
  LOOM_ASSIGN(const Tensor scaled, call.scaled(y, static_cast<float>(call.config().real(kScale))));
  return capped(call, scaled);
}

LayerExample example() {
  return {Shape{9}, {sketch_dense(9, 17, "tanh"), sketch_dense(17, 3)}};
}

}  // namespace

extern const LayerDef kDense;
const LayerDef kDense = {.kind = LayerKind::dense,
                         .name = "Dense",
                         .fields = kFields,
                         .ragged = true,
                         .params = params,
                         .infer = infer,
                         .forward = forward,
                         .example = example};

}  // namespace loom::core

// Dropout: in training, values are zero with probability `rate`, and the others are scaled to
// preserve the mean. Outside training the layer is the identity. Random numbers come from the
// counter-based stream of the layer: value i of step s is the same on every machine and in every
// order of work.
//   elementwise   y = x m / (1 - rate), m = 1 if a uniform number >= rate, else 0
//                 (Srivastava et al., 2014).
//   channel       the same with one m for all values of a channel of a sample, x [B, C, ...]
//                 (Tompson et al., 2015; PyTorch's Dropout1d to 3d).
//   alpha         y = a (x m + s (1 - m)) + b, s = -1.7580993408473766 (the lower limit of SELU);
//                 a = 1 / sqrt((1 - rate)(1 + rate s^2)), b = -a s rate.
//                 Preserves mean 0 and variance 1 (Klambauer et al., 2017).
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/spatial/channels.hpp"

namespace loom::core {
namespace {

using namespace fields::dropout;

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  const std::string_view form = c.text(kForm);
  if (form != "elementwise" && form != "channel" && form != "alpha") {
    return invalid(cat("Dropout: unknown form '", printable(form),
                       "'; known are elementwise, channel, alpha"));
  }
  if (form != "channel" || in.rank() >= 3) return in;
  return invalid(cat("Dropout: input ", in.str(),
                     " must be [batch, channels, ...] to leave out whole channels"));
}

// m of `shape`: 1 with probability 1 - rate.
Result<Tensor> kept(ForwardCall& call, const Shape& shape, float rate) {
  LOOM_ASSIGN(const Tensor noise, call.tensor(shape));
  LOOM_ASSIGN(const Tensor m, call.like(noise));
  const Noise source = call.noise();
  LOOM_TRY(call.ops().random({noise, source.step, source.seed, source.stream}));
  LOOM_ASSIGN(const Tensor limit, call.constant(rate));
  LOOM_ASSIGN(const Tensor above, combined(call, noise, limit, BinaryKind::sub));
  LOOM_TRY(call.ops().unary({above, m, UnaryKind::step}));
  return m;
}

// a (x m + s (1 - m)) + b as x (a m) + (s a (1 - m) + b): the second part has no gradient.
Result<Tensor> alpha(ForwardCall& call, const Tensor& x, const Tensor& m, double rate) {
  constexpr double kFloor = -1.7580993408473766;
  const double a = 1.0 / __builtin_sqrt((1.0 - rate) * (1.0 + rate * kFloor * kFloor));
  const double left = a * kFloor, shift = -a * kFloor * rate;
  LOOM_ASSIGN(const Tensor scale, call.constant(static_cast<float>(a)));
  LOOM_ASSIGN(const Tensor drop, call.constant(static_cast<float>(-left)));
  LOOM_ASSIGN(const Tensor rest, call.constant(static_cast<float>(left + shift)));
  LOOM_ASSIGN(const Tensor factor, combined(call, m, scale, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor part, combined(call, m, drop, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor moved, combined(call, part, rest, BinaryKind::add));
  LOOM_ASSIGN(const Tensor y, combined(call, x, factor, BinaryKind::mul));
  return combined(call, y, moved, BinaryKind::add);
}

Result<Tensor> forward(ForwardCall& call) {
  const LayerConfig& config = call.config();
  const Tensor& input = call.x();
  LOOM_TRY(infer(config, input.shape));
  const double rate = config.real(kRate);
  if (!call.training() || rate == 0) return input;
  Tensor x = as_matrix(input, input.shape.rows(), input.shape.last());
  Shape drawn = x.shape;
  if (config.text(kForm) == "channel") {
    const int64_t rows = input.shape[0] * input.shape[1];
    x = as_matrix(input, rows, input.shape.count() / rows);
    drawn = Shape{rows, 1};
  }
  LOOM_ASSIGN(const Tensor m, kept(call, drawn, static_cast<float>(rate)));
  Tensor y;
  if (config.text(kForm) == "alpha" && rate < 1) {
    LOOM_ASSIGN(y, alpha(call, x, m, rate));
  } else {
    const float scale = rate < 1 ? static_cast<float>(1.0 / (1.0 - rate)) : 0.0f;
    LOOM_ASSIGN(const Tensor by, call.constant(scale));
    LOOM_ASSIGN(const Tensor factor, combined(call, m, by, BinaryKind::mul));
    LOOM_ASSIGN(y, combined(call, x, factor, BinaryKind::mul));
  }
  return as_input(y, input);
}

LayerExample example() {
  return {Shape{5},
          {sketch_dense(5, 7, "tanh"), {LayerKind::dropout, {{"rate", 0.3}}}, sketch_dense(7, 3)}};
}

}  // namespace

extern const LayerDef kDropout;
const LayerDef kDropout = {.kind = LayerKind::dropout,
                           .name = "Dropout",
                           .fields = kFields,
                           .infer = infer,
                           .forward = forward,
                           .example = example};

}  // namespace loom::core

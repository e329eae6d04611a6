// ConvLSTM: an LSTM whose products are convolutions, over images in time (Shi et al., 2015, without
// peepholes). x [B, T, C, H, W] -> [B, T, F, H, W], or the last state [B, F, H, W].
//   gates i|f|g|o = conv(x_t, Wx) + conv(h_(t-1), Wh) + b;  kernels odd, edges padded with zeros.
//   c_t = sigmoid(f) c_(t-1) + sigmoid(i) tanh(g),  h_t = sigmoid(o) tanh(c_t).
// Each pass begins at zero: x holds whole sequences.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"

namespace loom::core {
namespace {

using namespace fields::conv_lstm;
enum { kWx, kWh, kB };

int64_t taps(const LayerConfig& c, int axis) {
  const std::vector<int64_t>& list = c.list(kKernel);
  return list[list.size() == 1 ? 0 : static_cast<size_t>(axis)];
}

void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  if (c.list(kKernel).empty() || c.list(kKernel).size() > 2) return;  // infer() reports it
  const int64_t f = c.integer(kFilters), patch = taps(c, 0) * taps(c, 1);
  out.push_back({"wx", Shape{4 * f, c.integer(kChannels) * patch}, Init::fan_in});
  out.push_back({"wh", Shape{4 * f, f * patch}, Init::fan_in});
  out.push_back({"bias", Shape{4 * f}});
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  const size_t kernels = c.list(kKernel).size();
  if (kernels != 1 && kernels != 2)
    return invalid(cat("ConvLSTM: kernel has ", kernels, " numbers, must have 1 or 2"));
  for (const int64_t k : c.list(kKernel)) {
    if (k % 2 == 0) return invalid(cat("ConvLSTM: kernel is ", k, ", must be odd"));
  }
  if (in.rank() != 5 || in[2] != c.integer(kChannels)) {
    return invalid(cat("ConvLSTM: input ", in.str(), " must be [batch, time, ",
                       c.integer(kChannels), ", height, width]"));
  }
  const int64_t f = c.integer(kFilters);
  return c.flag(kReturnSequence) ? Shape{in[0], in[1], f, in[3], in[4]}
                                 : Shape{in[0], f, in[3], in[4]};
}

ConvShape conv_shape(const LayerConfig& c, const Shape& in, int64_t channels) {
  ConvShape s;
  s.channels = channels;
  s.filters = 4 * c.integer(kFilters);
  for (int axis = 0; axis < 2; ++axis) {
    s.in[axis + 1] = s.out[axis + 1] = in[3 + axis];
    s.kernel[axis + 1] = taps(c, axis);
    s.pad[axis + 1] = taps(c, axis) / 2;
  }
  return s;
}

// Tensors that hold all steps in order, [T * B, ..]. The number of tensors that a layer requests
// must not depend on the length.
struct Steps {
  int64_t batch = 0, size = 0;  // values of a state of one sample
  Tensor products, sums, acts, cells, squashed, kept, added, states;

  Tensor at(const Tensor& all, int64_t t) const { return all.slice_rows(t * batch, batch); }
};

Result<Steps> start(ForwardCall& call, int64_t steps, int64_t size) {
  Steps s;
  s.batch = call.x().shape[0];
  s.size = size;
  const Shape gates{steps * s.batch, 4 * size}, state{steps * s.batch, size};
  for (Tensor* t : {&s.products, &s.sums, &s.acts}) {
    LOOM_ASSIGN(*t, call.tensor(gates));
  }
  for (Tensor* t : {&s.cells, &s.squashed, &s.kept, &s.added, &s.states}) {
    LOOM_ASSIGN(*t, call.tensor(state));
  }
  return s;
}

// One step, from its gates before their functions. Index `t` - 1 holds the cells before it.
Status cell(ForwardCall& call, const Steps& s, const Tensor& gates, int64_t t) {
  Recorder& ops = call.ops();
  const int64_t n = s.size;
  const Tensor acts = s.at(s.acts, t), cells = s.at(s.cells, t), squashed = s.at(s.squashed, t);
  LOOM_TRY(
      ops.unary({slice_cols(gates, 0, 2 * n), slice_cols(acts, 0, 2 * n), UnaryKind::sigmoid}));
  LOOM_TRY(ops.unary({slice_cols(gates, 2 * n, n), slice_cols(acts, 2 * n, n), UnaryKind::tanh}));
  LOOM_TRY(
      ops.unary({slice_cols(gates, 3 * n, n), slice_cols(acts, 3 * n, n), UnaryKind::sigmoid}));
  const Tensor i = slice_cols(acts, 0, n), f = slice_cols(acts, n, n);
  const Tensor g = slice_cols(acts, 2 * n, n), o = slice_cols(acts, 3 * n, n);
  if (t == 0) {
    LOOM_TRY(ops.binary({i, g, cells, BinaryKind::mul}));
  } else {
    const Tensor kept = s.at(s.kept, t), added = s.at(s.added, t);
    LOOM_TRY(ops.binary({f, s.at(s.cells, t - 1), kept, BinaryKind::mul}));
    LOOM_TRY(ops.binary({i, g, added, BinaryKind::mul}));
    LOOM_TRY(ops.binary({kept, added, cells, BinaryKind::add}));
  }
  LOOM_TRY(ops.unary({cells, squashed, UnaryKind::tanh}));
  return ops.binary({o, squashed, s.at(s.states, t), BinaryKind::mul});
}

Result<Tensor> forward(ForwardCall& call) {
  const LayerConfig& c = call.config();
  const Shape& in = call.x().shape;
  const int64_t batch = in[0], steps = in[1], size = c.integer(kFilters) * in[3] * in[4];
  LOOM_ASSIGN(const Shape shape, infer(c, in));
  LOOM_ASSIGN(const Tensor y, call.tensor(shape));
  LOOM_ASSIGN(const Tensor from_input, call.tensor(Shape{batch * steps, 4 * size}));
  LOOM_ASSIGN(const Steps s, start(call, steps, size));
  LOOM_TRY(call.ops().conv({as_matrix(call.x(), batch * steps, in.count() / batch / steps),
                            call.param(kWx), call.param(kB), from_input,
                            conv_shape(c, in, c.integer(kChannels))}));
  const ConvShape inner = conv_shape(c, in, c.integer(kFilters));
  for (int64_t t = 0; t < steps; ++t) {
    Tensor gates = step_rows(from_input, batch, t);
    if (t > 0) {
      const Tensor product = s.at(s.products, t), sum = s.at(s.sums, t);
      LOOM_TRY(call.ops().conv({s.at(s.states, t - 1), call.param(kWh), {}, product, inner}));
      LOOM_TRY(call.ops().binary({gates, product, sum, BinaryKind::add}));
      gates = sum;
    }
    LOOM_TRY(cell(call, s, gates, t));
    if (!c.flag(kReturnSequence) && t + 1 < steps) continue;
    const Tensor out = c.flag(kReturnSequence)
                           ? step_rows(as_matrix(y, batch * steps, size), batch, t)
                           : as_matrix(y, batch, size);
    LOOM_TRY(call.ops().unary({s.at(s.states, t), out}));
  }
  return y;
}

LayerExample example() {
  return {Shape{3, 2, 5, 3},
          {{LayerKind::conv_lstm,
            {{"channels", 2}, {"filters", 2}, {"kernel", std::vector<int64_t>{3, 1}}}},
           {LayerKind::flatten},
           sketch_dense(90, 3)},
          3};
}

}  // namespace

extern const LayerDef kConvLstm;
const LayerDef kConvLstm = {.kind = LayerKind::conv_lstm,
                            .name = "ConvLSTM",
                            .fields = kFields,
                            .params = params,
                            .infer = infer,
                            .forward = forward,
                            .example = example};

}  // namespace loom::core

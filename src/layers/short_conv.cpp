// ShortConv: out(c * conv(b * x)) with [b, c, x] = Win u (Liquid AI, LFM2, 2025). The convolution
// is causal and has a kernel per channel. The state of a sequence is its window, the oldest step
// first.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"

namespace loom::core {
namespace {

using namespace fields::short_conv;

void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  const int64_t width = c.integer(kWidth), kernel = c.integer(kKernel);
  out.push_back({"in", Shape{3 * width, width}, Init::glorot});
  out.push_back({"conv", Shape{width * kernel}, Init::ones, true, 1.0 / double(kernel)});
  out.push_back({"out", Shape{width, width}, Init::glorot});
  if (!c.flag(kBias)) return;
  out.push_back({"in_bias", Shape{3 * width}});
  out.push_back({"conv_bias", Shape{width}});
  out.push_back({"out_bias", Shape{width}});
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  if (in.rank() >= 2 && in.last() == c.integer(kWidth)) return in;
  return invalid(
      cat("ShortConv: input ", in.str(), " must be [batch, time, ", c.integer(kWidth), "]"));
}

StateSpec state(const LayerConfig& c) {
  return {0, 0, (c.integer(kKernel) - 1) * c.integer(kWidth)};
}

Result<Tensor> forward(ForwardCall& call) {
  const LayerConfig& c = call.config();
  const int64_t width = c.integer(kWidth), rows = call.x().shape.count() / width;
  const auto bias = [&](size_t i) { return c.flag(kBias) ? call.param(3 + i) : Tensor{}; };
  LOOM_ASSIGN(const Tensor all, call.tensor(Shape{rows, 3 * width}));
  LOOM_ASSIGN(const Tensor gated, call.tensor(Shape{rows, width}));
  LOOM_ASSIGN(const Tensor past, call.tensor(Shape{rows, width}));
  LOOM_ASSIGN(const Tensor mixed, call.tensor(Shape{rows, width}));
  LOOM_ASSIGN(const Tensor y, call.like(call.x()));
  LOOM_TRY(call.ops().matmul({as_matrix(call.x(), rows, width), call.param(0), bias(0), all}));
  LOOM_TRY(call.ops().binary(
      {slice_cols(all, 0, width), slice_cols(all, 2 * width, width), gated, BinaryKind::mul}));
  const bool stateful = call.stateful() && c.integer(kKernel) > 1;
  LOOM_TRY(
      call.ops().causal_conv({gated, call.param(1), bias(1), stateful ? call.state() : Tensor{},
                              call.step_order(), past, call.sequences()}));
  LOOM_TRY(call.ops().binary({past, slice_cols(all, width, width), mixed, BinaryKind::mul}));
  LOOM_TRY(call.ops().matmul({mixed, call.param(2), bias(2), as_matrix(y, rows, width)}));
  return y;
}

LayerExample example() {
  return {Shape{7, 5},
          {{LayerKind::short_conv, {{"width", 5}, {"kernel", 3}, {"bias", true}}},
           {LayerKind::layer_norm, {{"width", 5}}},  // products of three values are small
           {LayerKind::short_conv, {{"width", 5}, {"kernel", 4}}}},
          3};
}

}  // namespace

extern const LayerDef kShortConv;
const LayerDef kShortConv = {.kind = LayerKind::short_conv,
                             .name = "ShortConv",
                             .fields = kFields,
                             .ragged = true,
                             .params = params,
                             .infer = infer,
                             .forward = forward,
                             .state = state,
                             .example = example};

}  // namespace loom::core

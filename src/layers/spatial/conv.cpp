// CNN1-3 and ConvTransposed1-3: cross-correlations over one to three axes, samples [C, (D, (H,))
// W]. Zero padding; kernel, stride, padding and dilation per axis; groups (depthwise: groups = C).
//   CNN:            W [F][C/groups][taps],
//                   out = floor((in + 2 pad - dilation (K - 1) - 1) / stride) + 1.
//   ConvTransposed: W [C][F/groups][taps], the gradient of a CNN with respect to its input;
//                   out = (in - 1) stride - 2 pad + dilation (K - 1) + 1 + output_padding.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "ops/activation.hpp"

namespace loom::core {
namespace {

using namespace fields::conv_transposed;  // those of a CNN, and one more
static_assert(fields::cnn::kActivation == kActivation);
// CNN has all but the last.

struct Kind {
  int axes;
  bool transposed;
};
Kind kind_of(const LayerConfig& c) {
  switch (c.def->kind) {
    case LayerKind::cnn1: return {1, false};
    case LayerKind::cnn2: return {2, false};
    case LayerKind::cnn3: return {3, false};
    case LayerKind::conv_transposed1: return {1, true};
    case LayerKind::conv_transposed2: return {2, true};
    default: return {3, true};
  }
}

// The values of a per-axis field on the last `axes` of three axes.
Status per_axis(const LayerConfig& c, int field, int axes, int64_t neutral, int64_t (&out)[3]) {
  const std::vector<int64_t>& list = c.list(field);
  if (list.size() != 1 && list.size() != static_cast<size_t>(axes)) {
    return invalid(cat(c.def->name, ": ", c.def->fields[static_cast<size_t>(field)].name, " has ",
                       list.size(), " numbers, must have 1 or ", axes));
  }
  for (int i = 0; i < 3; ++i) {
    const int axis = i - (3 - axes);
    out[i] = axis < 0 ? neutral : list[list.size() == 1 ? 0 : static_cast<size_t>(axis)];
  }
  return {};
}

// The input extents, after checking rank and channels.
Status input_extents(const LayerConfig& c, const Shape& in, int64_t (&extents)[3]) {
  const int axes = kind_of(c).axes;
  if (in.rank() != axes + 2 || in[1] != c.integer(kChannels)) {
    return invalid(cat(c.def->name, ": input ", in.str(), " must be [batch, ", c.integer(kChannels),
                       ", ", axes, axes == 1 ? " extent]" : " extents]"));
  }
  for (int i = 0; i < 3; ++i) {
    const int axis = i - (3 - axes);
    extents[i] = axis < 0 ? 1 : in[2 + axis];
  }
  return {};
}

// The convolution that computes the layer. A transposed layer uses the CNN whose input is its
// output.
Result<ConvShape> conv_shape(const LayerConfig& c, const Shape& in) {
  const Kind kind = kind_of(c);
  ConvShape s;
  int64_t extents[3], extra[3] = {0, 0, 0};
  LOOM_TRY(input_extents(c, in, extents));
  LOOM_TRY(per_axis(c, kKernel, kind.axes, 1, s.kernel));
  LOOM_TRY(per_axis(c, kStride, kind.axes, 1, s.stride));
  LOOM_TRY(per_axis(c, kPadding, kind.axes, 0, s.pad));
  LOOM_TRY(per_axis(c, kDilation, kind.axes, 1, s.dilation));
  if (kind.transposed) LOOM_TRY(per_axis(c, kOutputPadding, kind.axes, 0, extra));
  s.groups = c.integer(kGroups);
  if (c.integer(kChannels) % s.groups != 0 || c.integer(kFilters) % s.groups != 0) {
    return invalid(cat(c.def->name, ": groups ", s.groups, " must divide channels ",
                       c.integer(kChannels), " and filters ", c.integer(kFilters)));
  }
  s.channels = c.integer(kind.transposed ? kFilters : kChannels);
  s.filters = c.integer(kind.transposed ? kChannels : kFilters);
  for (int i = 0; i < 3; ++i) {
    const int64_t reach = s.dilation[i] * (s.kernel[i] - 1);
    int64_t result;
    if (kind.transposed) {
      if (extra[i] >= s.stride[i] && extra[i] >= s.dilation[i]) {
        return invalid(cat(c.def->name, ": output_padding ", extra[i],
                           " must be below the stride or the dilation"));
      }
      result = (extents[i] - 1) * s.stride[i] - 2 * s.pad[i] + reach + 1 + extra[i];
      s.out[i] = extents[i];
      s.in[i] = result;
    } else {
      const int64_t room = extents[i] + 2 * s.pad[i] - reach - 1;
      result = room < 0 ? 0 : room / s.stride[i] + 1;
      s.in[i] = extents[i];
      s.out[i] = result;
    }
    if (result < 1) {
      return invalid(cat(c.def->name, ": a kernel of ", s.kernel[i], " does not fit an extent of ",
                         extents[i], " with padding ", s.pad[i]));
    }
  }
  return s;
}

void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  const Kind kind = kind_of(c);
  int64_t kernel[3] = {1, 1, 1};
  if (!per_axis(c, kKernel, kind.axes, 1, kernel).ok()) return;  // infer() reports it
  const int64_t rows = c.integer(kind.transposed ? kChannels : kFilters);
  const int64_t others = c.integer(kind.transposed ? kFilters : kChannels) / c.integer(kGroups);
  const bool rectifies = c.text(kActivation).find("relu") != std::string_view::npos;
  out.push_back({"weight", Shape{rows, others * kernel[0] * kernel[1] * kernel[2]},
                 rectifies ? Init::he : Init::glorot});
  if (c.flag(kBias)) out.push_back({"bias", Shape{c.integer(kFilters)}});
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  const Kind kind = kind_of(c);
  LOOM_TRY(parse_activation(c.text(kActivation)));
  LOOM_ASSIGN(const ConvShape s, conv_shape(c, in));
  Shape out = in;
  out[1] = c.integer(kFilters);
  for (int i = 3 - kind.axes; i < 3; ++i) {
    out[2 + i - (3 - kind.axes)] = kind.transposed ? s.in[i] : s.out[i];
  }
  return out;
}

Result<Tensor> forward(ForwardCall& call) {
  const LayerConfig& c = call.config();
  LOOM_ASSIGN(const Shape shape, infer(c, call.x().shape));
  LOOM_ASSIGN(const ConvShape conv, conv_shape(c, call.x().shape));
  LOOM_ASSIGN(const Activation activation, parse_activation(c.text(kActivation)));
  LOOM_ASSIGN(const Tensor y, call.tensor(shape));
  const int64_t samples = shape[0];
  const Tensor x = as_matrix(call.x(), samples, call.x().shape.count() / samples);
  const Tensor out = as_matrix(y, samples, shape.count() / samples);
  const Tensor bias = c.flag(kBias) ? call.param(1) : Tensor{};
  if (kind_of(c).transposed) {
    LOOM_TRY(call.ops().conv_dx({x, call.param(0), bias, out, conv, activation}));
  } else {
    LOOM_TRY(call.ops().conv({x, call.param(0), bias, out, conv, activation}));
  }
  return y;
}

LayerExample example_cnn1() {
  return {
      Shape{2, 17},
      {{LayerKind::cnn1, {{"channels", 2}, {"filters", 5}, {"padding", 1}, {"activation", "relu"}}},
       sketch_dense(85, 3)},
      3};
}

LayerExample example_cnn2() {
  return {Shape{2, 7, 5},
          {{LayerKind::cnn2, {{"channels", 2}, {"filters", 5}, {"stride", 2}, {"padding", 1}}},
           sketch_dense(60, 3)},
          3};
}

LayerExample example_cnn3() {
  return {
      Shape{2, 4, 3, 5},
      {{LayerKind::cnn3, {{"channels", 2}, {"filters", 3}, {"kernel", 2}}}, sketch_dense(72, 3)},
      2};
}

LayerExample example_transposed1() {
  return {Shape{3, 5},
          {{LayerKind::conv_transposed1, {{"channels", 3}, {"filters", 2}, {"stride", 2}}}},
          3};
}

LayerExample example_transposed2() {
  return {Shape{3, 3, 4},
          {{LayerKind::conv_transposed2, {{"channels", 3}, {"filters", 2}, {"stride", 2}}}},
          3};
}

LayerExample example_transposed3() {
  return {Shape{2, 2, 3, 2},
          {{LayerKind::conv_transposed3, {{"channels", 2}, {"filters", 2}, {"kernel", 2}}}},
          2};
}

constexpr LayerDef conv_def(LayerKind kind, std::string_view name,
                            std::span<const FieldDesc> fields, LayerExample (*example)()) {
  return {.kind = kind,
          .name = name,
          .fields = fields,
          .params = params,
          .infer = infer,
          .forward = forward,
          .example = example};
}

}  // namespace

extern const LayerDef kCnn1, kCnn2, kCnn3;
const LayerDef kCnn1 = conv_def(LayerKind::cnn1, "CNN1", fields::cnn::kFields, example_cnn1);
const LayerDef kCnn2 = conv_def(LayerKind::cnn2, "CNN2", fields::cnn::kFields, example_cnn2);
const LayerDef kCnn3 = conv_def(LayerKind::cnn3, "CNN3", fields::cnn::kFields, example_cnn3);
extern const LayerDef kConvTransposed1, kConvTransposed2, kConvTransposed3;
const LayerDef kConvTransposed1 =
    conv_def(LayerKind::conv_transposed1, "ConvTransposed1D", kFields, example_transposed1);
const LayerDef kConvTransposed2 =
    conv_def(LayerKind::conv_transposed2, "ConvTransposed2D", kFields, example_transposed2);
const LayerDef kConvTransposed3 =
    conv_def(LayerKind::conv_transposed3, "ConvTransposed3D", kFields, example_transposed3);

}  // namespace loom::core

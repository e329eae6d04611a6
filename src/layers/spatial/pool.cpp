// Pool: the largest value, the average or the p-norm of windows of each channel. Samples are [C,
// L], [C, H, W] or [C, D, H, W]; channels are independent. Along an axis:
//   out = floor((in + padding - dilation (kernel - 1) - 1) / stride) + 1.
// With ceil it is rounded up, unless the last window would begin after the input (as in PyTorch).
// With `output` the extents determine the windows instead: output o reads inputs floor(o in / out)
// to ceil((o + 1) in / out) - 1 (PyTorch's adaptive pooling). output 1 is one window over
// everything. lp is the root of the sum of |x|^p, as in ONNX.
#include <algorithm>

#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"

namespace loom::core {
namespace {

using namespace fields::pool;

Result<PoolKind> pool_kind(const LayerConfig& c) {
  if (c.text(kKind) == "max") return PoolKind::max;
  if (c.text(kKind) == "average") return PoolKind::average;
  if (c.text(kKind) == "lp") return PoolKind::lp;
  return invalid(
      cat("Pool: unknown kind '", printable(c.text(kKind)), "'; known are max, average, lp"));
}

// Number `axis` of a list of one or of `axes` numbers.
Result<int64_t> of_axis(const LayerConfig& c, int field, int axes, int axis) {
  const std::vector<int64_t>& list = c.list(field);
  if (list.size() == 1) return list[0];
  if (list.size() == static_cast<size_t>(axes)) return list[static_cast<size_t>(axis)];
  return invalid(cat("Pool: ", c.def->fields[static_cast<size_t>(field)].name, " has ", list.size(),
                     " numbers, must have 1 or ", axes));
}

Status strided_axis(const LayerConfig& c, int axes, int axis, int64_t in, int to, PoolArgs& args) {
  ConvShape& s = args.shape;
  LOOM_ASSIGN(s.kernel[to], of_axis(c, kKernel, axes, axis));
  LOOM_ASSIGN(s.stride[to], of_axis(c, kStride, axes, axis));
  LOOM_ASSIGN(s.dilation[to], of_axis(c, kDilation, axes, axis));
  if (s.stride[to] == 0) s.stride[to] = s.kernel[to];
  const std::vector<int64_t>& padding = c.list(kPadding);
  if (padding.size() == static_cast<size_t>(2 * axes)) {
    s.pad[to] = padding[static_cast<size_t>(axis)];
    args.pad_end[to] = padding[static_cast<size_t>(axes + axis)];
  } else if (padding.size() == 1 || padding.size() == static_cast<size_t>(axes)) {
    s.pad[to] = args.pad_end[to] = padding[padding.size() == 1 ? 0 : static_cast<size_t>(axis)];
  } else {
    return invalid(cat("Pool: padding has ", padding.size(), " numbers, must have 1, ", axes,
                       " or ", 2 * axes));
  }
  const int64_t reach = s.dilation[to] * (s.kernel[to] - 1) + 1;
  if (s.pad[to] >= reach || args.pad_end[to] >= reach) {
    return invalid(cat("Pool: padding ", std::max(s.pad[to], args.pad_end[to]),
                       " must be below what a kernel of ", s.kernel[to], " reaches, ", reach));
  }
  const int64_t room = in + s.pad[to] + args.pad_end[to] - reach;
  if (room < 0) {
    return invalid(cat("Pool: a kernel of ", s.kernel[to], " does not fit an extent of ", in,
                       " with padding ", s.pad[to]));
  }
  const bool up = c.flag(kCeil);
  s.out[to] = (room + (up ? s.stride[to] - 1 : 0)) / s.stride[to] + 1;
  if (up && (s.out[to] - 1) * s.stride[to] >= in + s.pad[to]) --s.out[to];
  return {};
}

// All of the op but its tensors.
Result<PoolArgs> pool_of(const LayerConfig& c, const Shape& in) {
  const int axes = in.rank() - 2;
  if (axes < 1 || axes > 3) {
    return invalid(
        cat("Pool: input ", in.str(), " must be [batch, channels, one to three extents]"));
  }
  PoolArgs args;
  LOOM_ASSIGN(args.kind, pool_kind(c));
  const bool adaptive = !c.list(kOutput).empty();
  args.windows = adaptive ? PoolWindows::adaptive : PoolWindows::strided;
  args.include_pad = c.flag(kIncludePadding);
  args.p = static_cast<int>(c.integer(kP));
  ConvShape& s = args.shape;
  s.channels = s.filters = s.groups = in[1];
  for (int axis = 0; axis < axes; ++axis) {
    const int to = 3 - axes + axis;
    s.in[to] = in[2 + axis];
    if (adaptive) {
      LOOM_ASSIGN(s.out[to], of_axis(c, kOutput, axes, axis));
    } else {
      LOOM_TRY(strided_axis(c, axes, axis, s.in[to], to, args));
    }
  }
  return args;
}

Shape pooled_shape(const PoolArgs& args, const Shape& in) {
  Shape out = in;
  for (int axis = 2; axis < in.rank(); ++axis) out[axis] = args.shape.out[3 - in.rank() + axis];
  return out;
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  LOOM_ASSIGN(const PoolArgs args, pool_of(c, in));
  return pooled_shape(args, in);
}

Result<Tensor> forward(ForwardCall& call) {
  const Shape& in = call.x().shape;
  LOOM_ASSIGN(PoolArgs args, pool_of(call.config(), in));
  const Shape shape = pooled_shape(args, in);
  LOOM_ASSIGN(const Tensor y, call.tensor(shape));
  const int64_t samples = in[0], channels = in[1];
  // Whole channels: a mean of rows, which has a fast kernel on every device.
  const bool whole = args.windows == PoolWindows::adaptive && args.shape.out_positions() == 1;
  if (whole && args.kind == PoolKind::average) {
    const Tensor rows = as_matrix(call.x(), samples * channels, args.shape.in_positions());
    LOOM_TRY(call.ops().reduce({rows, as_matrix(y, 1, samples * channels), ReduceKind::mean}));
    return y;
  }
  args.x = as_matrix(call.x(), samples, channels * args.shape.in_positions());
  args.y = as_matrix(y, samples, channels * args.shape.out_positions());
  if (args.kind == PoolKind::max && call.training()) {
    LOOM_ASSIGN(const Tensor ids, call.ids(shape));
    args.ids = as_matrix(ids, samples, args.y.cols());
  }
  LOOM_TRY(call.ops().pool(args));
  return y;
}

LayerExample example() {
  return {Shape{2, 7, 9},
          {{LayerKind::cnn2, {{"channels", 2}, {"filters", 3}, {"padding", 1}}},
           {LayerKind::pool, {{"kernel", 3}, {"stride", 2}, {"padding", 1}, {"ceil", true}}},
           sketch_dense(60, 3)},
          3};
}

}  // namespace

extern const LayerDef kPool;
const LayerDef kPool = {.kind = LayerKind::pool,
                        .name = "Pool",
                        .fields = kFields,
                        .infer = infer,
                        .forward = forward,
                        .example = example};

}  // namespace loom::core

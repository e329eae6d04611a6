// Checks and gradient rule of pooling. products.cpp describes the layout of a check.
#include <initializer_list>

#include "ops/check_rules.hpp"
#include "ops/checks.hpp"
#include "ops/gradients/gradient_rules.hpp"
#include "ops/gradients/gradient_support.hpp"
#include "ops/pooling.hpp"

namespace loom::core {

using Target = Differentiator::Target;

namespace {

using rules::apart_from;
using rules::op_error;
using rules::plain;

// A valid number for an axis: computations with such numbers stay below 2^63.
bool pool_number(int64_t value, int64_t least) {
  return value >= least && value < int64_t{1} << 31;
}

template <class Args>
Status pool_shape(std::string_view op, const Args& args) {
  const ConvShape& s = args.shape;
  bool sound = pool_number(s.channels, 1);
  for (int a = 0; a < 3; ++a) {
    sound = sound && pool_number(s.in[a], 0) && pool_number(s.out[a], 0) &&
            pool_number(s.kernel[a], 1) && pool_number(s.stride[a], 1) &&
            pool_number(s.dilation[a], 1) && pool_number(s.pad[a], 0) &&
            pool_number(args.pad_end[a], 0);
  }
  int64_t inputs = 1, outputs = 1;
  for (int a = 0; a < 3 && sound; ++a) {
    sound = !__builtin_mul_overflow(inputs, s.in[a], &inputs) && inputs < int64_t{1} << 31 &&
            !__builtin_mul_overflow(outputs, s.out[a], &outputs) && outputs < int64_t{1} << 31;
  }
  if (!sound) {
    return op_error(op,
                    "a number of its shape is out of range: positive, extents and padding not "
                    "negative, all and the positions of a channel below 2^31");
  }
  if (s.filters != s.channels || s.groups != s.channels) {
    return op_error(op, s.channels, " channels, ", s.filters, " filters and ", s.groups,
                    " groups: all three must be the number of channels");
  }
  if (args.kind == PoolKind::lp && args.p != 1 && args.p != 2) {
    return op_error(op, "p is ", args.p, ": it must be 1 or 2");
  }
  return {};
}

// Rows that are samples [channels][positions].
Status pool_samples(std::string_view op, std::string_view name, const Tensor& t, int64_t rows,
                    int64_t channels, int64_t positions, DType dtype) {
  LOOM_TRY(plain(op, name, t, dtype));
  if (t.rows() == rows && t.cols() == channels * positions) return {};
  return op_error(op, name, " ", t.shape.str(), " must have ", rows, " rows of ", channels,
                  " channels of ", positions, " values");
}

PoolArgs with_ids(PoolArgs args, const Tensor& y, const Tensor& ids) {
  args.y = y;
  args.ids = ids;
  return args;
}

}  // namespace

Status check(const PoolArgs& args) {
  const auto& [x, y, ids, shape, kind, windows, include_pad, p, pad_end] = args;
  LOOM_TRY(plain("pool", "x", x));
  LOOM_TRY(pool_shape("pool", args));
  const int64_t rows = x.rows(), ins = shape.in_positions(), outs = shape.out_positions();
  LOOM_TRY(pool_samples("pool", "x", x, rows, shape.channels, ins, x.dtype));
  LOOM_TRY(pool_samples("pool", "y", y, rows, shape.channels, outs, x.dtype));
  if (!ids.empty()) {
    if (kind != PoolKind::max) return op_error("pool", "only the largest values have ids");
    LOOM_TRY(pool_samples("pool", "ids", ids, rows, shape.channels, outs, DType::i32));
    LOOM_TRY(apart_from("pool", "ids", ids, {{"x", x}, {"y", y}}));
  }
  return apart_from("pool", "y", y, {{"x", x}});
}

// Without ids, the forward pass is repeated with them.
Status gradient_rule(Differentiator& d, const PoolArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Target x, d.gradient_target(a.x));
  if (x.out.empty()) return {};
  PoolDxArgs g;
  g.dy = dy;
  g.dx = x.out;
  g.shape = a.shape;
  g.kind = a.kind;
  g.windows = a.windows;
  g.include_pad = a.include_pad;
  g.p = a.p;
  std::copy_n(a.pad_end, 3, g.pad_end);
  if (a.kind == PoolKind::lp) g.x = a.x, g.y = a.y;
  if (a.kind == PoolKind::max) {
    g.ids = a.ids;
    if (g.ids.empty()) {
      g.ids = d.fresh(a.y.shape, DType::i32);
      LOOM_TRY(d.ops().pool(with_ids(a, d.fresh(a.y.shape), g.ids)));
    }
  }
  LOOM_TRY(d.ops().pool_dx(g));
  return d.accumulate(x);
}

Status check(const PoolDxArgs& args) {
  const auto& [dy, x, y, ids, dx, shape, kind, windows, include_pad, p, pad_end] = args;
  LOOM_TRY(plain("pool_dx", "dy", dy));
  LOOM_TRY(pool_shape("pool_dx", args));
  const int64_t rows = dy.rows(), ins = shape.in_positions(), outs = shape.out_positions();
  LOOM_TRY(pool_samples("pool_dx", "dy", dy, rows, shape.channels, outs, dy.dtype));
  LOOM_TRY(pool_samples("pool_dx", "dx", dx, rows, shape.channels, ins, dy.dtype));
  if (kind == PoolKind::max) {
    LOOM_TRY(pool_samples("pool_dx", "ids", ids, rows, shape.channels, outs, DType::i32));
  }
  if (kind == PoolKind::lp) {
    LOOM_TRY(pool_samples("pool_dx", "x", x, rows, shape.channels, ins, dy.dtype));
    LOOM_TRY(pool_samples("pool_dx", "y", y, rows, shape.channels, outs, dy.dtype));
  }
  return apart_from("pool_dx", "dx", dx, {{"dy", dy}, {"x", x}, {"y", y}, {"ids", ids}});
}

}  // namespace loom::core

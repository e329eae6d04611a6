// Checks and gradient rules of convolutions. products.cpp describes the layout of a check.
#include <initializer_list>

#include "ops/check_rules.hpp"
#include "ops/checks.hpp"
#include "ops/gradients/gradient_rules.hpp"
#include "ops/gradients/gradient_support.hpp"

namespace loom::core {

using Target = Differentiator::Target;

namespace {

using rules::apart_from;
using rules::disagree;
using rules::op_error;
using rules::packed;
using rules::plain;

// A valid number for an axis of a convolution: computations with such numbers stay below 2^63.
bool in_range(int64_t value, int64_t least) {
  return value >= least && value < int64_t{1} << 31;
}

bool is_product(int64_t value, std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return false;
  }
  return product == value;
}

Status conv_shape(std::string_view op, const ConvShape& s) {
  bool sound = in_range(s.channels, 1) && in_range(s.filters, 1) && in_range(s.groups, 1);
  for (int a = 0; a < 3; ++a) {
    sound = sound && in_range(s.in[a], 0) && in_range(s.out[a], 0) && in_range(s.kernel[a], 1) &&
            in_range(s.stride[a], 1) && in_range(s.dilation[a], 1) && in_range(s.pad[a], 0);
  }
  if (!sound) {
    return op_error(op,
                    "a number of its shape is out of range: positive, extents of the samples and "
                    "padding not negative, all below 2^31");
  }
  if (s.channels % s.groups == 0 && s.filters % s.groups == 0) return {};
  return op_error(op, s.channels, " channels and ", s.filters, " filters cannot be cut into ",
                  s.groups, " groups");
}

// Rows that are samples [count][extent...].
Status samples(std::string_view op, std::string_view name, const Tensor& t, std::string_view what,
               int64_t count, const int64_t (&extent)[3]) {
  if (is_product(t.cols(), {count, extent[0], extent[1], extent[2]})) return {};
  return op_error(op, name, " ", t.shape.str(), " does not hold ", count, " ", what, " of [",
                  extent[0], ", ", extent[1], ", ", extent[2], "] in a row");
}

// The weights, packed or their gradient, have one row per filter.
Status filters(std::string_view op, std::string_view name, const Tensor& w, const ConvShape& s) {
  const bool patch =
      is_product(w.cols(), {s.channels / s.groups, s.kernel[0], s.kernel[1], s.kernel[2]});
  if (patch && w.rows() == s.filters) return {};
  return op_error(op, name, " ", w.shape.str(), " does not hold ", s.filters, " filters of ",
                  s.channels / s.groups, " channels of [", s.kernel[0], ", ", s.kernel[1], ", ",
                  s.kernel[2], "]");
}

// Samples in, samples out: equal numbers of rows.
Status convolved(std::string_view op, std::string_view in_name, const Tensor& in,
                 std::string_view out_name, const Tensor& out, const ConvShape& s) {
  LOOM_TRY(conv_shape(op, s));
  LOOM_TRY(samples(op, in_name, in, "channels", s.channels, s.in));
  LOOM_TRY(samples(op, out_name, out, "filters", s.filters, s.out));
  if (in.rows() == out.rows()) return {};
  return disagree(op, in_name, in, out_name, out, "both must have the same number of rows");
}

// Sums over the positions of each channel and over samples: the gradient of a bias per channel.
Status give_channels(Differentiator& d, const Tensor& bias, const Tensor& dz, int64_t positions) {
  LOOM_ASSIGN(const Target p, d.gradient_target(bias, true));
  if (p.out.empty()) return {};
  const int64_t channels = bias.shape.count(), samples = dz.rows();
  const Tensor sums = d.fresh(Shape{samples, channels});
  LOOM_TRY(d.ops().reduce({matrix_over(dz, samples * channels, positions),
                           matrix_over(sums, 1, samples * channels), ReduceKind::sum}));
  return d.ops().reduce_cols({sums, p.out, p.accumulate});
}

}  // namespace

Status check(const ConvArgs& args) {
  const auto& [x, w, bias, y, shape, activation] = args;
  LOOM_TRY(plain("conv", "x", x));
  LOOM_TRY(packed("conv", "w", w));
  LOOM_TRY(plain("conv", "y", y, x.dtype));
  LOOM_TRY(convolved("conv", "x", x, "y", y, shape));
  LOOM_TRY(filters("conv", "w", w, shape));
  if (!bias.empty()) LOOM_TRY(rules::vector("conv", "bias", bias, shape.filters, x.dtype));
  return apart_from("conv", "y", y, {{"x", x}, {"w", w}, {"bias", bias}});
}

Status gradient_rule(Differentiator& d, const ConvArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Tensor dz, before_activation(d, a.activation, a.y, dy));
  LOOM_TRY(d.note_product({a.w, a.bias, a.x, dz, &a.shape}));
  LOOM_ASSIGN(const Target x, d.gradient_target(a.x, true));
  if (!x.out.empty()) {
    ConvDxArgs c;
    c.dy = dz;
    c.w = a.w;
    c.dx = x.out;
    c.shape = a.shape;
    c.accumulate = x.accumulate;
    LOOM_TRY(d.ops().conv_dx(c));
  }
  LOOM_ASSIGN(const Target w, d.gradient_target(a.w, true));
  if (!w.out.empty()) LOOM_TRY(d.ops().conv_dw({a.x, dz, w.out, a.shape, w.accumulate}));
  return give_channels(d, a.bias, dz, a.shape.out_positions());
}

Status check(const ConvDxArgs& args) {
  const auto& [dy, w, bias, dx, shape, activation, accumulate] = args;
  LOOM_TRY(plain("conv_dx", "dy", dy));
  LOOM_TRY(packed("conv_dx", "w", w));
  LOOM_TRY(plain("conv_dx", "dx", dx, dy.dtype));
  LOOM_TRY(convolved("conv_dx", "dx", dx, "dy", dy, shape));
  LOOM_TRY(filters("conv_dx", "w", w, shape));
  if (!bias.empty()) LOOM_TRY(rules::vector("conv_dx", "bias", bias, shape.channels, dy.dtype));
  if (accumulate && (!bias.empty() || activation != Activation::linear)) {
    return op_error("conv_dx", "what accumulates takes neither bias nor activation");
  }
  return apart_from("conv_dx", "dx", dx, {{"dy", dy}, {"w", w}, {"bias", bias}});
}

// ConvTransposed: its input is dy of the convolution whose gradient it computes.
Status gradient_rule(Differentiator& d, const ConvDxArgs& a) {
  const Tensor dy = d.of(a.dx);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Tensor dz, before_activation(d, a.activation, a.dx, dy));
  LOOM_ASSIGN(const Target x, d.gradient_target(a.dy));
  if (!x.out.empty()) {
    ConvArgs c;
    c.x = dz;
    c.w = a.w;
    c.y = x.out;
    c.shape = a.shape;
    LOOM_TRY(d.ops().conv(c));
    LOOM_TRY(d.accumulate(x));
  }
  LOOM_ASSIGN(const Target w, d.gradient_target(a.w, true));
  if (!w.out.empty()) LOOM_TRY(d.ops().conv_dw({dz, a.dy, w.out, a.shape, w.accumulate}));
  return give_channels(d, a.bias, dz, a.shape.in_positions());
}

Status check(const ConvDwArgs& args) {
  const auto& [x, dy, dw, shape, accumulate] = args;
  LOOM_TRY(plain("conv_dw", "x", x));
  LOOM_TRY(plain("conv_dw", "dy", dy, x.dtype));
  LOOM_TRY(plain("conv_dw", "dw", dw, x.dtype));
  LOOM_TRY(convolved("conv_dw", "x", x, "dy", dy, shape));
  LOOM_TRY(filters("conv_dw", "dw", dw, shape));
  return apart_from("conv_dw", "dw", dw, {{"x", x}, {"dy", dy}});
}

}  // namespace loom::core

// Products and convolutions of whole numbers: exact in 64 bits, then rounded once where the
// operator asks for quantized results. See products.hpp and windows.hpp.
#include <algorithm>
#include <cmath>

#include "evaluate/windows.hpp"

namespace loom::core::evaluate {
namespace {

// Input i as whole numbers less its zero point: input z, of one number, or one per place of `axis`.
Result<Value> less_zero(const Call& c, size_t i, size_t z, int axis) {
  if (is_real(c.value(i).type)) return c.bad("takes whole numbers");
  LOOM_ASSIGN(const Value x, c.as(i, OnnxType::i64));
  if (!c.has(z)) return x;
  LOOM_ASSIGN(const Dims zero, c.whole(z));
  Dims whole(x.dims.size(), 1);
  if (zero.size() != 1) {
    LOOM_ASSIGN(const int at, c.axis(axis, x.rank()));
    if (static_cast<int64_t>(zero.size()) != x.dims[static_cast<size_t>(at)])
      return c.bad("zero points that do not fit");
    whole[static_cast<size_t>(at)] = static_cast<int64_t>(zero.size());
  }
  LOOM_ASSIGN(Value list, c.make(OnnxType::i64, whole));
  std::ranges::copy(zero, list.data<int64_t>());
  return combine(c, Pair::sub, x, list);
}

Status matmul_integer(const Call& c) {
  LOOM_ASSIGN(const Value a, less_zero(c, 0, 2, -2));
  LOOM_ASSIGN(const Value b, less_zero(c, 1, 3, -1));
  LOOM_ASSIGN(const Value y, matmul(c, a, b));
  return c.give_as(y, OnnxType::i32);
}

// clamp(round(sum * (a_scale * b_scale / y_scale)) + y_zero), scales being one number or one per
// place along `axis` of y.
Status requantized(const Call& c, const Value& sums, const size_t scales[3], size_t zero,
                   int axis) {
  const OnnxType type = c.value(zero).type;
  if (type != OnnxType::u8 && type != OnnxType::i8) return c.bad("results must be 8 bits");
  LOOM_ASSIGN(const int64_t origin, c.whole_number(zero, 0));
  Value factor[3];
  for (int k = 0; k < 3; ++k) {
    LOOM_ASSIGN(factor[k], c.as(scales[k], OnnxType::f32));
    const int64_t n = factor[k].count();
    if (n != 1 && (k != 1 || n != sums.dims[static_cast<size_t>(axis)]))
      return c.bad("scales that do not fit");
  }
  const int64_t n = sums.count(), inner = product(sums.dims, axis + 1, sums.rank());
  const int64_t extent = axis < sums.rank() ? sums.dims[static_cast<size_t>(axis)] : 1;
  LOOM_ASSIGN(Value y, c.make(OnnxType::i64, sums.dims));
  const double low = type == OnnxType::u8 ? 0 : -128, high = low + 255;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t channel = factor[1].count() == 1 ? 0 : i / inner % extent;
    const double by = static_cast<double>(*factor[0].data<float>()) *
                      static_cast<double>(factor[1].data<float>()[channel]) /
                      static_cast<double>(*factor[2].data<float>());
    const double v = std::nearbyint(static_cast<double>(sums.data<int64_t>()[i]) * by);
    y.data<int64_t>()[i] =
        static_cast<int64_t>(std::clamp(v + static_cast<double>(origin), low, high));
  }
  return c.give_as(y, type);
}

// a, scale, zero, b, scale, zero, y scale, zero.
Status linear_matmul(const Call& c) {
  LOOM_ASSIGN(const Value a, less_zero(c, 0, 2, -2));
  LOOM_ASSIGN(const Value b, less_zero(c, 3, 5, -1));
  LOOM_ASSIGN(const Value sums, matmul(c, a, b));
  const size_t scales[3] = {1, 4, 6};
  return requantized(c, sums, scales, 7, std::max(0, sums.rank() - 1));
}

Result<Value> conv_sums(const Call& c, const Value& x, const Value& w) {
  if (w.rank() != x.rank() || x.rank() < 3) return c.bad("weights of another rank");
  LOOM_ASSIGN(Windows win, windows_of(c, x.dims, Dims(w.dims.begin() + 2, w.dims.end())));
  ConvShape& s = win.shape;
  s.groups = c.integer("group", 1);
  s.channels = x.dims[1], s.filters = w.dims[0];
  if (s.groups < 1 || s.channels % s.groups != 0 || s.filters % s.groups != 0 ||
      w.dims[1] != s.channels / s.groups)
    return c.bad("channels, groups and weights that do not fit");
  LOOM_ASSIGN(Value y, c.make(OnnxType::i64, win.out_dims(x.dims[0], s.filters)));
  convolve_plainly<int64_t>(c, x.data<int64_t>(), w.data<int64_t>(), y.data<int64_t>(), x.dims[0],
                            s);
  return y;
}

Status conv_integer(const Call& c) {
  LOOM_ASSIGN(const Value x, less_zero(c, 0, 2, 0));
  LOOM_ASSIGN(const Value w, less_zero(c, 1, 3, 0));
  LOOM_ASSIGN(const Value y, conv_sums(c, x, w));
  return c.give_as(y, OnnxType::i32);
}

// x, scale, zero, w, scale, zero, y scale, zero, bias (int32, in units of both scales).
Status linear_conv(const Call& c) {
  LOOM_ASSIGN(const Value x, less_zero(c, 0, 2, 0));
  LOOM_ASSIGN(const Value w, less_zero(c, 3, 5, 0));
  LOOM_ASSIGN(Value sums, conv_sums(c, x, w));
  if (c.has(8)) {
    LOOM_ASSIGN(const Value bias, c.as(8, OnnxType::i64));
    if (bias.count() != sums.dims[1]) return c.bad("a bias per filter is needed");
    Dims dims(sums.dims.size() - 1, 1);
    dims[0] = bias.count();
    LOOM_ASSIGN(sums, combine(c, Pair::add, sums, bias.seen_as(dims)));
  }
  const size_t scales[3] = {1, 4, 6};
  return requantized(c, sums, scales, 7, 1);
}

constexpr std::string_view kConvWords = "auto_pad dilations group kernel_shape pads strides";
constexpr Operator kQuantized[] = {
    {"", "MatMulInteger", matmul_integer, 2, 4, ""},
    {"", "QLinearMatMul", linear_matmul, 8, 8, ""},
    {"", "ConvInteger", conv_integer, 2, 4, kConvWords},
    {"", "QLinearConv", linear_conv, 8, 9, kConvWords},
};

}  // namespace

std::span<const Operator> quantized_operators() {
  return kQuantized;
}

}  // namespace loom::core::evaluate

// Sines and cosines, the general way: products and sums, because no layer computes them. A multiple
// k of pi is taken from x, which leaves an r of at most pi / 2; sin(x) is sin(r), negated if k is
// odd. Within 2e-7 for |x| below 100,000; of larger x the rounding of k pi is a larger part of a
// turn. See general.hpp.
#include <numbers>

#include "onnx/import/general/general.hpp"

namespace loom::core {
namespace {

// pi in three parts. Products of the first two with integers below 2^16 are exact.
constexpr double kPi[] = {3.140625, 0x1.f8p-11, 6.349878855738463e-06};

// Taylor's series of sin(r) / r in r^2, highest power first: the first term left out is below
// 7e-10.
constexpr double kSeries[] = {1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040,
                              1.0 / 120,        -1.0 / 6,        1.0};

}  // namespace

Status GraphImport::sine_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value x, stream(n, 0));
  const bool cosine = layer_of(n.op).function == "cos";
  // Half turns: a cosine is the sine of half a pi more, whose k is a half less.
  LOOM_ASSIGN(Value k, with_number(n, "mul", x, 1 / std::numbers::pi));
  if (cosine) {
    LOOM_ASSIGN(k, with_number(n, "add", k, 0.5));
  }
  LOOM_ASSIGN(k, rounded(n, k));
  LOOM_ASSIGN(Value odd, with_number(n, "mul", k, 0.5));
  LOOM_ASSIGN(const Value even, rounded(n, odd));
  LOOM_ASSIGN(odd, binary(n, "sub", odd, even));  // 0, or a half of either sign
  LOOM_ASSIGN(Value side, unary(n, "square", odd));
  LOOM_ASSIGN(side, with_number(n, "mul", side, -8));
  LOOM_ASSIGN(side, with_number(n, "add", side, 1));
  if (cosine) {
    LOOM_ASSIGN(k, with_number(n, "sub", k, 0.5));
  }
  Value r = x;
  for (const double part : kPi) {
    LOOM_ASSIGN(const Value turns, with_number(n, "mul", k, part));
    LOOM_ASSIGN(r, binary(n, "sub", r, turns));
  }
  LOOM_ASSIGN(const Value square, unary(n, "square", r));
  LOOM_ASSIGN(Value y, with_number(n, "mul", square, kSeries[0]));
  for (const double term : std::span(kSeries).subspan(1)) {
    if (term != kSeries[1]) {
      LOOM_ASSIGN(y, binary(n, "mul", y, square));
    }
    LOOM_ASSIGN(y, with_number(n, "add", y, term));
  }
  LOOM_ASSIGN(y, binary(n, "mul", y, r));
  LOOM_ASSIGN(y, binary(n, "mul", y, side));
  nodes_[static_cast<size_t>(y.at.node)].bound = 1;
  return define(n, std::move(y));
}

}  // namespace loom::core

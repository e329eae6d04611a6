// Upsample: resizes samples [C, one to three extents], axis after axis.
//   nearest  output i reads input floor(i in / out), in integers.
//   linear   between the two inputs around i (in - 1) / (out - 1) with align_corners;
//            else around (i + 1/2) in / out - 1/2, clamped to the input (bilinear, trilinear).
// The pattern of outputs repeats: with in / out = q / p in lowest terms, output i + p reads q
// inputs after those of output i. So an axis is p strided copies and p weights.
#include <algorithm>
#include <numeric>
#include <vector>

#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "ops/moves.hpp"

namespace loom::core {
namespace {

using namespace fields::upsample;

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  const int axes = in.rank() - 2;
  if (axes < 1 || axes > 3) {
    return invalid(
        cat("Upsample: input ", in.str(), " must be [batch, channels, one to three extents]"));
  }
  if (c.text(kMode) != "nearest" && c.text(kMode) != "linear") {
    return invalid(
        cat("Upsample: unknown mode '", printable(c.text(kMode)), "'; known are nearest, linear"));
  }
  const bool given = !c.list(kOutput).empty();
  const std::vector<int64_t>& list = c.list(given ? kOutput : kFactor);
  if (list.size() != 1 && list.size() != static_cast<size_t>(axes)) {
    return invalid(cat("Upsample: ", given ? "output" : "factor", " has ", list.size(),
                       " numbers, must have 1 or ", axes));
  }
  Shape out = in;
  for (int axis = 0; axis < axes; ++axis) {
    if (in[2 + axis] < 1) return invalid(cat("Upsample: input ", in.str(), " has no values"));
    const int64_t number = list[list.size() == 1 ? 0 : static_cast<size_t>(axis)];
    out[2 + axis] = given ? number : in[2 + axis] * number;
  }
  return out;
}

// Outputs phase, phase + period, .. take inputs first, first + step, .., plus the next input with
// factor `weight`.
struct Phase {
  int64_t first = 0;
  double weight = 0;
};
struct Phases {
  int64_t step = 1;
  std::vector<Phase> all;  // one per output until the pattern repeats
};

Phases nearest_phases(int64_t in, int64_t out) {
  const int64_t common = std::gcd(in, out), period = out / common;
  Phases phases{in / common, {}};
  for (int64_t i = 0; i < period; ++i) phases.all.push_back({i * in / out, 0});
  return phases;
}

// For an input with its first and last value doubled: its value j + 1 is input j.
Phases linear_phases(int64_t in, int64_t out, bool align) {
  const bool corners = align && out > 1;
  // Output i is at (i * a + b) / c, and b >= -c.
  const int64_t a = corners ? in - 1 : align ? 0 : 2 * in;
  const int64_t c = corners ? out - 1 : align ? 1 : 2 * out;
  const int64_t b = align ? 0 : in - out;
  const int64_t common = std::gcd(a, c), period = std::min(c / common, out);
  Phases phases{a / common, {}};
  for (int64_t i = 0; i < period; ++i) {
    const int64_t at = i * a + b + c;  // in units of 1 / c, from the preceding value
    phases.all.push_back({at / c, static_cast<double>(at % c) / static_cast<double>(c)});
  }
  return phases;
}

// The values of x [outer, n, inner] that the phases name: [outer, out, inner].
Result<Tensor> take(ForwardCall& call, const Tensor& x, int64_t n, int64_t out,
                    const Phases& phases, int64_t inner) {
  const int64_t outer = x.shape.count() / (n * inner);
  const auto period = static_cast<int64_t>(phases.all.size());
  LOOM_ASSIGN(const Tensor y, call.tensor(Shape{outer, out, inner}));
  for (int64_t i = 0; i < period; ++i) {
    const int64_t count = (out - i + period - 1) / period;
    const Walk from = Walk(Shape{outer, n, inner})
                          .sliced(1, phases.all[static_cast<size_t>(i)].first, count, phases.step);
    const Walk to = Walk(Shape{outer, out, inner}).sliced(1, i, count, period);
    LOOM_TRY(call.ops().copy(move(x, from, y, to)));
  }
  return y;
}

Result<Tensor> nearest_axis(ForwardCall& call, const Tensor& x, int64_t in, int64_t out,
                            int64_t inner) {
  if (out % in != 0) return take(call, x, in, out, nearest_phases(in, out), inner);
  // Repeats each value: one copy.
  const int64_t outer = x.shape.count() / (in * inner);
  LOOM_ASSIGN(const Tensor y, call.tensor(Shape{outer, out, inner}));
  const Walk from = Walk(Shape{outer * in, 1, inner}).expanded(1, out / in);
  LOOM_TRY(call.ops().copy(move(x, from, y, Walk(Shape{outer * in, out / in, inner}))));
  return y;
}

// The weights of outputs, each repeated `inner` times.
Result<Tensor> weights_of(ForwardCall& call, const Phases& phases, int64_t out, int64_t inner) {
  const auto period = static_cast<int64_t>(phases.all.size());
  const int64_t rounds = (out + period - 1) / period;
  LOOM_ASSIGN(const Tensor t, call.tensor(Shape{rounds, period}));
  for (int64_t i = 0; i < period; ++i) {
    const auto weight = static_cast<float>(phases.all[static_cast<size_t>(i)].weight);
    LOOM_TRY(call.ops().fill({slice_cols(t, i, 1), weight}));
  }
  LOOM_ASSIGN(const Tensor row, call.tensor(Shape{1, out * inner}));
  const Walk from = Walk(Shape{rounds * period, 1}).sliced(0, 0, out).expanded(1, inner);
  LOOM_TRY(call.ops().copy(move(t, from, row, Walk(Shape{out, inner}))));
  return row;
}

// y = x + weight * (next - x), over an input with doubled ends, so that every value has a next.
Result<Tensor> linear_axis(ForwardCall& call, const Tensor& x, int64_t in, int64_t out,
                           int64_t inner) {
  const int64_t outer = x.shape.count() / (in * inner), n = in + 2;
  const Phases phases = linear_phases(in, out, call.config().flag(kAlignCorners));
  LOOM_ASSIGN(const Tensor wide, call.tensor(Shape{outer, n, inner}));
  const Walk all(Shape{outer, in, inner}), to(Shape{outer, n, inner});
  LOOM_TRY(call.ops().copy(move(x, all, wide, to.sliced(1, 1, in))));
  LOOM_TRY(call.ops().copy(move(x, all.sliced(1, 0, 1), wide, to.sliced(1, 0, 1))));
  LOOM_TRY(call.ops().copy(move(x, all.sliced(1, in - 1, 1), wide, to.sliced(1, n - 1, 1))));
  LOOM_ASSIGN(const Tensor low, take(call, wide, n, out, phases, inner));
  Phases above = phases;
  for (Phase& phase : above.all) ++phase.first;
  // The last output with align_corners is the last value; its next value has weight 0.
  LOOM_ASSIGN(const Tensor next, take(call, wide, n, out, above, inner));
  LOOM_ASSIGN(const Tensor weights, weights_of(call, phases, out, inner));
  const auto rows = [&](const Tensor& t) { return as_matrix(t, outer, out * inner); };
  LOOM_ASSIGN(const Tensor step, call.like(low));
  LOOM_ASSIGN(const Tensor part, call.like(low));
  LOOM_ASSIGN(const Tensor y, call.like(low));
  LOOM_TRY(call.ops().binary({rows(next), rows(low), rows(step), BinaryKind::sub}));
  LOOM_TRY(call.ops().binary({rows(step), weights, rows(part), BinaryKind::mul}));
  LOOM_TRY(call.ops().binary({rows(low), rows(part), rows(y), BinaryKind::add}));
  return y;
}

Result<Tensor> forward(ForwardCall& call) {
  const LayerConfig& c = call.config();
  const Shape in = call.x().shape;
  LOOM_ASSIGN(const Shape shape, infer(c, in));
  const bool linear = c.text(kMode) == "linear";
  Tensor y = call.x();
  // The last axis first: the data is smallest at that point.
  int64_t inner = 1;
  for (int axis = in.rank() - 1; axis >= 2; inner *= shape[axis--]) {
    if (in[axis] == shape[axis]) continue;
    const auto stage = linear ? linear_axis : nearest_axis;
    LOOM_ASSIGN(y, stage(call, y, in[axis], shape[axis], inner));
  }
  y.shape = shape;
  y.row_stride = shape.last();
  return y;
}

LayerExample example() {
  return {Shape{2, 3, 4},
          {{LayerKind::cnn2, {{"channels", 2}, {"filters", 2}, {"padding", 1}}},
           {LayerKind::upsample, {{"mode", "linear"}, {"output", std::vector<int64_t>{5, 8}}}},
           sketch_dense(80, 3)},
          3};
}

}  // namespace

extern const LayerDef kUpsample;
const LayerDef kUpsample = {.kind = LayerKind::upsample,
                            .name = "Upsample",
                            .fields = kFields,
                            .infer = infer,
                            .forward = forward,
                            .example = example};

}  // namespace loom::core

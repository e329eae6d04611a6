// Scan: y_t = a_t y_(t-1) + b_t, value by value along time, with y_(-1) = 0. State-space models,
// linear attention and moving averages are built on this recurrence. Its two inputs are a and b,
// [B, T, ..] of one shape; the extents after time have `width` values. In a session the state
// starts where the last pass ended.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"

namespace loom::core {
namespace {

using namespace fields::scan;

Result<std::vector<Shape>> infer(const LayerConfig& c, std::span<const Shape> in) {
  const Shape& a = in[0];
  if (!(a == in[1])) {
    return invalid(cat("Scan: its factors ", a.str(), " and what is added, ", in[1].str(),
                       ", differ in shape"));
  }
  if (a.rank() < 3 || a.count() != a[0] * a[1] * c.integer(kWidth)) {
    return invalid(cat("Scan: input ", a.str(), " must be [batch, time, ..] with ",
                       c.integer(kWidth), " values a step"));
  }
  return std::vector<Shape>{a};
}

Result<Tensor> forward(ForwardCall& call) {
  const Tensor &factors = call.inputs()[0], &added = call.inputs()[1];
  const int64_t width = call.config().integer(kWidth), batch = call.sequences();
  const int64_t rows = factors.shape.count() / width;
  LOOM_ASSIGN(const Tensor y, call.like(factors));
  LOOM_ASSIGN(const Tensor products, call.tensor(Shape{rows, width}));
  const Tensor a = as_matrix(factors, rows, width), b = as_matrix(added, rows, width);
  const Tensor out = as_matrix(y, rows, width);
  Tensor before;
  if (call.stateful()) before = call.state();
  for (int64_t t = 0; t < rows / batch; ++t) {
    const Tensor here = step_rows(out, batch, t);
    if (before.empty()) {
      LOOM_TRY(call.ops().unary({step_rows(b, batch, t), here}));
    } else {
      const Tensor product = products.slice_rows(t * batch, batch);
      LOOM_TRY(call.ops().binary({step_rows(a, batch, t), before, product, BinaryKind::mul}));
      LOOM_TRY(call.ops().binary({product, step_rows(b, batch, t), here, BinaryKind::add}));
    }
    before = here;
  }
  if (call.stateful()) LOOM_TRY(call.ops().unary({before, call.state()}));
  return y;
}

StateSpec state(const LayerConfig& c) {
  return {0, 0, c.integer(kWidth)};
}

LayerExample example() {
  return {
      Shape{9, 5},
      {{LayerKind::graph,
        {{"wires", std::vector<int64_t>{1, -1, 0, 1, -1, 0, 2, 0, 0, 1, 0}},
         {"outputs", std::vector<int64_t>{2, 0}}},
        {sketch_dense(5, 3, "sigmoid"), sketch_dense(5, 3), {LayerKind::scan, {{"width", 3}}}}}},
      3};
}

}  // namespace

extern const LayerDef kScan;
const LayerDef kScan = {.kind = LayerKind::scan,
                        .name = "Scan",
                        .fields = kFields,
                        .infer = infer,
                        .forward = forward,
                        .min_inputs = 2,
                        .max_inputs = 2,
                        .state = state,
                        .example = example};

}  // namespace loom::core

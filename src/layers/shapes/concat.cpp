// Concat: joins its inputs along an axis. All other extents are equal.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "layers/spatial/axes.hpp"

namespace loom::core {
namespace {

using namespace fields::concat;
constexpr int kMaxParts = 4096;

Result<std::vector<Shape>> infer(const LayerConfig& c, std::span<const Shape> in) {
  LOOM_ASSIGN(const int axis, axis_from_front("Concat", c.integer(kAxis), in[0].rank()));
  Shape out = in[0];
  for (size_t i = 1; i < in.size(); ++i) {
    Shape same = in[i];
    if (same.rank() == out.rank()) same[axis] = out[axis];
    if (!(same == out)) {
      return invalid(cat("Concat: input ", i, " ", in[i].str(), " and input 0 ", in[0].str(),
                         " must agree in all axes but ", axis));
    }
    out[axis] += in[i][axis];
  }
  return std::vector<Shape>{out};
}

// The number of values after `axis`, and of those before it.
int64_t inner_count(const Shape& shape, int axis) {
  int64_t n = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) n *= shape[i];
  return n;
}
int64_t outer_count(const Shape& shape, int axis) {
  int64_t n = 1;
  for (int i = 0; i < axis; ++i) n *= shape[i];
  return n;
}

// Everything from the axis on is a row, so each part is columns of the result.
Result<Tensor> forward(ForwardCall& call) {
  std::vector<Shape> shapes;
  for (const Tensor& part : call.inputs()) shapes.push_back(part.shape);
  LOOM_ASSIGN(const std::vector<Shape> out, infer(call.config(), shapes));
  LOOM_ASSIGN(const int axis,
              axis_from_front("Concat", call.config().integer(kAxis), out[0].rank()));
  LOOM_ASSIGN(const Tensor y, call.tensor(out[0]));
  const int64_t outer = outer_count(out[0], axis), inner = inner_count(out[0], axis);
  const Tensor rows = as_matrix(y, outer, out[0][axis] * inner);
  int64_t first = 0;
  for (const Tensor& part : call.inputs()) {
    const int64_t width = part.shape[axis] * inner;
    LOOM_TRY(call.ops().unary({as_matrix(part, outer, width), slice_cols(rows, first, width)}));
    first += width;
  }
  return y;
}

LayerExample example() {
  return {Shape{5},
          {{LayerKind::graph,
            {{"wires", std::vector<int64_t>{1, -1, 0, 1, -1, 0, 3, 1, 0, -1, 0, 0, 0}},
             {"outputs", std::vector<int64_t>{2, 0}}},
            {sketch_dense(5, 3), sketch_dense(5, 2, "tanh"), {LayerKind::concat}}}}};
}

}  // namespace

extern const LayerDef kConcat;
const LayerDef kConcat = {.kind = LayerKind::concat,
                          .name = "Concat",
                          .fields = kFields,
                          .infer = infer,
                          .forward = forward,
                          .min_inputs = 1,
                          .max_inputs = kMaxParts,
                          .example = example};

}  // namespace loom::core

// Transpose: the axes of its input in another order, the batch included.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "layers/spatial/axes.hpp"

namespace loom::core {
namespace {

using namespace fields::transpose;
static_assert(kFields[kAxes].max == Shape::kMaxRank - 1);
// Empty unless it is set: the default is not a valid axis.

Result<std::vector<int>> order_of(const LayerConfig& c, int rank) {
  std::vector<int> order;
  for (const int64_t axis : c.list(kAxes)) {
    LOOM_ASSIGN(const int one, axis_from_front("Transpose", axis, rank));
    order.push_back(one);
  }
  for (int i = rank; order.size() < static_cast<size_t>(rank) && c.list(kAxes).empty();)
    order.push_back(--i);
  LOOM_TRY(axes_from_front("Transpose", c.list(kAxes), rank));
  if (static_cast<int>(order.size()) == rank) return order;
  return invalid(
      cat("Transpose: axes has ", order.size(), " numbers, its input has ", rank, " axes"));
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  LOOM_ASSIGN(const std::vector<int> order, order_of(c, in.rank()));
  Shape out = in;
  for (int i = 0; i < in.rank(); ++i) out[i] = in[order[static_cast<size_t>(i)]];
  return out;
}

Result<Tensor> forward(ForwardCall& call) {
  LOOM_ASSIGN(const std::vector<int> order, order_of(call.config(), call.x().shape.rank()));
  return permuted(call, call.x(), order);
}

LayerExample example() {
  return {Shape{3, 5},
          {{LayerKind::transpose, {{"axes", std::vector<int64_t>{0, 2, 1}}}}, sketch_dense(3, 4)}};
}

}  // namespace

extern const LayerDef kTranspose;
const LayerDef kTranspose = {.kind = LayerKind::transpose,
                             .name = "Transpose",
                             .fields = kFields,
                             .infer = infer,
                             .forward = forward,
                             .example = example};

}  // namespace loom::core

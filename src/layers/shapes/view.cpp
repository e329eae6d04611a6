// View: the values of its input in another shape, the batch included; their order in memory is
// unchanged. An extent of 0 copies that of the input at the same index. One extent may be -1: it is
// inferred.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "layers/spatial/axes.hpp"

namespace loom::core {
namespace {

using namespace fields::view;
// Empty unless it is set: the default is not a valid extent.

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  std::vector<int64_t> out = c.list(kShape);
  if (out.empty() || out.size() > static_cast<size_t>(Shape::kMaxRank)) {
    return invalid(
        cat("View: its shape has ", out.size(), " extents, must have 1 to ", Shape::kMaxRank));
  }
  int64_t known = 1, *left = nullptr;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == 0 && static_cast<int>(i) >= in.rank())
      return invalid(cat("View: extent ", i, " is 0, but ", in.str(), " has no such axis"));
    if (out[i] == 0) out[i] = in[static_cast<int>(i)];
    if (out[i] > 0) {
      if (known > in.count() / out[i])
        known = in.count() + 1;  // too many; no overflow
      else
        known *= out[i];
      continue;
    }
    if (left != nullptr) return invalid("View: only one extent of its shape may be -1");
    left = &out[i];
  }
  if (left != nullptr) *left = known > 0 && in.count() % known == 0 ? in.count() / known : 0;
  const Shape shape = shape_of(out);
  if (shape.count() == in.count()) return shape;
  return invalid(cat("View: ", in.str(), " does not have the number of values of ", shape.str()));
}

Result<Tensor> forward(ForwardCall& call) {
  LOOM_ASSIGN(const Shape shape, infer(call.config(), call.x().shape));
  Tensor y = call.x();
  y.shape = shape;
  y.row_stride = shape.last();
  return y;
}

LayerExample example() {
  return {Shape{3, 5},
          {sketch_dense(5, 4),
           {LayerKind::view, {{"shape", std::vector<int64_t>{0, 4, -1}}}},
           sketch_dense(3, 2)}};
}

}  // namespace

extern const LayerDef kView;
const LayerDef kView = {.kind = LayerKind::view,
                        .name = "View",
                        .fields = kFields,
                        .infer = infer,
                        .forward = forward,
                        .example = example};

}  // namespace loom::core

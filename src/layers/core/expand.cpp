// Expand: repeats extents of 1, as NumPy broadcasts. The result has the broadcast shape of the
// input and `shape`, aligned at the last axis. With a second input, a first extent of 1 becomes
// that of the second input: a constant for every sample of a batch.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "layers/shapes/broadcast.hpp"
#include "layers/spatial/axes.hpp"

namespace loom::core {
namespace {

using namespace fields::expand;

Result<Shape> shape_for(const LayerConfig& c, const Shape& in, const Shape* like) {
  const std::vector<int64_t>& extents = c.list(kShape);
  if (extents.size() > static_cast<size_t>(Shape::kMaxRank)) {
    return invalid(cat("Expand: its shape has ", extents.size(), " extents, must have at most ",
                       Shape::kMaxRank));
  }
  Result<Shape> out = broadcast_shape(in, shape_of(extents));
  if (!out.ok()) return invalid(cat("Expand: ", out.error().message));
  if (like != nullptr && (*out)[0] == 1) (*out)[0] = (*like)[0];
  return out;
}

Result<std::vector<Shape>> infer(const LayerConfig& c, std::span<const Shape> in) {
  LOOM_ASSIGN(const Shape out, shape_for(c, in[0], in.size() > 1 ? &in[1] : nullptr));
  return std::vector<Shape>{out};
}

Result<Tensor> forward(ForwardCall& call) {
  const bool two = call.inputs().size() > 1;
  LOOM_ASSIGN(const Shape shape,
              shape_for(call.config(), call.x().shape, two ? &call.inputs()[1].shape : nullptr));
  return expanded(call, call.x(), shape);
}

LayerExample example() {
  return {Shape{1, 5},
          {sketch_dense(5, 4),
           {LayerKind::expand, {{"shape", std::vector<int64_t>{1, 3, 1}}}},
           sketch_dense(4, 2)}};
}

}  // namespace

extern const LayerDef kExpand;
const LayerDef kExpand = {.kind = LayerKind::expand,
                          .name = "Expand",
                          .fields = kFields,
                          .infer = infer,
                          .forward = forward,
                          .max_inputs = 2,
                          .example = example};

}  // namespace loom::core

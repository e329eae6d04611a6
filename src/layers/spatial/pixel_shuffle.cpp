// PixelShuffle: channels become positions (Shi et al., 2016). It maps samples [C r^k, extents] to
// [C, extents r] over k = 1 or 2 axes: y[c, h r + i, w r + j] = x[c r^2 + i r + j, h, w]. inverse:
// the other direction (PyTorch's PixelUnshuffle).
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "ops/moves.hpp"

namespace loom::core {
namespace {

using namespace fields::pixel_shuffle;

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  const int axes = in.rank() - 2;
  if (axes < 1 || axes > 2) {
    return invalid(
        cat("PixelShuffle: input ", in.str(), " must be [batch, channels, one or two extents]"));
  }
  const int64_t r = c.integer(kFactor), cells = axes == 1 ? r : r * r;
  Shape out = in;
  if (!c.flag(kInverse) && in[1] % cells != 0) {
    return invalid(cat("PixelShuffle: the ", in[1], " channels of ", in.str(),
                       " must be a multiple of ", cells));
  }
  out[1] = c.flag(kInverse) ? in[1] * cells : in[1] / cells;
  for (int axis = 2; axis < in.rank(); ++axis) {
    if (c.flag(kInverse) && in[axis] % r != 0) {
      return invalid(
          cat("PixelShuffle: extent ", in[axis], " of ", in.str(), " must be a multiple of ", r));
    }
    out[axis] = c.flag(kInverse) ? in[axis] / r : in[axis] * r;
  }
  return out;
}

Result<Tensor> forward(ForwardCall& call) {
  const LayerConfig& c = call.config();
  LOOM_ASSIGN(const Shape shape, infer(c, call.x().shape));
  LOOM_ASSIGN(const Tensor y, call.tensor(shape));
  const int64_t r = c.integer(kFactor);
  const bool flat = shape.rank() == 3;
  // The side with many channels, and the side with many positions, both in the order of the latter.
  const Shape& deep = c.flag(kInverse) ? shape : call.x().shape;
  const Shape& wide = c.flag(kInverse) ? call.x().shape : shape;
  const int64_t maps = wide[0] * wide[1], height = flat ? 1 : deep[2], r0 = flat ? 1 : r;
  const int64_t width = deep.last();
  const int axes[] = {0, 3, 1, 4, 2};
  const Walk channels = Walk(Shape{maps, r0, r, height, width}).permuted(axes);
  const Walk positions(Shape{maps, height, r0, width, r});
  if (c.flag(kInverse)) {
    LOOM_TRY(call.ops().copy(move(call.x(), positions, y, channels)));
  } else {
    LOOM_TRY(call.ops().copy(move(call.x(), channels, y, positions)));
  }
  return y;
}

LayerExample example() {
  return {Shape{2, 3, 2},
          {{LayerKind::cnn2, {{"channels", 2}, {"filters", 8}, {"padding", 1}}},
           {LayerKind::pixel_shuffle},
           sketch_dense(48, 3)},
          3};
}

}  // namespace

extern const LayerDef kPixelShuffle;
const LayerDef kPixelShuffle = {.kind = LayerKind::pixel_shuffle,
                                .name = "PixelShuffle",
                                .fields = kFields,
                                .infer = infer,
                                .forward = forward,
                                .example = example};

}  // namespace loom::core

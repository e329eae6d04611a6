// Slice: part of its input along some axes: from `starts`, every `steps`-th position, up to but not
// including `ends`. As in Python, negative positions count from the end, and positions outside are
// clamped. If samples have lengths, reversing the steps (axis 1, from the last to the first)
// reverses the real steps of each sample.
#include <algorithm>

#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/shapes/ends.hpp"
#include "layers/spatial/axes.hpp"
#include "ops/moves.hpp"

namespace loom::core {
namespace {

using namespace fields::slice;

struct Part {
  Shape out;
  std::vector<int64_t> start, by;  // per axis of the input
};

Result<Part> part_of(const LayerConfig& c, const Shape& in) {
  Part part{in, std::vector<int64_t>(static_cast<size_t>(in.rank()), 0),
            std::vector<int64_t>(static_cast<size_t>(in.rank()), 1)};
  const std::vector<int64_t>& starts = c.list(kStarts);
  const std::vector<int64_t>& ends = c.list(kEnds);
  const std::vector<int64_t>& axes = c.list(kAxes);
  const std::vector<int64_t>& steps = c.list(kSteps);
  const size_t count = starts.size();
  if (ends.size() != count || (!axes.empty() && axes.size() != count) ||
      (steps.size() != count && steps.size() != 1)) {
    return invalid(cat("Slice: starts has ", count, " numbers; ends (", ends.size(), "), axes (",
                       axes.size(), ") and steps (", steps.size(), ") must agree with it"));
  }
  LOOM_TRY(axes_from_front("Slice", axes, in.rank()));
  for (size_t i = 0; i < count; ++i) {
    const int64_t named = axes.empty() ? static_cast<int64_t>(i) : axes[i];
    LOOM_ASSIGN(const int axis, axis_from_front("Slice", named, in.rank()));
    const int64_t extent = in[axis], by = steps[steps.size() == 1 ? 0 : i];
    if (by == 0) return invalid("Slice: a step of 0 goes nowhere");
    const auto within = [&](int64_t at) {
      const int64_t least = by > 0 ? 0 : -1, most = by > 0 ? extent : extent - 1;
      return std::clamp(at < 0 ? at + extent : at, least, most);
    };
    const int64_t from = within(starts[i]);
    // An end far below 0 means "past the first" for negative steps.
    const int64_t to = ends[i] < -extent ? (by > 0 ? 0 : -1) : within(ends[i]);
    const int64_t length = by > 0 ? (to - from + by - 1) / by : (from - to - by - 1) / -by;
    if (length < 1) {
      return invalid(cat("Slice: nothing is left of axis ", axis, " of ", in.str(), " from ",
                         starts[i], " to ", ends[i], " by ", by));
    }
    part.out[axis] = length;
    part.start[static_cast<size_t>(axis)] = from;
    part.by[static_cast<size_t>(axis)] = by;
  }
  return part;
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  LOOM_ASSIGN(const Part part, part_of(c, in));
  return part.out;
}

// Whether the slice only reverses the steps of samples with lengths.
bool turns_steps(ForwardCall& call, const Part& part) {
  const Shape& in = call.x().shape;
  const Tensor mask = call.mask();
  if (mask.empty() || in.rank() < 3 || !(part.out == in) || in[1] != mask.cols()) return false;
  for (size_t axis = 0; axis < part.by.size(); ++axis) {
    if (part.by[axis] != (axis == 1 ? -1 : 1)) return false;
  }
  return in[0] == mask.rows();
}

Result<Tensor> forward(ForwardCall& call) {
  const Tensor& x = call.x();
  LOOM_ASSIGN(const Part part, part_of(call.config(), x.shape));
  if (turns_steps(call, part)) {
    const int64_t rows = x.shape[0] * x.shape[1];
    LOOM_ASSIGN(Tensor y, reversed_rows(call, as_matrix(x, rows, x.shape.count() / rows)));
    y.shape = x.shape;
    y.row_stride = x.shape.last();
    return y;
  }
  LOOM_ASSIGN(const Tensor y, call.tensor(part.out));
  LOOM_TRY(call.ops().copy(
      slice(x, axis_extents(x.shape), part.start, part.by, y, axis_extents(part.out))));
  return y;
}

LayerExample example() {
  return {Shape{9},
          {sketch_dense(9, 7),
           {LayerKind::slice,
            {{"starts", std::vector<int64_t>{5}},
             {"ends", std::vector<int64_t>{0}},
             {"axes", std::vector<int64_t>{-1}},
             {"steps", std::vector<int64_t>{-2}}}}}};
}

}  // namespace

extern const LayerDef kSlice;
const LayerDef kSlice = {.kind = LayerKind::slice,
                         .name = "Slice",
                         .fields = kFields,
                         .infer = infer,
                         .forward = forward,
                         .example = example};

}  // namespace loom::core

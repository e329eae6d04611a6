// Pad: values around a sample. constant: `value`; reflect: the values inside the edge, which is not
// repeated; edge: the value at the edge; wrap: the values of the other end. It pads axis after
// axis, with a few copies each.
#include <algorithm>

#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "ops/moves.hpp"

namespace loom::core {
namespace {

using namespace fields::pad;

enum class PadMode : uint8_t { constant, reflect, edge, wrap };

Result<PadMode> pad_mode(const LayerConfig& c) {
  constexpr std::string_view kNames[] = {"constant", "reflect", "edge", "wrap"};
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (c.text(kMode) == kNames[i]) return static_cast<PadMode>(i);
  }
  return invalid(cat("Pad: unknown mode '", printable(c.text(kMode)),
                     "'; known are constant, reflect, edge, wrap"));
}

struct Ends {
  int64_t before = 0, after = 0;
};

// The values added to an axis of the input; lists name the last axes.
Ends ends_of(const LayerConfig& c, int rank, int axis) {
  const auto of = [&](int field) -> int64_t {
    const std::vector<int64_t>& list = c.list(field);
    const int64_t at = static_cast<int64_t>(list.size()) - (rank - axis);
    return at < 0 ? 0 : list[static_cast<size_t>(at)];
  };
  return {of(kBefore), of(kAfter)};
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  LOOM_ASSIGN(const PadMode mode, pad_mode(c));
  for (const int field : {kBefore, kAfter}) {
    if (static_cast<int>(c.list(field).size()) < in.rank()) continue;
    return invalid(cat("Pad: ", c.def->fields[static_cast<size_t>(field)].name, " has ",
                       c.list(field).size(), " numbers, a sample of ", in.str(), " has ",
                       std::max(in.rank() - 1, 0), " axes"));
  }
  Shape out = in;
  for (int axis = 1; axis < in.rank(); ++axis) {
    const Ends ends = ends_of(c, in.rank(), axis);
    out[axis] += ends.before + ends.after;
    const int64_t most = mode == PadMode::reflect                 ? in[axis] - 1
                         : mode == PadMode::wrap                  ? in[axis]
                         : mode == PadMode::edge && in[axis] == 0 ? 0
                                                                  : INT64_MAX;
    if (std::max(ends.before, ends.after) > most) {
      return invalid(cat("Pad: ", c.text(kMode), " can put no more than ", most,
                         " places around an extent of ", in[axis], ", not ",
                         std::max(ends.before, ends.after)));
    }
  }
  return out;
}

// All axes at once: the input is copied into the filled result.
Result<Tensor> pad_constant(ForwardCall& call, const Shape& shape) {
  const LayerConfig& c = call.config();
  const Tensor& x = call.x();
  LOOM_ASSIGN(const Tensor y, call.tensor(shape));
  LOOM_TRY(call.ops().fill({y, static_cast<float>(c.real(kValue))}));
  Walk to(shape);
  for (int axis = 1; axis < shape.rank(); ++axis) {
    to = to.sliced(axis, ends_of(c, shape.rank(), axis).before, x.shape[axis]);
  }
  LOOM_TRY(call.ops().copy(move(x, Walk(x.shape), y, to)));
  return y;
}

// Positions [to, to + count) of the middle axis of y [a, n', b] are copies of positions from, from
// + by, .. of x [a, n, b]. by 0 repeats one position.
struct Part {
  int64_t to, count, from, by;
};

Result<Tensor> pad_axis(ForwardCall& call, const Tensor& x, int axis, Ends ends, PadMode mode) {
  Shape shape = x.shape;
  const int64_t n = shape[axis];
  shape[axis] += ends.before + ends.after;
  LOOM_ASSIGN(const Tensor y, call.tensor(shape));
  const int64_t behind = ends.before + n;
  Part first{0, ends.before, 0, 0}, last{behind, ends.after, n - 1, 0};
  if (mode == PadMode::reflect) {
    first = {0, ends.before, ends.before, -1};
    last = {behind, ends.after, n - 2, -1};
  } else if (mode == PadMode::wrap) {
    first = {0, ends.before, n - ends.before, 1};
    last = {behind, ends.after, 0, 1};
  }
  for (const Part& part : {Part{ends.before, n, 0, 1}, first, last}) {
    if (part.count == 0) continue;
    const Walk from = Walk(x.shape).sliced(axis, part.from, part.count, part.by);
    const Walk to = Walk(shape).sliced(axis, part.to, part.count);
    LOOM_TRY(call.ops().copy(move(x, from, y, to)));
  }
  return y;
}

Result<Tensor> forward(ForwardCall& call) {
  const LayerConfig& c = call.config();
  LOOM_ASSIGN(const Shape shape, infer(c, call.x().shape));
  LOOM_ASSIGN(const PadMode mode, pad_mode(c));
  if (mode == PadMode::constant) return pad_constant(call, shape);
  Tensor y = call.x();
  for (int axis = 1; axis < shape.rank(); ++axis) {
    const Ends ends = ends_of(c, shape.rank(), axis);
    if (ends.before + ends.after == 0) continue;
    LOOM_ASSIGN(y, pad_axis(call, y, axis, ends, mode));
  }
  return y;
}

LayerExample example() {
  return {Shape{2, 5, 3},
          {{LayerKind::pad,
            {{"before", std::vector<int64_t>{2, 1}},
             {"after", std::vector<int64_t>{1, 2}},
             {"mode", "reflect"}}},
           {LayerKind::cnn2, {{"channels", 2}, {"filters", 3}}},
           sketch_dense(72, 3)},
          3};
}

}  // namespace

extern const LayerDef kPad;
const LayerDef kPad = {.kind = LayerKind::pad,
                       .name = "Pad",
                       .fields = kFields,
                       .infer = infer,
                       .forward = forward,
                       .example = example};

}  // namespace loom::core

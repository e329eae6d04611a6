// Sequential: children one after the other; without children it is the identity. Residual: y = x +
// scale F(x), F being its children in sequence. Without children it adds its second input, which is
// the input of the layer before it: [f, Residual] is f(x) + x. Neither owns weights.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"

namespace loom::core {
namespace {

Result<Shape> infer_sequence(const LayerConfig& c, const Shape& in) {
  Shape shape = in, before = in;
  for (size_t i = 0; i < c.children.size(); ++i) {
    Result<Shape> next = infer_after(c.children[i], shape, before);
    if (!next.ok()) {
      Error error = next.error();
      error.message = cat("child ", i, " of ", c.def->name, ": ", error.message);
      return error;
    }
    if (!c.children[i].disabled) before = shape;
    shape = *next;
  }
  return shape;
}

Result<Shape> infer_residual(const LayerConfig& c, const Shape& in) {
  LOOM_ASSIGN(const Shape out, infer_sequence(c, in));
  if (!(out == in)) {
    return invalid(cat("Residual: its children turn ", in.str(), " into ", out.str(),
                       "; the shape must stay the same"));
  }
  return out;
}

bool residual_wants_skip(const LayerConfig& c) {
  return c.children.empty();
}

Result<Tensor> forward_sequence(ForwardCall& call) {
  Tensor value = call.x(), before = call.x();
  const std::vector<LayerConfig>& children = call.config().children;
  for (size_t i = 0; i < children.size(); ++i) {
    const std::array<Tensor, 2> read = {value, before};
    LOOM_ASSIGN(const LayerOutputs next, call.child(i, inputs_after(children[i], read)));
    if (!children[i].disabled) before = value;
    value = next[0];
  }
  return value;
}

Result<Tensor> forward_residual(ForwardCall& call) {
  Tensor other = call.inputs().back();
  if (!call.config().children.empty()) {
    LOOM_ASSIGN(other, forward_sequence(call));
  }
  const auto scale = static_cast<float>(call.config().real(fields::residual::kScale));
  LOOM_ASSIGN(other, call.scaled(other, scale));
  LOOM_ASSIGN(const Tensor y, call.like(call.x()));
  LOOM_TRY(call.ops().binary({call.x(), other, y, BinaryKind::add}));
  return y;
}

LayerExample example_sequence() {
  return {Shape{5},
          {{LayerKind::sequential, {}, {sketch_dense(5, 9, "tanh"), sketch_dense(9, 4)}}}};
}

LayerExample example_residual() {
  return {Shape{5},
          {sketch_dense(5, 5, "tanh"),
           {LayerKind::residual},
           {LayerKind::residual, {}, {sketch_dense(5, 9, "relu"), sketch_dense(9, 5)}}}};
}

}  // namespace

extern const LayerDef kSequential;
const LayerDef kSequential = {.kind = LayerKind::sequential,
                              .name = "Sequential",
                              .container = true,
                              .ragged = true,
                              .infer = infer_sequence,
                              .forward = forward_sequence,
                              .example = example_sequence};

extern const LayerDef kResidual;
const LayerDef kResidual = {.kind = LayerKind::residual,
                            .name = "Residual",
                            .fields = fields::residual::kFields,
                            .container = true,
                            .ragged = true,
                            .infer = infer_residual,
                            .forward = forward_residual,
                            .wants_skip = residual_wants_skip,
                            .example = example_residual};

}  // namespace loom::core

// Sequential: children one after the other. Residual: y = x + F(x), F being its children in
// sequence. Neither owns weights. An empty Sequential is the identity; a Residual needs at least
// one child and an F that keeps the shape.
#include "base/text.hpp"
#include "layers/layer.hpp"

namespace loom {
namespace {

Result<Shape> infer_sequence(const LayerConfig& c, const Shape& in) {
  Shape shape = in;
  for (size_t i = 0; i < c.children.size(); ++i) {
    Result<Shape> next = infer_shape(c.children[i], shape);
    if (!next.ok()) {
      Error error = next.error();
      error.message = cat("child ", i, " of ", c.def->name, ": ", error.message);
      return error;
    }
    shape = *next;
  }
  return shape;
}

Result<Shape> infer_residual(const LayerConfig& c, const Shape& in) {
  if (c.children.empty()) return invalid("Residual needs at least one child to add to its input");
  LOOM_ASSIGN(const Shape out, infer_sequence(c, in));
  if (!(out == in)) {
    return invalid(cat("Residual: its children turn ", in.str(), " into ", out.str(),
                       "; the shape must stay the same"));
  }
  return out;
}

Status plan_sequence(PlanCall& call) {
  for (size_t i = 0; i < call.config().children.size(); ++i) LOOM_TRY(call.child(i));
  return {};
}

Status plan_residual(PlanCall& call) {
  LOOM_TRY(plan_sequence(call));
  call.keep_input();
  return {};
}

Result<Tensor> forward_sequence(ForwardCall& call) {
  Tensor value = call.x();
  for (size_t i = 0; i < call.config().children.size(); ++i) {
    LOOM_ASSIGN(value, call.child(i, value));
  }
  return value;
}

Result<Tensor> forward_residual(ForwardCall& call) {
  LOOM_ASSIGN(Tensor value, forward_sequence(call));
  LOOM_TRY(call.ops().binary({call.x(), value, value, BinaryKind::add}));
  return value;
}

}  // namespace

extern const LayerDef kSequential;
const LayerDef kSequential = {.kind = LayerKind::sequential,
                              .name = "Sequential",
                              .container = true,
                              .infer = infer_sequence,
                              .plan = plan_sequence,
                              .forward = forward_sequence};

extern const LayerDef kResidual;
const LayerDef kResidual = {.kind = LayerKind::residual,
                            .name = "Residual",
                            .container = true,
                            .infer = infer_residual,
                            .plan = plan_residual,
                            .forward = forward_residual};

}  // namespace loom

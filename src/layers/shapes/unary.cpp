// Unary: y = f(x), value by value: any activation, and the functions that graphs compute with.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "ops/activation.hpp"

namespace loom::core {
namespace {

using namespace fields::unary;

struct Named {
  std::string_view name;
  UnaryKind kind;
};
constexpr Named kMore[] = {{"exp", UnaryKind::exp},
                           {"log", UnaryKind::log},
                           {"sqrt", UnaryKind::sqrt},
                           {"neg", UnaryKind::neg},
                           {"abs", UnaryKind::abs},
                           {"square", UnaryKind::square},
                           {"reciprocal", UnaryKind::reciprocal},
                           {"step", UnaryKind::step}};

Result<UnaryKind> function_of(const LayerConfig& c) {
  const std::string_view name = c.text(kFunction);
  std::string known;
  for (const Named& f : kMore) {
    if (f.name == name) return f.kind;
    known += cat(", ", f.name);
  }
  const Result<Activation> activation = parse_activation(name);
  // Activations are the first kinds of unary functions.
  if (activation.ok()) return static_cast<UnaryKind>(*activation);
  return invalid(cat("Unary: ", activation.error().message, known));
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  LOOM_TRY(function_of(c));
  return in;
}

Result<Tensor> forward(ForwardCall& call) {
  LOOM_ASSIGN(const UnaryKind kind, function_of(call.config()));
  LOOM_ASSIGN(const Tensor y, call.like(call.x()));
  LOOM_TRY(call.ops().unary({call.x(), y, kind}));
  return y;
}

LayerExample example() {
  return {Shape{5}, {sketch_dense(5, 3), {LayerKind::unary, {{"function", "tanh"}}}}};
}

}  // namespace

extern const LayerDef kUnary;
const LayerDef kUnary = {.kind = LayerKind::unary,
                         .name = "Unary",
                         .fields = kFields,
                         .infer = infer,
                         .forward = forward,
                         .example = example};

}  // namespace loom::core

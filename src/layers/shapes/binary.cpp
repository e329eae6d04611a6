// Binary: y = a f b, value by value, of two or more inputs. Three and more associate to the left:
// (a f b) f c. Inputs of other shapes broadcast as in NumPy: axes align at the last one, and an
// extent of 1 repeats.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "layers/shapes/broadcast.hpp"

namespace loom::core {
namespace {

using namespace fields::binary;
constexpr int kMaxOperands = 64;

struct Function {
  std::string_view name;
  BinaryKind kind;
};
constexpr Function kFunctions[] = {{"add", BinaryKind::add}, {"sub", BinaryKind::sub},
                                   {"mul", BinaryKind::mul}, {"div", BinaryKind::div},
                                   {"max", BinaryKind::max}, {"min", BinaryKind::min}};

Result<BinaryKind> function_of(const LayerConfig& c) {
  std::vector<std::string> known;
  for (const Function& f : kFunctions) {
    if (f.name == c.text(kFunction)) return f.kind;
    known.emplace_back(f.name);
  }
  return invalid(cat("Binary: unknown function '", printable(c.text(kFunction)), "'; known are ",
                     join(known, ", ")));
}

Result<std::vector<Shape>> infer(const LayerConfig& c, std::span<const Shape> in) {
  LOOM_TRY(function_of(c));
  Shape out = in[0];
  for (const Shape& other : in.subspan(1)) {
    Result<Shape> both = broadcast_shape(out, other);
    if (!both.ok()) return invalid(cat("Binary ", c.text(kFunction), ": ", both.error().message));
    out = *both;
  }
  return std::vector<Shape>{out};
}

Result<Tensor> forward(ForwardCall& call) {
  LOOM_ASSIGN(const BinaryKind kind, function_of(call.config()));
  Tensor y = call.inputs()[0];
  for (const Tensor& other : call.inputs().subspan(1)) {
    LOOM_ASSIGN(y, broadcast_binary(call, y, other, kind));
  }
  return y;
}

LayerExample example() {
  return {Shape{5},
          {{LayerKind::graph,
            {{"wires", std::vector<int64_t>{1, -1, 0, 1, -1, 0, 2, 0, 0, 1, 0}},
             {"outputs", std::vector<int64_t>{2, 0}}},
            {sketch_dense(5, 3),
             sketch_dense(5, 3, "tanh"),
             {LayerKind::binary, {{"function", "sub"}}}}}}};
}

}  // namespace

extern const LayerDef kBinary;
const LayerDef kBinary = {.kind = LayerKind::binary,
                          .name = "Binary",
                          .fields = kFields,
                          .ragged = true,
                          .infer = infer,
                          .forward = forward,
                          .min_inputs = 2,
                          .max_inputs = kMaxOperands,
                          .example = example};

}  // namespace loom::core

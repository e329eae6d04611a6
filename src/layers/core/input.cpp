// Input: an additional input of the network: a second image, a state, the lengths of sequences. It
// reads a value of the batch, only for the number of samples, and returns the caller's tensor for
// its name. In a Graph it is a node among others; two nodes of one name are one input. An unset
// input is zeros, as in a training step.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "layers/spatial/axes.hpp"

namespace loom::core {
namespace {

using namespace fields::input;

InputSpec input(const LayerConfig& c) {
  return {std::string(c.text(kInput)), shape_of(c.list(kShape)), c.flag(kBatched), c.integer(kIds)};
}

Result<std::vector<Shape>> infer(const LayerConfig& c, std::span<const Shape> in) {
  const size_t most = static_cast<size_t>(Shape::kMaxRank) - (c.flag(kBatched) ? 1 : 0);
  const size_t extents = c.list(kShape).size();
  if (extents == 0 || extents > most)
    return invalid(cat("Input: its shape has ", extents, " extents, must have 1 to ", most));
  if (c.text(kInput).empty()) return invalid("Input: its name is empty; give `input` a name");
  return std::vector<Shape>{input(c).batch(in[0][0])};
}

Result<Tensor> forward(ForwardCall& call) {
  return call.extra_input();
}

LayerExample example() {
  // y = a(x) + input
  return {Shape{5},
          {{LayerKind::graph,
            {{"wires", std::vector<int64_t>{1, -1, 0, 1, -1, 0, 2, 0, 0, 1, 0}},
             {"outputs", std::vector<int64_t>{2, 0}}},
            {sketch_dense(5, 3),
             {LayerKind::input, {{"shape", std::vector<int64_t>{3}}}},
             {LayerKind::binary, {{"function", "add"}}}}}}};
}

}  // namespace

extern const LayerDef kInputLayer;
const LayerDef kInputLayer = {.kind = LayerKind::input,
                              .name = "Input",
                              .fields = kFields,
                              .infer = infer,
                              .forward = forward,
                              .input = input,
                              .example = example};

}  // namespace loom::core

// Constant: values that do not depend on the input: positions, tables, factors. It reads no values.
// They are a parameter, stored with the weights. Its shape has no batch: readers broadcast [1, T,
// D] or [D].
#include <algorithm>

#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "layers/spatial/axes.hpp"

namespace loom::core {
namespace {

using namespace fields::constant;

struct Fill {
  std::string_view name;
  Init init;
  int axes;  // the smallest rank that determines the index of a value
};
constexpr Fill kFills[] = {
    {"normal", Init::normal1, 1},        {"zeros", Init::zeros, 1}, {"ones", Init::ones, 1},
    {"sinusoidal", Init::sinusoidal, 2}, {"alibi", Init::alibi, 3}, {"causal", Init::causal, 2},
    {"log_range", Init::log_range, 1},
};

const Fill* fill_of(const LayerConfig& c) {
  const auto named = [&](const Fill& fill) { return fill.name == c.text(kFill); };
  const auto at = std::find_if(std::begin(kFills), std::end(kFills), named);
  return at == std::end(kFills) ? nullptr : at;
}

Result<std::vector<Shape>> infer(const LayerConfig& c, std::span<const Shape>) {
  const std::vector<int64_t>& extents = c.list(kShape);
  if (extents.empty() || extents.size() > static_cast<size_t>(Shape::kMaxRank)) {
    return invalid(cat("Constant: its shape has ", extents.size(), " extents, must have 1 to ",
                       Shape::kMaxRank));
  }
  const Fill* fill = fill_of(c);
  if (fill == nullptr) {
    return invalid(cat("Constant: unknown fill '", printable(c.text(kFill)),
                       "'; known are normal, zeros, ones, sinusoidal, alibi, causal, log_range"));
  }
  if (extents.size() < static_cast<size_t>(fill->axes)) {
    return invalid(cat("Constant: fill ", fill->name, " needs a shape of at least ", fill->axes,
                       " extents, not ", extents.size()));
  }
  return std::vector<Shape>{shape_of(extents)};
}

// One row of values, so that it stays f32 when matrices are packed.
void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  int64_t count = 1;
  for (const int64_t extent : c.list(kShape)) count *= extent;
  const Fill* fill = fill_of(c);
  ParamSpec spec{"value", Shape{count}, fill == nullptr ? Init::zeros : fill->init,
                 c.flag(kTrained)};
  spec.factor = c.real(kFactor);
  spec.table = shape_of(c.list(kShape));
  out.push_back(spec);
}

Result<Tensor> forward(ForwardCall& call) {
  Tensor y = call.param(0);
  y.shape = shape_of(call.config().list(kShape));
  y.row_stride = y.shape.last();
  return y;
}

LayerExample example() {
  return {Shape{5},
          {{LayerKind::graph,
            {{"wires", std::vector<int64_t>{1, -1, 0, 0, 2, 0, 0, 1, 0}},
             {"outputs", std::vector<int64_t>{2, 0}}},
            {sketch_dense(5, 3),
             {LayerKind::constant, {{"shape", std::vector<int64_t>{1, 3}}}},
             {LayerKind::binary, {{"function", "mul"}}}}}}};
}

}  // namespace

extern const LayerDef kConstant;
const LayerDef kConstant = {.kind = LayerKind::constant,
                            .name = "Constant",
                            .fields = kFields,
                            .params = params,
                            .infer = infer,
                            .forward = forward,
                            .min_inputs = 0,
                            .max_inputs = 0,
                            .example = example};

}  // namespace loom::core

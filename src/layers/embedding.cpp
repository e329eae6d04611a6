// Embedding: y[..., :] = table[id]. The input holds 32-bit ids; ids beyond the vocabulary are
// refused by the session that feeds them, before anything is recorded.
#include "base/text.hpp"
#include "layers/layer.hpp"

namespace loom {
namespace {

enum { kVocab, kWidth };
constexpr FieldDesc kFields[] = {
    {"vocab", FieldType::integer, 1, 1, 1 << 24, "", "rows of the table"},
    {"width", FieldType::integer, 1, 1, 1 << 24, "", "values per row"},
};

void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  out.push_back({"weight", Shape{c.integer(kVocab), c.integer(kWidth)}, Init::normal002});
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  if (in.rank() == 0 || in.rank() >= Shape::kMaxRank) {
    return invalid(cat("Embedding: input ", in.str(), " must have 1 to ", Shape::kMaxRank - 1,
                       " axes of ids"));
  }
  Shape out{in.count(), c.integer(kWidth)};
  if (in.rank() == 2) out = Shape{in[0], in[1], c.integer(kWidth)};
  return out;
}

Result<Tensor> forward(ForwardCall& call) {
  LOOM_ASSIGN(const Shape shape, infer(call.config(), call.x().shape));
  LOOM_ASSIGN(Tensor y, call.output(shape));
  LOOM_TRY(call.ops().gather_rows({call.param(0), call.x(), y}));
  return y;
}

}  // namespace

extern const LayerDef kEmbedding;
const LayerDef kEmbedding = {.kind = LayerKind::embedding,
                             .name = "Embedding",
                             .fields = kFields,
                             .params = params,
                             .infer = infer,
                             .forward = forward};

}  // namespace loom

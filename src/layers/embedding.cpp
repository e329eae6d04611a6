// Embedding: y[..., :] = act(scale * table[id]). The input holds 32-bit ids; ids beyond the
// vocabulary are refused by whoever feeds them, before anything runs. The row of the padding id is
// not trained. sparse: a training step works on the rows of its batch alone, whatever the
// vocabulary; it may not be shared, and optimizers keep what they know of a row until a batch names
// it again.
#include "base/text.hpp"
#include "layers/layer.hpp"
#include "ops/activation.hpp"

namespace loom::core {
namespace {

enum { kVocab, kWidth, kPadding, kActivation, kSparse, kScale };
constexpr FieldDesc kFields[] = {
    {"vocab", FieldType::integer, 1, 1, 1 << 24, "", "rows of the table", "vocab_size"},
    {"width", FieldType::integer, 1, 1, 1 << 24, "", "values per row", "embedding_dim"},
    {"padding_id", FieldType::integer, -1, -1, 1 << 24, "",
     "id whose row is not trained; -1: none"},
    {"activation", FieldType::text, 0, 0, 0, "linear", "function applied to the result"},
    {"sparse", FieldType::boolean, 0, 0, 1, "", "whether only rows that a batch names are updated"},
    {"scale", FieldType::real, 1, 1e-6, 1e6, "", "factor of the rows"},
};

void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  out.push_back({"weight", Shape{c.integer(kVocab), c.integer(kWidth)}, Init::normal002});
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  if (in.rank() == 0 || in.rank() >= Shape::kMaxRank) {
    return invalid(cat("Embedding: input ", in.str(), " must have 1 to ", Shape::kMaxRank - 1,
                       " axes of ids"));
  }
  LOOM_TRY(parse_activation(c.text(kActivation)));
  if (c.integer(kPadding) >= c.integer(kVocab)) {
    return invalid(cat("Embedding: padding_id ", c.integer(kPadding), " must be below vocab ",
                       c.integer(kVocab)));
  }
  Shape out{in.count(), c.integer(kWidth)};
  if (in.rank() == 2) out = Shape{in[0], in[1], c.integer(kWidth)};
  return out;
}

Result<Tensor> forward(ForwardCall& call) {
  LOOM_ASSIGN(const Shape shape, infer(call.config(), call.x().shape));
  LOOM_ASSIGN(const Activation activation, parse_activation(call.config().text(kActivation)));
  LOOM_ASSIGN(Tensor rows, call.tensor(shape));
  LOOM_TRY(call.ops().gather_rows({call.param(0), call.x(), rows, call.config().integer(kPadding),
                                   call.config().flag(kSparse)}));
  const auto scale = static_cast<float>(call.config().real(kScale));
  if (scale != 1.0f) {
    LOOM_ASSIGN(const Tensor factor, call.constant(scale));
    LOOM_ASSIGN(const Tensor scaled, call.tensor(shape));
    LOOM_TRY(call.ops().binary({rows, factor, scaled, BinaryKind::mul}));
    rows = scaled;
  }
  if (activation == Activation::linear) return rows;
  LOOM_ASSIGN(const Tensor y, call.tensor(shape));
  LOOM_TRY(call.ops().unary({rows, y, static_cast<UnaryKind>(activation)}));
  return y;
}

LayerExample example() {
  return {Shape{8}, {{LayerKind::embedding, {{"vocab", 19}, {"width", 6}}}, sketch_dense(6, 3)}, 4};
}

}  // namespace

extern const LayerDef kEmbedding;
const LayerDef kEmbedding = {.kind = LayerKind::embedding,
                             .name = "Embedding",
                             .fields = kFields,
                             .takes_ids = true,
                             .ragged = true,
                             .params = params,
                             .infer = infer,
                             .forward = forward,
                             .example = example};

}  // namespace loom::core

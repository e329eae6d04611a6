// Embedding: y[..., :] = act(scale * table[id] + learned[position]). The input holds 32-bit ids;
// callers reject ids past the vocabulary before anything runs. With `positions` there is a second
// table, one row per position in a sequence, which limits the length of sequences (GPT). The
// positions of a pass follow from its state, as in attention. The row of the padding id is not
// trained. sparse: a training step touches only the rows of its batch, whatever the vocabulary. A
// sparse table may not be shared, and optimizers keep the state of a row until a batch names it
// again.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "ops/activation.hpp"

namespace loom::core {
namespace {

using namespace fields::embedding;
enum { kTable, kLearned };

void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  out.push_back({"weight", Shape{c.integer(kVocab), c.integer(kWidth)}, Init::normal002});
  if (c.integer(kPositions) > 0) {
    out.push_back({"positions", Shape{c.integer(kPositions), c.integer(kWidth)}, Init::normal002});
  }
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  if (in.rank() == 0 || in.rank() >= Shape::kMaxRank) {
    return invalid(cat("Embedding: input ", in.str(), " must have 1 to ", Shape::kMaxRank - 1,
                       " axes of ids"));
  }
  LOOM_TRY(parse_activation(c.text(kActivation)));
  if (c.integer(kPaddingId) >= c.integer(kVocab)) {
    return invalid(cat("Embedding: padding_id ", c.integer(kPaddingId), " must be below vocab ",
                       c.integer(kVocab)));
  }
  Shape out{in.count(), c.integer(kWidth)};
  if (in.rank() == 2) out = Shape{in[0], in[1], c.integer(kWidth)};
  return out;
}

// The position of each row, as an id: from the pass when it runs, or the next positions of each of
// its sequences.
Result<Tensor> places_of(ForwardCall& call, int64_t rows) {
  LOOM_ASSIGN(const Tensor ids, call.ids(Shape{rows}));
  CopyArgs c;
  c.y = ids;
  if (const Tensor row_positions = call.row_positions(); !row_positions.empty()) {
    c.x = row_positions;
    c.rank = 1;
    c.extent[0] = rows;
    c.x_step[0] = row_positions.row_stride;
    c.y_step[0] = 1;
    c.x_first = 1;  // after the sequence
    LOOM_TRY(call.ops().copy(c));
    return ids;
  }
  c.x = call.position_table().numbers;
  const int64_t length = rows / call.sequences();
  if (call.first() + length > c.x.shape.count()) {
    return make_error(Code::out_of_range, cat("position ", call.first() + length - 1,
                                              " of a sequence is not among the ", c.x.shape.count(),
                                              " that the model has learned"));
  }
  c.rank = 2;
  c.extent[0] = call.sequences();
  c.extent[1] = length;
  c.x_step[1] = 1;
  c.y_step[0] = length;
  c.y_step[1] = 1;
  c.x_first = call.first();
  LOOM_TRY(call.ops().copy(c));
  return ids;
}

Result<Tensor> with_positions(ForwardCall& call, const Tensor& rows) {
  if (call.config().integer(kPositions) == 0) return rows;
  LOOM_ASSIGN(const Tensor ids, places_of(call, rows.rows()));
  LOOM_ASSIGN(const Tensor learned, call.like(rows));
  LOOM_ASSIGN(const Tensor y, call.like(rows));
  LOOM_TRY(call.ops().gather_rows({call.param(kLearned), ids, learned}));
  LOOM_TRY(call.ops().binary({rows, learned, y, BinaryKind::add}));
  return y;
}

RopeSpec rope(const LayerConfig& c) {
  RopeSpec spec;
  spec.numbers = c.integer(kPositions);
  return spec;
}

Result<Tensor> forward(ForwardCall& call) {
  LOOM_ASSIGN(const Shape shape, infer(call.config(), call.x().shape));
  LOOM_ASSIGN(const Activation activation, parse_activation(call.config().text(kActivation)));
  LOOM_ASSIGN(Tensor rows, call.tensor(shape));
  LOOM_TRY(
      call.ops().gather_rows({call.param(kTable), call.x(), rows, call.config().integer(kPaddingId),
                              call.config().flag(kSparse)}));
  const auto scale = static_cast<float>(call.config().real(kScale));
  if (scale != 1.0f) {
    LOOM_ASSIGN(const Tensor factor, call.constant(scale));
    LOOM_ASSIGN(const Tensor scaled, call.tensor(shape));
    LOOM_TRY(call.ops().binary({rows, factor, scaled, BinaryKind::mul}));
    rows = scaled;
  }
  LOOM_ASSIGN(rows, with_positions(call, rows));
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
                             .rope = rope,
                             .example = example};

}  // namespace loom::core

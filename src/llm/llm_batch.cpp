#include "llm/llm_batch.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom::core {
namespace {

class BatchReader final : public TokenReader {
 public:
  BatchReader(LlmBatch& batch, int64_t sequence) : batch_(batch), sequence_(sequence) {}
  // In passes of its own.
  Status feed(std::span<const TokenId> ids) override {
    const auto most = static_cast<size_t>(batch_.rows());
    do {
      const size_t count = std::min(most, ids.size());
      const LlmBatch::Piece piece{sequence_, ids.first(count), count == ids.size()};
      LOOM_TRY(batch_.feed({&piece, 1}));
      ids = ids.subspan(count);
    } while (!ids.empty());
    return {};
  }
  std::span<const float> logits() const override { return batch_.logits(sequence_); }
  std::span<const TokenId> fed() const override { return batch_.fed(sequence_); }
  int64_t position() const override { return batch_.position(sequence_); }
  int64_t context() const override { return batch_.context(); }
  void rewind(int64_t position) override { batch_.rewind(sequence_, position); }

 private:
  LlmBatch& batch_;
  int64_t sequence_;
};

}  // namespace

LlmBatch::LlmBatch(const LanguageModel& model, Session session, const LlmBatchOptions& options)
    : model_(&model),
      session_(std::move(session)),
      rows_(options.chunk),
      context_(options.context),
      states_(static_cast<size_t>(options.sequences)) {
  ids_.reserve(static_cast<size_t>(rows_));
  places_.reserve(static_cast<size_t>(rows_));
  for (State& state : states_) state.fed.reserve(static_cast<size_t>(context_));
}

Result<LlmBatch> LlmBatch::create(const LanguageModel& model, const Ops& ops, ThreadPool& pool,
                                  const LlmBatchOptions& wanted) {
  LlmBatchOptions options = wanted;
  if (options.sequences < 1 || options.sequences > 4096)
    return invalid(cat("a batch has 1 to 4096 sequences; got ", options.sequences));
  LOOM_ASSIGN(options.context, checked_context(model, options.context));
  const int64_t most = options.context * options.sequences;
  if (options.chunk <= 0) options.chunk = 256;
  options.chunk = std::clamp(options.chunk, options.sequences, most);
  SessionOptions s;
  s.sequences = options.sequences;
  s.max_positions = options.context;
  s.activations = options.activations;
  s.cache = options.cache;
  s.narrow_cell = model.body_cells();
  s.narrow_rows = options.sequences;
  s.ragged = true;
  LOOM_ASSIGN(Session session,
              Session::create(model.network(), ops, pool, Shape{1, options.chunk}, s));
  return LlmBatch(model, std::move(session), options);
}

Status LlmBatch::check(std::span<const Piece> pieces) {
  for (State& state : states_) state.named = false;
  int64_t rows = 0;
  for (const Piece& piece : pieces) {
    if (piece.sequence < 0 || piece.sequence >= sequences()) {
      return make_error(Code::out_of_range,
                        cat("there is no sequence ", piece.sequence, " among ", sequences()));
    }
    State& state = states_[static_cast<size_t>(piece.sequence)];
    if (state.named || piece.ids.empty()) {
      return invalid(
          cat("sequence ", piece.sequence, " must read one piece of a pass, of a token or more"));
    }
    state.named = true;
    const auto count = static_cast<int64_t>(piece.ids.size());
    rows += count;
    LOOM_TRY(check_tokens(*model_, piece.ids));
    LOOM_TRY(check_room(position(piece.sequence), count, context_));
  }
  if (rows <= rows_) return {};
  return invalid(cat("a pass of ", rows, " tokens; this batch was made for ", rows_));
}

// The rows whose logits are wanted come first, so that the head finds them side by side: the order
// of rows means nothing, as each has its place. Returns how many they are.
int64_t LlmBatch::lay_out(std::span<const Piece> pieces) {
  ids_.clear();
  places_.clear();
  const auto add = [&](const Piece& piece, size_t i) {
    ids_.push_back(piece.ids[i]);
    const int64_t position = this->position(piece.sequence) + static_cast<int64_t>(i);
    places_.push_back({static_cast<int32_t>(piece.sequence), static_cast<int32_t>(position)});
  };
  for (const Piece& piece : pieces) {
    if (piece.logits) add(piece, piece.ids.size() - 1);
  }
  const auto wanted = static_cast<int64_t>(ids_.size());
  for (const Piece& piece : pieces) {
    const size_t rest = piece.ids.size() - (piece.logits ? 1 : 0);
    for (size_t i = 0; i < rest; ++i) add(piece, i);
  }
  return wanted;
}

// Logits of the first `wanted` rows, or nothing where there are none.
Result<Tensor> LlmBatch::pass(int64_t wanted) {
  const auto count = static_cast<int64_t>(ids_.size());
  Tensor ids;
  ids.dtype = DType::i32;
  ids.shape = Shape{1, count};
  ids.row_stride = count;
  ids.data = reinterpret_cast<std::byte*>(ids_.data());
  LOOM_TRY(session_.place(places_));
  LOOM_ASSIGN(const Tensor logits, session_.forward_ragged(ids, wanted));
  if (wanted == 0) return logits;
  if (logits.rows() == wanted && logits.cols() == model_->config().vocab_size) return logits;
  return bad_file(cat("its network is no decoder: the head gives ", logits.shape.str()),
                  model_->source());
}

Status LlmBatch::feed(std::span<const Piece> pieces) {
  LOOM_TRY(check(pieces));
  if (pieces.empty()) return {};
  for (State& state : states_) state.logits = {};
  const int64_t wanted = lay_out(pieces);
  LOOM_ASSIGN(const Tensor logits, pass(wanted));
  int64_t row = 0;
  for (const Piece& piece : pieces) {
    State& state = states_[static_cast<size_t>(piece.sequence)];
    state.fed.insert(state.fed.end(), piece.ids.begin(), piece.ids.end());
    if (piece.logits) state.logits = {logits.f32_row(row++), static_cast<size_t>(logits.cols())};
  }
  return {};
}

void LlmBatch::rewind(int64_t sequence, int64_t position) {
  std::vector<TokenId>& fed = states_[static_cast<size_t>(sequence)].fed;
  fed.resize(std::min(fed.size(), static_cast<size_t>(std::max<int64_t>(position, 0))));
}

std::unique_ptr<TokenReader> LlmBatch::reader(int64_t sequence) {
  return std::make_unique<BatchReader>(*this, sequence);
}

}  // namespace loom::core

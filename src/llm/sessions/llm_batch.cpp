#include "llm/sessions/llm_batch.hpp"

#include <algorithm>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core {
namespace {

class BatchReader final : public TokenReader {
 public:
  BatchReader(LlmBatch& batch, int64_t sequence) : batch_(batch), sequence_(sequence) {}
  // Reads tokens in separate passes.
  Status feed(std::span<const TokenId> ids) override {
    const auto most = static_cast<size_t>(batch_.rows());
    do {
      const size_t count = std::min(most, ids.size());
      const LlmBatch::Piece piece{sequence_, ids.first(count), count == ids.size() ? 1 : 0};
      LOOM_TRY(batch_.feed({&piece, 1}));
      ids = ids.subspan(count);
    } while (!ids.empty());
    return {};
  }
  std::span<const float> logits() const override { return batch_.logits(sequence_); }
  std::span<const float> logits_at(int64_t position) const override {
    return batch_.logits_at(sequence_, position);
  }
  std::span<const TokenId> fed() const override { return batch_.fed(sequence_); }
  int64_t position() const override { return batch_.position(sequence_); }
  int64_t context() const override { return batch_.context(); }
  int64_t vocab() const override { return batch_.vocab(); }
  void rewind(int64_t position) override { batch_.rewind(sequence_, position); }

 private:
  LlmBatch& batch_;
  int64_t sequence_;
};

}  // namespace

namespace {

std::vector<std::span<int32_t>> page_tables(Session& session, int64_t sequences) {
  std::vector<std::span<int32_t>> tables;
  for (int64_t s = 0; s < sequences; ++s) tables.push_back(session.page_table(s));
  return tables;
}

int64_t pages_for(const LlmBatchOptions& options) {
  const int64_t one = ceil_div(options.context, PagePool::kPage);
  if (options.positions == 0) return one * options.sequences;
  return std::min(ceil_div(options.positions, PagePool::kPage), one * options.sequences);
}

}  // namespace

LlmBatch::LlmBatch(const LanguageModel& model, Session session, ThreadPool& threads,
                   const LlmBatchOptions& options)
    : model_(&model),
      session_(std::move(session)),
      threads_(&threads),
      options_(options),
      rows_(options.chunk),
      states_(static_cast<size_t>(options.sequences)),
      pool_(pages_for(options), page_tables(session_, options.sequences)),
      progress_(session_, options.sequences) {
  ids_.reserve(static_cast<size_t>(rows_));
  places_.reserve(static_cast<size_t>(rows_));
  for (State& state : states_) state.fed.reserve(static_cast<size_t>(options.context));
}

Result<LlmBatch> LlmBatch::create(const LanguageModel& model, const Ops& ops, ThreadPool& pool,
                                  const LlmBatchOptions& requested) {
  LlmBatchOptions options = requested;
  if (options.sequences < 1 || options.sequences > 4096)
    return invalid(cat("a batch has 1 to 4096 sequences; got ", options.sequences));
  LOOM_ASSIGN(options.context, checked_context(model, options.context));
  if (options.positions != 0 && options.positions < options.context) {
    return invalid(cat("keys and values of ", options.positions,
                       " positions are to be kept, and a sequence alone may have ",
                       options.context));
  }
  const int64_t most = options.context * options.sequences;
  if (options.chunk <= 0) options.chunk = 256;
  options.chunk = std::clamp(options.chunk, options.sequences, most);
  options.guesses = std::clamp<int64_t>(options.guesses, 0, options.chunk / options.sequences - 1);
  LOOM_ASSIGN(Session session, make_session(model, ops, pool, options));
  return LlmBatch(model, std::move(session), pool, options);
}

Result<Session> LlmBatch::make_session(const LanguageModel& model, const Ops& ops,
                                       ThreadPool& threads, const LlmBatchOptions& options) {
  SessionOptions s;
  s.sequences = options.sequences;
  s.max_positions = options.context;
  s.activations = options.activations;
  s.cache = options.cache;
  s.logits_from_cell = model.body_cells();
  s.num_logits_rows = options.sequences * (1 + options.guesses);
  s.ragged = true;
  s.pages = pages_for(options);
  return Session::create(model.network(), ops, threads, Shape{1, options.chunk}, s);
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
    if (piece.logits < 0 || piece.logits > std::min(count, 1 + options_.guesses)) {
      return invalid(cat("logits of ", piece.logits, " of ", count,
                         " tokens; this batch was made for ", 1 + options_.guesses));
    }
    rows += count;
    LOOM_TRY(check_tokens(*model_, piece.ids));
    LOOM_TRY(check_room(position(piece.sequence), count, context()));
  }
  if (rows <= rows_) return {};
  return invalid(cat("a pass of ", rows, " tokens; this batch was made for ", rows_));
}

// Rows whose logits are needed come first, so that the head finds them contiguous. The order of
// rows has no meaning, because each has its position. Returns the number of such rows.
int64_t LlmBatch::lay_out(std::span<const Piece> pieces) {
  ids_.clear();
  places_.clear();
  const auto add = [&](const Piece& piece, size_t i) {
    ids_.push_back(piece.ids[i]);
    const int64_t position = this->position(piece.sequence) + static_cast<int64_t>(i);
    places_.push_back({static_cast<int32_t>(piece.sequence), static_cast<int32_t>(position)});
  };
  const auto rest = [](const Piece& piece) {
    return piece.ids.size() - static_cast<size_t>(piece.logits);
  };
  for (const Piece& piece : pieces) {
    for (size_t i = rest(piece); i < piece.ids.size(); ++i) add(piece, i);
  }
  const auto requested = static_cast<int64_t>(ids_.size());
  for (const Piece& piece : pieces) {
    for (size_t i = 0; i < rest(piece); ++i) add(piece, i);
  }
  return requested;
}

// Logits of the first `wanted` rows, or an empty tensor if there are none.
Result<Tensor> LlmBatch::pass(int64_t requested) {
  const auto count = static_cast<int64_t>(ids_.size());
  Tensor ids;
  ids.dtype = DType::i32;
  ids.shape = Shape{1, count};
  ids.row_stride = count;
  ids.data = reinterpret_cast<std::byte*>(ids_.data());
  LOOM_TRY(session_.set_row_positions(places_));
  LOOM_ASSIGN(const Tensor logits, session_.forward_ragged(ids, requested));
  if (requested == 0) return logits;
  if (logits.rows() == requested && logits.cols() == model_->config().vocab_size) return logits;
  return bad_file(cat("its network is not a decoder: the head gives ", logits.shape.str()),
                  model_->source());
}

// Allocates pages for the next tokens of a sequence.
Status LlmBatch::make_room(int64_t sequence, int64_t count) {
  const int64_t from = position(sequence);
  copies_.clear();
  const bool room = pool_.write(sequence, from, from + count, copies_);
  for (const PagePool::Copy& copy : copies_) LOOM_TRY(session_.copy_page(copy.from, copy.to));
  if (room) return {};
  return make_error(
      Code::out_of_range,
      cat("there is no memory for positions ", from, " to ", from + count - 1, " of sequence ",
          sequence, ": ", pool_.pages() * PagePool::kPage, " are kept for all sequences"));
}

bool LlmBatch::may_move_to_host() const {
  return options_.device_failed && session_.recorder().ops().device != nullptr;
}

// The host has the weights too; keys and values were on the device only.
Status LlmBatch::move_to_host() {
  const Ops& host = host_ops(session_.recorder().ops());
  LOOM_ASSIGN(Session session, make_session(*model_, host, *threads_, options_));
  pool_.move_to(page_tables(session, sequences()));
  session_ = std::move(session);
  progress_.reset();
  for (State& state : states_) state.logits = {};
  for (int64_t s = 0; s < sequences(); ++s) LOOM_TRY(read_again(s, 0));
  return {};
}

// Writes into the pages of the sequence; pages shared with other sequences get the same values
// again.
Status LlmBatch::read_again(int64_t sequence, int64_t from) {
  const std::span<const TokenId> fed = this->fed(sequence);
  for (auto at = static_cast<size_t>(from); at < fed.size(); at += static_cast<size_t>(rows_)) {
    const auto piece = fed.subspan(at, std::min(fed.size() - at, static_cast<size_t>(rows_)));
    ids_.assign(piece.begin(), piece.end());
    places_.clear();
    for (size_t i = 0; i < piece.size(); ++i)
      places_.push_back({static_cast<int32_t>(sequence), static_cast<int32_t>(at + i)});
    LOOM_TRY(pass(0));
    session_.keep_states();
    progress_.advance(session_, sequence, static_cast<int64_t>(piece.size()));
  }
  return {};
}

// Reads the tokens between the recurrent states and the positions of sequences.
Status LlmBatch::catch_up(std::span<const Piece> pieces) {
  if (!progress_.active()) return {};
  for (const Piece& piece : pieces) {
    const int64_t from = progress_.position(piece.sequence);
    LOOM_TRY(read_again(piece.sequence, from));
    read_again_ += position(piece.sequence) - from;
  }
  return {};
}

Status LlmBatch::feed(std::span<const Piece> pieces) {
  LOOM_TRY(check(pieces));
  if (pieces.empty()) return {};
  const Status status = read_pieces(pieces);
  if (status.ok() || status.error().code == Code::out_of_range || !may_move_to_host())
    return status;
  LOOM_TRY(move_to_host());
  LOOM_TRY(read_pieces(pieces));
  options_.device_failed(status.error());
  return {};
}

Status LlmBatch::read_pieces(std::span<const Piece> pieces) {
  for (const Piece& piece : pieces) {
    const Status room = make_room(piece.sequence, static_cast<int64_t>(piece.ids.size()));
    if (room.ok()) continue;
    for (const Piece& other : pieces) pool_.rewind(other.sequence, position(other.sequence));
    return room;
  }
  for (State& state : states_) {
    state.logits = {};
    state.rows = {};
  }
  LOOM_TRY(catch_up(pieces));
  const int64_t requested = lay_out(pieces);
  LOOM_ASSIGN(const Tensor logits, pass(requested));
  session_.keep_states();
  int64_t row = 0;
  for (const Piece& piece : pieces) {
    State& state = states_[static_cast<size_t>(piece.sequence)];
    state.fed.insert(state.fed.end(), piece.ids.begin(), piece.ids.end());
    pool_.read(piece.sequence, state.fed);
    progress_.advance(session_, piece.sequence, static_cast<int64_t>(piece.ids.size()));
    if (piece.logits == 0) continue;
    state.rows = logits.slice_rows(row, piece.logits);
    state.first_row = position(piece.sequence) - piece.logits;
    state.logits = logits_at(piece.sequence, position(piece.sequence) - 1);
    row += piece.logits;
  }
  return {};
}

std::span<const float> LlmBatch::logits_at(int64_t sequence, int64_t position) const {
  const State& state = at(sequence);
  const int64_t row = position - state.first_row;
  if (state.rows.empty() || row < 0 || row >= state.rows.rows()) return {};
  return {state.rows.f32_row(row), static_cast<size_t>(state.rows.cols())};
}

void LlmBatch::rewind(int64_t sequence, int64_t position) {
  State& state = states_[static_cast<size_t>(sequence)];
  std::vector<TokenId>& fed = state.fed;
  fed.resize(std::min(fed.size(), static_cast<size_t>(std::max<int64_t>(position, 0))));
  pool_.rewind(sequence, this->position(sequence));
  progress_.rewind(session_, sequence, this->position(sequence));
  const std::span<const float> known = logits_at(sequence, this->position(sequence) - 1);
  if (!known.empty()) state.logits = known;
}

// Pages of other sequences have no recurrent states.
int64_t LlmBatch::reuse_state(int64_t sequence, std::span<const TokenId> tokens) {
  const std::span<const TokenId> known = fed(sequence);
  const auto end = std::ranges::mismatch(known, tokens).in1;
  rewind(sequence, end - known.begin());
  if (progress_.position(sequence) > 0) return position(sequence);
  park(sequence);
  return 0;
}

int64_t LlmBatch::reuse(int64_t sequence, std::span<const TokenId> tokens) {
  if (progress_.active()) return reuse_state(sequence, tokens);
  park(sequence);
  const auto most = static_cast<size_t>(context());
  const int64_t count = pool_.adopt(sequence, tokens.first(std::min(tokens.size(), most)));
  const auto found = tokens.first(static_cast<size_t>(count));
  states_[static_cast<size_t>(sequence)].fed.assign(found.begin(), found.end());
  return count;
}

void LlmBatch::fork(int64_t from, int64_t to) {
  rewind(to, 0);
  pool_.share(from, to);
  State& state = states_[static_cast<size_t>(to)];
  state.fed = states_[static_cast<size_t>(from)].fed;
  state.logits = {};
  state.rows = {};
  if (!progress_.active()) return;
  // Without its states, the copy reads its tokens again.
  const bool copied = session_.copy_states(from, to).ok();
  progress_.set(to, copied ? progress_.position(from) : 0);
}

void LlmBatch::park(int64_t sequence) {
  State& state = states_[static_cast<size_t>(sequence)];
  pool_.release(sequence, state.fed);
  progress_.rewind(session_, sequence, 0);
  state.fed.clear();
  state.logits = {};
  state.rows = {};
}

void LlmBatch::erase(int64_t sequence) {
  State& state = states_[static_cast<size_t>(sequence)];
  pool_.erase(sequence);
  progress_.rewind(session_, sequence, 0);
  state.fed.clear();
  state.logits = {};
  state.rows = {};
}

StateTarget LlmBatch::target(int64_t sequence) const {
  return {model_,
          options_.cache,
          options_.activations,
          context(),
          session_.caches(),
          pool_.table(sequence),
          session_.recorder().ops().device != nullptr,
          session_.states_of(sequence),
          progress_.position(sequence)};
}

std::span<const int32_t> LlmBatch::pages_of(int64_t sequence) const {
  return pool_.table(sequence).first(static_cast<size_t>(pool_.used(sequence)));
}

Status LlmBatch::save_state(int64_t sequence, const FileRef& path) const {
  LOOM_TRY(session_.fetch_pages(pages_of(sequence)));
  LOOM_TRY(session_.fetch_states(sequence));
  return write_state(path, target(sequence), fed(sequence), logits(sequence));
}

Status LlmBatch::load_state(int64_t sequence, const FileRef& path) {
  LOOM_ASSIGN(StateFile file, read_state(path, target(sequence)));
  State& state = states_[static_cast<size_t>(sequence)];
  park(sequence);
  LOOM_TRY(make_room(sequence, static_cast<int64_t>(file.fed.size())));
  restore_caches(file, target(sequence));
  LOOM_TRY(session_.send_pages(pages_of(sequence)));
  LOOM_TRY(session_.send_states(sequence));
  progress_.set(sequence, file.state_position);
  state.fed.assign(file.fed.begin(), file.fed.end());
  pool_.read(sequence, state.fed);
  state.rows = {};
  state.loaded = std::move(file.logits);
  state.logits = state.loaded;
  return {};
}

std::unique_ptr<TokenReader> LlmBatch::reader(int64_t sequence) {
  return std::make_unique<BatchReader>(*this, sequence);
}

void LlmBatch::set_profile(OpProfile* profile) {
  session_.recorder().set_profile(profile);
}

}  // namespace loom::core

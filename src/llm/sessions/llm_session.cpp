#include "llm/sessions/llm_session.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/text.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core {
namespace {

// Tokens that a device samples before the host reads them: the first number and the maximum. It is
// never one, so that timing never moves sampling to the host.
constexpr int64_t kFirstBatch = 8, kBatch = 64;
constexpr double kBatchSeconds = 0.05;
// Layout of drawn_: the fed token and the found ones, then values and ids of candidates.
constexpr int64_t kValuesAt = (kBatch + 1) * 4;
constexpr int64_t kIdsAt = kValuesAt + DeviceSampling::kMaxTopK * 4;
constexpr int64_t kDrawnBytes = kIdsAt + DeviceSampling::kMaxTopK * 4;

}  // namespace

LlmSession::LlmSession(const LanguageModel& model, Session session, ThreadPool& pool,
                       const LlmSessionOptions& options)
    : model_(&model),
      session_(std::move(session)),
      pool_(&pool),
      options_(options),
      progress_(session_, 1),
      batch_(kFirstBatch) {
  ids_.resize(static_cast<size_t>(options.chunk));
  places_.resize(static_cast<size_t>(options.chunk));
  fed_.reserve(static_cast<size_t>(options.context));
}

Result<LlmSession> LlmSession::create(const LanguageModel& model, const Ops& ops, ThreadPool& pool,
                                      const LlmSessionOptions& requested) {
  LlmSessionOptions options = requested;
  LOOM_ASSIGN(options.context, checked_context(model, options.context));
  // 256 rows do not fill a device, which waits for each pass.
  if (options.chunk <= 0) options.chunk = ops.device != nullptr ? 2048 : 256;
  options.chunk = std::clamp<int64_t>(options.chunk, 1, options.context);
  if (options.head_rows <= 0) options.head_rows = ops.device != nullptr ? 1 : 16;
  options.head_rows = std::clamp<int64_t>(options.head_rows, 1, options.chunk);
  LOOM_ASSIGN(Session session, make_session(model, ops, pool, options));
  LlmSession made(model, std::move(session), pool, options);
  LOOM_ASSIGN(made.drawn_, Buffer::allocate(kDrawnBytes));
  const MemoryRange range = range_of(made.drawn_);
  LOOM_ASSIGN(made.drawn_attached_,
              Attached::attach(ops.device, {&range, 1}, MemoryUse::scratch, false));
  return made;
}

Result<Session> LlmSession::make_session(const LanguageModel& model, const Ops& ops,
                                         ThreadPool& pool, const LlmSessionOptions& options) {
  SessionOptions s;
  s.max_positions = options.context;
  s.activations = options.activations;
  s.cache = options.cache;
  s.logits_from_cell = model.body_cells();
  s.num_logits_rows = options.head_rows;
  const Shape most{1, options.chunk};
  if (ops.device != nullptr) return Session::create(model.network(), ops, pool, most, s);
  // Rows with places are of one sequence too, and their pass is recorded once. Recurrent layers do
  // not support places.
  SessionOptions placed = s;
  placed.ragged = true;
  Result<Session> made = Session::create(model.network(), ops, pool, most, placed);
  if (made.ok() || made.error().code != Code::unsupported) return made;
  return Session::create(model.network(), ops, pool, most, s);
}

Status LlmSession::check(std::span<const TokenId> ids) const {
  LOOM_TRY(check_tokens(*model_, ids));
  return check_room(session_.position(), static_cast<int64_t>(ids.size()), options_.context);
}

namespace {

Tensor ids_at(std::byte* data, int64_t count) {
  Tensor ids;
  ids.dtype = DType::i32;
  ids.shape = Shape{1, count};
  ids.row_stride = count;
  ids.data = data;
  return ids;
}

}  // namespace

Tensor LlmSession::ids_of(std::span<const TokenId> piece) {
  std::copy(piece.begin(), piece.end(), ids_.begin());
  return ids_at(reinterpret_cast<std::byte*>(ids_.data()), static_cast<int64_t>(piece.size()));
}

// Sets the positions of the next pass's rows: from position() on, with the last one first if asked.
Status LlmSession::set_row_positions(int64_t count, bool last_first) {
  const auto first = static_cast<int32_t>(position());
  const auto shift = static_cast<int32_t>(last_first ? count - 1 : 0);
  for (int32_t i = 0; i < static_cast<int32_t>(count); ++i)
    places_[static_cast<size_t>(i)] = {0, first + (i + shift) % static_cast<int32_t>(count)};
  return session_.set_row_positions(std::span(places_).first(static_cast<size_t>(count)));
}

Result<Tensor> LlmSession::body(const Tensor& ids) {
  const int64_t count = ids.cols();
  if (session_.ragged()) LOOM_TRY(set_row_positions(count, false));
  LOOM_ASSIGN(const Tensor hidden, session_.forward(ids, 0, model_->body_cells()));
  // A network from a file may be of any shape; rows below are read by their numbers.
  if (hidden.rows() == count) return hidden;
  return bad_file(cat("its network is not a decoder: ", count, " tokens give ", hidden.shape.str()),
                  model_->source());
}

Result<Tensor> LlmSession::head(const Tensor& hidden, int64_t row, int64_t rows, bool fetch) {
  const Tensor some = f32_matrix(hidden.f32_row(row), rows, hidden.cols());
  LOOM_ASSIGN(const Tensor logits, session_.forward(some, model_->body_cells(),
                                                    model_->network().cells().size(), fetch));
  LOOM_TRY(check_logits(logits, rows));
  return logits;
}

Status LlmSession::check_logits(const Tensor& logits, int64_t rows) const {
  if (logits.rows() == rows && logits.cols() == model_->config().vocab_size) return {};
  return bad_file(cat("its network is not a decoder: the head gives ", logits.shape.str()),
                  model_->source());
}

bool LlmSession::may_move_to_host() const {
  return options_.device_failed && session_.recorder().ops().device != nullptr;
}

// The host has the weights too; keys and values were on the device only.
Status LlmSession::move_to_host() {
  logits_ = {};
  const Ops& host = host_ops(session_.recorder().ops());
  LOOM_ASSIGN(session_, make_session(*model_, host, *pool_, options_));
  progress_.reset();
  const std::span<const TokenId> fed = fed_;
  const auto chunk = static_cast<size_t>(options_.chunk);
  for (size_t at = 0; at < fed.size(); at += chunk) {
    LOOM_TRY(feed_piece(fed.subspan(at, std::min(fed.size() - at, chunk)), false));
  }
  return {};
}

template <class F>
Status LlmSession::on_either(const F& try_it) {
  const Status status = try_it();
  if (status.ok() || !may_move_to_host()) return status;
  LOOM_TRY(move_to_host());
  LOOM_TRY(try_it());
  options_.device_failed(status.error());
  return {};
}

void LlmSession::rewind(int64_t position) {
  session_.rewind(position);
  fed_.resize(std::min(fed_.size(), static_cast<size_t>(position)));
  progress_.rewind(session_, 0, position);
}

// After all cells of a piece have run.
void LlmSession::advance(int64_t count) {
  session_.advance(count);
  session_.keep_states();
  progress_.advance(session_, 0, count);
}

// Reads the tokens between the recurrent states and position().
Status LlmSession::catch_up() {
  const auto from = static_cast<size_t>(progress_.position(0));
  if (!progress_.active() || from == fed_.size()) return {};
  return on_either([&]() -> Status {
    session_.rewind(progress_.position(0));
    const std::span<const TokenId> fed = fed_;
    const auto chunk = static_cast<size_t>(options_.chunk);
    for (auto at = static_cast<size_t>(position()); at < fed.size();
         at = static_cast<size_t>(position()))
      LOOM_TRY(feed_piece(fed.subspan(at, std::min(fed.size() - at, chunk)), false));
    read_again_ += static_cast<int64_t>(fed.size() - from);
    return {};
  });
}

// Reads a piece in one pass with places, which reuses the commands of the previous pass if that had
// equally many rows. The head sees the first rows, so the last token comes first.
Status LlmSession::feed_placed(std::span<const TokenId> piece, bool last) {
  const Tensor ids = ids_of(piece);
  if (last) std::rotate(ids.i32(), ids.i32() + piece.size() - 1, ids.i32() + piece.size());
  LOOM_TRY(set_row_positions(ids.cols(), last));
  LOOM_ASSIGN(const Tensor out, session_.forward_ragged(ids, last ? 1 : 0));
  if (last) LOOM_TRY(check_logits(out, 1));
  advance(ids.cols());
  if (last) logits_ = {out.f32(), static_cast<size_t>(out.cols())};
  return {};
}

// The same, with the logits after every token.
Result<Tensor> LlmSession::feed_whole(std::span<const TokenId> piece) {
  const Tensor ids = ids_of(piece);
  LOOM_TRY(set_row_positions(ids.cols(), false));
  LOOM_ASSIGN(const Tensor out, session_.forward_ragged(ids, ids.cols()));
  LOOM_TRY(check_logits(out, ids.cols()));
  advance(ids.cols());
  return out;
}

Status LlmSession::feed_piece(std::span<const TokenId> piece, bool last) {
  if (session_.ragged()) return feed_placed(piece, last);
  LOOM_ASSIGN(const Tensor hidden, body(ids_of(piece)));
  advance(static_cast<int64_t>(piece.size()));
  if (!last) return {};
  LOOM_ASSIGN(const Tensor out, head(hidden, static_cast<int64_t>(piece.size()) - 1, 1));
  logits_ = {out.f32(), static_cast<size_t>(out.cols())};
  return {};
}

Status LlmSession::feed(std::span<const TokenId> ids) {
  LOOM_TRY(check(ids));
  LOOM_TRY(catch_up());
  for (size_t at = 0; at < ids.size(); at += static_cast<size_t>(options_.chunk)) {
    const auto piece =
        ids.subspan(at, std::min(ids.size() - at, static_cast<size_t>(options_.chunk)));
    const bool last = at + piece.size() == ids.size();
    LOOM_TRY(on_either([&] { return feed_piece(piece, last); }));
    fed_.insert(fed_.end(), piece.begin(), piece.end());
  }
  return {};
}

int64_t LlmSession::sample_batch() const {
  return session_.recorder().ops().device == nullptr ? 1 : batch_;
}

Status LlmSession::feed_sampled(TokenId id, int64_t count, const DeviceSampling& how,
                                std::vector<TokenId>& found) {
  LOOM_TRY(check({&id, 1}));
  const int64_t room = std::min(kBatch, options_.context - session_.position());
  if (count < 1 || count > room) {
    return make_error(Code::out_of_range,
                      cat(count, " tokens were asked for at once; there is room for ", room));
  }
  if (how.temperature > 0.0f && (how.top_k < 1 || how.top_k > DeviceSampling::kMaxTopK)) {
    return make_error(Code::out_of_range,
                      cat("a device draws among 1 to ", DeviceSampling::kMaxTopK,
                          " tokens; top_k is ", how.top_k));
  }
  LOOM_TRY(catch_up());
  const auto begin = std::chrono::steady_clock::now();
  LOOM_TRY(on_either([&] { return draw(id, count, how); }));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const double fit = kBatchSeconds * static_cast<double>(count) / std::max(took.count(), 1e-6);
  batch_ = static_cast<int64_t>(std::clamp<double>(fit, 2, kBatch));
  const int32_t* all = drawn(0, count + 1).i32();
  fed_.insert(fed_.end(), all, all + count);
  found.insert(found.end(), all + 1, all + count + 1);
  return {};
}

// `id`, then the found tokens.
Tensor LlmSession::drawn(int64_t index, int64_t count) const {
  return ids_at(drawn_.data() + index * 4, count);
}

Status LlmSession::choose(const Tensor& logits, const DeviceSampling& how, int64_t index) {
  Recorder& recorder = session_.recorder();
  Tensor next = drawn(index + 1, 1);
  next.shape = Shape{1};
  if (!(how.temperature > 0.0f)) return recorder.argmax({logits, next});
  const int64_t k = std::min(how.top_k, logits.cols());
  const Tensor values = f32_matrix(reinterpret_cast<float*>(drawn_.data() + kValuesAt), 1, k);
  const Tensor ids = ids_at(drawn_.data() + kIdsAt, k);
  LOOM_TRY(recorder.topk({logits, values, ids}));
  return recorder.sample({values, ids, next, how.temperature, how.top_p, how.min_p, how.seed,
                          how.index + static_cast<uint64_t>(index)});
}

Status LlmSession::draw(TokenId id, int64_t count, const DeviceSampling& how) {
  Recorder& recorder = session_.recorder();
  *drawn(0, 1).i32() = id;
  LOOM_TRY(to_device(recorder.ops(), drawn(0, 1)));
  Tensor logits;
  for (int64_t i = 0; i < count; ++i) {
    LOOM_ASSIGN(const Tensor hidden, body(drawn(i, 1)));
    advance(1);
    LOOM_ASSIGN(logits, head(hidden, 0, 1, false));
    LOOM_TRY(choose(logits, how, i));
    LOOM_TRY(recorder.flush());
  }
  LOOM_TRY(to_host(recorder.ops(), {drawn(0, count + 1), logits}));
  logits_ = {logits.f32(), static_cast<size_t>(logits.cols())};
  return {};
}

Result<Tensor> LlmSession::hidden(std::span<const TokenId> ids) {
  rewind(0);
  LOOM_TRY(check(ids));
  const size_t norm = model_->body_cells();
  const std::vector<GridNode>& cells = model_->network().cells();
  const int64_t width = model_->config().hidden_size;
  if (norm + 1 >= cells.size() || cells[norm].out.last() != width)
    return unsupported("its head begins with no norm, so it makes no vectors", model_->source());
  hidden_.resize(ids.size() * static_cast<size_t>(width));
  for (size_t at = 0; at < ids.size(); at += static_cast<size_t>(options_.chunk)) {
    const auto piece =
        ids.subspan(at, std::min(ids.size() - at, static_cast<size_t>(options_.chunk)));
    const auto count = static_cast<int64_t>(piece.size());
    LOOM_ASSIGN(const Tensor states, body(ids_of(piece)));
    advance(count);
    for (int64_t row = 0; row < count; row += options_.head_rows) {
      const int64_t rows = std::min(options_.head_rows, count - row);
      const Tensor some = f32_matrix(states.f32_row(row), rows, width);
      LOOM_ASSIGN(const Tensor out, session_.forward(some, norm, norm + 1));
      LOOM_TRY(to_host(session_.recorder().ops(), {out}));
      std::copy_n(out.f32(), rows * width,
                  hidden_.data() + (static_cast<int64_t>(at) + row) * width);
    }
  }
  return f32_matrix(hidden_.data(), static_cast<int64_t>(ids.size()), width);
}

Status LlmSession::feed_all(std::span<const TokenId> ids,
                            const std::function<Status(int64_t, std::span<const float>)>& sink) {
  LOOM_TRY(check(ids));
  LOOM_TRY(catch_up());
  for (size_t at = 0; at < ids.size(); at += static_cast<size_t>(options_.chunk)) {
    const auto piece =
        ids.subspan(at, std::min(ids.size() - at, static_cast<size_t>(options_.chunk)));
    const auto count = static_cast<int64_t>(piece.size());
    if (session_.ragged() && count <= options_.head_rows) {
      LOOM_ASSIGN(const Tensor out, feed_whole(piece));
      fed_.insert(fed_.end(), piece.begin(), piece.end());
      for (int64_t r = 0; r < count; ++r) {
        logits_ = {out.f32_row(r), static_cast<size_t>(out.cols())};
        LOOM_TRY(sink(static_cast<int64_t>(at) + r, logits_));
      }
      continue;
    }
    LOOM_ASSIGN(const Tensor hidden, body(ids_of(piece)));
    advance(count);
    fed_.insert(fed_.end(), piece.begin(), piece.end());
    for (int64_t row = 0; row < count; row += options_.head_rows) {
      const int64_t rows = std::min(options_.head_rows, count - row);
      LOOM_ASSIGN(const Tensor out, head(hidden, row, rows));
      for (int64_t r = 0; r < rows; ++r) {
        logits_ = {out.f32_row(r), static_cast<size_t>(out.cols())};
        LOOM_TRY(sink(static_cast<int64_t>(at) + row + r, logits_));
      }
    }
  }
  return {};
}

void LlmSession::set_profile(OpProfile* profile) {
  session_.recorder().set_profile(profile);
}

}  // namespace loom::core

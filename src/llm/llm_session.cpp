#include "llm/llm_session.hpp"

#include <algorithm>
#include <cstring>

#include "base/text.hpp"

namespace loom {
namespace {

// Tokens that a device draws before the host looks at them.
constexpr int64_t kGreedyBatch = 16;

}  // namespace

LlmSession::LlmSession(const LanguageModel& model, Session session, ThreadPool& pool,
                       const LlmSessionOptions& options)
    : model_(&model), session_(std::move(session)), pool_(&pool), options_(options) {
  ids_.resize(static_cast<size_t>(options.chunk));
  if (may_move_to_host()) fed_.reserve(static_cast<size_t>(options.context));
}

Result<LlmSession> LlmSession::create(const LanguageModel& model, const Ops& ops, ThreadPool& pool,
                                      const LlmSessionOptions& wanted) {
  LlmSessionOptions options = wanted;
  const int64_t limit = model.config().max_positions;
  if (options.context <= 0) options.context = std::min<int64_t>(limit, 2048);
  if (options.context > limit) {
    return make_error(Code::out_of_range,
                      cat("a context of ", options.context,
                          " positions was asked for; this model was made for ", limit));
  }
  options.chunk = std::clamp<int64_t>(options.chunk, 1, options.context);
  options.head_rows = std::clamp<int64_t>(options.head_rows, 1, options.chunk);
  LOOM_ASSIGN(Session session, make_session(model, ops, pool, options));
  LlmSession made(model, std::move(session), pool, options);
  LOOM_ASSIGN(made.drawn_, Buffer::allocate((kGreedyBatch + 1) * 4));
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
  s.narrow_cell = model.body_cells();
  s.narrow_rows = options.head_rows;
  return Session::create(model.network(), ops, pool, Shape{1, options.chunk}, s);
}

Status LlmSession::check(std::span<const TokenId> ids) const {
  const int64_t vocab = model_->config().vocab_size;
  for (TokenId id : ids) {
    if (id < 0 || id >= vocab) {
      return make_error(Code::out_of_range,
                        cat("token id ", id, " is outside the vocabulary of ", vocab));
    }
  }
  const auto count = static_cast<int64_t>(ids.size());
  if (session_.position() + count > options_.context) {
    return make_error(Code::out_of_range,
                      cat("the context is full: ", session_.position(), " positions used, ", count,
                          " more wanted, ", options_.context, " available"));
  }
  return {};
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

Result<Tensor> LlmSession::body(const Tensor& ids) {
  const int64_t count = ids.cols();
  LOOM_ASSIGN(const Tensor hidden, session_.forward(ids, 0, model_->body_cells()));
  // A network from a file may be of any shape; rows below are read by their numbers.
  if (hidden.rows() == count) return hidden;
  return bad_file(cat("its network is no decoder: ", count, " tokens give ", hidden.shape.str()),
                  model_->source());
}

Result<Tensor> LlmSession::head(const Tensor& hidden, int64_t row, int64_t rows, bool fetch) {
  const Tensor some = f32_matrix(hidden.f32_row(row), rows, hidden.cols());
  LOOM_ASSIGN(const Tensor logits, session_.forward(some, model_->body_cells(),
                                                    model_->network().cells().size(), fetch));
  if (logits.rows() == rows && logits.cols() == model_->config().vocab_size) return logits;
  return bad_file(cat("its network is no decoder: the head gives ", logits.shape.str()),
                  model_->source());
}

bool LlmSession::may_move_to_host() const {
  return options_.device_failed && session_.recorder().ops().device != nullptr;
}

// Weights are the host's as well; keys and values were the device's alone.
Status LlmSession::move_to_host() {
  logits_ = {};
  const Ops& host = host_ops(session_.recorder().ops());
  LOOM_ASSIGN(session_, make_session(*model_, host, *pool_, options_));
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

void LlmSession::remember(std::span<const TokenId> fed) {
  if (may_move_to_host()) fed_.insert(fed_.end(), fed.begin(), fed.end());
}

void LlmSession::rewind(int64_t position) {
  session_.rewind(position);
  fed_.resize(std::min(fed_.size(), static_cast<size_t>(position)));
}

Status LlmSession::feed_piece(std::span<const TokenId> piece, bool last) {
  LOOM_ASSIGN(const Tensor hidden, body(ids_of(piece)));
  session_.advance(static_cast<int64_t>(piece.size()));
  if (!last) return {};
  LOOM_ASSIGN(const Tensor out, head(hidden, static_cast<int64_t>(piece.size()) - 1, 1));
  logits_ = {out.f32(), static_cast<size_t>(out.cols())};
  return {};
}

Status LlmSession::feed(std::span<const TokenId> ids) {
  LOOM_TRY(check(ids));
  for (size_t at = 0; at < ids.size(); at += static_cast<size_t>(options_.chunk)) {
    const auto piece =
        ids.subspan(at, std::min(ids.size() - at, static_cast<size_t>(options_.chunk)));
    const bool last = at + piece.size() == ids.size();
    LOOM_TRY(on_either([&] { return feed_piece(piece, last); }));
    remember(piece);
  }
  return {};
}

int64_t LlmSession::greedy_batch() const {
  return session_.recorder().ops().device == nullptr ? 1 : kGreedyBatch;
}

Status LlmSession::feed_greedy(TokenId id, int64_t count, std::vector<TokenId>& found) {
  LOOM_TRY(check({&id, 1}));
  const int64_t room = std::min(kGreedyBatch, options_.context - session_.position());
  if (count < 1 || count > room) {
    return make_error(Code::out_of_range,
                      cat(count, " tokens were asked for at once; there is room for ", room));
  }
  LOOM_TRY(on_either([&] { return draw(id, count); }));
  const auto* drawn = reinterpret_cast<const TokenId*>(drawn_.data());
  remember({drawn, static_cast<size_t>(count)});
  found.insert(found.end(), drawn + 1, drawn + count + 1);
  return {};
}

// drawn_: `id`, then what was found.
Status LlmSession::draw(TokenId id, int64_t count) {
  Recorder& recorder = session_.recorder();
  const auto drawn = [&](int64_t i) { return ids_at(drawn_.data() + i * 4, 1); };
  *drawn(0).i32() = id;
  LOOM_TRY(to_device(recorder.ops(), drawn(0)));
  Tensor logits;
  for (int64_t i = 0; i < count; ++i) {
    LOOM_ASSIGN(const Tensor hidden, body(drawn(i)));
    session_.advance(1);
    LOOM_ASSIGN(logits, head(hidden, 0, 1, false));
    Tensor next = drawn(i + 1);
    next.shape = Shape{1};
    LOOM_TRY(recorder.argmax({logits, next}));
    LOOM_TRY(recorder.flush());
  }
  LOOM_TRY(to_host(recorder.ops(), {ids_at(drawn_.data(), count + 1), logits}));
  logits_ = {logits.f32(), static_cast<size_t>(logits.cols())};
  return {};
}

Status LlmSession::feed_all(std::span<const TokenId> ids,
                            const std::function<Status(int64_t, std::span<const float>)>& sink) {
  LOOM_TRY(check(ids));
  for (size_t at = 0; at < ids.size(); at += static_cast<size_t>(options_.chunk)) {
    const auto piece =
        ids.subspan(at, std::min(ids.size() - at, static_cast<size_t>(options_.chunk)));
    const auto count = static_cast<int64_t>(piece.size());
    LOOM_ASSIGN(const Tensor hidden, body(ids_of(piece)));
    session_.advance(count);
    remember(piece);
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

}  // namespace loom

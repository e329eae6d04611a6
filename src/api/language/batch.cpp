// Batch: texts share passes if the model supports it; else they alternate.
#include "loom/batch.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include "api/engine/impl.hpp"
#include "base/text.hpp"
#include "llm/sessions/llm_batch.hpp"

namespace loom {

struct Batch::Impl {
  // A text in progress, or the error that ended it.
  struct Text {
    core::Generator generator;
    int64_t most;                // maximum positions
    std::vector<TokenId> known;  // earlier tokens of its sequence; read again after an eviction
    bool admitted = false;       // has memory for them
    bool ended = false;
    Status failed{};
  };
  // Tokens of a text in one pass.
  struct Share {
    int64_t sequence;
    size_t rows;
    bool again;  // reads earlier tokens again
  };

  explicit Impl(const Model& of) : model(of) {}
  const Model model;
  std::optional<core::LlmBatch> shared;
  std::vector<core::LlmSession> alone;  // one session per sequence, without shared passes
  // The draft model's batch; unset without a draft.
  std::optional<Model> draft;
  std::optional<core::LlmBatch> draft_batch;
  std::vector<core::LlmSession> draft_sessions;
  std::vector<std::unique_ptr<core::TokenReader>> draft_readers;
  int64_t guesses = 0;
  std::vector<uint64_t> salts;
  std::vector<std::unique_ptr<core::TokenReader>> readers;  // for `shared`
  std::vector<std::optional<Text>> texts;
  std::vector<int64_t> order;  // sequences with a running text, in order of arrival
  std::vector<core::LlmBatch::Piece> pieces;
  std::vector<Share> shares;
  int64_t bytes = 0;
  core::ScopedMemoryUse held;

  core::TokenReader& reader(int64_t sequence) {
    const auto i = static_cast<size_t>(sequence);
    return shared ? *readers[i] : alone[i];
  }
  core::TokenReader* drafter(int64_t sequence) {
    const auto i = static_cast<size_t>(sequence);
    if (draft_batch) return draft_readers[i].get();
    return draft ? &draft_sessions[i] : nullptr;
  }
  Status make_draft(const Model& smaller, core::LlmBatchOptions batch_options);
  bool has(int64_t sequence) const {
    return sequence >= 0 && sequence < static_cast<int64_t>(texts.size());
  }
  Status check_idle(int64_t sequence) const {
    if (has(sequence) && !texts[static_cast<size_t>(sequence)].has_value()) return {};
    return core::invalid(core::cat("sequence ", sequence, " of ", texts.size(),
                                   has(sequence) ? " has a text already" : " does not exist"));
  }
  Text& text(int64_t sequence) { return *texts[static_cast<size_t>(sequence)]; }

  // Takes the result of a step of a text.
  void finish_step(int64_t sequence, const Result<bool>& more) {
    if (more.ok() && *more) return;
    end(sequence);
    if (!more.ok()) text(sequence).failed = more.error();
  }
  void end(int64_t sequence) {
    text(sequence).ended = true;
    if (shared) shared->book(sequence, 0);
  }

  // Frees memory until there is enough: first that of sequences without a text, then that of texts
  // that have not started, the latest first. Returns false if it never suffices.
  template <typename Enough>
  bool free_until(int64_t but, const Enough& enough) {
    if (enough()) return true;
    const auto give_up = [&](int64_t s) {
      shared->park(s);
      return enough();
    };
    for (int64_t s = 0; s < static_cast<int64_t>(texts.size()); ++s) {
      const std::optional<Text>& one = texts[static_cast<size_t>(s)];
      if (s != but && (!one.has_value() || one->ended) && give_up(s)) return true;
    }
    for (auto s = order.rbegin(); s != order.rend(); ++s) {
      if (*s != but && !text(*s).admitted && give_up(*s)) return true;
    }
    return false;
  }

  // Reserves memory for a text, and reuses what is left of its sequence's cache.
  bool admit(int64_t sequence) {
    Text& one = text(sequence);
    if (one.admitted) return true;
    one.admitted = free_until(sequence, [&] { return shared->book(sequence, one.most); });
    if (one.admitted && !rest_of(sequence).empty()) shared->reuse(sequence, one.known);
    return one.admitted;
  }
  // The tokens that a text must read again.
  std::span<const TokenId> rest_of(int64_t sequence) {
    const std::span<const TokenId> known = text(sequence).known;
    return known.subspan(std::min(known.size(), static_cast<size_t>(shared->position(sequence))));
  }
  void forget_ended() {
    std::erase_if(order, [&](int64_t s) { return text(s).ended; });
  }

  // Every text gets at least one row; prompts get the rest, in order of arrival.
  void gather() {
    pieces.clear();
    shares.clear();
    auto room = static_cast<size_t>(shared->rows());
    // Restored states and found prefixes took memory that was reserved for others.
    free_until(-1, [&] { return !shared->pool().over_committed(); });
    // If a text waits for memory, no later one may start.
    const auto waits = std::ranges::find_if(order, [&](int64_t s) { return !admit(s); });
    const std::span<const int64_t> admitted(order.begin(), waits);
    size_t after = admitted.size();
    for (const int64_t s : admitted) {
      --after;
      if (const std::span<const TokenId> rest = rest_of(s); !rest.empty()) {
        const auto again = rest.first(std::min(rest.size(), room - after));
        room -= again.size();
        pieces.push_back({s, again, 0});
        shares.push_back({s, again.size(), true});
        continue;
      }
      text(s).known.clear();  // from here on a context shift may go back before its end
      core::Generator& generator = text(s).generator;
      const Result<std::span<const TokenId>> next =
          generator.wants(room - after, static_cast<size_t>(guesses));
      if (!next.ok() || next->empty()) {
        finish_step(s, next.ok() ? Result<bool>(false) : Result<bool>(next.error()));
        continue;
      }
      room -= next->size();
      pieces.push_back({s, *next, generator.wants_logits()});
      shares.push_back({s, next->size(), false});
    }
  }

  Status pass() {
    using Clock = std::chrono::steady_clock;
    gather();
    const Clock::time_point begin = Clock::now();
    const Status status = shared->feed(pieces);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    size_t rows = 0;
    for (const Share& share : shares) rows += share.rows;
    for (const Share& share : shares) {
      if (share.again && status.ok()) continue;
      const double part = static_cast<double>(share.rows) / static_cast<double>(rows);
      finish_step(share.sequence, status.ok() ? text(share.sequence).generator.took(seconds * part)
                                              : Result<bool>(status.error()));
    }
    return status;
  }
};

Batch::Batch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(Batch&&) noexcept = default;
Batch::~Batch() = default;

// Creates a sequence of the draft model for each text, all in separate passes.
Status Batch::Impl::make_draft(const Model& smaller, core::LlmBatchOptions batch_options) {
  const core::LanguageModel& large = model.impl().model;
  const core::LanguageModel& small = smaller.impl().model;
  if (small.config().vocab_size != large.config().vocab_size) {
    return core::invalid(core::cat("the draft model has ", small.config().vocab_size,
                                   " tokens and the model ", large.config().vocab_size,
                                   "; both need the same vocabulary"));
  }
  draft = smaller;
  batch_options.context = std::min(batch_options.context, smaller.info().context);
  batch_options.positions = batch_options.guesses = 0;
  batch_options.cache = core::DType::f32;
  const Engine::Impl& engine = *smaller.impl().engine;
  Result<core::LlmBatch> made =
      core::LlmBatch::create(small, *engine.ops, smaller.impl().engine->pool, batch_options);
  if (made.ok()) {
    draft_batch.emplace(std::move(*made));
    bytes += draft_batch->arena_bytes() + draft_batch->state_bytes();
    for (int64_t i = 0; i < batch_options.sequences; ++i)
      draft_readers.push_back(draft_batch->reader(i));
    return {};
  }
  if (made.error().code != Code::unsupported) return made.error();
  core::LlmSessionOptions one;
  one.context = batch_options.context;
  for (int64_t i = 0; i < batch_options.sequences; ++i) {
    LOOM_ASSIGN(core::LlmSession session, core::make_session(smaller, one));
    bytes += session.arena_bytes() + session.state_bytes();
    draft_sessions.push_back(std::move(session));
  }
  return {};
}

Result<Batch> Batch::create(const Model& model, const BatchOptions& options) {
  if (options.sequences < 1 || options.sequences > 4096)
    return core::invalid(core::cat("a batch has 1 to 4096 sequences; got ", options.sequences));
  if (options.guesses < 0 || options.guesses > 64)
    return core::invalid(core::cat("a text has 0 to 64 guesses in a pass; got ", options.guesses));
  const Engine::Impl& engine = *model.impl().engine;
  LOOM_ASSIGN(const core::LlmSessionOptions one, core::session_options(model, options.session));
  core::LlmBatchOptions batch_options;
  batch_options.sequences = options.sequences;
  batch_options.context = one.context;
  batch_options.chunk = one.chunk;
  batch_options.activations = one.activations;
  batch_options.cache = one.cache;
  batch_options.positions = options.positions;
  batch_options.device_failed = one.device_failed;
  batch_options.guesses = options.guesses;
  auto impl = std::make_unique<Impl>(model);
  impl->texts.resize(static_cast<size_t>(options.sequences));
  impl->salts.resize(impl->texts.size());
  Result<core::LlmBatch> shared = core::unsupported("passes are not to be shared");
  if (options.share_passes) {
    shared = core::LlmBatch::create(model.impl().model, *engine.ops, model.impl().engine->pool,
                                    batch_options);
  }
  if (shared.ok()) {
    impl->bytes = shared->arena_bytes() + shared->state_bytes();
    impl->shared.emplace(std::move(*shared));
    for (int64_t i = 0; i < options.sequences; ++i)
      impl->readers.push_back(impl->shared->reader(i));
  } else if (shared.error().code != Code::unsupported) {
    return shared.error();
  }
  for (int64_t i = 0; i < options.sequences && !impl->shared; ++i) {
    LOOM_ASSIGN(core::LlmSession session, core::make_session(model, one));
    impl->bytes += session.arena_bytes() + session.state_bytes();
    impl->alone.push_back(std::move(session));
  }
  impl->guesses = impl->shared ? impl->shared->drafts() : options.guesses;
  batch_options.context = one.context > 0 ? one.context : impl->reader(0).context();
  if (options.draft != nullptr && options.guesses > 0)
    LOOM_TRY(impl->make_draft(*options.draft, batch_options));
  impl->held =
      core::ScopedMemoryUse(engine.memory_tracker, core::MemoryKind::sessions, impl->bytes);
  return Batch(std::move(impl));
}

Status Batch::start(int64_t sequence, std::span<const TokenId> prompt,
                    const GenerateOptions& options, const TextSink& sink) {
  Impl& b = *impl_;
  LOOM_TRY(b.check_idle(sequence));
  if (prompt.empty())
    return core::invalid("the prompt holds no token; a text needs at least one to begin with");
  // Checked here, so that a wrong token is not an Error of a pass that others share.
  LOOM_TRY(core::check_tokens(b.model.impl().model, prompt));
  const size_t piece = b.shared ? 0 : static_cast<size_t>(b.alone[0].chunk());
  GenerateOptions own = options;
  own.guesses = std::min(own.guesses, b.guesses);
  if (own.guesses == 0) own.lookup = false;
  if (own.guesses == 0) own.lookup_text = nullptr;
  LOOM_ASSIGN(core::Generator generator,
              core::Generator::begin(b.reader(sequence), b.model.impl().model, prompt, own, sink,
                                     piece, own.guesses > 0 ? b.drafter(sequence) : nullptr));
  const int64_t length = b.reader(sequence).position() + static_cast<int64_t>(prompt.size());
  const int64_t most = length + std::min(options.max_tokens, context());
  const std::span<const TokenId> known = b.reader(sequence).fed();
  b.texts[static_cast<size_t>(sequence)].emplace(
      Impl::Text{std::move(generator), std::min(most, context()), {known.begin(), known.end()}});
  b.order.push_back(sequence);
  return {};
}

Status Batch::step() {
  Impl& b = *impl_;
  Status status;
  if (b.shared) {
    status = b.pass();
  } else {
    for (const int64_t s : b.order) b.finish_step(s, b.text(s).generator.step());
  }
  b.forget_ended();
  return status;
}

bool Batch::running(int64_t sequence) const {
  return std::ranges::find(impl_->order, sequence) != impl_->order.end();
}
int64_t Batch::running() const {
  return static_cast<int64_t>(impl_->order.size());
}

void Batch::cancel(int64_t sequence) {
  if (!running(sequence)) return;
  impl_->text(sequence).generator.cancel();
  impl_->end(sequence);
  impl_->forget_ended();
}

Result<Generation> Batch::take(int64_t sequence) {
  Impl& b = *impl_;
  if (!b.has(sequence) || !b.texts[static_cast<size_t>(sequence)].has_value() ||
      running(sequence)) {
    return core::invalid(core::cat("sequence ", sequence, " has no text that has ended"));
  }
  Impl::Text text = std::move(b.text(sequence));
  b.texts[static_cast<size_t>(sequence)].reset();
  if (b.shared) b.shared->publish(sequence);
  if (!text.failed.ok()) return text.failed.error();
  return text.generator.take();
}

int64_t Batch::sequences() const {
  return static_cast<int64_t>(impl_->texts.size());
}
bool Batch::shares_passes() const {
  return impl_->shared.has_value();
}
int64_t Batch::context() const {
  return impl_->reader(0).context();
}
int64_t Batch::position(int64_t sequence) const {
  return impl_->has(sequence) ? impl_->reader(sequence).position() : 0;
}
void Batch::rewind(int64_t sequence, int64_t position) {
  if (impl_->has(sequence) && !impl_->texts[static_cast<size_t>(sequence)].has_value())
    impl_->reader(sequence).rewind(std::max<int64_t>(position, 0));
}
void Batch::erase(int64_t sequence) {
  if (!impl_->check_idle(sequence).ok()) return;
  if (impl_->shared) return impl_->shared->erase(sequence);
  impl_->reader(sequence).rewind(0);
}
void Batch::set_salt(int64_t sequence, uint64_t salt) {
  Impl& b = *impl_;
  if (!b.check_idle(sequence).ok() || this->salt(sequence) == salt) return;
  b.salts[static_cast<size_t>(sequence)] = salt;
  if (b.shared) {
    b.shared->set_salt(sequence, salt);
  } else {
    b.reader(sequence).rewind(0);
  }
  if (core::TokenReader* draft = b.drafter(sequence)) draft->rewind(0);
}
uint64_t Batch::salt(int64_t sequence) const {
  return impl_->has(sequence) ? impl_->salts[static_cast<size_t>(sequence)] : 0;
}
int64_t Batch::reuse(int64_t sequence, std::span<const TokenId> prompt) {
  Impl& b = *impl_;
  if (!b.has(sequence) || b.texts[static_cast<size_t>(sequence)].has_value()) return 0;
  prompt = prompt.first(prompt.empty() ? 0 : prompt.size() - 1);
  if (b.shared) return b.shared->reuse(sequence, prompt);
  core::TokenReader& own = b.reader(sequence);
  own.rewind(std::ranges::mismatch(own.fed(), prompt).in1 - own.fed().begin());
  return own.position();
}

Status Batch::save_state(int64_t sequence, const std::string& path) const {
  LOOM_TRY(impl_->check_idle(sequence));
  const auto i = static_cast<size_t>(sequence);
  return impl_->shared ? impl_->shared->save_state(sequence, path)
                       : impl_->alone[i].save_state(path);
}

Status Batch::load_state(int64_t sequence, const std::string& path) {
  LOOM_TRY(impl_->check_idle(sequence));
  if (!impl_->shared) return impl_->alone[static_cast<size_t>(sequence)].load_state(path);
  Status loaded;
  impl_->free_until(sequence, [&] {
    loaded = impl_->shared->load_state(sequence, path);
    return loaded.ok() || loaded.error().code != Code::out_of_range;  // no memory
  });
  return loaded;
}

BatchCounts Batch::counts() const {
  if (!impl_->shared) return {};
  const core::PagePool& pool = impl_->shared->pool();
  constexpr int64_t kPage = core::PagePool::kPage;
  return {pool.pages() * kPage, pool.found(), pool.evicted() * kPage};
}
int64_t Batch::bytes() const {
  return impl_->bytes;
}

}  // namespace loom

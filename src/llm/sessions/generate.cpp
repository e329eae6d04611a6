#include "llm/sessions/generate.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>

#include "base/text.hpp"
#include "llm/sampling/sampler.hpp"
#include "llm/sampling/stop_matcher.hpp"
#include "llm/sampling/text_rules.hpp"
#include "llm/sampling/token_chances.hpp"
#include "llm/sessions/guesser.hpp"

namespace loom {

std::string_view stop_reason_name(StopReason reason) {
  constexpr std::string_view kNames[] = {"eos", "stop_string", "length", "context", "cancelled"};
  return kNames[static_cast<size_t>(reason)];
}

uint64_t choice_seed(uint64_t seed, int64_t choice) {
  return seed + static_cast<uint64_t>(choice) * 0x9e3779b97f4a7c15ull;
}

}  // namespace loom

namespace loom::core {
namespace {

constexpr size_t kPrefillPiece = 256;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The output path of a token: bytes, whole characters, nothing after a stop string. A model may
// have more ids than its tokenizer has tokens. Such an id has no text, and is counted.
class TextStream {
 public:
  TextStream(const Tokenizer* tokenizer, StopMatcher stops, TextSink sink, bool special_text,
             Generation& result)
      : tokenizer_(tokenizer), stops_(std::move(stops)), sink_(std::move(sink)), result_(result) {
    if (tokenizer != nullptr) decoder_.emplace(*tokenizer, !special_text);
  }
  Status continue_after(std::span<const TokenId> before) {
    return decoder_ ? decoder_->continue_after(before) : Status();
  }
  // True while generation may continue.
  Result<bool> push(TokenId id) {
    if (!decoder_) return true;
    if (!tokenizer_->has_token(id)) {
      ++result_.unknown_tokens;
      return true;
    }
    LOOM_ASSIGN(const std::string text, decoder_->push(id));
    emit(stops_.push(text));
    return !stopped();
  }
  void finish() {
    if (!decoder_ || stopped()) return;
    emit(stops_.push(decoder_->finish()));
    if (!stopped()) emit(stops_.finish());
  }
  bool found_stop() const { return stops_.found(); }
  bool cancelled() const { return cancelled_; }

 private:
  bool stopped() const { return stops_.found() || cancelled_; }
  void emit(std::string_view text) {
    if (text.empty()) return;
    result_.text += text;
    if (sink_ && !sink_(text)) cancelled_ = true;
  }
  const Tokenizer* tokenizer_;
  std::optional<StreamDecoder> decoder_;
  StopMatcher stops_;
  TextSink sink_;
  Generation& result_;
  bool cancelled_ = false;
};

}  // namespace

// Sampling, constraints and drafting of one text.
struct Generator::Parts {
  Sampler sampler;
  TextRules rules;
  Drafter drafter;
  StopMatcher stops;
};

struct Generator::State {
  State(TokenReader& of, const LanguageModel& model, std::span<const TokenId> text,
        GenerateOptions how, TextSink sink, Parts parts, size_t at_once)
      : session(of),
        options(std::move(how)),
        eos(options.eos_ids),
        history(of.fed().begin(), of.fed().end()),
        earlier(history.size()),
        prompt(text.size()),
        piece(at_once == 0 ? prompt : at_once),
        sampler(std::move(parts.sampler)),
        rules(std::move(parts.rules)),
        drafter(std::move(parts.drafter)),
        stream(model.tokenizer(), std::move(parts.stops), std::move(sink), options.special_text,
               result) {
    history.insert(history.end(), text.begin(), text.end());
    result.prompt_tokens = static_cast<int64_t>(prompt);
    if (!eos.empty()) return;
    for (const int64_t id : model.config().eos_token_ids) eos.push_back(static_cast<TokenId>(id));
  }

  TokenReader& session;
  const GenerateOptions options;
  std::vector<TokenId> eos;
  std::vector<TokenId> history;  // read before by the session, prompt, sampled
  size_t earlier;                // tokens that the session had read
  size_t prompt, read = 0;       // tokens of the prompt, and how many of them were fed
  size_t piece;                  // prompt tokens per step
  size_t asked = 0;              // prompt tokens that wants() returned
  std::vector<TokenId> found;    // last sampled tokens; the last one is not fed
  // Tokens to read again after a context shift, and how many of them were read; empty if none.
  std::vector<TokenId> again;
  size_t reread = 0;
  Generation result;
  Sampler sampler;
  TextRules rules;
  Drafter drafter;
  // Tokens of a verification pass: the last sampled token and the draft tokens after it; empty if
  // none. Then the reason why the text ended among them, if it did.
  std::vector<TokenId> draft_ids;
  std::optional<StopReason> ending;
  TextStream stream;       // writes to result
  TokenChances chances{};  // of the last sampled token
  bool ended = false;

  bool wants_chances() const { return options.logprobs || options.top_logprobs > 0; }
  Result<TokenId> draw(std::span<const float> logits) {
    const std::span<const TokenId> ends = options.ignore_eos ? std::span<const TokenId>() : eos;
    LOOM_ASSIGN(const std::span<const uint64_t> allowed, rules.allowed(ends));
    const TokenId id = sampler.next(logits, history, allowed);
    if (id == Sampler::kNoToken) {
      return invalid(
          "no token is left to draw: all are banned, or no token of this model goes on with the "
          "grammar");
    }
    if (wants_chances() && options.logprobs_of_draw)
      chances.logprob = sampler.chances(id, options.top_logprobs, chances.top);
    else if (wants_chances())
      chances.look(logits, id, options.top_logprobs);
    return id;
  }
  bool show(TokenId id, std::string_view text) const {
    return !options.on_token || options.on_token({id, text, chances.logprob, chances.top});
  }

  bool is_eos(TokenId id) const {
    return !options.ignore_eos && std::find(eos.begin(), eos.end(), id) != eos.end();
  }

  // Takes a sampled token. A reason means that the text ends with it, or before it for eos.
  Result<std::optional<StopReason>> take(TokenId id) {
    if (is_eos(id)) return std::optional(StopReason::eos);
    history.push_back(id);
    result.token_ids.push_back(id);
    rules.accept(id);
    if (wants_chances()) result.logprobs.push_back(chances.logprob);
    const size_t before = result.text.size();
    LOOM_ASSIGN(const bool more, stream.push(id));
    if (!show(id, std::string_view(result.text).substr(before)))
      return std::optional(StopReason::cancelled);
    if (!more) {
      return std::optional(stream.cancelled() ? StopReason::cancelled : StopReason::stop_string);
    }
    if (rules.must_end()) return std::optional(StopReason::eos);
    if (static_cast<int64_t>(result.token_ids.size()) == options.max_tokens) {
      return std::optional(StopReason::length);
    }
    return std::optional<StopReason>();
  }

  // Takes the found tokens; the last one is not fed yet. Tokens after the end are dropped.
  Result<std::optional<StopReason>> take_found() {
    for (size_t i = 0; i < found.size(); ++i) {
      LOOM_ASSIGN(const std::optional<StopReason> end, take(found[i]));
      if (!end.has_value()) continue;
      const auto after = static_cast<int64_t>(found.size() - 1 - i);
      session.rewind(session.position() - after);
      sampler.advance(-after);
      return end;
    }
    return std::optional<StopReason>();
  }

  // Samples the tokens after `last`: several on a device, where the logits are, or one with the
  // sampler here.
  Status follow(TokenId last) {
    found.clear();
    const std::optional<DeviceSampling> how = sampler.on_device();
    if (!how.has_value() || session.sample_batch() == 1 || wants_chances() || !rules.none() ||
        drafter.drafts()) {
      LOOM_TRY(session.feed({&last, 1}));
      result.passes += drafter.drafts() ? 1 : 0;
      LOOM_ASSIGN(const TokenId id, draw(session.logits()));
      found.push_back(id);
      return {};
    }
    const int64_t left = options.max_tokens - static_cast<int64_t>(result.token_ids.size());
    const int64_t room = session.context() - session.position();
    const int64_t count = std::min({session.sample_batch(), left, room});
    LOOM_TRY(session.feed_sampled(last, count, *how, found));
    sampler.advance(count);
    return {};
  }

  // Samples after `guesses[at]`, which was read. True: the next draft token was right, so the token
  // after it can be sampled too.
  Result<bool> check_guess(size_t at, std::span<const float> logits) {
    LOOM_ASSIGN(const TokenId id, draw(logits));
    LOOM_ASSIGN(ending, take(id));
    found.assign(1, id);
    return !ending.has_value() && at + 1 < draft_ids.size() && id == draft_ids[at + 1];
  }

  // `drawn` tokens were sampled in the pass that read the draft tokens from position `before` on.
  // Restores the state that the session would have without them.
  void guesses_checked(int64_t before, size_t drawn) {
    const size_t count = draft_ids.size() - 1;
    result.guessed += static_cast<int64_t>(count);
    result.accepted += static_cast<int64_t>(drawn) - 1;
    drafter.on_verified(count, drawn - 1);
    ++result.passes;
    ++result.guess_passes;
    session.rewind(before + static_cast<int64_t>(drawn));
  }

  // Reads the last sampled token and its draft tokens in one pass. Takes the token sampled after
  // each, up to the first that differs from the draft.
  Result<std::optional<StopReason>> check_guesses() {
    const int64_t before = session.position();
    size_t drawn = 0;
    std::optional<Error> failed;
    bool enough = false;
    const auto look = [&](int64_t at, std::span<const float> logits) -> Status {
      const Result<bool> right = check_guess(static_cast<size_t>(at), logits);
      if (!right.ok()) return *(failed = right.error());
      ++drawn;
      enough = !*right;
      return enough ? Status(make_error(Code::cancelled, "enough")) : Status();
    };
    const Status fed = session.feed_all(draft_ids, look);
    if (failed.has_value()) return *failed;
    if (!fed.ok() && !enough) return fed.error();
    guesses_checked(before, drawn);
    if (ending.has_value() && drawn < draft_ids.size()) {
      // The session's logits are those of its last token again.
      const TokenId end = session.fed().back();
      session.rewind(session.position() - 1);
      LOOM_TRY(session.feed({&end, 1}));
    }
    return ending;
  }

  // The same if a batch fed them and has the logits of each.
  Result<std::optional<StopReason>> drafts_fed() {
    const int64_t before = session.position() - static_cast<int64_t>(draft_ids.size());
    size_t drawn = 0;
    for (bool more = true; more; ++drawn) {
      LOOM_ASSIGN(more,
                  check_guess(drawn, session.logits_at(before + static_cast<int64_t>(drawn))));
    }
    guesses_checked(before, drawn);
    result.decode_steps += static_cast<int64_t>(drawn);
    return ending;
  }

  // Makes at most `most` draft tokens, if there is room; without any, the next token is sampled
  // alone.
  Status guess(size_t most) {
    draft_ids.clear();
    if (!drafter.drafts() || most == 0) return {};
    const int64_t left = options.max_tokens - static_cast<int64_t>(result.token_ids.size()) - 1;
    const int64_t room = std::min(left, session.context() - session.position() - 1);
    if (room < 1) return {};
    LOOM_TRY(drafter.guess(history, std::min(static_cast<size_t>(room), most), sampler, draft_ids));
    if (!draft_ids.empty()) draft_ids.insert(draft_ids.begin(), found.back());
    return {};
  }

  // The next tokens of the prompt.
  Result<std::span<const TokenId>> next_piece(size_t most) const {
    const auto whole = std::span<const TokenId>(history).subspan(earlier, prompt);
    LOOM_TRY(
        check_room(session.position(), static_cast<int64_t>(prompt - read), session.context()));
    return whole.subspan(read, std::min({piece, most, prompt - read}));
  }

  // `count` tokens of the prompt were fed. A reason means that the caller stopped it.
  std::optional<StopReason> piece_read(size_t count) {
    read += count;
    const auto done = static_cast<int64_t>(read), total = static_cast<int64_t>(prompt);
    if (options.prefill_progress && !options.prefill_progress(done, total))
      return StopReason::cancelled;
    return std::nullopt;
  }

  Result<std::optional<StopReason>> read_piece() {
    LOOM_ASSIGN(const std::span<const TokenId> next, next_piece(prompt));
    LOOM_TRY(session.feed(next));
    return piece_read(next.size());
  }

  // Context shift: drops a part after the kept tokens. The rest is read again, with the last
  // sampled token.
  void forget() {
    const std::span<const TokenId> fed = session.fed();
    const size_t most = fed.size() - std::min<size_t>(fed.size(), 4);
    const size_t kept = std::min(static_cast<size_t>(options.keep_tokens), most);
    const size_t free = fed.size() - kept;
    const auto requested = static_cast<size_t>(options.shift_tokens);
    const size_t gone = std::clamp<size_t>(requested > 0 ? requested : free / 2, 1, free);
    again.assign(fed.begin() + static_cast<std::ptrdiff_t>(kept + gone), fed.end());
    again.push_back(found.back());
    reread = 0;
    session.rewind(static_cast<int64_t>(kept));
    result.forgotten_tokens += static_cast<int64_t>(gone);
  }

  // Takes the token after one that was fed.
  Result<std::optional<StopReason>> after_step() {
    again.clear();
    ++result.decode_steps;
    result.passes += drafter.drafts() ? 1 : 0;
    LOOM_ASSIGN(const TokenId id, draw(session.logits()));
    found.assign(1, id);
    return take_found();
  }

  // Samples the first token of the text.
  Result<std::optional<StopReason>> draw_first() {
    if (options.max_tokens == 0) return std::optional(StopReason::length);
    if (rules.must_end()) return std::optional(StopReason::eos);
    LOOM_ASSIGN(const TokenId id, draw(session.logits()));
    found.push_back(id);
    return take_found();
  }

  // Feeds the last sampled token, and samples the next.
  Result<std::optional<StopReason>> decode() {
    if (found.empty()) return draw_first();
    if (session.position() == session.context()) {
      if (!options.shift_context) return std::optional(StopReason::context);
      forget();
      LOOM_TRY(session.feed(again));
      return after_step();
    }
    const int64_t before = session.position();
    LOOM_TRY(guess(std::numeric_limits<size_t>::max()));
    if (!draft_ids.empty()) {
      LOOM_ASSIGN(const std::optional<StopReason> end, check_guesses());
      result.decode_steps += session.position() - before;
      return end;
    }
    LOOM_TRY(follow(found.back()));
    result.decode_steps += session.position() - before;
    const int64_t drawn = session.position();
    LOOM_ASSIGN(const std::optional<StopReason> end, take_found());
    result.decode_steps += session.position() - drawn;  // excludes passes without use
    return end;
  }

  void end(StopReason why) {
    ended = true;
    result.stop = why;
    if (why == StopReason::cancelled && result.token_ids.empty()) return;
    stream.finish();
    if (stream.found_stop()) result.stop = StopReason::stop_string;
    if (stream.cancelled()) result.stop = StopReason::cancelled;
  }

  // Counts the time of a step, and ends the text if the step says so.
  Result<bool> stepped(const Result<std::optional<StopReason>>& why, bool reading, double seconds) {
    (reading ? result.prefill_seconds : result.decode_seconds) += seconds;
    if (!why.ok()) {
      ended = true;
      return why.error();
    }
    if (why->has_value()) end(**why);
    return !ended;
  }

  Result<bool> step() {
    if (ended) return false;
    const Clock::time_point start = Clock::now();
    const bool reading = read < prompt;
    const Result<std::optional<StopReason>> why = reading ? read_piece() : decode();
    return stepped(why, reading, seconds_since(start));
  }

  Result<std::span<const TokenId>> wants(size_t most, size_t max_guesses) {
    draft_ids.clear();
    if (!ended && read < prompt) {
      Result<std::span<const TokenId>> next = next_piece(most);
      ended = !next.ok();
      asked = next.ok() ? next->size() : 0;
      return next;
    }
    if (!ended && found.empty()) {
      LOOM_TRY(stepped(draw_first(), false, 0));
    }
    if (!ended && again.empty() && session.position() == session.context()) {
      if (options.shift_context)
        forget();
      else
        end(StopReason::context);
    }
    if (ended) return std::span<const TokenId>();
    if (!again.empty()) {
      asked = std::min(most, again.size() - reread);
      return std::span<const TokenId>(again).subspan(reread, asked);
    }
    const Status guessed = guess(std::min(most - 1, max_guesses));
    ended = !guessed.ok();
    if (ended) return guessed.error();
    return draft_ids.empty() ? std::span<const TokenId>(found).last(1)
                             : std::span<const TokenId>(draft_ids);
  }

  // Handles fed tokens; after the last piece of a prompt it samples the first token.
  Result<std::optional<StopReason>> follow_fed() {
    if (read < prompt) {
      const std::optional<StopReason> stop = piece_read(asked);
      if (stop.has_value() || read < prompt) return stop;
      return draw_first();
    }
    if (!draft_ids.empty()) return drafts_fed();
    if (!again.empty()) reread += asked;
    if (reread < again.size()) return std::optional<StopReason>();
    return after_step();
  }

  Result<bool> took(double seconds) {
    if (ended) return false;
    const Clock::time_point start = Clock::now();
    const bool reading = read < prompt;
    const Result<std::optional<StopReason>> why = follow_fed();
    return stepped(why, reading, seconds + seconds_since(start));
  }
};

namespace {

Status check(const TokenReader& session, const LanguageModel& model,
             std::span<const TokenId> prompt, const GenerateOptions& options) {
  LOOM_TRY(check_options(options));
  if (prompt.empty() && session.logits().empty())
    return invalid("the prompt holds no token; a text needs at least one to begin with");
  if (options.top_logprobs > model.config().vocab_size) {
    return invalid(cat("top_logprobs must be from 0 to ", model.config().vocab_size, "; got ",
                       options.top_logprobs));
  }
  const auto recurrent = [](const StateSpec& s) { return s.width > 0; };
  if (options.shift_context && std::ranges::any_of(model.network().states(), recurrent))
    return unsupported("a context with recurrent layers cannot forget a part of it");
  if (!options.stop.empty() && model.tokenizer() == nullptr)
    return invalid("stop strings need a tokenizer, and this model has none");
  return {};
}

}  // namespace

Generator::Generator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;
Generator::~Generator() = default;

Result<Generator> Generator::begin(TokenReader& session, const LanguageModel& model,
                                   std::span<const TokenId> prompt, GenerateOptions options,
                                   TextSink sink, size_t piece, TokenReader* draft) {
  LOOM_TRY(check(session, model, prompt, options));
  const int64_t vocab = model.config().vocab_size;
  LOOM_ASSIGN(Sampler sampler, Sampler::create(options.sampler, vocab, model.tokenizer()));
  LOOM_ASSIGN(TextRules rules, TextRules::create(model, options));
  LOOM_ASSIGN(Drafter drafter, Drafter::create(options, draft, vocab));
  LOOM_ASSIGN(StopMatcher stops, StopMatcher::create(options.stop));
  Parts parts{std::move(sampler), std::move(rules), std::move(drafter), std::move(stops)};
  auto state = std::make_unique<State>(session, model, prompt, std::move(options), std::move(sink),
                                       std::move(parts), piece);
  LOOM_TRY(state->stream.continue_after(state->history));
  const auto room = static_cast<size_t>(std::min(state->options.max_tokens, session.context())) + 1;
  state->history.reserve(state->history.size() + room);
  state->result.token_ids.reserve(room);
  return Generator(std::move(state));
}

Result<bool> Generator::step() {
  return state_->step();
}
Result<std::span<const TokenId>> Generator::wants(size_t most, size_t max_drafts) {
  return state_->wants(most, max_drafts);
}
int64_t Generator::wants_logits() const {
  const State& s = *state_;
  if (!s.draft_ids.empty()) return static_cast<int64_t>(s.draft_ids.size());
  const bool last =
      s.again.empty() ? s.read + s.asked >= s.prompt : s.reread + s.asked >= s.again.size();
  return last ? 1 : 0;
}
Result<bool> Generator::took(double seconds) {
  return state_->took(seconds);
}
void Generator::cancel() {
  if (!state_->ended) state_->end(StopReason::cancelled);
}
const Generation& Generator::result() const {
  return state_->result;
}
Generation Generator::take() {
  return std::move(state_->result);
}

Result<Generation> generate(TokenReader& session, const LanguageModel& model,
                            std::span<const TokenId> prompt, const GenerateOptions& options,
                            const TextSink& sink, TokenReader* draft) {
  const size_t piece = options.prefill_progress ? kPrefillPiece : 0;
  LOOM_ASSIGN(Generator generator,
              Generator::begin(session, model, prompt, options, sink, piece, draft));
  for (;;) {
    LOOM_ASSIGN(const bool more, generator.step());
    if (!more) return generator.take();
  }
}

}  // namespace loom::core

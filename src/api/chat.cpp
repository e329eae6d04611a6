#include "loom/chat.hpp"

#include <algorithm>
#include <optional>

#include "api/chat_impl.hpp"
#include "api/think_splitter.hpp"
#include "base/text.hpp"

namespace loom {

std::string_view when_full_name(WhenFull mode) {
  return mode == WhenFull::stop ? "stop" : "drop-oldest";
}

Result<WhenFull> parse_when_full(std::string_view name) {
  for (const WhenFull mode : {WhenFull::drop_oldest, WhenFull::stop})
    if (name == when_full_name(mode)) return mode;
  return core::invalid(core::cat("'", name, "' is no way to go on; try drop-oldest or stop"));
}

namespace {

constexpr int64_t kMostReserve = 512;

// Of the room for turns that are kept when some have to go: what is left afterwards. Each time
// turns go, all that stay are read anew, so that more go than would have to.
constexpr int64_t kKeptQuarters = 3;

// A reply on its way to the caller, with the thinking parted from the answer; and from calls, where
// there are tools (`parser`).
class ReplyStream {
 public:
  ReplyStream(Reply& reply, const ReplySink& sink, bool open, std::optional<ReplyParser> parser)
      : reply_(reply), sink_(sink), splitter_(open), parser_(std::move(parser)) {}
  bool push(std::string_view text) {
    if (!going_) return false;
    if (parser_)
      hand_on(parser_->feed(text));
    else
      hand_on(splitter_.push(text));
    return going_;
  }
  void finish() {
    if (parser_) {
      const std::vector<ReplyPiece> rest = parser_->finish();
      if (going_) hand_on(rest);
      reply_.tool_calls = parser_->reply().calls;
    } else if (going_) {
      hand_on(splitter_.finish());
    }
  }

 private:
  void hand_on(const core::ThinkSplitter::Parts& parts) {
    say(parts.thinking, true);
    say(parts.answer, false);
  }
  void hand_on(const std::vector<ReplyPiece>& pieces) {
    for (const ReplyPiece& piece : pieces)
      if (piece.call < 0) say(piece.text, piece.kind == ReplyPiece::Kind::reasoning);
  }
  void say(std::string_view text, bool thinking) {
    (thinking ? reply_.thinking : reply_.answer) += text;
    if (going_ && sink_ && !text.empty()) going_ = sink_(text, thinking);
  }
  Reply& reply_;
  const ReplySink& sink_;
  core::ThinkSplitter splitter_;
  std::optional<ReplyParser> parser_;
  bool going_ = true;
};

void append(Generation& whole, Generation more) {
  whole.text += more.text;
  whole.token_ids.insert(whole.token_ids.end(), more.token_ids.begin(), more.token_ids.end());
  whole.logprobs.insert(whole.logprobs.end(), more.logprobs.begin(), more.logprobs.end());
  whole.stop = more.stop;
  whole.prompt_tokens += more.prompt_tokens;
  whole.unknown_tokens += more.unknown_tokens;
  whole.decode_steps += more.decode_steps;
  whole.prefill_seconds += more.prefill_seconds;
  whole.decode_seconds += more.decode_seconds;
}

}  // namespace

Result<std::string> Chat::Impl::render() const {
  if (!model.info().has_chat_template) {
    std::string text;
    for (size_t i = first; i < turns.size(); ++i) text += turns[i].content;
    return text;
  }
  std::vector<ChatTurn> seen;
  if (!system.empty()) {
    seen.push_back({});
    seen.back().role = "system";
    seen.back().content = system;
  }
  for (size_t i = first; i < turns.size(); ++i) {
    seen.push_back({});
    seen.back().role = turns[i].role;
    seen.back().content = turns[i].content;
    seen.back().tool_calls = turns[i].tool_calls;
  }
  return model.render_chat(seen, templating);
}

Result<Chat::Impl::Prompt> Chat::Impl::prompt() const {
  LOOM_ASSIGN(const std::string text, render());
  Prompt prompt;
  LOOM_ASSIGN(prompt.ids, model.tokenize(text, !model.info().has_chat_template));
  prompt.thinking = core::opens_thinking(text);
  return prompt;
}

bool Chat::Impl::drop_one() {
  for (size_t next = first + 1; next < turns.size(); ++next) {
    if (turns[next].role != "user") continue;
    first = next;
    return true;
  }
  return false;
}

Result<Chat::Impl::Prompt> Chat::Impl::fitting_prompt(int64_t more) {
  const int64_t room = session.context();
  LOOM_ASSIGN(Prompt found, prompt());
  auto wanted = static_cast<int64_t>(found.ids.size()) + more;
  const int64_t limit = on_full == WhenFull::stop ? room - 1 : room - reserve;
  const int64_t target = limit * kKeptQuarters / 4;
  if (wanted > limit && on_full == WhenFull::drop_oldest) {
    while (wanted > target && drop_one()) {
      LOOM_ASSIGN(found, prompt());
      wanted = static_cast<int64_t>(found.ids.size()) + more;
    }
  }
  if (wanted < room) return found;
  const bool alone = turns.size() - first <= 1;
  return core::make_error(
      Code::out_of_range,
      alone ? core::cat("the context is full: the text has ", wanted, " tokens, ", room,
                        " have room; begin again with less text, or give more context")
            : core::cat("the context is full: the text has ", wanted, " tokens, ", room,
                        " have room; begin again, let the oldest go, or give more context"));
}

Result<Generation> Chat::Impl::generate(std::vector<TokenId> ids, const GenerateOptions& options,
                                        const TextSink& sink, int64_t& reused) {
  const std::span<const TokenId> fed = session.impl().session.fed();
  const auto same_end = std::mismatch(fed.begin(), fed.end(), ids.begin(), ids.end()).second;
  auto same = same_end - ids.begin();
  // The logits of the last token are needed, so it is always read.
  if (same == static_cast<std::ptrdiff_t>(ids.size()) && same > 0) --same;
  session.rewind(same);
  reused = static_cast<int64_t>(same);
  return session.generate(std::span<const TokenId>(ids).subspan(static_cast<size_t>(same)), options,
                          sink);
}

Result<Reply> Chat::Impl::answer(const GenerateOptions& options, const ReplySink& sink) {
  const size_t first_before = first;
  Reply reply;
  LOOM_ASSIGN(Prompt start, fitting_prompt(0));
  reply.prompt_ids = start.ids;
  GenerateOptions asked = options;
  std::optional<ReplyParser> parser;
  if (!templating.tools.empty()) {
    LOOM_ASSIGN(const std::string text, render());
    LOOM_ASSIGN(parser, model.reply_parser(text, templating.tools));
    asked.special_text = true;  // some families begin a call with a token of its own
  }
  ReplyStream stream(reply, sink, start.thinking, std::move(parser));
  const TextSink text = [&](std::string_view more) { return stream.push(more); };
  LOOM_ASSIGN(reply.generation, generate(std::move(start.ids), asked, text, reply.reused_tokens));
  Generation& whole = reply.generation;
  while (whole.stop == StopReason::context && on_full == WhenFull::drop_oldest && drop_one()) {
    // What was said so far is read again behind fewer turns, and the reply goes on.
    const auto said = static_cast<int64_t>(whole.token_ids.size());
    GenerateOptions rest = asked;
    rest.max_tokens = options.max_tokens - said;
    if (rest.max_tokens <= 0) break;
    Result<Prompt> shorter = fitting_prompt(said);
    if (!shorter.ok()) break;  // the question and the reply alone fill the context
    std::vector<TokenId> ids = std::move(shorter->ids);
    ids.insert(ids.end(), whole.token_ids.begin(), whole.token_ids.end());
    int64_t reused = 0;
    LOOM_ASSIGN(Generation more, generate(std::move(ids), rest, text, reused));
    append(whole, std::move(more));
  }
  stream.finish();
  reply.dropped_turns = static_cast<int64_t>(first - first_before);
  return reply;
}

Result<Reply> Chat::Impl::reply_to_last(const GenerateOptions& options, const ReplySink& sink) {
  LOOM_ASSIGN(Reply reply, answer(options, sink));
  if (reply.generation.stop == StopReason::cancelled && reply.generation.token_ids.empty())
    return reply;
  ConversationTurn turn;
  turn.role = "assistant";
  turn.content = reply.answer;
  turn.thinking = reply.thinking;
  turn.tool_calls = reply.tool_calls;
  turn.options.max_tokens = options.max_tokens;
  turn.options.sampler = options.sampler;
  turn.options.stop = options.stop;
  turn.options.ignore_eos = options.ignore_eos;
  turn.stop = reply.generation.stop;
  turn.tokens = static_cast<int64_t>(reply.generation.token_ids.size());
  turns.push_back(std::move(turn));
  return reply;
}

Chat::Chat(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Chat::Chat(Chat&&) noexcept = default;
Chat& Chat::operator=(Chat&&) noexcept = default;
Chat::~Chat() = default;

Result<Chat> Chat::create(const Model& model, const ConversationOptions& options) {
  ModelSessionOptions session_options;
  session_options.context = options.context;
  session_options.chunk = options.chunk;
  session_options.cache_type = options.cache_type;
  session_options.device_failed = options.device_failed;
  LOOM_ASSIGN(ModelSession session, model.session(session_options));
  const int64_t room = session.context();
  if (options.reserve < 0 || options.reserve >= room)
    return core::invalid(core::cat("a chat in ", room, " positions cannot reserve ",
                                   options.reserve, " of them for a reply"));
  auto impl = std::make_unique<Impl>(Impl{model, std::move(session)});
  impl->system = options.system;
  impl->templating = options.templating;
  impl->templating.reply = true;
  impl->on_full = options.on_full;
  impl->reserve = options.reserve > 0 ? options.reserve : std::min(kMostReserve, room / 4);
  return Chat(std::move(impl));
}

Result<Chat> Model::chat(const ConversationOptions& options) const {
  return Chat::create(*this, options);
}

Result<Reply> Chat::say(std::string_view text, const GenerateOptions& options,
                        const ReplySink& sink) {
  Impl& impl = *impl_;
  const size_t first_before = impl.first, turns_before = impl.turns.size();
  impl.turns.push_back({});
  impl.turns.back().role = "user";
  impl.turns.back().content = text;
  Result<Reply> reply = impl.reply_to_last(options, sink);
  if (impl.turns.size() == turns_before + 1) {  // no reply, no question
    impl.turns.pop_back();
    impl.first = first_before;
  }
  return reply;
}

Result<Reply> Chat::regenerate(const GenerateOptions& options, const ReplySink& sink) {
  Impl& impl = *impl_;
  if (impl.turns.empty() || impl.turns.back().role != "assistant")
    return core::invalid("there is no reply to give once more");
  ConversationTurn old = std::move(impl.turns.back());
  const size_t first_before = impl.first, turns_before = impl.turns.size();
  impl.turns.pop_back();
  Result<Reply> reply = impl.reply_to_last(options, sink);
  if (impl.turns.size() + 1 == turns_before) {
    impl.turns.push_back(std::move(old));
    impl.first = first_before;
  }
  return reply;
}

Result<int64_t> Chat::replay() {
  const std::vector<ConversationTurn> wanted = impl_->turns;
  clear();
  for (size_t i = 0; i + 1 < wanted.size(); i += 2) {
    const ConversationTurn& reply = wanted[i + 1];
    GenerateOptions options = reply.options;
    if (reply.stop == StopReason::cancelled) options.max_tokens = reply.tokens;
    LOOM_TRY(say(wanted[i].content, options));
    if (impl_->turns.size() != i + 2) return static_cast<int64_t>(i + 1);
    ConversationTurn& got = impl_->turns.back();
    if (reply.stop == StopReason::cancelled && got.content.starts_with(reply.content) &&
        got.thinking.starts_with(reply.thinking))
      got = reply;  // what was held back when it was stopped is no part of it
    if (got.content != reply.content || got.thinking != reply.thinking)
      return static_cast<int64_t>(i + 1);
  }
  return int64_t{-1};
}

void Chat::set_system(std::string text) {
  impl_->system = std::move(text);
}
const std::string& Chat::system() const {
  return impl_->system;
}
void Chat::clear() {
  impl_->turns.clear();
  impl_->first = 0;
}
const std::vector<ConversationTurn>& Chat::turns() const {
  return impl_->turns;
}
int64_t Chat::first_turn() const {
  return static_cast<int64_t>(impl_->first);
}
int64_t Chat::context() const {
  return impl_->session.context();
}
int64_t Chat::used() const {
  return impl_->session.position();
}
bool Chat::has_template() const {
  return impl_->model.info().has_chat_template;
}

}  // namespace loom

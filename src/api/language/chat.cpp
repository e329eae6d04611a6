#include "loom/chat.hpp"

#include <algorithm>
#include <optional>

#include "api/language/chat_impl.hpp"
#include "base/text.hpp"
#include "chat/think_splitter.hpp"

namespace loom {

std::string_view when_full_name(WhenFull mode) {
  return mode == WhenFull::stop ? "stop" : "drop-oldest";
}

Result<WhenFull> parse_when_full(std::string_view name) {
  for (const WhenFull mode : {WhenFull::drop_oldest, WhenFull::stop})
    if (name == when_full_name(mode)) return mode;
  return core::invalid(core::cat("unknown mode '", name, "'; choose drop-oldest or stop"));
}

namespace {

constexpr int64_t kMaxReserve = 512;

// The share of the room for turns that stays filled after old turns are dropped. Each drop makes
// all remaining turns be read again, so more are dropped than necessary.
constexpr int64_t kKeptQuarters = 3;

// A reply in progress, split into thinking and answer, and with tools into calls (`parser`).
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
  // Thinking before calls belongs to the reply that continues after their results.
  size_t asked = turns.size();
  while (asked > first && turns[asked - 1].role != "user") --asked;
  for (size_t i = first; i < turns.size(); ++i) {
    const ConversationTurn& turn = turns[i];
    seen.push_back({});
    seen.back().role = turn.role;
    seen.back().content = turn.content;
    seen.back().null_content = turn.content.empty() && !turn.tool_calls.empty();
    seen.back().tool_calls = turn.tool_calls;
    seen.back().tool_call_id = turn.tool_call_id;
    seen.back().name = turn.name;
    if (i >= asked && !turn.tool_calls.empty()) seen.back().reasoning = turn.thinking;
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
  auto requested = static_cast<int64_t>(found.ids.size()) + more;
  const int64_t limit = on_full == WhenFull::stop ? room - 1 : room - reserve;
  const int64_t target = limit * kKeptQuarters / 4;
  if (requested > limit && on_full == WhenFull::drop_oldest) {
    while (requested > target && drop_one()) {
      LOOM_ASSIGN(found, prompt());
      requested = static_cast<int64_t>(found.ids.size()) + more;
    }
  }
  if (requested < room) return found;
  const bool alone = turns.size() - first <= 1;
  return core::make_error(
      Code::out_of_range,
      alone ? core::cat("the context is full: the text has ", requested, " tokens, ", room,
                        " have room; begin again with less text, or give more context")
            : core::cat("the context is full: the text has ", requested, " tokens, ", room,
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
    asked.special_text = true;  // some families start a call with a special token
  }
  ReplyStream stream(reply, sink, start.thinking, std::move(parser));
  const TextSink text = [&](std::string_view more) { return stream.push(more); };
  LOOM_ASSIGN(reply.generation, generate(std::move(start.ids), asked, text, reply.reused_tokens));
  Generation& whole = reply.generation;
  while (whole.stop == StopReason::context && on_full == WhenFull::drop_oldest && drop_one()) {
    // The reply so far is read again after fewer turns, and continues.
    const auto num_tokens = static_cast<int64_t>(whole.token_ids.size());
    GenerateOptions rest = asked;
    rest.max_tokens = options.max_tokens - num_tokens;
    if (rest.max_tokens <= 0) break;
    Result<Prompt> shorter = fitting_prompt(num_tokens);
    if (!shorter.ok()) break;  // the question and the reply fill the context
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
  name_calls(reply.tool_calls);
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

// Nine letters and digits, the id format of some model families.
void Chat::Impl::name_calls(std::vector<ToolCall>& calls) const {
  size_t count = 0;
  for (const ConversationTurn& turn : turns) count += turn.tool_calls.size();
  for (ToolCall& call : calls) {
    const std::string number = std::to_string(++count);
    if (!call.id.empty()) continue;
    call.id = "call" + std::string(number.size() < 5 ? 5 - number.size() : 0, '0') + number;
  }
}

Result<std::vector<ConversationTurn>> Chat::Impl::result_turns(
    std::span<const ToolResult> results) const {
  if (turns.empty() || turns.back().tool_calls.empty())
    return core::invalid("the last reply asks for no call, so there is nothing to give");
  std::vector<const ToolResult*> of(turns.back().tool_calls.size());
  for (const ToolResult& result : results) {
    size_t at = 0;
    const auto fits = [&](size_t i) {
      return of[i] == nullptr && (result.id.empty() || result.id == turns.back().tool_calls[i].id);
    };
    while (at < of.size() && !fits(at)) ++at;
    if (at == of.size()) {
      return core::invalid(result.id.empty()
                               ? core::cat(results.size(), " results for ", of.size(), " calls")
                               : core::cat("no call waits for a result with the id '",
                                           core::printable(result.id), "'"));
    }
    of[at] = &result;
  }
  std::vector<ConversationTurn> out;
  for (size_t i = 0; i < of.size(); ++i) {
    const ToolCall& call = turns.back().tool_calls[i];
    if (of[i] == nullptr) {
      return core::invalid(core::cat("the call of '", core::printable(call.name), "' (",
                                     core::printable(call.id), ") has no result yet"));
    }
    out.push_back({});
    out.back().role = "tool";
    out.back().content = of[i]->content;
    out.back().tool_call_id = call.id;
    out.back().name = call.name;
  }
  return out;
}

Result<Reply> Chat::Impl::add(std::vector<ConversationTurn> more, const GenerateOptions& options,
                              const ReplySink& sink) {
  const size_t first_before = first, turns_before = turns.size();
  const size_t added = more.size();
  for (ConversationTurn& turn : more) turns.push_back(std::move(turn));
  Result<Reply> reply = reply_to_last(options, sink);
  if (turns.size() == turns_before + added) {  // no reply, no question
    turns.resize(turns_before);
    first = first_before;
  }
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
  impl->reserve = options.reserve > 0 ? options.reserve : std::min(kMaxReserve, room / 4);
  return Chat(std::move(impl));
}

Result<Chat> Model::chat(const ConversationOptions& options) const {
  return Chat::create(*this, options);
}

Result<Reply> Chat::say(std::string_view text, const GenerateOptions& options,
                        const ReplySink& sink) {
  std::vector<ConversationTurn> question(1);
  question[0].role = "user";
  question[0].content = text;
  return impl_->add(std::move(question), options, sink);
}

Result<Reply> Chat::give(std::span<const ToolResult> results, const GenerateOptions& options,
                         const ReplySink& sink) {
  LOOM_ASSIGN(std::vector<ConversationTurn> turns, impl_->result_turns(results));
  return impl_->add(std::move(turns), options, sink);
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
  const std::vector<ConversationTurn> requested = impl_->turns;
  clear();
  for (size_t i = 0; i < requested.size(); ++i) {
    // The question, or the results of calls, up to the reply.
    const size_t from = i;
    while (i < requested.size() && requested[i].role != "assistant") ++i;
    if (i == requested.size()) break;
    const ConversationTurn& reply = requested[i];
    GenerateOptions options = reply.options;
    if (reply.stop == StopReason::cancelled) options.max_tokens = reply.tokens;
    const auto begin = requested.begin() + static_cast<std::ptrdiff_t>(from);
    LOOM_TRY(impl_->add({begin, requested.begin() + static_cast<std::ptrdiff_t>(i)}, options, {}));
    if (impl_->turns.size() != i + 1) return static_cast<int64_t>(i);
    ConversationTurn& got = impl_->turns.back();
    if (reply.stop == StopReason::cancelled && got.content.starts_with(reply.content) &&
        got.thinking.starts_with(reply.thinking))
      got = reply;  // text buffered at the stop is not part of it
    const auto same = [](const ToolCall& a, const ToolCall& b) {
      return a.name == b.name && a.arguments == b.arguments;
    };
    if (got.content != reply.content || got.thinking != reply.thinking ||
        !std::ranges::equal(got.tool_calls, reply.tool_calls, same))
      return static_cast<int64_t>(i);
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

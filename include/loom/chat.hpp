// Chat: a conversation with a language model that lasts. It keeps the turns, reads only what is new
// of them, and makes room where the context is full, so that it need not end.
//
//   loom::Chat chat = model->chat({.system = "You are brief.", .context = 4096}).or_exit();
//   chat.say("What is a loom?", {.sampler = {.temperature = 0.7f}},
//            [](std::string_view text, bool thinking) { write(text); return true; });
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/language_model.hpp"

namespace loom {

// What happens when the turns and a reply do not fit into the context.
enum class WhenFull : uint8_t {
  drop_oldest,  // the oldest questions go, each with its reply; the system turn stays
  stop          // an Error
};
LOOM_API std::string_view when_full_name(WhenFull mode);  // "drop-oldest", "stop"
LOOM_API Result<WhenFull> parse_when_full(std::string_view name);

struct ConversationOptions {
  std::string system{};               // what the model is told before the first turn; "": nothing
  int64_t context = 0;                // positions of the KV cache; 0: the model's, at most 2048
  int64_t chunk = 0;                  // as in ModelSessionOptions
  DType cache_type = DType::float32;  // likewise
  WhenFull on_full = WhenFull::drop_oldest;
  // Positions that are kept free for a reply; 0: a quarter of the context, at most 512.
  int64_t reserve = 0;
  // What the chat template sees: the day, tools, documents, variables. `reply` means nothing here.
  // With tools, what the model writes is told apart as ReplyParser does.
  ChatOptions templating{};
  std::function<void(const Error&)> device_failed{};  // as in ModelSessionOptions
};

struct ConversationTurn {
  std::string role;     // "user", "assistant", "tool"
  std::string content;  // of an assistant: without what it thought; of a tool: what it gave
  // Of a tool: the call that it answers, and its function.
  std::string tool_call_id{}, name{};
  // Of an assistant alone.
  std::string thinking;  // between <think> and </think>
  std::vector<ToolCall> tool_calls{};
  GenerateOptions options;  // it was asked for with them: sampler, max_tokens, stop, ignore_eos
  StopReason stop = StopReason::eos;
  int64_t tokens = 0;  // that were drawn
};

// What a call gave, as text; often JSON.
struct ToolResult {
  std::string content;
  std::string id{};  // of the call; "": of the first one that has no result yet
};

struct Reply {
  Generation generation;             // text: all of it, with the thinking and its tags
  std::string answer;                // without them
  std::string thinking;              // "" where the model has no such habit
  std::vector<ToolCall> tool_calls;  // that the model asks for, of ConversationOptions::templating
  std::vector<TokenId> prompt_ids;   // the conversation up to the reply
  int64_t reused_tokens = 0;         // of the conversation, those that were read before
  int64_t dropped_turns = 0;         // that went to make room
};

// New text of a reply, whole characters; false stops it, and what was said stays a turn.
using ReplySink = std::function<bool(std::string_view text, bool thinking)>;

// A model without a chat template continues a text instead: the turns one after another. Not
// thread-safe.
class LOOM_API Chat {
 public:
  // Errors: those of Model::session().
  static Result<Chat> create(const Model& model, const ConversationOptions& options = {});

  // Adds a question and its reply. A reply that fills the context goes on where older turns can
  // make room. Errors: those of ModelSession::generate() and Model::render_chat(); out_of_range (a
  // text longer than the context, or a full context with WhenFull::stop); the turns then are as
  // before. A reply that was stopped before its first token leaves no turn either.
  Result<Reply> say(std::string_view text, const GenerateOptions& options = {},
                    const ReplySink& sink = {});
  // Adds the results of the calls of the last reply, one for each, in the order of the calls, and
  // the reply to them. Calls have ids: what the model gave them, or "call" and five digits, which
  // count them. Errors: invalid_argument (the last reply has no calls, a call without a result,
  // a result without a call), and those of say(); the turns then are as before.
  Result<Reply> give(std::span<const ToolResult> results, const GenerateOptions& options = {},
                     const ReplySink& sink = {});
  // The last reply once more, in place of it. Errors: invalid_argument (there is none), and the
  // above.
  Result<Reply> regenerate(const GenerateOptions& options = {}, const ReplySink& sink = {});
  // All replies once more, each with its options and the replies before it. Returns the index of
  // the first turn that came out otherwise, or -1. A reply that a person had stopped is compared as
  // far as it went. The turns are then those that came out.
  Result<int64_t> replay();

  void set_system(std::string text);
  const std::string& system() const;
  // Forgets all turns; the system turn stays.
  void clear();

  const std::vector<ConversationTurn>& turns() const;
  // Index of the oldest turn that the model still sees.
  int64_t first_turn() const;
  int64_t context() const;  // positions there are
  int64_t used() const;     // positions that are read
  bool has_template() const;

  // The turns with their settings, and the tools, documents and variables of the template, as JSON;
  // restore() takes the place of what is there. Errors:
  // bad_file, naming the field.
  std::string to_json() const;
  Status restore(std::string_view json, const std::string& where = "the conversation");

  struct LOOM_LOCAL Impl;
  explicit Chat(std::unique_ptr<Impl> impl);
  Chat(Chat&&) noexcept;
  Chat& operator=(Chat&&) noexcept;
  ~Chat();

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom

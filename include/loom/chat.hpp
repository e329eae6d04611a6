// Chat: a lasting conversation with a language model. It keeps the turns, reads only their new
// tokens, and drops old turns when the context is full.
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

// Behavior when the turns and a reply do not fit into the context.
enum class WhenFull : uint8_t {
  drop_oldest,  // drops the oldest questions with their replies; keeps the system turn
  stop          // returns an Error
};
LOOM_API std::string_view when_full_name(WhenFull mode);  // "drop-oldest", "stop"
LOOM_API Result<WhenFull> parse_when_full(std::string_view name);

struct ConversationOptions {
  std::string system{};               // system prompt; empty means none
  int64_t context = 0;                // KV cache positions; 0 means the model's, at most 2048
  int64_t chunk = 0;                  // as in ModelSessionOptions
  DType cache_type = DType::float32;  // as in ModelSessionOptions
  WhenFull on_full = WhenFull::drop_oldest;
  // Positions that stay free for a reply; 0 means a quarter of the context, at most 512.
  int64_t reserve = 0;
  // Values for the chat template: date, tools, documents, variables. `reply` is ignored. With
  // tools, replies are parsed as by ReplyParser.
  ChatOptions templating{};
  std::function<void(const Error&)> device_failed{};  // as in ModelSessionOptions
};

struct ConversationTurn {
  std::string role;     // "user", "assistant", "tool"
  std::string content;  // an assistant's without its thinking; a tool's result
  // Only for role "tool": the call that it answers, and its function.
  std::string tool_call_id{}, name{};
  // Only for role "assistant".
  std::string thinking;  // between <think> and </think>
  std::vector<ToolCall> tool_calls{};
  GenerateOptions options;  // used for this reply: sampler, max_tokens, stop, ignore_eos
  StopReason stop = StopReason::eos;
  int64_t tokens = 0;  // sampled tokens
};

// The result of a call, as text; often JSON.
struct ToolResult {
  std::string content;
  std::string id{};  // id of the call; empty means the first call without a result
};

struct Reply {
  Generation generation;             // text: the whole reply, with the thinking and its tags
  std::string answer;                // the reply without the thinking
  std::string thinking;              // empty if the model does not think
  std::vector<ToolCall> tool_calls;  // calls of ConversationOptions::templating's tools
  std::vector<TokenId> prompt_ids;   // the conversation up to the reply
  int64_t reused_tokens = 0;         // tokens of the conversation that were already in the cache
  int64_t dropped_turns = 0;         // turns that were dropped to make room
};

// Receives new text of a reply in whole characters. false stops the reply; its text so far stays a
// turn.
using ReplySink = std::function<bool(std::string_view text, bool thinking)>;

// For a model without a chat template the turns are joined as plain text, which it continues. Not
// thread-safe.
class LOOM_API Chat {
 public:
  // Errors: those of Model::session().
  static Result<Chat> create(const Model& model, const ConversationOptions& options = {});

  // Adds a question and its reply. If a reply fills the context, older turns are dropped when
  // possible and it continues. Errors: those of ModelSession::generate() and Model::render_chat();
  // out_of_range (a text longer than the context, or a full context with WhenFull::stop). After an
  // error the turns are unchanged. A reply that is stopped before its first token adds no turn.
  Result<Reply> say(std::string_view text, const GenerateOptions& options = {},
                    const ReplySink& sink = {});
  // Adds the results of the calls of the last reply, one for each in the order of the calls, and
  // the reply to them. The id of a call is the model's, or "call" and a five-digit counter. Errors:
  // invalid_argument (the last reply has no calls, a call without a result, a result without a
  // call), and those of say(). After an error the turns are unchanged.
  Result<Reply> give(std::span<const ToolResult> results, const GenerateOptions& options = {},
                     const ReplySink& sink = {});
  // Generates the last reply again and replaces it. Errors: invalid_argument (there is none), and
  // those of say().
  Result<Reply> regenerate(const GenerateOptions& options = {}, const ReplySink& sink = {});
  // Generates all replies again, each with its options and the new replies before it. Returns the
  // index of the first turn that differs, or -1. A reply that was stopped by a callback is compared
  // up to where it stopped. The new turns replace the old ones.
  Result<int64_t> replay();

  void set_system(std::string text);
  const std::string& system() const;
  // Removes all turns; the system turn stays.
  void clear();

  const std::vector<ConversationTurn>& turns() const;
  // Index of the oldest turn in the context.
  int64_t first_turn() const;
  int64_t context() const;  // positions in total
  int64_t used() const;     // positions in use
  bool has_template() const;

  // The turns with their options, and the template's tools, documents and variables, as JSON.
  // restore() replaces the current state. Errors: bad_file, naming the field.
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

// The state of a Chat. For this room; not installed.
#pragma once

#include <string>
#include <vector>

#include "api/engine/impl.hpp"
#include "loom/chat.hpp"

namespace loom {

struct Chat::Impl {
  Model model;
  ModelSession session;
  std::string system{};
  ChatOptions templating{};
  WhenFull on_full = WhenFull::drop_oldest;
  int64_t reserve = 0;
  std::vector<ConversationTurn> turns{};
  size_t first = 0;  // the oldest turn in the context: a question

  struct Prompt {
    std::vector<TokenId> ids;
    bool thinking = false;  // it ends with <think>
  };
  // The turns from `first` on up to the assistant's reply, as text and as tokens.
  Result<std::string> render() const;
  Result<Prompt> prompt() const;
  // The same with room for a reply and `more` tokens, if necessary with fewer turns.
  Result<Prompt> fitting_prompt(int64_t more);
  // Drops the oldest question and all turns up to the next one, unless it is the last.
  bool drop_one();
  // Reads the new tokens of `ids` and continues from there.
  Result<Generation> generate(std::vector<TokenId> ids, const GenerateOptions& options,
                              const TextSink& sink, int64_t& reused);
  Result<Reply> answer(const GenerateOptions& options, const ReplySink& sink);
  // Adds turns together with their reply, or not at all.
  Result<Reply> add(std::vector<ConversationTurn> more, const GenerateOptions& options,
                    const ReplySink& sink);
  // The results of the last reply's calls, as turns.
  Result<std::vector<ConversationTurn>> result_turns(std::span<const ToolResult> results) const;
  void name_calls(std::vector<ToolCall>& calls) const;
  // Replies to the last turn, a question or results of calls. An empty reply adds no turn.
  Result<Reply> reply_to_last(const GenerateOptions& options, const ReplySink& sink);
};

}  // namespace loom

// What a Chat holds. For this room; not installed.
#pragma once

#include <string>
#include <vector>

#include "api/impl.hpp"
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
  size_t first = 0;  // the oldest turn that the model sees: a question

  struct Prompt {
    std::vector<TokenId> ids;
    bool thinking = false;  // it ends with <think>
  };
  // The turns from `first` on as text, up to where the assistant begins to speak, and as tokens.
  Result<std::string> render() const;
  Result<Prompt> prompt() const;
  // The same with room for a reply and `more` tokens, where need be with fewer turns.
  Result<Prompt> fitting_prompt(int64_t more);
  // The oldest question and all up to the next one go, unless it is the last one.
  bool drop_one();
  // Reads what is new of `ids` and goes on from there.
  Result<Generation> generate(std::vector<TokenId> ids, const GenerateOptions& options,
                              const TextSink& sink, int64_t& reused);
  Result<Reply> answer(const GenerateOptions& options, const ReplySink& sink);
  // Turns that are added together with their reply, or not at all.
  Result<Reply> add(std::vector<ConversationTurn> more, const GenerateOptions& options,
                    const ReplySink& sink);
  // Of the last reply's calls, as turns.
  Result<std::vector<ConversationTurn>> result_turns(std::span<const ToolResult> results) const;
  void name_calls(std::vector<ToolCall>& calls) const;
  // The last turn is a question, or what calls gave; its reply becomes a turn, unless nothing was
  // said.
  Result<Reply> reply_to_last(const GenerateOptions& options, const ReplySink& sink);
};

}  // namespace loom

// Chat: a conversation that keeps its KV cache. Each turn renders the whole conversation, and only
// tokens that differ from what the session has read are fed.
#pragma once

#include <string>
#include <vector>

#include "loom/loom.hpp"

namespace loom::cli {

class Chat {
 public:
  Chat(const Model& model, ModelSession& session, const std::string& system, ChatOptions options);

  // The tokens up to where the assistant begins to speak: all, and those to feed now. The session
  // is rewound to where they begin.
  struct Piece {
    std::vector<TokenId> all, fresh;
  };
  Result<Piece> ask(const std::string& question);
  // What the assistant said to the tokens of the last ask().
  void add_reply(const Generation& reply);
  ModelSession& session() { return *session_; }
  // Reads a reply to the last ask(): text, reasoning and calls of tools.
  Result<ReplyParser> reply_parser() const;

 private:
  const Model* model_;
  ModelSession* session_;
  ChatOptions options_;
  std::vector<ChatTurn> turns_;
  std::vector<TokenId> fed_;  // what the session has read, once the reply is there
};

}  // namespace loom::cli

// ToolCall, ParsedReply, ReplyParser: what a model writes in a conversation, told apart into text,
// reasoning and calls of tools while it appears.
//
//   auto parser = model->reply_parser(prompt, tools);
//   session->generate(ids, options, [&](std::string_view text) {
//     for (const loom::ReplyPiece& piece : parser->feed(text)) show(piece);
//     return true;
//   });
//   parser->finish();
//   for (const loom::ToolCall& call : parser->reply().calls) run(call.name, call.arguments);
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loom/export.hpp"
#include "loom/result.hpp"

namespace loom {

struct ToolCall {
  std::string id;         // "" where nobody gave it one
  std::string name;       // of the function
  std::string arguments;  // the text of a JSON object
  // Of a call that a model wrote: what is wrong with it (no such tool, a field that the tool's
  // schema forbids), with the path of the field; "": nothing.
  std::string problem{};
};

struct ReplyPiece {
  enum class Kind : uint8_t {
    text,
    reasoning,
    call,      // a call begins; text: the name of the function
    arguments  // more of the JSON text of its arguments
  };
  Kind kind = Kind::text;
  std::string text;
  int32_t call = -1;  // which one, from 0
};

// All pieces of a kind, put together. What begins like a call and is none stays text.
struct ParsedReply {
  std::string text, reasoning;
  std::vector<ToolCall> calls;
};

// What replies are held to while they are written (Model::call_grammar()).
struct CallRules {
  bool required = false;               // the reply is a call, after reasoning if there is any
  std::vector<std::string> allowed{};  // names of those that may be called; empty: all
  bool parallel = true;                // several calls in one reply
  std::string otherwise{};  // the JSON schema of a reply that calls nothing; "": any text
};

// The result does not depend on where the text is cut into pieces. Not thread-safe.
class LOOM_API ReplyParser {
 public:
  std::vector<ReplyPiece> feed(std::string_view text);
  // No more text comes: what was held back, and calls that can be read though their end is missing.
  std::vector<ReplyPiece> finish();
  // Of the pieces so far; after finish() it is whole.
  const ParsedReply& reply() const;

  struct LOOM_LOCAL Impl;
  explicit ReplyParser(std::unique_ptr<Impl> impl);
  ReplyParser(ReplyParser&&) noexcept;
  ReplyParser& operator=(ReplyParser&&) noexcept;
  ~ReplyParser();

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom

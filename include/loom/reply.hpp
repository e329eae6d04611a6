// ToolCall, ParsedReply, ReplyParser: splits a model's reply into text, reasoning and tool calls
// while it is generated.
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
  std::string id;         // empty if none was assigned
  std::string name;       // of the function
  std::string arguments;  // the text of a JSON object
  // For calls that a model wrote: the fault (no such tool, a field that the tool's schema forbids),
  // with the path of the field. Empty if there is none.
  std::string problem{};
};

struct ReplyPiece {
  enum class Kind : uint8_t {
    text,
    reasoning,
    call,      // a call begins; text is the name of the function
    arguments  // more JSON text of its arguments
  };
  Kind kind = Kind::text;
  std::string text;
  int32_t call = -1;  // index of the call, from 0
};

// All pieces of a kind, concatenated. Text that only begins like a call stays text.
struct ParsedReply {
  std::string text, reasoning;
  std::vector<ToolCall> calls;
};

// Constraints on replies during generation (Model::call_grammar()).
struct CallRules {
  bool required = false;               // the reply is a call, after optional reasoning
  std::vector<std::string> allowed{};  // names of callable functions; empty means all
  bool parallel = true;                // allow several calls in one reply
  std::string otherwise{};             // JSON schema of a reply without calls; empty means any text
};

// The result does not depend on how the text is split into pieces. Not thread-safe.
class LOOM_API ReplyParser {
 public:
  std::vector<ReplyPiece> feed(std::string_view text);
  // Ends the text. Returns buffered pieces, and calls that are readable although their end is
  // missing.
  std::vector<ReplyPiece> finish();
  // The reply so far; complete after finish().
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

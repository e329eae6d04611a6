// What a reply is held to where tools have to be called, or are strict: the text of a grammar, in
// the notation of src/grammar/gbnf.hpp. It says how a family writes calls, and leaves what the
// arguments may be to the schema of each tool.
#pragma once

#include <string>
#include <string_view>

#include "chat/tool_format.hpp"
#include "loom/reply.hpp"

namespace loom::core {

// How a reply may begin.
enum class Thinking {
  never,   // with a call at once
  may,     // with reasoning between its marks, and then a call
  already  // inside of reasoning, which the prompt has opened
};

// "": nothing has to be held to anything. Every text of the grammar is read by ReplyReader as calls
// of tools that may be called, with arguments that obey their schemas (those of tools that are not
// strict: with `required` alone). Errors: unsupported (no way to call; keywords of schemas that a
// way of writing without JSON cannot hold to), invalid_argument (no tools, no such tool).
Result<std::string> call_grammar(const ToolFormat& format, const Tools& tools,
                                 const CallRules& rules, Thinking thinking);

// The schema that the arguments of a tool are held to: its own, without members beyond those that
// it names, unless it says what they are.
JsonValue held_schema(const Tool& tool);

}  // namespace loom::core

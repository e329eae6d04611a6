// The grammar of a reply if tools must be called or are strict, in the notation of
// src/grammar/gbnf.hpp. It defines how a family writes calls; the schema of each tool defines the
// arguments.
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
  already  // inside of reasoning that the prompt has opened
};

// The grammar; "" if there is no constraint. ReplyReader reads every text of the grammar as calls
// of allowed tools, with arguments that match their schemas. (Schemas of tools that are not strict
// apply only with `required`.) Errors: unsupported (the family cannot write calls; schema keywords
// that a format without JSON cannot enforce), invalid_argument (no tools, no such tool).
Result<std::string> call_grammar(const ToolFormat& format, const Tools& tools,
                                 const CallRules& rules, Thinking thinking);

// The schema that constrains the arguments of a tool: its own, without additional members unless it
// describes them.
JsonValue held_schema(const Tool& tool);

}  // namespace loom::core

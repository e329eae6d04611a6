// The formats in which model families write reasoning and calls of tools: one row per format,
// selected by the marks in the chat template. All readers and constraints of calls use the row.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/tools.hpp"

namespace loom::core {

struct ToolFormat {
  enum class Syntax {
    none,
    object,      // open {"name": ..., "arguments": {...}} close
    list,        // open [{"name": ..., "arguments": {...}}, ...] close
    named,       // open NAME separator {...} close
    parameters,  // open NAME separator, then key_open KEY key_close value_open VALUE value_close
    bare         // {"name": ..., "parameters": {...}} as the whole reply
  };
  std::string_view name;
  Syntax syntax = Syntax::none;
  std::string_view shows[3];  // all of them are in the template; the first matching row wins
  std::string_view section_open, section_close;  // around all calls; both may be absent
  std::string_view open, close;                  // around one call, or around the list
  std::string_view separator;
  std::string_view name_open;   // before the name of a call, "functions."
  bool numbered = false;        // after the name a colon and a number
  std::string_view json_close;  // after the JSON of named arguments
  std::string_view id_key;      // of an object, before its name
  std::string_view name_key = "name", arguments_key = "arguments";
  std::string_view key_open, key_close, value_open, value_close;
  std::string_view think_open = "<think>", think_close = "</think>";
  std::string_view passed_over[4];  // marks around the text, not part of it
};

// The row of a chat template; one with Syntax::none if it has no format for calls. `source` is the
// text of the template.
const ToolFormat& tool_format(std::string_view source);
// With tools, if a template has no format: that of most models, which the prompt must then describe
// (serve/dialects/chat_tools.cpp).
const ToolFormat& prompt_format(std::string_view source, bool tools);
std::span<const ToolFormat> tool_formats();
// By its name; may be null: there is none.
const ToolFormat* find_tool_format(std::string_view name);

}  // namespace loom::core

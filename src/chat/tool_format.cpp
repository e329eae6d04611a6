#include "chat/tool_format.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom::core {
namespace {

using Syntax = ToolFormat::Syntax;

// More specific marks come first.
constexpr ToolFormat kFormats[] = {
    {.name = "seed-oss",
     .syntax = Syntax::parameters,
     .shows = {"<seed:tool_call>", "<parameter="},
     .section_open = "<seed:tool_call>",
     .section_close = "</seed:tool_call>",
     .open = "<function=",
     .close = "</function>",
     .separator = ">",
     .key_open = "<parameter=",
     .key_close = ">",
     .value_close = "</parameter>",
     .think_open = "<seed:think>",
     .think_close = "</seed:think>"},
    {.name = "qwen3-coder",
     .syntax = Syntax::parameters,
     .shows = {"<function=", "<parameter="},
     .section_open = "<tool_call>",
     .section_close = "</tool_call>",
     .open = "<function=",
     .close = "</function>",
     .separator = ">",
     .key_open = "<parameter=",
     .key_close = ">",
     .value_close = "</parameter>"},
    {.name = "minimax-m2",
     .syntax = Syntax::parameters,
     .shows = {"<minimax:tool_call>", "invoke name"},
     .section_open = "<minimax:tool_call>",
     .section_close = "</minimax:tool_call>",
     .open = "<invoke name=\"",
     .close = "</invoke>",
     .separator = "\">",
     .key_open = "<parameter name=\"",
     .key_close = "\">",
     .value_close = "</parameter>"},
    {.name = "glm",
     .syntax = Syntax::parameters,
     .shows = {"<arg_key>", "<tool_call>"},
     .open = "<tool_call>",
     .close = "</tool_call>",
     .key_open = "<arg_key>",
     .key_close = "</arg_key>",
     .value_open = "<arg_value>",
     .value_close = "</arg_value>"},
    {.name = "mistral-args",
     .syntax = Syntax::named,
     .shows = {"[TOOL_CALLS]", "[ARGS]"},
     .open = "[TOOL_CALLS]",
     .separator = "[ARGS]",
     .think_open = "[THINK]",
     .think_close = "[/THINK]"},
    {.name = "mistral", .syntax = Syntax::list, .shows = {"[TOOL_CALLS]"}, .open = "[TOOL_CALLS]"},
    {.name = "deepseek-r1",
     .syntax = Syntax::named,
     .shows = {"<｜tool▁call▁begin｜>", "```json"},
     .section_open = "<｜tool▁calls▁begin｜>",
     .section_close = "<｜tool▁calls▁end｜>",
     .open = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
     .close = "<｜tool▁call▁end｜>",
     .separator = "\n```json\n",
     .json_close = "\n```",
     .passed_over = {"```"}},
    {.name = "deepseek-v3.1",
     .syntax = Syntax::named,
     .shows = {"<｜tool▁call▁begin｜>"},
     .section_open = "<｜tool▁calls▁begin｜>",
     .section_close = "<｜tool▁calls▁end｜>",
     .open = "<｜tool▁call▁begin｜>",
     .close = "<｜tool▁call▁end｜>",
     .separator = "<｜tool▁sep｜>"},
    {.name = "kimi-k2",
     .syntax = Syntax::named,
     .shows = {"<|tool_call_begin|>"},
     .section_open = "<|tool_calls_section_begin|>",
     .section_close = "<|tool_calls_section_end|>",
     .open = "<|tool_call_begin|>",
     .close = "<|tool_call_end|>",
     .separator = "<|tool_call_argument_begin|>",
     .name_open = "functions.",
     .numbered = true},
    {.name = "command-r7b",
     .syntax = Syntax::list,
     .shows = {"<|START_ACTION|>"},
     .open = "<|START_ACTION|>",
     .close = "<|END_ACTION|>",
     .id_key = "tool_call_id",
     .name_key = "tool_name",
     .arguments_key = "parameters",
     .think_open = "<|START_THINKING|>",
     .think_close = "<|END_THINKING|>",
     .passed_over = {"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"}},
    {.name = "phi-4-mini",
     .syntax = Syntax::list,
     .shows = {"<|tool_call|>", "<|/tool|>"},
     .open = "<|tool_call|>",
     .close = "<|/tool_call|>"},
    {.name = "granite",
     .syntax = Syntax::list,
     .shows = {"<|tool_call|>"},
     .open = "<|tool_call|>"},
    {.name = "nemotron-v2",
     .syntax = Syntax::list,
     .shows = {"<TOOLCALL>"},
     .open = "<TOOLCALL>",
     .close = "</TOOLCALL>"},
    {.name = "apriel",
     .syntax = Syntax::list,
     .shows = {"<tool_calls>", "Apriel"},
     .open = "<tool_calls>",
     .close = "</tool_calls>"},
    {.name = "functionary-v3.1",
     .syntax = Syntax::named,
     .shows = {"<function=", "</function>"},
     .open = "<function=",
     .close = "</function>",
     .separator = ">"},
    {.name = "firefunction", .syntax = Syntax::list, .shows = {"functools"}, .open = "functools"},
    {.name = "hermes",  // Qwen, SmolLM3, Granite 4 and many more
     .syntax = Syntax::object,
     .shows = {"<tool_call>"},
     .open = "<tool_call>",
     .close = "</tool_call>"},
    {.name = "llama3",
     .syntax = Syntax::bare,
     .shows = {"<|start_header_id|>", "\"parameters\""},
     .arguments_key = "parameters",
     .passed_over = {"<|python_tag|>"}},
    {.name = ""},
};

bool fits(const ToolFormat& format, std::string_view source) {
  return std::all_of(std::begin(format.shows), std::end(format.shows), [&](std::string_view mark) {
    return source.find(mark) != std::string_view::npos;
  });
}

}  // namespace

std::span<const ToolFormat> tool_formats() {
  return kFormats;
}

const ToolFormat& tool_format(std::string_view source) {
  for (const ToolFormat& format : kFormats) {
    if (format.syntax != Syntax::none && fits(format, source)) return format;
  }
  return std::end(kFormats)[-1];
}

const ToolFormat& prompt_format(std::string_view source, bool tools) {
  const ToolFormat& own = tool_format(source);
  return tools && own.syntax == Syntax::none ? *find_tool_format("hermes") : own;
}

const ToolFormat* find_tool_format(std::string_view name) {
  for (const ToolFormat& format : tool_formats()) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

}  // namespace loom::core

// Replies of each family parsed, whole and byte by byte, and random replies cut anywhere.
#include "chat/reply_reader.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "base/text.hpp"

namespace loom::core {
namespace {

Tools weather_tools() {
  const char* json = R"([
    {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object",
      "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1},
                     "units": {"enum": ["c", "f"]}, "deep": {"type": "object"}},
      "required": ["city"], "additionalProperties": false}}},
    {"name": "now"}])";
  return *Tools::read(*parse_json(json, "tools"));
}

// The parts of a reply, one per line. Concatenated parts must give the same.
std::string report(const ReplyReader& reader) {
  std::string out = cat("T:", reader.text(), "\nR:", reader.reasoning());
  for (const ReadCall& call : reader.calls())
    out += cat("\nC:", call.name, call.arguments, call.problem.empty() ? "" : "!");
  return out;
}

// `cut(i)`: bytes of the piece number i.
template <class Cut>
std::string read_reply(const ToolFormat& format, const Tools& tools, bool thinking,
                       std::string_view reply, const Cut& cut) {
  ReplyReader reader(format, tools, thinking);
  std::string text, reasoning;
  std::vector<std::string> calls, arguments;
  const ReplyReader::Sink sink = [&](ReplyReader::Kind kind, std::string_view piece, int call) {
    switch (kind) {
      case ReplyReader::Kind::text: text += piece; break;
      case ReplyReader::Kind::reasoning: reasoning += piece; break;
      case ReplyReader::Kind::call:
        EXPECT_EQ(call, static_cast<int>(calls.size()));
        calls.emplace_back(piece);
        arguments.emplace_back();
        break;
      case ReplyReader::Kind::arguments: arguments.at(static_cast<size_t>(call)) += piece; break;
    }
  };
  for (size_t at = 0, i = 0; at < reply.size(); ++i) {
    const size_t size = std::min<size_t>(cut(i), reply.size() - at);
    reader.feed(reply.substr(at, size), sink);
    at += size;
  }
  reader.finish(sink);
  EXPECT_EQ(text, reader.text());
  EXPECT_EQ(reasoning, reader.reasoning());
  EXPECT_EQ(calls.size(), reader.calls().size());
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i], reader.calls()[i].name);
    EXPECT_EQ(arguments[i], reader.calls()[i].arguments);
  }
  return report(reader);
}

struct Case {
  const char* format;
  const char* reply;
  const char* expected;
};

const Case kCases[] = {
    {"hermes", "Hello <b>you</b>.\n", "T:Hello <b>you</b>.\n\nR:"},
    {"hermes",
     "<think>\nA city.\n</think>\n\nI look.\n<tool_call>\n{\"name\": \"get_weather\", "
     "\"arguments\": {\"city\": \"Paris\", \"days\": 2}}\n</tool_call>\n<tool_call>\n{\"name\": "
     "\"now\", \"arguments\": {}}\n</tool_call>",
     "T:I look.\nR:A city.\nC:get_weather{\"city\": \"Paris\", \"days\": 2}\nC:now{}"},
    {"hermes", "<tool_call>{\"arguments\": {\"city\": \"}{\\\"\"}, \"name\": \"get_weather\"}",
     "T:\nR:\nC:get_weather{\"city\": \"}{\\\"\"}"},
    {"hermes", "<tool_call>\n{\"name\": \"now\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>",
     "T:\nR:\nC:now{\"a\": 1}"},
    {"hermes", "<tool_call> none </tool_call> <tool_c",
     "T:<tool_call> none </tool_call> <tool_c\nR:"},
    {"hermes", "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": 1}}</tool_call>",
     "T:\nR:\nC:get_weather{\"city\": 1}!"},
    {"hermes", "<tool_call>{\"name\": \"fly\", \"arguments\": {}}</tool_call>", "T:\nR:\nC:fly{}!"},
    {"hermes", "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": [1, ",
     "T:\nR:\nC:now{\"a\": [1, !"},
    {"qwen3-coder",
     "Now.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nNew\nYork 1\n</parameter>\n"
     "<parameter=days>\n3\n</parameter>\n<parameter=deep>\n{\"a\": [1]}\n</parameter>\n"
     "</function>\n</tool_call>",
     "T:Now.\nR:\nC:get_weather{\"city\": \"New\\nYork 1\", \"days\": 3, \"deep\": {\"a\":[1]}}"},
    {"qwen3-coder", "<tool_call>\n<function=now>\n</function>\n</tool_call>", "T:\nR:\nC:now{}"},
    {"qwen3-coder", "<tool_call> is a mark", "T:<tool_call> is a mark\nR:"},
    {"seed-oss",
     "<seed:think>hm</seed:think><seed:tool_call>\n<function=get_weather>\n<parameter=city>Bern"
     "</parameter>\n</function>\n</seed:tool_call>",
     "T:\nR:hm\nC:get_weather{\"city\": \"Bern\"}"},
    {"minimax-m2",
     "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">Rome"
     "</parameter>\n</invoke>\n</minimax:tool_call>",
     "T:\nR:\nC:get_weather{\"city\": \"Rome\"}"},
    {"glm",
     "\n<think>x</think>\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo"
     "</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
     "T:\nR:x\nC:get_weather{\"city\": \"Oslo\", \"days\": 2}"},
    {"glm", "<tool_call>now</tool_call>", "T:\nR:\nC:now{}"},
    {"llama3", "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Lima\"}}",
     "T:\nR:\nC:get_weather{\"city\": \"Lima\"}"},
    {"llama3", "<|python_tag|>{\"type\": \"function\", \"name\": \"now\", \"parameters\": {}}",
     "T:\nR:\nC:now{}"},
    {"llama3", "{\"name\": \"Anna\", \"age\": 3}", "T:{\"name\": \"Anna\", \"age\": 3}\nR:"},
    {"llama3", "So {\"name\": \"now\"}", "T:So {\"name\": \"now\"}\nR:"},
    {"mistral",
     "[TOOL_CALLS] [{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Nice\"}, \"id\": "
     "\"abcdefghi\"}, {\"name\": \"now\", \"arguments\": {}}]",
     "T:\nR:\nC:get_weather{\"city\": \"Nice\"}\nC:now{}"},
    {"mistral-args",
     "[THINK]a[/THINK]b[TOOL_CALLS]get_weather[CALL_ID]1[ARGS]{\"city\": \"Lyon\"}[TOOL_CALLS]now"
     "[ARGS]{}",
     "T:b\nR:a\nC:get_weather{\"city\": \"Lyon\"}\nC:now{}"},
    {"deepseek-r1",
     "x\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"
     "\"city\": "
     "\"Xi'an\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```"
     "json\n{}\n```"
     "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "T:x\nR:\nC:get_weather{\"city\": \"Xi'an\"}\nC:now{}"},
    {"deepseek-v3.1",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><"
     "｜tool▁calls▁end｜>",
     "T:\nR:\nC:now{}"},
    {"kimi-k2",
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
     "<|tool_call_argument_begin|>{\"city\": \"Bonn\"}<|tool_call_end|><|tool_calls_section_end|>",
     "T:\nR:\nC:get_weather{\"city\": \"Bonn\"}"},
    {"command-r7b",
     "<|START_THINKING|>I ask.<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", "
     "\"tool_name\": \"get_weather\", \"parameters\": {\"city\": \"Graz\"}}\n]<|END_ACTION|>",
     "T:\nR:I ask.\nC:get_weather{\"city\": \"Graz\"}"},
    {"command-r7b", "<|START_RESPONSE|>Yes.<|END_RESPONSE|>", "T:Yes.<|END_RESPONSE|>\nR:"},
    {"phi-4-mini", "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}]<|/tool_call|>",
     "T:\nR:\nC:now{}"},
    {"granite", "<|tool_call|>[{\"arguments\": {\"city\": \"Ulm\"}, \"name\": \"get_weather\"}]",
     "T:\nR:\nC:get_weather{\"city\": \"Ulm\"}"},
    {"nemotron-v2", "<TOOLCALL>[{\"name\": \"now\", \"arguments\": {}}]</TOOLCALL>",
     "T:\nR:\nC:now{}"},
    {"functionary-v3.1", "<function=get_weather>{\"city\": \"Kiel\"}</function>",
     "T:\nR:\nC:get_weather{\"city\": \"Kiel\"}"},
    {"firefunction", " functools[{\"name\": \"now\", \"arguments\": {}}]", "T:\nR:\nC:now{}"},
    {"", "<tool_call> <think>so</think> ok", "T:<tool_call>ok\nR:so"},
};

TEST(ReplyReaderTest, EachFamilyIsReadWholeAndByteByByte) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(cat(c.format, ": ", c.reply));
    const ToolFormat* format = find_tool_format(c.format);
    ASSERT_NE(format, nullptr);
    const Tools tools = weather_tools();
    EXPECT_EQ(read_reply(*format, tools, false, c.reply, [](size_t) { return SIZE_MAX; }),
              c.expected);
    EXPECT_EQ(read_reply(*format, tools, false, c.reply, [](size_t) { return 1; }), c.expected);
  }
}

TEST(ReplyReaderTest, APromptThatEndsInReasoningBeginsThere) {
  const ToolFormat& format = *find_tool_format("hermes");
  EXPECT_EQ(read_reply(format, {}, true, "\nhm </th\n</think>\n\nYes.", [](size_t) { return 1; }),
            "T:Yes.\nR:hm </th");
}

// A random tool call written as the family writes it.
std::string write_call(const ToolFormat& f, const std::string& name, const JsonValue& arguments) {
  JsonValue call;
  call.add(std::string(f.name_key), JsonValue::string(name));
  call.add(std::string(f.arguments_key), arguments);
  switch (f.syntax) {
    case ToolFormat::Syntax::object: return cat(f.open, "\n", dump_json(call), "\n", f.close);
    case ToolFormat::Syntax::list: return cat(f.open, "[", dump_json(call), "]", f.close);
    case ToolFormat::Syntax::named:
      return cat(f.section_open, f.open, name, f.separator, dump_json(arguments), f.close,
                 f.section_close);
    case ToolFormat::Syntax::bare: return dump_json(call);
    default: break;
  }
  std::string out = cat(f.section_open, f.open, name, f.separator);
  for (const auto& [key, value] : arguments.members()) {
    out += cat("\n", f.key_open, key, f.key_close, f.value_open,
               value.is_string() ? value.text() : dump_json(value), f.value_close);
  }
  return cat(out, "\n", f.close, f.section_close);
}

JsonValue random_json(std::mt19937& random, int depth) {
  switch (random() % (depth > 0 ? 7 : 5)) {
    case 0: return JsonValue::integer(static_cast<int64_t>(random() % 2000) - 1000);
    case 1: return JsonValue::boolean(random() % 2 == 0);
    case 2: return JsonValue::real(static_cast<double>(random() % 1000) / 8);
    case 3: {
      static const char* const kTexts[] = {"", "a b", "}{][\"\\", "naïve 漢字", "x\ny\t", "<tool>"};
      return JsonValue::string(kTexts[random() % 6]);
    }
    case 4: return {};
    case 5: {
      JsonValue list = JsonValue::array();
      for (size_t i = random() % 3; i > 0; --i) list.push(random_json(random, depth - 1));
      return list;
    }
    default: {
      JsonValue object = JsonValue::object();
      for (size_t i = random() % 3; i > 0; --i)
        object.add(cat("k", i), random_json(random, depth - 1));
      return object;
    }
  }
}

// A schema whose one rule for each key is the type of the value.
Tools random_tools(const JsonValue& arguments) {
  JsonValue properties = JsonValue::object();
  for (const auto& [key, value] : arguments.members()) {
    JsonValue schema;
    if (value.is_string()) schema.add("type", JsonValue::string("string"));
    properties.add(key, schema.is_null() ? JsonValue::object() : std::move(schema));
  }
  JsonValue parameters, tool, all;
  parameters.add("type", JsonValue::string("object"));
  parameters.add("properties", std::move(properties));
  parameters.add("additionalProperties", JsonValue::boolean(false));
  tool.add("name", JsonValue::string("some_tool"));
  tool.add("parameters", std::move(parameters));
  all.push(std::move(tool));
  return *Tools::read(all);
}

TEST(ReplyReaderTest, RandomCallsComeBackHoweverTheyAreCut) {
  const char* more = std::getenv("LOOM_CASES");
  const unsigned cases = more != nullptr ? static_cast<unsigned>(std::atoi(more)) : 400;
  for (unsigned seed = 0; seed < cases; ++seed) {
    std::mt19937 random(seed);
    const auto formats = tool_formats();
    const ToolFormat& format = formats[random() % (formats.size() - 1)];
    JsonValue arguments = JsonValue::object();
    for (size_t i = random() % 4; i > 0; --i) arguments.add(cat("key_", i), random_json(random, 2));
    const Tools tools = random_tools(arguments);
    const bool bare = format.syntax == ToolFormat::Syntax::bare;
    const std::string text = bare || random() % 2 == 0 ? "" : "I will < see.";
    const std::string reply = cat(text, write_call(format, "some_tool", arguments));
    SCOPED_TRACE(cat("seed ", seed, " ", format.name, ": ", reply));
    ReplyReader full(format, tools, false);
    full.feed(reply, {});
    full.finish({});
    ASSERT_EQ(full.calls().size(), 1U);
    EXPECT_EQ(full.text(), text);
    EXPECT_EQ(full.calls()[0].name, "some_tool");
    EXPECT_EQ(full.calls()[0].problem, "");
    const Result<JsonValue> back = parse_json(full.calls()[0].arguments, "arguments");
    ASSERT_TRUE(back.ok()) << full.calls()[0].arguments;
    if (format.syntax != ToolFormat::Syntax::parameters) {  // it cuts line ends of values
      EXPECT_EQ(dump_json(*back), dump_json(arguments));
    }
    EXPECT_EQ(read_reply(format, tools, false, reply, [&](size_t) { return 1 + random() % 5; }),
              report(full));
  }
}

// Random bytes out of marks and JSON: nothing crashes, and no cut changes anything.
TEST(ReplyReaderTest, RandomRepliesDoNotDependOnTheirCuts) {
  for (unsigned seed = 0; seed < 600; ++seed) {
    std::mt19937 random(seed);
    const auto formats = tool_formats();
    const ToolFormat& f = formats[random() % formats.size()];
    const std::string_view parts[] = {
        f.open,      f.close,      f.section_open,    f.section_close, f.separator,   f.key_open,
        f.key_close, f.value_open, f.value_close,     f.think_open,    f.think_close, "{\"name\": ",
        "\"now\"",   ", ",         "\"arguments\": ", "{\"a\": 1}",    "}",           "[",
        "]",         "\n",         " text ",          "now",           "\"",          "{",
        "<",         "漢"};
    std::string reply;
    for (size_t i = random() % 24; i > 0; --i) reply += parts[random() % std::size(parts)];
    const bool thinking = random() % 4 == 0;
    SCOPED_TRACE(cat("seed ", seed, " ", f.name, ": ", reply));
    const Tools tools = weather_tools();
    const std::string full = read_reply(f, tools, thinking, reply, [](size_t) { return SIZE_MAX; });
    EXPECT_EQ(read_reply(f, tools, thinking, reply, [](size_t) { return 1; }), full);
  }
}

TEST(ToolsTest, WhatASchemaForbidsIsNamedWithItsPath) {
  const Tools tools = weather_tools();
  const std::pair<const char*, const char*> cases[] = {
      {R"({"city": "a", "days": 2, "units": "c"})", ""},
      {R"({"days": 2})", "arguments.city is missing"},
      {R"({"city": 3})", "arguments.city must be of type string, not 3"},
      {R"({"city": "a", "days": 0})", "arguments.days has minimum 1, but is 0"},
      {R"({"city": "a", "days": 1.5})", "arguments.days must be of type integer, not 1.5"},
      {R"({"city": "a", "units": "k"})", "arguments.units must be one of [\"c\",\"f\"], not \"k\""},
      {R"({"city": "a", "more": 1})", "arguments.more must not be there"},
      {R"([])", "arguments: must be an object"},
  };
  for (const auto& [arguments, problem] : cases)
    EXPECT_EQ(tools.problem("get_weather", arguments), problem) << arguments;
  EXPECT_EQ(tools.problem("fly", "{}"), "there is no tool 'fly'");
}

TEST(ToolsTest, WhatIsNoToolIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "tools: tools must be an array of functions"},
      {R"([{"type": "function"}])", "tools[0]: a function needs a name"},
      {R"([{"name": "a"}, {"name": "a"}])", "tools[1]: two functions are called 'a'"},
      {R"([{"name": "a", "parameters": 1}])",
       "tools[0]: parameters must be a JSON schema, an object"},
  };
  for (const auto& [json, error] : cases) {
    const Result<Tools> tools = Tools::read(*parse_json(json, "t"));
    ASSERT_FALSE(tools.ok());
    EXPECT_EQ(tools.error().str(), error);
  }
}

}  // namespace
}  // namespace loom::core

// Calls of tools and reasoning through every dialect, with a model whose reply is fixed.
#include <gmock/gmock.h>

#include "client.hpp"
#include "serve/server.hpp"
#include "stand_in.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

// As Qwen's templates go, in short.
const char* const kHermes =
    "{% if tools %}T{{ tools | tojson }}<tool_call>{% endif %}{% for m in messages %}{{ m.role }}:"
    "{{ m.content if m.content is not none }}{% for c in m.tool_calls %}[{{ c.function.name }}"
    "{{ c.function.arguments | tojson }}]{% endfor %}{{ m.tool_call_id }}\n{% endfor %}"
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}<begin>";

const std::vector<std::string> kReply = {"<think>",
                                         "Hm",
                                         "m.",
                                         "</think>",
                                         "\n\nI ",
                                         "look.",
                                         "\n<tool_call>",
                                         "\n{\"name\": ",
                                         "\"get_weather\"",
                                         ", \"arguments\": {\"ci",
                                         "ty\": \"Par",
                                         "is\"}}",
                                         "\n</tool_call>"};

const char* const kTools =
    R"([{"type":"function","function":{"name":"get_weather","parameters":{"type":"object",
    "properties":{"city":{"type":"string"}},"required":["city"]}}}])";

class ToolsServed : public testing::Test {
 protected:
  void SetUp() override {
    LlmServerOptions options;
    options.port = 0;
    options.service.name = "stand-in";
    options.service.version = "test";
    options.service.scheduler.session.context = 1024;
    Result<std::unique_ptr<LlmServer>> server = LlmServer::start(model_.load(), options);
    ASSERT_TRUE(server.ok()) << server.error().str();
    server_ = std::move(*server);
  }
  Answer post(std::string_view path, std::string_view body) const {
    return ask(server_->port(), "POST", path, body);
  }
  static std::string chat(const std::string& more) {
    return cat(R"({"messages":[{"role":"user","content":"Paris?"}],"temperature":0,)", more, "}");
  }
  static std::vector<JsonValue> events(const std::string& stream) {
    std::vector<JsonValue> out;
    for (size_t at = stream.find("data: {"); at != std::string::npos;
         at = stream.find("data: {", at + 1)) {
      Result<JsonValue> json =
          parse_json(stream.substr(at + 6, stream.find('\n', at) - at - 6), "event");
      EXPECT_TRUE(json.ok());
      out.push_back(std::move(*json));
    }
    return out;
  }

  const StandIn model_{kHermes, kReply};
  std::unique_ptr<LlmServer> server_;
};

TEST_F(ToolsServed, ThinkingOfAMessageIsAVariableOfTheTemplate) {
  const auto ask_with = [&](std::string_view thinking) {
    return post("/v1/messages/count_tokens",
                cat(R"({"messages":[{"role":"user","content":"Hi"}])", thinking, "}"));
  };
  const std::string unsaid = ask_with("").body;
  EXPECT_EQ(ask_with(R"(,"thinking":{"type":"adaptive"})").body, unsaid);
  EXPECT_EQ(ask_with(R"(,"thinking":{"type":"enabled","budget_tokens":50})").body, unsaid);
  const Answer off = ask_with(R"(,"thinking":{"type":"disabled"})");
  EXPECT_EQ(off.status, 200) << off.body;
  EXPECT_NE(off.body, unsaid);
  for (const char* wrong :
       {R"({"type":"maybe"})", R"({"type":"enabled","budget_tokens":-1})", R"("enabled")"})
    EXPECT_EQ(ask_with(cat(R"(,"thinking":)", wrong)).status, 400) << wrong;
}

TEST_F(ToolsServed, OpenAiGetsCallsReasoningAndText) {
  const Answer answer = post("/v1/chat/completions", chat(cat("\"tools\":", kTools)));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const JsonValue choice = answer.json().find("choices")->elements()[0];
  EXPECT_EQ(choice.find("finish_reason")->text(), "tool_calls");
  const JsonValue& message = *choice.find("message");
  EXPECT_EQ(message.find("content")->text(), "I look.");
  EXPECT_EQ(message.find("reasoning_content")->text(), "Hmm.");
  ASSERT_EQ(message.find("tool_calls")->elements().size(), 1U);
  const JsonValue& call = message.find("tool_calls")->elements()[0];
  EXPECT_THAT(call.find("id")->text(), MatchesRegex("call_[0-9A-Za-z]+"));
  EXPECT_EQ(call.find("id")->text().size(), 29U);
  EXPECT_EQ(call.find("function")->find("name")->text(), "get_weather");
  EXPECT_EQ(call.find("function")->find("arguments")->text(), R"({"city": "Paris"})");
  EXPECT_EQ(call.find("problem"), nullptr);
}

TEST_F(ToolsServed, OpenAiStreamsTheNameAndThenTheArguments) {
  const Answer answer =
      post("/v1/chat/completions", chat(cat("\"stream\":true,\"tools\":", kTools)));
  std::string text, reasoning, name, arguments, why;
  int ids = 0;
  for (const JsonValue& event : events(answer.body)) {
    const JsonValue& choice = event.find("choices")->elements()[0];
    const JsonValue& delta = *choice.find("delta");
    if (const JsonValue* part = delta.find("content")) text += part->text();
    if (const JsonValue* part = delta.find("reasoning_content")) reasoning += part->text();
    why += choice.find("finish_reason")->text();
    const JsonValue* calls = delta.find("tool_calls");
    if (calls == nullptr) continue;
    const JsonValue& call = calls->elements()[0];
    EXPECT_EQ(*call.find("index")->as_int("index"), 0);
    ids += call.find("id") != nullptr ? 1 : 0;
    if (const JsonValue* part = call.find("function")->find("name")) {
      EXPECT_EQ(arguments, "");
      name += part->text();
    }
    arguments += call.find("function")->find("arguments")->text();
  }
  EXPECT_EQ(text, "I look.");
  EXPECT_EQ(reasoning, "Hmm.");
  EXPECT_EQ(name, "get_weather");
  EXPECT_EQ(arguments, R"({"city": "Paris"})");
  EXPECT_EQ(why, "tool_calls");
  EXPECT_EQ(ids, 1);
}

TEST_F(ToolsServed, ArgumentsThatTheSchemaForbidsAreNamed) {
  const Answer answer = post("/v1/chat/completions", chat(R"("tools":[{"type":"function","function":
      {"name":"get_weather","parameters":{"properties":{"city":{"type":"integer"}}}}}])"));
  EXPECT_THAT(answer.body, HasSubstr("arguments.city must be of type integer, not \\\"Paris\\\""));
}

TEST_F(ToolsServed, TheTemplateSeesToolsResultsAndVariables) {
  const Answer answer = post("/apply-template", cat(R"({"messages":[
      {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":
        {"name":"get_weather","arguments":"{\"city\":\"Rome\"}"}}]},
      {"role":"tool","tool_call_id":"c1","content":"21"}],
      "chat_template_kwargs":{"enable_thinking":false},"tools":)",
                                                    kTools, "}"));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const std::string prompt = answer.json().find("prompt")->text();
  EXPECT_THAT(prompt, HasSubstr("T[{\"type\": \"function\", \"function\": {\"name\": "));
  EXPECT_THAT(prompt, HasSubstr("assistant:[get_weather{\"city\": \"Rome\"}]\ntool:21c1\n"
                                "<think></think><begin>"));
  const Answer none = post("/apply-template", cat(R"({"messages":[{"role":"user","content":"x"}],
      "tool_choice":"none","tools":)",
                                                  kTools, "}"));
  EXPECT_EQ(none.json().find("prompt")->text(), "user:x\n<begin>");
}

TEST_F(ToolsServed, WhatCannotBeHeldIsRefusedByName) {
  const Answer answer =
      post("/v1/chat/completions", chat(cat("\"tool_choice\":\"any of\",\"tools\":", kTools)));
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("tool_choice must be"));
  EXPECT_THAT(post("/v1/chat/completions", chat("\"tools\":[{\"type\":\"function\"}]")).body,
              HasSubstr("a function needs a name"));
  EXPECT_THAT(post("/v1/chat/completions", chat("\"chat_template_kwargs\":3")).body,
              HasSubstr("chat_template_kwargs must be an object"));
}

TEST_F(ToolsServed, AnthropicGetsBlocks) {
  const std::string tools = R"("max_tokens":99,"tools":[{"name":"get_weather","input_schema":
      {"type":"object"}}])";
  const Answer answer = post("/v1/messages", chat(tools));
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.json().find("stop_reason")->text(), "tool_use");
  const auto blocks = answer.json().find("content")->elements();
  ASSERT_EQ(blocks.size(), 3U);
  EXPECT_EQ(blocks[0].find("thinking")->text(), "Hmm.");
  EXPECT_EQ(blocks[1].find("text")->text(), "I look.");
  EXPECT_EQ(blocks[2].find("type")->text(), "tool_use");
  EXPECT_EQ(dump_json(*blocks[2].find("input")), R"({"city":"Paris"})");

  const Answer stream = post("/v1/messages", chat("\"stream\":true," + tools));
  std::string order, json;
  int64_t open = -1;
  for (const JsonValue& event : events(stream.body)) {
    const std::string& type = event.find("type")->text();
    if (type == "content_block_start") {
      EXPECT_EQ(*event.find("index")->as_int("index"), ++open);
      order += event.find("content_block")->find("type")->text() + " ";
    }
    if (type != "content_block_delta") continue;
    EXPECT_EQ(*event.find("index")->as_int("index"), open);
    const JsonValue* part = event.find("delta")->find("partial_json");
    if (part != nullptr) json += part->text();
  }
  EXPECT_EQ(order, "thinking text tool_use ");
  EXPECT_EQ(json, R"({"city": "Paris"})");
  EXPECT_THAT(stream.body, HasSubstr("\"stop_reason\":\"tool_use\""));
}

TEST_F(ToolsServed, AnthropicsBlocksBecomeTurns) {
  const Answer answer = post("/v1/messages/count_tokens", R"({"messages":[
      {"role":"user","content":"Rome?"},
      {"role":"assistant","content":[{"type":"text","text":"So"},
        {"type":"tool_use","id":"t1","name":"get_weather","input":{"city":"Rome"}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"21"}]}]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  // user:Rome?\n assistant:So[get_weather{"city": "Rome"}]\n tool:21t1\n and the mark
  EXPECT_EQ(*answer.json().find("input_tokens")->as_int(""), 11 + 42 + 10 + 1);
}

TEST_F(ToolsServed, OllamaGetsArgumentsAsAnObject) {
  const Answer answer =
      post("/api/chat",
           chat(cat("\"stream\":false,\"options\":{\"temperature\":0},\"tools\":", kTools)));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const JsonValue message = *answer.json().find("message");
  EXPECT_EQ(message.find("content")->text(), "I look.");
  EXPECT_EQ(message.find("thinking")->text(), "Hmm.");
  EXPECT_EQ(dump_json(*message.find("tool_calls")->elements()[0].find("function")),
            R"({"name":"get_weather","arguments":{"city":"Paris"}})");
  const Answer stream =
      post("/api/chat", chat(cat("\"options\":{\"temperature\":0},\"tools\":", kTools)));
  EXPECT_THAT(stream.body, HasSubstr("\"tool_calls\":[{\"function\":{\"name\":\"get_weather\""));
  EXPECT_THAT(stream.body, Not(HasSubstr("<tool_call>")));
}

// A template without tools: the prompt describes them, and replies are parsed in the format that
// the prompt asks for.
TEST(Tools, AreToldWhereTheTemplateKnowsNone) {
  const StandIn model("{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}<begin>",
                      kReply);
  LlmServerOptions options;
  options.port = 0;
  options.service.name = "stand-in";
  options.service.version = "test";
  options.service.scheduler.session.context = 1024;
  const auto server = LlmServer::start(model.load(), options);
  ASSERT_TRUE(server.ok()) << server.error().str();
  const std::string body =
      cat(R"({"temperature":0,"tools":)", kTools,
          R"(,"messages":[{"role":"user","content":"Rome?"},{"role":"assistant","content":null,)",
          R"("tool_calls":[{"id":"a","type":"function","function":{"name":"get_weather",)",
          R"("arguments":"{\"city\": \"Rome\"}"}}]},{"role":"tool","tool_call_id":"a",)",
          R"("content":"dry"},{"role":"user","content":"Paris?"}]})");
  const Answer shown = ask((*server)->port(), "POST", "/apply-template", body);
  ASSERT_EQ(shown.status, 200) << shown.body;
  const JsonValue prompt_json = shown.json();
  const std::string prompt = prompt_json.find("prompt")->text();
  EXPECT_THAT(prompt, testing::StartsWith("system:You may call functions"));
  EXPECT_THAT(prompt, HasSubstr("\"get_weather\""));
  EXPECT_THAT(prompt, HasSubstr("assistant:<tool_call>\n{\"name\": \"get_weather\", "
                                "\"arguments\": {\"city\": \"Rome\"}}\n</tool_call>\n"));
  EXPECT_THAT(prompt, HasSubstr("user:<tool_response>\ndry\n</tool_response>\n"));
  const Answer answer = ask((*server)->port(), "POST", "/v1/chat/completions", body);
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr("\"finish_reason\":\"tool_calls\""));
  EXPECT_THAT(answer.body, HasSubstr("\"name\":\"get_weather\""));
}

TEST_F(ToolsServed, AnthropicsBlocksAreOneTextWithNewLines) {
  const auto tokens = [&](const char* body) {
    const Answer answer = post("/v1/messages/count_tokens", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return *answer.json().find("input_tokens")->as_int("");
  };
  const int64_t joined = tokens(R"({"system":"Be\nshort.","messages":[{"role":"user",
                                   "content":"Hi\nyou"}]})");
  EXPECT_EQ(joined, tokens(R"({"system":[{"type":"text","text":"Be"},
                                         {"type":"text","text":"short."}],
                               "messages":[{"role":"user","content":[
                                   {"type":"text","text":"Hi"},{"type":"text","text":"you"}]}]})"));
  EXPECT_GT(joined, tokens(R"({"system":"Beshort.","messages":[{"role":"user",
                               "content":"Hiyou"}]})"));
}

// llama.cpp and vLLM put a new line between parts if the template supports only texts.
TEST(Parts, AreOneTextWithNewLinesUnlessTheTemplatePrintsParts) {
  const auto prompt = [](const char* chat_template, const char* first = "One.") {
    const StandIn model(chat_template, kReply);
    LlmServerOptions options;
    options.port = 0;
    options.service.name = "stand-in";
    options.service.version = "test";
    options.service.scheduler.session.context = 1024;
    const auto server = LlmServer::start(model.load(), options);
    EXPECT_TRUE(server.ok()) << server.error().str();
    const Answer shown = ask((*server)->port(), "POST", "/apply-template",
                             cat(R"({"messages":[{"role":"user","content":[
                                 {"type":"text","text":")",
                                 first, R"("},{"type":"text","text":"Two."}]}]})"));
    EXPECT_EQ(shown.status, 200) << shown.body;
    return shown.json().find("prompt")->text();
  };
  EXPECT_EQ(prompt("{% for m in messages %}{{ m.content }}{% endfor %}"), "One.\nTwo.");
  EXPECT_EQ(prompt("{% for m in messages %}<{{ m.content + '>' }}{% endfor %}"), "<One.\nTwo.>");
  EXPECT_EQ(prompt("{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
                   "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}{% endfor %}"),
            "One.Two.");
  EXPECT_EQ(prompt("{% for m in messages %}{% for p in m.content if m.content is not string %}"
                   "{{ p.text }}{{ ' ' if not loop.last }}{% endfor %}"
                   "{{ m.content if m.content is string }}{% endfor %}"),
            "One. Two.");
  EXPECT_EQ(prompt("{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
                   "{% for p in m.content %}{{ p.text | trim }}{% endfor %}{% endif %}{% endfor %}",
                   "One. "),
            "One.Two.");
}

}  // namespace
}  // namespace loom::core::test

// Forced calls and strict tools in every call format: an untrained model samples at random, and its
// output is a call that obeys its schema.
#include <gmock/gmock.h>

#include <cstdlib>

#include "chat/tool_format.hpp"
#include "client.hpp"
#include "serve/server.hpp"
#include "stand_in.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;

const char* const kForcedTools = R"([
  {"type":"function","function":{"name":"get_weather","strict":true,"parameters":{"type":"object",
    "properties":{"city":{"type":"string","maxLength":9},"unit":{"type":"string","enum":["c","f"]},
      "days":{"type":"integer","minimum":1,"maximum":14},"at":{"$ref":"#/$defs/Place"},
      "tags":{"type":"array","items":{"enum":["a","\"b\"",3]},"maxItems":2}},
    "required":["city","days"],"$defs":{"Place":{"type":["object","null"],
      "properties":{"x":{"type":"integer","minimum":0,"maximum":9}},"required":["x"],
      "additionalProperties":false}}}}},
  {"type":"function","function":{"name":"now"}}])";

// A prompt that shows the marks of a call format, without reasoning.
std::string template_of(const ToolFormat& format, const std::string& end = "<begin>") {
  std::string marks;
  for (const std::string_view mark : format.shows) marks += cat(mark, " ");
  return cat("{# ", marks, "#}{% for m in messages %}{{ m.content }}{% endfor %}", end);
}

int seeds() {
  const char* more = std::getenv("LOOM_CALL_SEEDS");
  return more != nullptr ? std::atoi(more) : 6;
}

class Asking {
 public:
  explicit Asking(const Model& model) : model_(model) {
    LlmServerOptions options;
    options.port = 0;
    options.service.name = "stand-in";
    options.service.version = "test";
    options.service.scheduler.session.context = 1500;
    Result<std::unique_ptr<LlmServer>> server = LlmServer::start(model, options);
    EXPECT_TRUE(server.ok()) << server.error().str();
    server_ = std::move(*server);
  }
  JsonValue post(std::string_view path, const std::string& body) const {
    const Answer answer = ask(server_->port(), "POST", path, body);
    EXPECT_EQ(answer.status, 200) << answer.body << body;
    return answer.json();
  }
  Answer raw(std::string_view path, const std::string& body) const {
    return ask(server_->port(), "POST", path, body);
  }
  const Model& model() const { return model_; }

 private:
  const Model model_;
  std::unique_ptr<LlmServer> server_;
};

const std::string kSay = R"("messages":[{"role":"user","content":"x"}],"max_tokens":1400,)";

// Checks that calls are complete and valid: allowed names, and arguments that match their schema.
void expect_calls(const JsonValue& reply, const std::string& only, bool parallel) {
  const JsonValue& choice = reply.find("choices")->elements()[0];
  // At random there may be more calls than tokens.
  const bool cut = parallel && choice.find("finish_reason")->text() == "length";
  EXPECT_TRUE(cut || choice.find("finish_reason")->text() == "tool_calls") << dump_json(choice);
  const JsonValue& message = *choice.find("message");
  EXPECT_TRUE(cut || message.find("content")->is_null()) << dump_json(message);
  ASSERT_NE(message.find("tool_calls"), nullptr) << dump_json(message);
  const auto& calls = message.find("tool_calls")->elements();
  ASSERT_FALSE(calls.empty());
  EXPECT_TRUE(parallel || calls.size() == 1U);
  const Tools tools = *Tools::read(*parse_json(kForcedTools, "tools"));
  for (const JsonValue& call : calls) {
    if (cut && &call == &calls.back()) break;
    const JsonValue& function = *call.find("function");
    const std::string& name = function.find("name")->text();
    EXPECT_TRUE(only.empty() || name == only) << name;
    EXPECT_EQ(call.find("problem"), nullptr) << dump_json(call);
    EXPECT_EQ(tools.problem(name, function.find("arguments")->text()), "") << dump_json(call);
  }
}

TEST(ForcedCalls, EveryWayOfWritingGivesCallsThatObeyTheirSchemas) {
  size_t ways = 0;
  for (const ToolFormat& format : tool_formats()) {
    if (format.syntax == ToolFormat::Syntax::none) continue;
    SCOPED_TRACE(std::string(format.name));
    ++ways;
    // One of the marks is a separate token, as in most models.
    const StandIn model(template_of(format), {std::string(format.open.empty() ? "{" : format.open) +
                                              (format.open.empty() ? "\n" : "")});
    const Asking server(model.load());
    ASSERT_EQ(server.model().tool_format(), format.name);
    for (int seed = 0; seed < seeds(); ++seed) {
      const bool parallel = seed % 2 == 0;
      const std::string only = seed % 3 == 0 ? "" : seed % 3 == 1 ? "get_weather" : "now";
      const std::string choice =
          only.empty() ? "\"required\""
                       : cat(R"({"type":"function","function":{"name":")", only, "\"}}");
      const JsonValue reply = server.post(
          "/v1/chat/completions", cat("{", kSay, "\"seed\":", seed, ",\"tool_choice\":", choice,
                                      ",\"parallel_tool_calls\":", parallel ? "true" : "false",
                                      ",\"tools\":", kForcedTools, "}"));
      expect_calls(reply, only, parallel);
    }
  }
  EXPECT_EQ(ways, 18U);
}

class ForcedHermes : public testing::Test {
 protected:
  ForcedHermes()
      : model_(template_of(*find_tool_format("hermes")), {"<tool_call>"}), server_(model_.load()) {}
  const StandIn model_;
  const Asking server_;
};

TEST_F(ForcedHermes, AnthropicForcesAnyOrOneByName) {
  const std::string tools = R"("tools":[{"name":"one","input_schema":{"type":"object","properties":
      {"n":{"type":"integer","minimum":3,"maximum":4}},"required":["n"]}},{"name":"two"}])";
  const JsonValue one = server_.post(
      "/v1/messages",
      cat("{", kSay, R"("seed":1,"tool_choice":{"type":"tool","name":"one"},)", tools, "}"));
  EXPECT_EQ(one.find("stop_reason")->text(), "tool_use");
  const JsonValue& block = one.find("content")->elements()[0];
  EXPECT_EQ(block.find("name")->text(), "one");
  EXPECT_THAT(dump_json(*block.find("input")), testing::AnyOf(R"({"n":3})", R"({"n":4})"));
  const JsonValue any = server_.post(
      "/v1/messages",
      cat("{", kSay, R"("seed":1,"tool_choice":{"type":"any","disable_parallel_tool_use":true},)",
          tools, "}"));
  EXPECT_EQ(any.find("content")->elements().size(), 1U);
  EXPECT_EQ(any.find("content")->elements()[0].find("type")->text(), "tool_use");
}

TEST_F(ForcedHermes, OneOfAFewThatAreAllowed) {
  const JsonValue reply =
      server_.post("/v1/chat/completions",
                   cat("{", kSay, R"("seed":3,"tool_choice":{"type":"allowed_tools","allowed_tools":
          {"mode":"required","tools":[{"type":"function","function":{"name":"now"}}]}},"tools":)",
                       kForcedTools, "}"));
  expect_calls(reply, "now", true);
}

TEST_F(ForcedHermes, WhatCannotBeHeldToIsNamed) {
  const auto refused = [&](const std::string& fields) {
    const Answer answer = server_.raw("/v1/chat/completions", cat("{", kSay, fields, "}"));
    EXPECT_EQ(answer.status, 400) << answer.body;
    return answer.body;
  };
  const std::string tools = cat("\"tools\":", kForcedTools);
  EXPECT_THAT(refused("\"tool_choice\":\"required\""), HasSubstr("there are no tools"));
  EXPECT_THAT(refused(cat("\"tool_choice\":\"maybe\",", tools)), HasSubstr("tool_choice must be"));
  EXPECT_THAT(refused(cat(R"("tool_choice":{"type":"function","function":{"name":"no"}},)", tools)),
              HasSubstr("there is no tool 'no'"));
  EXPECT_THAT(refused(cat(R"("grammar":"root ::= [a-z]+","tool_choice":"required",)", tools)),
              HasSubstr("ask for one of them"));
  EXPECT_THAT(refused(R"("tools":[{"type":"function","function":{"name":"f","strict":true,
      "parameters":{"properties":{"a":{"not":{}}}}}}])"),
              HasSubstr("parameters of f#/properties/a/not"));
}

TEST_F(ForcedHermes, ResponsesHaveCallsAsItems) {
  const std::string ask = R"({"input":[{"role":"user","content":"x"},
      {"type":"reasoning","id":"rs_1","summary":[],
       "content":[{"type":"reasoning_text","text":"h"}]},
      {"type":"function_call","call_id":"c1","name":"now","arguments":"{}"},
      {"type":"function_call_output","call_id":"c1","output":"noon"}],"seed":5,
      "max_output_tokens":1400,"tool_choice":"required","parallel_tool_calls":false,"tools":[
      {"type":"function","name":"set","parameters":{"properties":{"n":{"enum":[1,2]}},
       "required":["n"]}}])";
  const JsonValue reply = server_.post("/v1/responses", ask + "}");
  ASSERT_EQ(reply.find("output")->elements().size(), 1U) << dump_json(reply);
  const JsonValue& call = reply.find("output")->elements()[0];
  EXPECT_EQ(call.find("type")->text(), "function_call");
  EXPECT_EQ(call.find("name")->text(), "set");
  EXPECT_THAT(call.find("call_id")->text(), testing::StartsWith("call_"));
  EXPECT_THAT(call.find("arguments")->text(), testing::MatchesRegex(R"(\{.*"n": ?[12].*\})"));

  const Answer stream = server_.raw("/v1/responses", ask + ",\"stream\":true}");
  std::string arguments, order;
  int64_t number = 0;
  for (size_t at = stream.body.find("data: {"); at != std::string::npos;
       at = stream.body.find("data: {", at + 1)) {
    const Result<JsonValue> event =
        parse_json(stream.body.substr(at + 6, stream.body.find('\n', at) - at - 6), "event");
    ASSERT_TRUE(event.ok());
    EXPECT_EQ(*event->find("sequence_number")->as_int(""), number++);
    const std::string& type = event->find("type")->text();
    if (type == "response.function_call_arguments.delta") {
      arguments += event->find("delta")->text();
    } else {
      order += type.substr(9) + " ";
    }
  }
  EXPECT_EQ(arguments, call.find("arguments")->text());
  EXPECT_EQ(order,
            "created in_progress output_item.added function_call_arguments.done "
            "output_item.done completed ");
}

// As Qwen's templates go, with reasoning that the prompt has begun.
TEST(ForcedThinking, ComesBeforeTheCall) {
  const StandIn model(
      cat("{# <tool_call> #}{% for m in messages %}{{ m.content }}{% endfor %}<begin><think>"),
      {"<think>", "Hm", "</think>", "\n\n", "<tool_call>\n", "{\"name\": \"get_weather\"",
       ", \"arguments\": {\"city\": ", "\"Rome\"", ", \"days\": 3", "}}", "\n</tool_call>"});
  const Asking server(model.load());
  const JsonValue reply = server.post(
      "/v1/chat/completions", cat("{", kSay, "\"temperature\":0,\"tool_choice\":\"required\",",
                                  "\"parallel_tool_calls\":false,\"tools\":", kForcedTools, "}"));
  const JsonValue& message = *reply.find("choices")->elements()[0].find("message");
  EXPECT_EQ(message.find("reasoning_content")->text(), "Hm");
  const JsonValue& call = message.find("tool_calls")->elements()[0];
  EXPECT_EQ(call.find("function")->find("arguments")->text(), R"({"city": "Rome", "days": 3})");
}

// The model writes a city too long and a day too late; strict, it cannot.
TEST(StrictTools, AreHeldToInAReplyThatMayCall) {
  const StandIn model(
      template_of(*find_tool_format("hermes")),
      {"I look. ", "<tool_call>", "{\"name\": \"get_weather\"", ", \"arguments\": {\"city\": \"",
       "Constantinople", "\", \"days\": ", "99", "}}", "</tool_call>"});
  const Asking server(model.load());
  const auto message = [&](const std::string& tools) {
    return *server
                .post("/v1/chat/completions",
                      cat("{", kSay,
                          "\"temperature\":0,\"parallel_tool_calls\":false,\"tools\":", tools, "}"))
                .find("choices")
                ->elements()[0]
                .find("message");
  };
  const JsonValue strict = message(kForcedTools);
  EXPECT_EQ(strict.find("content")->text(), "I look.");
  const JsonValue& call = strict.find("tool_calls")->elements()[0];
  EXPECT_EQ(call.find("problem"), nullptr) << dump_json(call);
  std::string loose = kForcedTools;
  loose.replace(loose.find("\"strict\":true"), 13, "\"strict\":null");
  EXPECT_NE(message(loose).find("tool_calls")->elements()[0].find("problem"), nullptr);
}

}  // namespace
}  // namespace loom::core::test

// Conversations as JSON: what templates see, mistakes with their location, and replies as messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loom/language_model.hpp"
#include "serve/stand_in.hpp"

namespace loom {
namespace {

using core::test::StandIn;
using testing::HasSubstr;

constexpr const char* kAllMembers =
    "{% for m in messages %}{{ m | tojson }}\n{% endfor %}{# tool_calls #}";

TEST(ChatMessages, TemplatesSeeThemAsTransformersGivesThem) {
  struct Row {
    const char *message, *seen;
  };
  const Row rows[] = {
      {R"({"content": "Hi", "role": "user", "mood": ["calm", 1.5]})",
       R"({"content": "Hi", "role": "user", "mood": ["calm", 1.5]})"},
      {R"({"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "é"}]})",
       R"({"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "é"}]})"},
      {R"({"role": "assistant", "content": null, "tool_calls": [{"id": "1", "function":
          {"name": "look", "arguments": "{\"at\": [1]}"}}], "name": null})",
       R"({"role": "assistant", "tool_calls": [{"id": "1", "function": )"
       R"({"name": "look", "arguments": {"at": [1]}}}]})"},
      {R"({"role": "assistant", "tool_calls": [{"name": "look", "arguments": "so"}]})",
       R"({"role": "assistant", "tool_calls": [{"name": "look", "arguments": "so"}]})"},
      {R"({"role": "assistant", "content": "a", "reasoning": "Hm."})",
       R"({"thinking": "Hm.", "role": "assistant", "content": "a", "reasoning": "Hm.", )"
       R"("reasoning_content": "Hm."})"},
      {R"({"role": "tool", "content": {"degrees": 21}})",
       R"({"role": "tool", "content": {"degrees": 21}})"},
  };
  const StandIn stand_in(kAllMembers, {"so"});
  const Model model = stand_in.load();
  for (const Row& row : rows) {
    const Result<std::string> text = model.render_chat("[" + std::string(row.message) + "]");
    ASSERT_TRUE(text.ok()) << text.error().str();
    EXPECT_EQ(*text, std::string(row.seen) + "\n");
  }
}

TEST(ChatMessages, MistakesNameTheMessageAndTheMember) {
  struct Row {
    const char *messages, *why;
  };
  const Row rows[] = {
      {"5", "messages must be a list of messages; got 5"},
      {"[]", "messages needs at least one message"},
      {"[", "messages"},
      {"[5]", "messages[0] must be an object; got 5"},
      {R"([{"content": "a"}])", "messages[0].role is missing"},
      {R"([{"role": 1, "content": "a"}])", "messages[0].role must be a text; got 1"},
      {R"([{"role": "user"}])", "messages[0].content is missing"},
      {R"([{"role": "user", "content": {}}])",
       "messages[0].content must be a text, null or a list of parts; got an object"},
      {R"([{"role": "user", "content": [1]}])",
       "messages[0].content[0] must be an object with \"type\"; got 1"},
      {R"([{"role": "user", "content": "a", "tool_call_id": 1}])",
       "messages[0].tool_call_id must be a text; got 1"},
      {R"([{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": {}}])",
       "messages[1].tool_calls must be a list of calls; got an object"},
      {R"([{"role": "assistant", "tool_calls": [{"id": "1"}]}])",
       "messages[0].tool_calls[0] needs the name of a function; got an object"},
      {R"([{"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": 1}}]}])",
       "messages[0].tool_calls[0].function.arguments must be an object or its JSON text; got 1"},
      {R"([{"role": "assistant", "function_call": {"name": "a"}}])",
       "messages[0].function_call is not read by templates; use tool_calls"},
  };
  const StandIn stand_in(kAllMembers, {"so"});
  const Model model = stand_in.load();
  for (const Row& row : rows) {
    const Result<std::string> text = model.render_chat(row.messages);
    ASSERT_FALSE(text.ok()) << row.messages;
    EXPECT_THAT(text.error().str(), HasSubstr(row.why));
    EXPECT_EQ(text.error().str().find('\n'), std::string::npos);
  }
}

TEST(ChatMessages, CallsThatATemplateWouldDropAreRefused) {
  const StandIn stand_in("{% for m in messages %}{{ m.content }}{% endfor %}", {"so"});
  const Model model = stand_in.load();
  const Result<std::string> text = model.render_chat(
      R"([{"role": "assistant", "content": "", "tool_calls": [{"name": "a", "arguments": {}}]}])");
  ASSERT_FALSE(text.ok());
  EXPECT_THAT(text.error().str(), HasSubstr("messages[0].tool_calls: the chat template"));
  const ToolCall call{"1", "a", "{}"};
  const ChatTurn turn{.role = "assistant", .content = "", .tool_calls = {call}};
  EXPECT_FALSE(model.render_chat(std::span(&turn, 1)).ok());
}

TEST(ChatMessages, TheLastMessageIsContinued) {
  struct Row {
    const char *messages, *text;
  };
  const Row rows[] = {
      {R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "Once "}])",
       "<user>a</user><assistant>Once "},
      {R"([{"role": "assistant", "content": [{"type": "text", "text": "One"}, {"type": "x"}]}])",
       "<assistant>One"},
  };
  const StandIn stand_in(
      "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}"
      "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}</{{ m.role }}>{% endfor %}",
      {"so"});
  const Model model = stand_in.load();
  ChatOptions options;
  options.continue_final_message = true;
  for (const Row& row : rows)
    EXPECT_EQ(model.render_chat(row.messages, options).or_exit(), row.text);
  const Result<std::string> none =
      model.render_chat(R"([{"role": "assistant", "tool_calls": []}])", options);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().str(), HasSubstr("needs a last message with a text to continue"));
}

TEST(ChatMessages, AReplyBecomesAMessage) {
  const StandIn stand_in(
      "{% for m in messages %}<tool_call><think>{{ m | tojson }}{% endfor %}{# tool_calls #}",
      {"so"});
  const Model model = stand_in.load();
  constexpr const char* kTools = R"([{"name": "look", "parameters": {"type": "object",
      "properties": {"at": {"type": "integer"}}, "required": ["at"]}}])";
  EXPECT_EQ(model.read_reply("Hello.", "p").or_exit(),
            R"({"role":"assistant","content":"Hello."})");
  const std::string reply =
      model
          .read_reply(
              "<think>Hm.</think><tool_call>{\"name\": \"look\", \"arguments\": {}}</tool_call>",
              "p", kTools)
          .or_exit();
  EXPECT_THAT(reply, HasSubstr(R"("content":null,"reasoning_content":"Hm.")"));
  EXPECT_THAT(reply, HasSubstr(R"("function":{"name":"look","arguments":"{}"},"problem":)"));
  EXPECT_THAT(model.render_chat("[" + reply + "]").or_exit(), HasSubstr("\"look\""));
}

}  // namespace
}  // namespace loom

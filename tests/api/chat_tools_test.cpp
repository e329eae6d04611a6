// Chat with tools: calls, their results, and replies to those. The model always reads the
// template's rendering of the turns, as in a new chat.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "loom/chat.hpp"
#include "serve/stand_in.hpp"

namespace loom {
namespace {

using core::test::StandIn;
using testing::HasSubstr;

// As in Hermes and Qwen, with thinking and ids, so that a loss would be visible.
constexpr const char* kToolTemplate =
    "{% if tools %}[tools]{% for t in tools %}{{ t | tojson }}{% endfor %}{% endif %}"
    "{% for m in messages %}[{{ m.role }}{% if m.tool_call_id %} {{ m.tool_call_id }} {{ m.name }}"
    "{% endif %}]{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}"
    "{{ m.content }}{% for c in m.tool_calls %}<tool_call>{\"id\": \"{{ c.id }}\", \"name\": "
    "\"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}</tool_call>"
    "{% endfor %}{% endfor %}{% if add_generation_prompt %}<begin>{% endif %}";

constexpr const char* kTools =
    R"([{"type":"function","function":{"name":"look","parameters":{"type":"object"}}},
        {"type":"function","function":{"name":"find","parameters":{"type":"object"}}}])";

const std::vector<std::string> kTwoCalls = {
    "<think>",
    "Hm.",
    "</think>",
    "Let me see.",
    "<tool_call>{\"name\": \"look\", \"arguments\": {\"at\": 1}}</tool_call>",
    "<tool_call>{\"name\": \"find\", \"arguments\": {}}</tool_call>"};

Chat tool_chat(const Model& model, int64_t context = 2048) {
  ConversationOptions options;
  options.context = context;
  options.templating.tools = kTools;
  return model.chat(options).or_exit();
}

GenerateOptions short_options() {
  GenerateOptions options;
  options.max_tokens = 20;
  return options;
}

// The turns that the model should see, rendered without a Chat.
std::vector<TokenId> fresh_prompt(const Model& model, const std::vector<ConversationTurn>& turns,
                                  size_t first, size_t end) {
  size_t asked = end;
  while (asked > first && turns[asked - 1].role != "user") --asked;
  std::vector<ChatTurn> seen;
  for (size_t i = first; i < end; ++i) {
    ChatTurn one;
    one.role = turns[i].role;
    one.content = turns[i].content;
    one.tool_calls = turns[i].tool_calls;
    one.tool_call_id = turns[i].tool_call_id;
    one.name = turns[i].name;
    if (i >= asked && one.role == "assistant") one.reasoning = turns[i].thinking;
    seen.push_back(std::move(one));
  }
  ChatOptions options;
  options.tools = kTools;
  return model.tokenize(model.render_chat(seen, options).or_exit(), false).or_exit();
}

TEST(ChatTools, TakeTheResultsOfCallsAsTurns) {
  const StandIn stand_in(kToolTemplate, kTwoCalls);
  const Model model = stand_in.load();
  Chat chat = tool_chat(model);
  const Reply asks = chat.say("Where is it?", short_options()).or_exit();
  ASSERT_EQ(asks.tool_calls.size(), 2u);
  EXPECT_EQ(asks.answer, "Let me see.");
  EXPECT_EQ(asks.thinking, "Hm.");
  EXPECT_EQ(asks.tool_calls[0].id, "call00001");
  EXPECT_EQ(asks.tool_calls[1].id, "call00002");
  const ToolResult results[] = {{"there", "call00002"}, {"here"}};
  const Reply reply = chat.give(results, short_options()).or_exit();
  ASSERT_EQ(chat.turns().size(), 5u);
  EXPECT_EQ(chat.turns()[2].role, "tool");
  EXPECT_EQ(chat.turns()[2].content, "here");
  EXPECT_EQ(chat.turns()[2].tool_call_id, "call00001");
  EXPECT_EQ(chat.turns()[3].content, "there");
  EXPECT_EQ(chat.turns()[3].name, "find");
  EXPECT_GT(reply.reused_tokens, 100);
  EXPECT_EQ(reply.prompt_ids, fresh_prompt(model, chat.turns(), 0, 4));
  const std::string prompt = model.detokenize(reply.prompt_ids, false).or_exit();
  EXPECT_THAT(prompt, HasSubstr("<think>Hm.</think>Let me see.<tool_call>{\"id\": \"call00001\""));
  EXPECT_THAT(prompt, HasSubstr("[tool call00002 find]there<begin>"));
  EXPECT_EQ(reply.tool_calls[0].id, "call00003");
}

// As transformers 5 gives them to templates: MiniMax-M2 wrote "None" for a call without content,
// and gpt-oss reads "thinking".
TEST(ChatTools, TemplatesSeeNoContentForNullAndReasoningUnderBothNames) {
  const StandIn stand_in(
      "{% for m in messages %}{{ m.role }}({{ m.content is defined }},{{ m.content }},"
      "{{ m.thinking }},{{ m.reasoning_content }}){% endfor %}",
      {"so"});
  const Model model = stand_in.load();
  ChatTurn asks{"assistant", "", true};
  asks.reasoning = "Hm.";
  asks.tool_calls.push_back({"1", "look", "{}"});
  EXPECT_EQ(model.render_chat(std::vector<ChatTurn>{{"user", "Hi"}, asks, {"tool", ""}}).or_exit(),
            "user(True,Hi,,)assistant(False,,Hm.,Hm.)tool(True,,,)");
}

TEST(ChatTools, RefuseResultsOfNoCallAndCallsWithoutResults) {
  const StandIn stand_in(kToolTemplate, kTwoCalls);
  const Model model = stand_in.load();
  Chat chat = tool_chat(model);
  const auto error = [&](std::vector<ToolResult> results) {
    const Result<Reply> reply = chat.give(results, short_options());
    return reply.ok() ? std::string("none") : reply.error().str();
  };
  EXPECT_THAT(error({{"x"}}), HasSubstr("asks for no call"));
  ASSERT_TRUE(chat.say("Where?", short_options()).ok());
  EXPECT_THAT(error({}), HasSubstr("the call of 'look' (call00001) has no result yet"));
  EXPECT_THAT(error({{"x"}}), HasSubstr("the call of 'find' (call00002) has no result yet"));
  EXPECT_THAT(error({{"x"}, {"y"}, {"z"}}), HasSubstr("3 results for 2 calls"));
  EXPECT_THAT(error({{"x", "other"}}), HasSubstr("no call waits for a result with the id 'other'"));
  EXPECT_THAT(error({{"x", "call00001"}, {"y", "call00001"}}), HasSubstr("no call waits"));
  EXPECT_EQ(chat.turns().size(), 2u);
  // A reply that never began leaves no results either.
  GenerateOptions never = short_options();
  never.prefill_progress = [](int64_t, int64_t) { return false; };
  const ToolResult both[] = {{"a"}, {"b"}};
  ASSERT_TRUE(chat.give(both, never).ok());
  EXPECT_EQ(chat.turns().size(), 2u);
}

// Random questions, results, regenerated replies, saved conversations, and turns that are dropped
// when the context is full; compared with the template's rendering in a new chat.
TEST(ChatTools, ReadWhatSomebodyWouldWhoBeginsAnew) {
  const StandIn stand_in(kToolTemplate, kTwoCalls);
  const Model model = stand_in.load();
  const char* setting = std::getenv("LOOM_CHAT_CASES");
  int dropped = 0, given = 0;
  for (int i = 0; i < (setting != nullptr ? std::atoi(setting) : 30); ++i) {
    std::mt19937 random(static_cast<uint32_t>(i));
    const int64_t context = random() % 2 == 0 ? 2048 : 1300;
    Chat chat = tool_chat(model, context);
    for (int step = 0; step < 10; ++step) {
      SCOPED_TRACE("case " + std::to_string(i) + " step " + std::to_string(step));
      const auto text = [&] { return std::string(1 + random() % 40, 'a' + random() % 26); };
      Result<Reply> reply = Reply();
      const auto act = random() % 8;
      if (act == 0 && !chat.turns().empty()) {
        Chat other = model.chat({.context = context}).or_exit();  // has no tools
        ASSERT_TRUE(other.restore(chat.to_json()).ok());
        EXPECT_EQ(other.to_json(), chat.to_json());
        chat = std::move(other);
        continue;
      }
      if (act == 1 && !chat.turns().empty()) {
        reply = chat.regenerate(short_options());
      } else if (act < 5 && !chat.turns().empty()) {
        std::vector<ToolResult> results(2);
        for (ToolResult& one : results) one.content = text();
        reply = chat.give(results, short_options());
        ++given;
      } else {
        reply = chat.say(text(), short_options());
      }
      if (!reply.ok()) {  // many results of one question fill the context
        ASSERT_EQ(reply.error().code, Code::out_of_range) << reply.error().str();
        chat.clear();
        continue;
      }
      dropped += static_cast<int>(reply->dropped_turns);
      const auto first = static_cast<size_t>(chat.first_turn());
      ASSERT_EQ(chat.turns()[first].role, "user");
      ASSERT_EQ(reply->prompt_ids,
                fresh_prompt(model, chat.turns(), first, chat.turns().size() - 1));
      ASSERT_EQ(reply->tool_calls.size(), 2u);
    }
  }
  EXPECT_GT(given, 20);
  EXPECT_GT(dropped, 0);
}

TEST(ChatTools, ComeOutTheSameWhenTheyAreReplayed) {
  const StandIn stand_in(kToolTemplate, kTwoCalls);
  const Model model = stand_in.load();
  Chat chat = tool_chat(model);
  const ToolResult results[] = {{"1"}, {"2"}};
  ASSERT_TRUE(chat.say("a", short_options()).ok());
  ASSERT_TRUE(chat.give(results, short_options()).ok());
  ASSERT_TRUE(chat.give(results, short_options()).ok());
  ASSERT_TRUE(chat.say("b", short_options()).ok());
  const std::string saved = chat.to_json();
  EXPECT_EQ(chat.replay().or_exit(), -1);
  EXPECT_EQ(chat.to_json(), saved);
}

TEST(ChatTools, OfADamagedConversationAreRefusedByPlace) {
  const StandIn stand_in(kToolTemplate, kTwoCalls);
  const Model model = stand_in.load();
  Chat chat = tool_chat(model);
  const ToolResult results[] = {{"1"}, {"2"}};
  ASSERT_TRUE(chat.say("a", short_options()).ok());
  ASSERT_TRUE(chat.give(results, short_options()).ok());
  const std::string good = chat.to_json();
  const struct {
    const char *what, *with, *message;
  } cases[] = {
      {"\"tool_call_id\": \"call00001\"", "\"tool_call_id\": \"call00009\"",
       "turn 3: 'tool_call_id' is not that of the call"},
      {"\"role\": \"tool\"", "\"role\": \"user\"", "turn 4: 'role' is tool"},
      {"\"role\": \"user\"", "\"role\": \"tool\"", "turn 1"},
      {"\"name\": \"look\",\n          \"arguments\"",
       "\"nam\": \"look\",\n          \"arguments\"", "turn 2"},
      {"\"version\": 2", "\"version\": 3", "not a conversation that this version reads"},
      {"\"tools\": \"[", "\"tools\": \"[[", "tools"},
  };
  for (const auto& c : cases) {
    std::string bad = good;
    const size_t at = bad.find(c.what);
    ASSERT_NE(at, std::string::npos) << c.what << good;
    bad.replace(at, std::string(c.what).size(), c.with);
    const Status status = chat.restore(bad);
    ASSERT_FALSE(status.ok()) << c.with;
    EXPECT_THAT(status.error().str(), HasSubstr(c.message));
    EXPECT_EQ(chat.to_json(), good);
  }
}

}  // namespace
}  // namespace loom

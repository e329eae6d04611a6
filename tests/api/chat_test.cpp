// Chat: turns that are read once, old turns that are dropped when the context is full, and
// conversations that are saved and restored. It uses the model in the repository; its replies are
// compared with those of sessions that read everything from the start.
#include "loom/chat.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "chat/think_splitter.hpp"
#include "support/paths.hpp"

namespace loom {
namespace {

using core::ThinkSplitter;
using ::testing::HasSubstr;

const Model& chat_model() {
  static const Model model = [] {
    const Engine engine = Engine::create({.threads = 1}).or_exit();
    return Model::load(engine, loom_test::source_path("models/stories.entity")).or_exit();
  }();
  return model;
}

Chat new_chat(const ConversationOptions& options = {.context = 256}) {
  return chat_model().chat(options).or_exit();
}

GenerateOptions at_most(int64_t tokens, float temperature = 0, uint64_t seed = 0) {
  GenerateOptions options;
  options.max_tokens = tokens;
  options.sampler.temperature = temperature;
  options.sampler.seed = seed;
  return options;
}

// The reply to turns that are read from the start by a session of the same size.
std::string fresh_reply(const std::vector<ChatTurn>& turns, const GenerateOptions& options,
                        int64_t context) {
  ModelSession session = chat_model().session({.context = context}).or_exit();
  return session.generate(chat_model().tokenize_chat(turns).or_exit(), options).or_exit().text;
}

ChatTurn turn(const std::string& role, const std::string& content) {
  ChatTurn out;
  out.role = role;
  out.content = content;
  return out;
}

TEST(Chat, ReadsOnlyWhatIsNewAndAnswersAsIfItHadReadAll) {
  Chat chat = new_chat();
  const Reply first = chat.say("Tell me a story.", at_most(20)).or_exit();
  const Reply second = chat.say("And then?", at_most(20)).or_exit();
  EXPECT_GT(second.reused_tokens, 20);
  EXPECT_LT(second.generation.prompt_tokens, static_cast<int64_t>(second.prompt_ids.size()));
  EXPECT_EQ(second.answer, fresh_reply({turn("user", "Tell me a story."),
                                        turn("assistant", first.answer), turn("user", "And then?")},
                                       at_most(20), 256));
  EXPECT_EQ(chat.turns().size(), 4u);
}

TEST(Chat, StreamsWhatTheReplySays) {
  Chat chat = new_chat();
  std::string streamed;
  const Reply reply = chat.say("Hello", at_most(30),
                               [&](std::string_view text, bool thinking) {
                                 EXPECT_FALSE(thinking);
                                 streamed += text;
                                 return true;
                               })
                          .or_exit();
  EXPECT_EQ(streamed, reply.answer);
  EXPECT_EQ(reply.answer, reply.generation.text);
}

TEST(Chat, ReplyThatIsStoppedStaysAndOneThatNeverBeganDoesNot) {
  Chat chat = new_chat();
  int pieces = 0;
  const Reply cut = chat.say("Tell me a story.", at_most(50),
                             [&](std::string_view, bool) { return ++pieces < 3; })
                        .or_exit();
  EXPECT_EQ(cut.generation.stop, StopReason::cancelled);
  ASSERT_EQ(chat.turns().size(), 2u);
  EXPECT_EQ(chat.turns()[1].content, cut.answer);
  GenerateOptions never = at_most(50);
  never.prefill_progress = [](int64_t, int64_t) { return false; };
  ASSERT_TRUE(chat.say("And then?", never).ok());
  EXPECT_EQ(chat.turns().size(), 2u);
}

TEST(Chat, OldestTurnsGoWhereTheContextIsFullAndTheSystemTurnStays) {
  Chat chat = new_chat({.system = "Be brief.", .context = 128});
  int64_t dropped = 0;
  for (int i = 0; i < 12; ++i) {
    const Result<Reply> reply = chat.say("Tell me about a dog.", at_most(24));
    ASSERT_TRUE(reply.ok()) << reply.error().str();
    dropped += reply->dropped_turns;
    const auto first = static_cast<size_t>(chat.first_turn());
    ASSERT_EQ(chat.turns()[first].role, "user");
    std::vector<ChatTurn> seen = {turn("system", "Be brief.")};
    for (size_t k = first; k + 1 < chat.turns().size(); ++k)
      seen.push_back(turn(chat.turns()[k].role, chat.turns()[k].content));
    EXPECT_EQ(reply->prompt_ids, chat_model().tokenize_chat(seen).or_exit());
    EXPECT_EQ(reply->answer, fresh_reply(seen, at_most(24), 128)) << i;
  }
  EXPECT_GT(dropped, 0);
  EXPECT_EQ(chat.turns().size(), 24u);
  EXPECT_EQ(chat.first_turn(), dropped);
}

TEST(Chat, ReplyThatFillsTheContextGoesOnWhereOlderTurnsCanGo) {
  Chat chat = new_chat({.context = 96, .reserve = 8});
  ASSERT_TRUE(chat.say("Tell me a story.", at_most(30)).ok());
  GenerateOptions longer = at_most(70);
  longer.ignore_eos = true;
  const Reply reply = chat.say("And then?", longer).or_exit();
  EXPECT_EQ(reply.generation.token_ids.size(), 70u);
  EXPECT_EQ(reply.generation.stop, StopReason::length);
  EXPECT_EQ(reply.dropped_turns, 2);
  EXPECT_EQ(reply.answer, reply.generation.text);
  GenerateOptions endless = at_most(1000);
  endless.ignore_eos = true;
  EXPECT_EQ(chat.say("Go on.", endless).or_exit().generation.stop, StopReason::context);
  EXPECT_TRUE(chat.say("Go on.", at_most(5)).ok());
}

TEST(Chat, StopsWhereItIsToldToAndKeepsTheTurns) {
  Chat chat = new_chat({.context = 64, .on_full = WhenFull::stop});
  ASSERT_TRUE(chat.say("Tell me a story.", at_most(30)).ok());
  const Result<Reply> full = chat.say("And then? And then? And then? And then? And?", at_most(30));
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, Code::out_of_range);
  EXPECT_THAT(full.error().message, HasSubstr("the context is full"));
  EXPECT_EQ(chat.turns().size(), 2u);
}

TEST(Chat, TextThatAloneIsTooLongIsAnErrorAndTheChatGoesOn) {
  Chat chat = new_chat({.context = 64});
  ASSERT_TRUE(chat.say("Hello", at_most(5)).ok());
  std::string text;
  for (int i = 0; i < 100; ++i) text += "dog ";
  EXPECT_EQ(chat.say(text, at_most(5)).error().code, Code::out_of_range);
  EXPECT_EQ(chat.turns().size(), 2u);
  EXPECT_EQ(chat.first_turn(), 0);
  EXPECT_TRUE(chat.say("Hello", at_most(5)).ok());
}

TEST(Chat, RegeneratesTheLastReplyAlone) {
  Chat chat = new_chat();
  EXPECT_EQ(chat.regenerate().error().code, Code::invalid_argument);
  const Reply first = chat.say("Tell me a story.", at_most(20, 0.9f, 1)).or_exit();
  const Reply other = chat.regenerate(at_most(20, 0.9f, 2)).or_exit();
  EXPECT_NE(first.answer, other.answer);
  EXPECT_EQ(chat.regenerate(at_most(20, 0.9f, 1)).or_exit().answer, first.answer);
  EXPECT_EQ(chat.turns().size(), 2u);
  EXPECT_EQ(chat.turns()[1].options.sampler.seed, 1u);
}

TEST(Chat, SavedConversationComesBackAndGoesOnTheSameWay) {
  ConversationOptions options{
      .system = "Be kind.", .context = 128, .templating = {.date = "2024-07-26"}};
  Chat chat = new_chat(options);
  std::mt19937 random(5);
  const std::string questions[] = {"Tell me a story.", "Who is \"Tom\"?\n\nSay \\ it.",
                                   "And then?"};
  for (int i = 0; i < 8; ++i) {
    GenerateOptions how = at_most(5 + random() % 25, random() % 2 ? 0.8f : 0.0f, random());
    how.sampler.top_k = random() % 50;
    how.sampler.repetition_penalty = 1.1f;
    if (random() % 3 == 0) how.stop = {"."};
    int left = random() % 4 == 0 ? 3 : 1000;
    ASSERT_TRUE(
        chat.say(questions[random() % 3], how, [&](std::string_view, bool) { return --left > 0; })
            .ok());
  }
  EXPECT_GT(chat.first_turn(), 0);
  const std::string saved = chat.to_json();
  Chat other = new_chat({.context = 128});
  ASSERT_TRUE(other.restore(saved).ok());
  EXPECT_EQ(other.first_turn(), chat.first_turn());
  EXPECT_EQ(other.system(), "Be kind.");
  EXPECT_EQ(other.say("And then?", at_most(20)).or_exit().answer,
            chat.say("And then?", at_most(20)).or_exit().answer);
  Chat again = new_chat({.context = 128});
  ASSERT_TRUE(again.restore(saved).ok());
  EXPECT_EQ(again.replay().or_exit(), -1);
  std::string lies = saved;
  const size_t at = lies.rfind("\"content\": \"");
  lies.insert(at + 12, "No! ");
  ASSERT_TRUE(again.restore(lies).ok());
  EXPECT_EQ(again.replay().or_exit(), 15);
}

TEST(Chat, DamagedConversationIsAnErrorThatNamesThePlaceAndChangesNothing) {
  Chat chat = new_chat();
  ASSERT_TRUE(chat.say("Hello", at_most(3)).ok());
  const std::string good = chat.to_json();
  const std::pair<std::string, std::string> changes[] = {
      {"loom-chat", "other"},
      {"\"version\": 1", "\"version\": 2"},
      {"\"user\"", "\"system\""},
      {"\"assistant\"", "\"user\""},
      {"\"first_turn\": 0", "\"first_turn\": 1"},
      {"\"first_turn\": 0", "\"first_turn\": 4"},
      {"\"seed\": \"0\"", "\"seed\": \"99999999999999999999\""},
      {"\"seed\": \"0\"", "\"seed\": \"-1\""},
      {"\"stop_reason\"", "\"stopped\""},
      {"drop-oldest", "never"},
      {"\"temperature\": 0.0", "\"temperature\": \"warm\""},
      {"\"settings\"", "\"set\""},
      {"\"content\": ", "\"content\": 7, \"x\": "},
  };
  for (const auto& [from, to] : changes) {
    std::string bad = good;
    ASSERT_NE(bad.find(from), bad.npos) << from;
    bad.replace(bad.find(from), from.size(), to);
    EXPECT_FALSE(chat.restore(bad, "c.json").ok()) << from << " -> " << to;
    EXPECT_EQ(chat.to_json(), good);
  }
  for (size_t cut = 0; cut + 2 < good.size(); cut += 3)
    EXPECT_FALSE(chat.restore(good.substr(0, cut)).ok()) << cut;
}

TEST(Chat, ClearForgetsTheTurnsAndNotTheSystemText) {
  Chat chat = new_chat({.system = "Be kind.", .context = 256});
  const std::string first = chat.say("Tell me a story.", at_most(20)).or_exit().answer;
  chat.clear();
  EXPECT_TRUE(chat.turns().empty());
  EXPECT_EQ(chat.say("Tell me a story.", at_most(20)).or_exit().answer, first);
  chat.clear();
  chat.set_system("");
  EXPECT_EQ(chat.say("Tell me a story.", at_most(20)).or_exit().answer,
            fresh_reply({turn("user", "Tell me a story.")}, at_most(20), 256));
}

TEST(Chat, OptionsThatMakeNoChatAreRefused) {
  EXPECT_EQ(chat_model().chat({.context = 64, .reserve = 64}).error().code, Code::invalid_argument);
  EXPECT_EQ(chat_model().chat({.context = -1}).error().code, Code::invalid_argument);
  EXPECT_EQ(parse_when_full("stop").or_exit(), WhenFull::stop);
  EXPECT_FALSE(parse_when_full("halt").ok());
}

struct Split {
  const char* text;
  bool open;
  const char* thinking;
  const char* answer;
};

TEST(ThinkSplitter, PartsThinkingFromTheAnswerHoweverTheTextIsCut) {
  const Split splits[] = {
      {"Hello", false, "", "Hello"},
      {"<think>\nHm.\n</think>\n\nYes.", false, "\nHm.\n", "Yes."},
      {"\n <think>a</think>b", false, "a", "b"},
      {"a</think>b", true, "a", "b"},
      {"a <think> b </think> c", false, "", "a <think> b </think> c"},
      {"<think>never ends </thin", false, "never ends </thin", ""},
      {"<thin", false, "", "<thin"},
      {"<thinking>", false, "", "<thinking>"},
      {"<think></think>", false, "", ""},
      {"<think>a</think>b<think>c</think>", false, "a", "b<think>c</think>"},
      {"a<</think></think>b", true, "a<", "</think>b"},
      {"", true, "", ""},
      {"  \n", false, "", "  \n"},
  };
  std::mt19937 random(3);
  for (const Split& split : splits) {
    for (int round = 0; round < 40; ++round) {
      ThinkSplitter splitter(split.open);
      std::string thinking, answer;
      const auto take = [&](const ThinkSplitter::Parts& parts) {
        thinking += parts.thinking;
        answer += parts.answer;
      };
      const std::string_view text = split.text;
      for (size_t at = 0; at < text.size();) {
        const size_t size = std::min<size_t>(1 + random() % (round + 1), text.size() - at);
        take(splitter.push(text.substr(at, size)));
        at += size;
      }
      take(splitter.finish());
      EXPECT_EQ(thinking, split.thinking) << text;
      EXPECT_EQ(answer, split.answer) << text;
    }
  }
}

TEST(ThinkSplitter, KnowsAPromptThatOpensIt) {
  EXPECT_TRUE(core::opens_thinking("<|assistant|>\n<think>\n"));
  EXPECT_FALSE(core::opens_thinking("<think>x"));
  EXPECT_FALSE(core::opens_thinking(""));
}

}  // namespace
}  // namespace loom

// Fill-in-the-middle prompts: the prompt of a model with such tokens, truncation, and the error of
// a model without them.
#include "serve/dialects/infill.hpp"

#include <gmock/gmock.h>

#include <random>

#include "client.hpp"
#include "serve/server.hpp"
#include "stand_in.hpp"
#include "stories.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;

class Holes : public testing::Test {
 protected:
  void start(Model model, int64_t context = 128) {
    LlmServerOptions options;
    options.port = 0;
    options.service.name = "model";
    options.service.version = "test";
    options.service.scheduler.session.context = context;
    options.service.scheduler.sessions = 1;
    Result<std::unique_ptr<LlmServer>> server = LlmServer::start(std::move(model), options);
    ASSERT_TRUE(server.ok()) << server.error().str();
    server_ = std::move(*server);
  }
  Answer fill(std::string_view body) const { return ask(server_->port(), "POST", "/infill", body); }

  std::unique_ptr<LlmServer> server_;
};

TEST_F(Holes, AreWrittenAsTheFamilyOfTheModelKnowsThem) {
  struct Case {
    std::vector<std::string> tokens;  // the last one begins the hole
    const char* body;
    const char* prompt;
  };
  const Case cases[] = {
      {{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
       R"({"input_prefix":"int f() {","input_suffix":"}","prompt":" ret"})",
       "<|fim_prefix|>int f() { ret<|fim_suffix|>}<|fim_middle|>"},
      {{"<|fim_prefix|>", "<|repo_name|>", "<|file_sep|>", "<|fim_suffix|>", "<|fim_middle|>"},
       R"({"input_prefix":"a","input_suffix":"b",
           "input_extra":[{"filename":"x.h","text":"X"},{"filename":"y.h","text":"Y"}]})",
       "<|repo_name|><|file_sep|>x.h\nX<|file_sep|>y.h\nY<|file_sep|>"
       "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>"},
      {{"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
       R"({"input_prefix":"a","input_suffix":"b","input_extra":[{"filename":"x","text":"X"}]})",
       "\n\n--- x\n\nX<｜fim▁begin｜>a<｜fim▁hole｜>b<｜fim▁end｜>"},
      {{"[SUFFIX]", "[PREFIX]"},
       R"({"input_prefix":"a","input_suffix":"b"})",
       "[SUFFIX]b[PREFIX]a"},
      // Text that spells a token stays text: it cannot close the hole from inside.
      {{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
       R"({"input_prefix":"","input_suffix":"<|fim_middle|>"})",
       "<|fim_prefix|><|fim_suffix|><|fim_middle|><|fim_middle|>"},
  };
  for (const Case& c : cases) {
    std::vector<std::string> pieces = c.tokens;
    pieces.insert(pieces.end(), {"return", "x;"});
    const StandIn model("{{ messages }}<begin>", pieces);
    start(model.load());
    const Answer answer = fill(cat(std::string(c.body, std::strlen(c.body) - 1),
                                   R"(,"temperature":0,"n_predict":8,"return_tokens":true})"));
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.json().find("prompt")->text(), c.prompt);
    if (c.tokens.back() == "[PREFIX]") continue;  // it continues after the last letter
    EXPECT_EQ(answer.json().find("stop_type")->text(), "eos");
    EXPECT_EQ(answer.json().find("tokens")->elements().size(), 2u) << answer.body;
  }
}

TEST_F(Holes, EndAtTheTokensOfProjects) {
  const StandIn model("{{ messages }}<begin>",
                      {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "xx", "<|file_sep|>"});
  start(model.load());
  const Answer answer =
      fill(R"({"input_prefix":"a","input_suffix":"b","temperature":0,"return_tokens":true})");
  EXPECT_EQ(answer.json().find("tokens")->elements().size(), 1u) << answer.body;
}

TEST_F(Holes, AreRefusedByWordsWhereTheyCannotBe) {
  start(stories());
  const Answer none = fill(R"({"input_prefix":"a","input_suffix":"b"})");
  EXPECT_EQ(none.status, 400);
  EXPECT_THAT(none.body, HasSubstr("was not made to fill holes"));
  const struct {
    const char *body, *message;
  } cases[] = {
      {R"({"input_extra":[{}]})", "input_extra[0].text is missing"},
      {R"({"input_extra":[{"filename":"ok"}]})", "input_extra[0].text is missing"},
      {R"({"input_extra":[{"filename":7,"text":"a"}]})", "input_extra[0].filename must be"},
      {R"({"input_extra":[{"filename":7,"text":8}]})", "input_extra[0].text must be"},
      {R"({"input_extra":{"text":"a"}})", "input_extra must be a list"},
      {R"({"input_prefix":7})", "input_prefix must be a string"},
      {R"({"prompt":[1,2]})", "prompt must be a string"},
  };
  for (const auto& c : cases) {
    const Answer answer = fill(c.body);
    EXPECT_EQ(answer.status, 400) << c.body;
    EXPECT_THAT(answer.body, HasSubstr(c.message));
  }
  std::string large = R"({"input_extra":[{"text":""})";
  for (int i = 0; i < 256; ++i) large += R"(,{"text":""})";
  EXPECT_THAT(fill(large + "]}").body, HasSubstr("at most 256 files"));
}

// The reply of a client that waits.
class Unread final : public HttpReply {
 public:
  void send(int, HttpHeaders, std::string) override {}
  void begin(int, HttpHeaders) override {}
  void write(std::string) override {}
  void end() override {}
  bool gone() const override { return false; }
};

// A separate reference for the result, in characters, each of which is a token here.
TEST_F(Holes, KeepWhatStandsNearestToThem) {
  const StandIn model("{{ messages }}<begin>",
                      {"<|fim_prefix|>", "<|fim_suffix|>", "<|file_sep|>", "<|fim_middle|>", "xx"});
  constexpr int64_t kContext = 128;
  start(model.load(), kContext);
  std::mt19937 random(7);
  const Unread nobody;
  const auto letters = [&](size_t most) {
    std::string out(random() % (most + 1), 'a');
    for (char& c : out) c = static_cast<char>('a' + random() % 26);
    return out;
  };
  for (int round = 0; round < 300; ++round) {
    InfillParts parts;
    parts.prefix = letters(round % 2 == 0 ? 300 : 40);
    parts.suffix = letters(round % 3 == 0 ? 300 : 40);
    parts.begin = letters(5);
    parts.max_tokens = static_cast<int64_t>(random() % 80) - 1;
    for (size_t k = random() % 4; k > 0; --k) parts.files.push_back({"f", letters(40)});
    const Result<InfillPrompt> prompt = infill_prompt(server_->service(), parts, nobody);
    ASSERT_TRUE(prompt.ok()) << prompt.error().str();
    const int64_t text = parts.max_tokens < 0 ? 32 : std::min<int64_t>(parts.max_tokens, 64);
    EXPECT_LE(static_cast<int64_t>(prompt->ids.size()) + text, kContext);
    const std::string all = *server_->service().model().detokenize(prompt->ids, false);
    const size_t a = all.find("<|fim_prefix|>"), b = all.find("<|fim_suffix|>");
    const std::string before = all.substr(a + 14, b - a - 14);
    std::string after = all.substr(b + 14);
    ASSERT_TRUE(after.ends_with("<|fim_middle|>"));
    after.resize(after.size() - 14);
    const std::string whole = parts.prefix + parts.begin;
    EXPECT_TRUE(whole.ends_with(before));
    EXPECT_TRUE(parts.suffix.starts_with(after));
    const auto room = static_cast<size_t>(kContext - text - 8);
    const bool cut = before.size() < whole.size() || after.size() < parts.suffix.size();
    EXPECT_TRUE(before.size() + after.size() == room || !cut);
    EXPECT_GE(before.size(), std::min(whole.size(), room - room / 4));
    EXPECT_GE(after.size(), std::min(parts.suffix.size(), room / 4));
    // Files: the last ones, complete.
    std::string files;
    size_t left = room - before.size() - after.size();
    for (auto f = parts.files.rbegin(); f != parts.files.rend(); ++f) {
      const size_t tokens = f->text.size() + 3;  // the mark, the name and a line end
      if (tokens > left) break;
      left -= tokens;
      files = "<|file_sep|>f\n" + f->text + files;
    }
    if (!files.empty()) files += "<|file_sep|>";
    EXPECT_EQ(all.substr(0, a), files);
  }
}

}  // namespace
}  // namespace loom::core::test

// A device that fails during a text: the session starts again on the host. The device here is the
// host itself as a device, so the text must not change at all.
#include <cstring>

#include "base/text.hpp"
#include "llm/sessions/llm_batch.hpp"
#include "llm/stories.hpp"
#include "ops/recording/device.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core::test {
namespace {

// Device buffers are the host's own memory; after `lists` lists nothing works any more.
class FailingDevice : public Device {
 public:
  explicit FailingDevice(int lists) : left_(lists), ops_(cpu_ops(best_isa())) {
    ops_.device = this;
    ops_.host = &cpu_ops(best_isa());
  }
  const Ops& ops() const { return ops_; }

  Result<int64_t> attach(std::span<const MemoryRange>, MemoryUse, bool) override { return 1; }
  void detach(int64_t) override {}
  bool holds(const MemoryRange&) const override { return true; }
  Status upload(const std::byte*, int64_t) override { return state(); }
  Status download(std::span<const MemoryRange>) override { return state(); }
  Status copy(const MemoryRange& from, const std::byte* to) override {
    std::memcpy(const_cast<std::byte*>(to), from.begin, static_cast<size_t>(from.bytes));
    return state();
  }
  Status wait() override { return state(); }
  Status execute(std::span<const Command> commands) override {
    --left_;
    LOOM_TRY(state());
    for (const Command& command : commands) {
      run_command(*ops_.host, command,
                  Lane{0, 1, scratch_.data(), static_cast<int64_t>(scratch_.size())});
    }
    return {};
  }

 private:
  Status state() const {
    if (left_ >= 0) return {};
    return make_error(Code::internal, "the device was lost");
  }
  int left_;
  Ops ops_;
  std::vector<std::byte> scratch_ = std::vector<std::byte>(4 << 20);
};

constexpr std::string_view kPrompt = "Once upon a time there was a girl named Lily.";

GenerateOptions some_words() {
  GenerateOptions options;
  options.max_tokens = 30;
  options.ignore_eos = true;
  return options;
}

// `how`: of how the words are drawn.
void expect_the_same_words(const GenerateOptions& how) {
  const LanguageModel& model = stories();
  const std::vector<TokenId> prompt = encode(model, kPrompt);
  LlmSessionOptions options;
  options.chunk = 4;
  LlmSession straight = session(model, options);
  const Result<Generation> expected = generate(straight, model, prompt, how);
  ASSERT_TRUE(expected.ok());
  // In a body, in a head, in the prompt, in the text.
  for (const int lists : {0, 1, 2, 3, 4, 7, 20, 21, 40}) {
    FailingDevice device(lists);
    std::vector<std::string> report;
    options.device_failed = [&](const Error& why) { report.push_back(why.str()); };
    Result<LlmSession> made = LlmSession::create(model, device.ops(), pool(), options);
    ASSERT_TRUE(made.ok()) << made.error().str();
    std::string text;
    const Result<Generation> got = generate(*made, model, prompt, how, [&](std::string_view piece) {
      text += piece;
      return true;
    });
    ASSERT_TRUE(got.ok()) << got.error().str();
    EXPECT_EQ(got->token_ids, expected->token_ids) << lists;
    EXPECT_EQ(text, expected->text) << lists;
    EXPECT_EQ(report, std::vector<std::string>{"the device was lost"}) << lists;
  }
}

TEST(DeviceFailed, ATextGoesOnOnTheHostWithTheSameWords) {
  expect_the_same_words(some_words());
}

TEST(DeviceFailed, WordsThatAreDrawnAreTheSameToo) {
  GenerateOptions options = some_words();
  options.sampler.temperature = 0.8f;
  options.sampler.top_k = 40;
  options.sampler.seed = 4;
  expect_the_same_words(options);
}

TEST(DeviceFailed, WithoutAListenerItIsAnError) {
  FailingDevice device(3);
  const LanguageModel& model = stories();
  Result<LlmSession> made = LlmSession::create(model, device.ops(), pool(), {});
  ASSERT_TRUE(made.ok()) << made.error().str();
  const auto got = generate(*made, model, encode(model, kPrompt), some_words());
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().str(), "the device was lost");
}

TEST(DeviceFailed, WhatWasForgottenIsNotFedAgain) {
  const LanguageModel& model = stories();
  const std::vector<TokenId> ids = encode(model, kPrompt);
  const std::span<const TokenId> all = ids;
  ASSERT_GT(all.size(), 8u);
  FailingDevice device(6);
  int report = 0;
  LlmSessionOptions options;
  options.device_failed = [&](const Error&) { ++report; };
  Result<LlmSession> made = LlmSession::create(model, device.ops(), pool(), options);
  ASSERT_TRUE(made.ok());
  LlmSession straight = session(model);
  for (LlmSession* s : {&*made, &straight}) {
    ASSERT_TRUE(s->feed(all.first(6)).ok());
    s->rewind(3);
    ASSERT_TRUE(s->feed(all.subspan(5, 2)).ok());
    ASSERT_TRUE(s->feed(all.subspan(3, 2)).ok());
    ASSERT_TRUE(s->feed(all.subspan(7)).ok());
  }
  EXPECT_EQ(report, 1);
  EXPECT_EQ(made->position(), straight.position());
  EXPECT_TRUE(
      std::equal(straight.logits().begin(), straight.logits().end(), made->logits().begin()));
}

// All sequences at once: their tokens, shared pages, and reserved memory.
TEST(DeviceFailed, ABatchGoesOnOnTheHostWithTheSameBits) {
  const LanguageModel& model = stories();
  const std::vector<TokenId> ids = encode(model, cat(kPrompt, " ", kPrompt, " ", kPrompt));
  const std::span<const TokenId> all = ids;
  ASSERT_GT(all.size(), 26u);
  for (int lists = 0; lists < 6; ++lists) {
    FailingDevice device(lists);
    int report = 0;
    LlmBatchOptions options;
    options.sequences = 3;
    options.context = 64;
    options.chunk = 12;
    Result<LlmBatch> host = LlmBatch::create(model, cpu_ops(best_isa()), pool(), options);
    options.device_failed = [&](const Error&) { ++report; };
    Result<LlmBatch> made = LlmBatch::create(model, device.ops(), pool(), options);
    ASSERT_TRUE(made.ok()) << made.error().str();
    std::vector<float> logits[2];
    for (LlmBatch* batch : {&*host, &*made}) {
      std::vector<float>& mine = logits[batch == &*host ? 0 : 1];
      const auto feed = [&](std::vector<LlmBatch::Piece> pieces) {
        const Status fed = batch->feed(pieces);
        ASSERT_TRUE(fed.ok()) << fed.error().str();
        for (const LlmBatch::Piece& piece : pieces) {
          const std::span<const float> last = batch->logits(piece.sequence);
          mine.insert(mine.end(), last.begin(), last.end());
        }
      };
      ASSERT_TRUE(batch->book(0, 40));
      feed({{0, all.first(10)}, {1, all.subspan(3, 2)}});
      feed({{0, all.subspan(10, 10)}, {1, all.subspan(5, 1)}});
      ASSERT_EQ(batch->reuse(2, all.first(18)), 16);
      feed({{2, all.subspan(16, 3)}, {0, all.subspan(20, 1)}});
      batch->rewind(0, 12);
      feed({{0, all.subspan(12, 4)}, {1, all.subspan(6, 1)}});
      feed({{0, all.subspan(16, 1)}, {2, all.subspan(19, 1)}});
    }
    EXPECT_EQ(report, lists < 5 ? 1 : 0) << lists;
    EXPECT_EQ(logits[1], logits[0]) << lists;
  }
}

}  // namespace
}  // namespace loom::core::test

// loom::Batch: the texts of ModelSession::generate(), whichever texts join and leave, in shared
// passes and alternating.
#include <random>

#include "base/text.hpp"
#include "serve/stories.hpp"

namespace loom {
namespace {

using core::test::alone;
using core::test::Asked;
using core::test::random_requests;
using core::test::stories;

Batch batch_of(const Model& model, const BatchOptions& options) {
  Result<Batch> made = Batch::create(model, options);
  EXPECT_TRUE(made.ok()) << made.error().str();
  return std::move(*made);
}

// Texts that start whenever a sequence is free, some of which are cancelled.
void expect_texts_of_alone(const Model& model, bool share, int64_t chunk, uint32_t seed) {
  std::mt19937 random(seed);
  BatchOptions options;
  options.sequences = 1 + static_cast<int64_t>(random() % 4);
  options.session.context = 128;
  options.session.chunk = chunk;
  options.share_passes = share;
  Batch batch = batch_of(model, options);
  ASSERT_EQ(batch.shares_passes(), share);
  const std::vector<Asked> asked = random_requests(random, model, 10);
  std::vector<int> writes(static_cast<size_t>(options.sequences), -1);  // which text a sequence has
  size_t next = 0, taken = 0;
  for (int step = 0; step < 4000 && taken < asked.size(); ++step) {
    for (int64_t s = 0; s < options.sequences; ++s) {
      int& text = writes[static_cast<size_t>(s)];
      if (text < 0 && next < asked.size() && random() % 3 == 0) {
        batch.rewind(s, 0);
        const Status started = batch.start(s, asked[next].prompt, asked[next].options);
        ASSERT_TRUE(started.ok()) << started.error().str();
        text = static_cast<int>(next++);
      }
    }
    const Status passed = batch.step();
    ASSERT_TRUE(passed.ok()) << passed.error().str();
    for (int64_t s = 0; s < options.sequences; ++s) {
      int& text = writes[static_cast<size_t>(s)];
      if (text < 0) continue;
      const bool gone = batch.running(s) && random() % 40 == 0;
      if (gone) batch.cancel(s);
      if (batch.running(s)) continue;
      const Result<Generation> got = batch.take(s);
      ASSERT_TRUE(got.ok()) << got.error().str();
      const Generation expected = alone(model, asked[static_cast<size_t>(text)]);
      if (gone) {
        EXPECT_EQ(got->stop, StopReason::cancelled);
        ASSERT_LE(got->token_ids.size(), expected.token_ids.size());
        EXPECT_TRUE(
            std::equal(got->token_ids.begin(), got->token_ids.end(), expected.token_ids.begin()));
      } else {
        EXPECT_EQ(got->token_ids, expected.token_ids) << "seed " << seed << " text " << text;
        EXPECT_EQ(got->text, expected.text);
        EXPECT_EQ(got->stop, expected.stop);
        EXPECT_EQ(got->decode_steps, expected.decode_steps);
      }
      text = -1;
      ++taken;
    }
  }
  EXPECT_EQ(taken, asked.size());
}

TEST(Batches, WriteTheTextsOfSessionsAlone) {
  uint32_t seed = 0;
  for (const DType dtype : {DType::float32, DType::q8_0, DType::q4_0}) {
    const Model model = stories(dtype, 2);
    for (const int64_t chunk : {1, 7, 256}) expect_texts_of_alone(model, true, chunk, seed++);
  }
}

TEST(Batches, WriteTheSameTextsInTurns) {
  const Model model = stories(DType::q8_0);
  for (const int64_t chunk : {3, 256}) expect_texts_of_alone(model, false, chunk, 50 + chunk);
}

// A long prompt next to short texts: those continue while it is read.
TEST(Batches, ReadAPromptBesideTextsThatGoOn) {
  const Model model = stories();
  BatchOptions options;
  options.sequences = 2;
  options.session.context = 200;
  options.session.chunk = 8;
  Batch batch = batch_of(model, options);
  const std::vector<TokenId> prompt = *model.tokenize("Tom had a red ball.");
  std::vector<TokenId> longer;
  while (longer.size() < 100) longer.insert(longer.end(), prompt.begin(), prompt.end());
  int written = 0;
  int64_t read = 0;
  GenerateOptions large;
  large.max_tokens = 60;
  large.ignore_eos = true;
  large.on_token = [&](const Token&) { return ++written < 1000; };
  GenerateOptions one;
  one.max_tokens = 1;
  one.prefill_progress = [&](int64_t done, int64_t) {
    read = done;
    return true;
  };
  ASSERT_TRUE(batch.start(0, prompt, large).ok());
  ASSERT_TRUE(batch.step().ok());
  ASSERT_EQ(written, 1);
  ASSERT_TRUE(batch.start(1, longer, one).ok());
  ASSERT_TRUE(batch.step().ok());
  EXPECT_EQ(read, 7);  // of the eight rows one is the other text's
  EXPECT_EQ(written, 2);
  while (batch.running(1)) ASSERT_TRUE(batch.step().ok());
  EXPECT_GT(written, 10);
  EXPECT_EQ(batch.take(1)->prompt_tokens, static_cast<int64_t>(longer.size()));
}

TEST(Batches, GoOnFromWhatASequenceHasRead) {
  const Model model = stories();
  Batch batch = batch_of(model, {.sequences = 2, .session = {.context = 64}});
  const std::vector<TokenId> prompt = *model.tokenize("Once upon a time, there was a big dog");
  GenerateOptions options;
  options.max_tokens = 10;
  ASSERT_TRUE(batch.start(1, prompt, options).ok());
  while (batch.running() > 0) ASSERT_TRUE(batch.step().ok());
  const Generation whole = *batch.take(1);
  const int64_t kept = static_cast<int64_t>(prompt.size()) - 3;
  batch.rewind(1, kept);
  EXPECT_EQ(batch.position(1), kept);
  EXPECT_EQ(batch.position(0), 0);
  ASSERT_TRUE(
      batch.start(1, std::span<const TokenId>(prompt).subspan(static_cast<size_t>(kept)), options)
          .ok());
  while (batch.running() > 0) ASSERT_TRUE(batch.step().ok());
  EXPECT_EQ(batch.take(1)->token_ids, whole.token_ids);
}

TEST(Batches, RefuseWhatCannotBe) {
  const Model model = stories();
  EXPECT_FALSE(Batch::create(model, {.sequences = 0}).ok());
  EXPECT_FALSE(Batch::create(model, {.sequences = 5000}).ok());
  EXPECT_FALSE(Batch::create(model, {.session = {.context = 1 << 24}}).ok());
  Batch batch = batch_of(model, {.sequences = 2, .session = {.context = 16}});
  const std::vector<TokenId> prompt = {5, 6, 7};
  const auto error = [](const Status& status) {
    return status.ok() ? std::string() : status.error().str();
  };
  EXPECT_EQ(error(batch.start(2, prompt)), "sequence 2 of 2 does not exist");
  EXPECT_EQ(error(batch.start(0, {})),
            "the prompt holds no token; a text needs at least one to begin with");
  GenerateOptions endless;
  endless.ignore_eos = true;
  EXPECT_EQ(error(batch.start(0, prompt, endless)), "");
  EXPECT_EQ(error(batch.start(0, prompt)), "sequence 0 of 2 has a text already");
  EXPECT_EQ(batch.take(0).error().str(), "sequence 0 has no text that has ended");
  EXPECT_EQ(batch.take(1).error().str(), "sequence 1 has no text that has ended");
  EXPECT_EQ(batch.take(7).error().str(), "sequence 7 has no text that has ended");
  // A prompt that does not fit ends only its own text.
  const std::vector<TokenId> far(17, 5), bad = {5, 1 << 23};
  ASSERT_TRUE(batch.start(1, far).ok());
  ASSERT_TRUE(batch.step().ok());
  EXPECT_TRUE(batch.running(0));
  EXPECT_EQ(batch.take(1).error().str(),
            "the context is full: 0 positions used, 17 more wanted, 16 available");
  EXPECT_EQ(batch.start(1, bad).error().code, Code::out_of_range);
  while (batch.running() > 0) ASSERT_TRUE(batch.step().ok());
  EXPECT_EQ(batch.take(0)->stop, StopReason::context);
}

}  // namespace
}  // namespace loom

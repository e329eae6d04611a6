// Sampling on the GPU: the tokens that the host would draw from the logits of the same device, read
// sixteen at a time; and the state after a text that ends in the middle of those.
#include <algorithm>

#include "api/engine/impl.hpp"
#include "gpu/support.hpp"
#include "llm/sampling/sampler.hpp"
#include "llm/sessions/generate.hpp"
#include "llm/sessions/llm_session.hpp"
#include "ops/ops.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

const Model& stories_on_gpu() {
  static const auto* const kModel = [] {
    EngineOptions options;
    options.threads = 1;
    options.device = loom::Device::gpu;
    options.gpu_library = gpu()->adapter().library;
    options.gpu_strict = true;
    const Result<Engine> engine = Engine::create(options);
    EXPECT_TRUE(engine.ok()) << engine.error().str();
    const auto model = Model::load(*engine, loom_test::source_path("models/stories.entity"));
    EXPECT_TRUE(model.ok()) << model.error().str();
    return new Model(*model);
  }();
  return *kModel;
}

LlmSession session_on_gpu(int64_t context = 0) {
  LlmSessionOptions options;
  options.context = context;
  options.activations = ActivationMode::f32;
  Result<LlmSession> session = make_session(stories_on_gpu(), options);
  EXPECT_TRUE(session.ok()) << session.error().str();
  return std::move(*session);
}

std::vector<TokenId> prompt() {
  const auto ids = stories_on_gpu().tokenize("Once upon a time");
  EXPECT_TRUE(ids.ok());
  return *ids;
}

SamplerOptions sampling(int64_t top_k = 40, float top_p = 1.0f, float min_p = 0.0f) {
  SamplerOptions options;
  options.temperature = 0.8f;
  options.top_k = top_k;
  options.top_p = top_p;
  options.min_p = min_p;
  options.seed = 17;
  return options;
}

Generation report(LlmSession& session, std::span<const TokenId> ids,
                  const GenerateOptions& options) {
  Result<Generation> result = generate(session, stories_on_gpu().impl().model, ids, options);
  EXPECT_TRUE(result.ok()) << result.error().str();
  return result.ok() ? *result : Generation{};
}

GenerateOptions tokens(int64_t count) {
  GenerateOptions options;
  options.max_tokens = count;
  options.ignore_eos = true;
  options.sampler = sampling();
  return options;
}

TEST(GpuSampling, TokensAreThoseThatTheHostDrawsFromTheSameLogits) {
  LOOM_NEEDS_GPU();
  for (const SamplerOptions& options :
       {sampling(), sampling(256, 0.95f, 0.02f), sampling(1), SamplerOptions{}}) {
    LlmSession drawing = session_on_gpu(), feeding = session_on_gpu();
    Result<Sampler> sampler = Sampler::create(options, stories_on_gpu().info().vocab);
    ASSERT_TRUE(sampler.ok());
    Sampler ahead = *sampler;
    TokenId id = prompt().front();
    std::vector<TokenId> found = {id}, expected = {id};
    for (const int64_t count : {16, 1, 16, 5}) {
      const Status status = drawing.feed_sampled(found.back(), count, *ahead.on_device(), found);
      ASSERT_TRUE(status.ok()) << status.error().str();
      ahead.advance(count);
    }
    while (expected.size() < found.size()) {
      ASSERT_TRUE(feeding.feed({&id, 1}).ok());
      expected.push_back(id = sampler->next(feeding.logits(), {}));
    }
    EXPECT_EQ(found, expected) << "top_k " << options.top_k;
    EXPECT_EQ(drawing.position(), feeding.position());
    EXPECT_TRUE(std::equal(drawing.logits().begin(), drawing.logits().end(),
                           feeding.logits().begin(), feeding.logits().end()));
  }
}

TEST(GpuSampling, TokensComeBackSomeAtATimeWithOneRowOfLogits) {
  LOOM_NEEDS_GPU();
  LlmSession session = session_on_gpu();
  const webgpu::Counts& counts = stories_on_gpu().impl().engine->gpu->counts();
  const std::vector<TokenId> ids = prompt();
  ASSERT_TRUE(session.feed(ids).ok());
  const int64_t before = counts.downloaded;
  const Generation result = report(session, {}, tokens(33));
  EXPECT_EQ(result.token_ids.size(), 33u);
  EXPECT_EQ(result.decode_steps, 32);
  // Each time one known token, the search results, and a row of logits.
  const int64_t words = (counts.downloaded - before) / 4 - 32;
  const int64_t row = 1 + stories_on_gpu().info().vocab;
  EXPECT_EQ(words % row, 0);
  EXPECT_LE(words / row, 16);
  EXPECT_GE(session.sample_batch(), 2);
  EXPECT_LE(session.sample_batch(), 64);
  EXPECT_EQ(counts.total_fallbacks(), 0);
}

TEST(GpuSampling, ATextThatEndsForgetsWhatWasDrawnBehindIt) {
  LOOM_NEEDS_GPU();
  const std::vector<TokenId> ids = prompt();
  const auto read = static_cast<int64_t>(ids.size());
  LlmSession session = session_on_gpu();
  const std::vector<TokenId> whole = report(session, ids, tokens(40)).token_ids;
  ASSERT_EQ(whole.size(), 40u);
  EXPECT_EQ(session.position(), read + 39);
  // A token in the middle of a batch that was not there before.
  size_t at = 20;
  while (std::find(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(at), whole[at]) !=
         whole.begin() + static_cast<std::ptrdiff_t>(at)) {
    ASSERT_LT(++at, 32u);
  }
  GenerateOptions options = tokens(40);
  options.ignore_eos = false;
  options.eos_ids = {whole[at]};
  session.rewind(0);
  const Generation ended = report(session, ids, options);
  EXPECT_EQ(ended.stop, StopReason::eos);
  EXPECT_TRUE(std::equal(ended.token_ids.begin(), ended.token_ids.end(), whole.begin(),
                         whole.begin() + static_cast<std::ptrdiff_t>(at)));
  EXPECT_EQ(session.position(), read + static_cast<int64_t>(at));
  EXPECT_EQ(ended.decode_steps, static_cast<int64_t>(at));
  // Dropped tokens leave no trace.
  LlmSession other = session_on_gpu();
  std::vector<TokenId> all = ids;
  all.insert(all.end(), ended.token_ids.begin(), ended.token_ids.end());
  all.push_back(whole[at]);
  ASSERT_TRUE(other.feed(all).ok());
  ASSERT_TRUE(session.feed({&whole[at], 1}).ok());
  EXPECT_LT(distance(other.logits(), session.logits()), 1e-4);
}

TEST(GpuSampling, ATextEndsWhereTheContextIsFull) {
  LOOM_NEEDS_GPU();
  const std::vector<TokenId> ids = prompt();
  const auto read = static_cast<int64_t>(ids.size());
  LlmSession small = session_on_gpu(read + 20), large = session_on_gpu();
  const Generation ended = report(small, ids, tokens(100));
  EXPECT_EQ(ended.stop, StopReason::context);
  EXPECT_EQ(small.position(), read + 20);
  EXPECT_EQ(ended.decode_steps, 20);
  EXPECT_EQ(ended.token_ids, report(large, ids, tokens(21)).token_ids);
}

}  // namespace
}  // namespace loom::core::test

// Language models on the GPU against the CPU: the same words, the same perplexity. Uses the model
// in the repository, and a larger external one (skipped if it is absent).
#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "e2e/reference.hpp"
#include "gpu/support.hpp"
#include "io/files/file.hpp"
#include "llm/sessions/perplexity.hpp"
#include "ops/ops.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

const std::string kStories = loom_test::source_path("tests/data/stories");
const std::string kStoryModel = loom_test::source_path("models/stories.entity");
const std::string kData = loom_test::source_path("../shared/data");
const std::string kShakespeare = kData + "/models/shakespeare-llama";

#define SKIP_IF_ABSENT() \
  if (!file_exists(kShakespeare + "/config.json")) GTEST_SKIP() << kShakespeare << " is not here"

// Opened once: a GPU compiles its kernels again for each engine.
const Engine& gpu_engine() {
  static const auto* const kEngine = [] {
    EngineOptions options;
    options.threads = 1;
    options.device = loom::Device::gpu;
    options.gpu_library = gpu()->adapter().library;
    options.gpu_strict = true;
    const Result<Engine> engine = Engine::create(options);
    EXPECT_TRUE(engine.ok()) << engine.error().str();
    return new Engine(*engine);
  }();
  return *kEngine;
}

struct Pair {
  Model cpu, gpu;
};

// dtype "" means as stored.
Pair load_both(const std::string& path, const std::string& dtype) {
  ModelOptions options;
  if (!dtype.empty()) options.dtype = loom::parse_dtype(dtype).value();
  const Result<Model> cpu = Model::load(make_engine(1), path, options);
  const Result<Model> gpu = Model::load(gpu_engine(), path, options);
  EXPECT_TRUE(cpu.ok()) << cpu.error().str();
  EXPECT_TRUE(gpu.ok()) << gpu.error().str();
  return {*cpu, *gpu};
}

bool slow() {
  return gpu()->adapter().software && !all_cases();
}

// Only the first prompt if a CPU emulates the GPU.
std::vector<ReferencePrompt> prompts_of(const std::string& folder) {
  std::vector<ReferencePrompt> prompts = read_reference(folder).prompts;
  if (slow()) prompts.resize(std::min<size_t>(prompts.size(), 1));
  return prompts;
}

void expect_same_words(const Pair& models, const std::vector<ReferencePrompt>& prompts,
                       loom::DType cache = loom::DType::float32) {
  GenerateOptions options;
  options.max_tokens = 64;
  options.ignore_eos = true;
  const ModelSessionOptions in_f32{.activations = Activations::f32, .cache_type = cache};
  for (const ReferencePrompt& prompt : prompts) {
    Result<ModelSession> cpu = models.cpu.session(in_f32), got = models.gpu.session(in_f32);
    ASSERT_TRUE(cpu.ok()) << cpu.error().str();
    ASSERT_TRUE(got.ok()) << got.error().str();
    const Result<Generation> expected = cpu->generate(prompt.ids, options);
    const Result<Generation> written = got->generate(prompt.ids, options);
    ASSERT_TRUE(expected.ok()) << expected.error().str();
    ASSERT_TRUE(written.ok()) << written.error().str();
    EXPECT_EQ(written->token_ids, expected->token_ids) << prompt.text;
  }
}

// Activations in int8: a difference of one ulp sometimes moves a value across a rounding boundary,
// which moves others. After some layers the logits of two correct runs differ as much as rounding
// to 8 bits changes either. So the words may differ, but the logits along the words of the CPU must
// be close.
void expect_close_words(const Pair& models, const ReferencePrompt& prompt) {
  Result<ModelSession> cpu = models.cpu.session(), got = models.gpu.session();
  ASSERT_TRUE(cpu.ok()) << cpu.error().str();
  ASSERT_TRUE(got.ok()) << got.error().str();
  std::vector<TokenId> next = prompt.ids;
  double sum = 0;
  constexpr int kWords = 32;
  for (int i = 0; i < kWords; ++i) {
    ASSERT_TRUE(cpu->feed(next).ok());
    const Status fed = got->feed(next);
    ASSERT_TRUE(fed.ok()) << fed.error().str();
    const std::span<const float> logits = cpu->logits();
    sum += distance(logits, got->logits());
    const auto best = std::max_element(logits.begin(), logits.end());
    next = {static_cast<TokenId>(best - logits.begin())};
  }
  EXPECT_LT(sum / kWords, 0.02) << prompt.text;
}

void expect_same_perplexity(const Pair& models, const std::vector<TokenId>& ids, int64_t window,
                            int64_t limit, ActivationMode mode, double bound) {
  double measured[2] = {};
  for (const bool on_gpu : {false, true}) {
    LlmSessionOptions options;
    options.context = window;
    options.head_rows = 32;
    options.activations = mode;
    Result<LlmSession> session = make_session(on_gpu ? models.gpu : models.cpu, options);
    ASSERT_TRUE(session.ok()) << session.error().str();
    PerplexityOptions how;
    how.window = window;
    how.limit = limit;
    const Result<Perplexity> result = measure_perplexity(*session, ids, how);
    ASSERT_TRUE(result.ok()) << result.error().str();
    measured[on_gpu ? 1 : 0] = result->perplexity;
  }
  EXPECT_NEAR(measured[1], measured[0], bound * measured[0]);
}

TEST(GpuStories, TheSameWords) {
  LOOM_NEEDS_GPU();
  for (const std::string dtype : {"f32", "q8_0"}) {
    SCOPED_TRACE(dtype);
    expect_same_words(load_both(kStoryModel, dtype), prompts_of(kStories));
  }
}

// A number that rounds differently changes a key by a step of its type. If two words are that
// close, texts may diverge, but not this early in these prompts.
TEST(GpuStories, TheSameWordsOverKeysAndValuesInHalves) {
  LOOM_NEEDS_GPU();
  const Pair models = load_both(kStoryModel, "");
  expect_same_words(models, prompts_of(kStories), loom::DType::float16);
  expect_same_words(models, prompts_of(kStories), loom::DType::bfloat16);
}

TEST(GpuStories, CloseLogitsWithActivationsInInt8) {
  LOOM_NEEDS_GPU();
  const Pair models = load_both(kStoryModel, "q8_0");
  for (const ReferencePrompt& prompt : prompts_of(kStories)) expect_close_words(models, prompt);
}

TEST(GpuStories, TheSamePerplexity) {
  LOOM_NEEDS_GPU();
  const Pair models = load_both(kStoryModel, "");
  std::string text;
  for (const ReferencePrompt& prompt : read_reference(kStories).prompts) {
    text += cat(prompt.text, prompt.greedy_text, "\n");
  }
  const auto ids = models.cpu.tokenize(text);
  ASSERT_TRUE(ids.ok());
  expect_same_perplexity(models, *ids, 128, 256, ActivationMode::f32, 1e-3);
}

TEST(GpuShakespeare, TheSameWords) {
  LOOM_NEEDS_GPU();
  SKIP_IF_ABSENT();
  for (const std::string dtype : {"f32", "q8_0"}) {
    SCOPED_TRACE(dtype);
    expect_same_words(load_both(kShakespeare, dtype), prompts_of(kShakespeare));
  }
}

TEST(GpuShakespeare, TheSamePerplexity) {
  LOOM_NEEDS_GPU();
  SKIP_IF_ABSENT();
  const Result<std::string> text = read_file(kData + "/tinyshakespeare.txt");
  ASSERT_TRUE(text.ok()) << text.error().str();
  const JsonValue reference = read_reference(kShakespeare).json;
  const auto start = reference.find("held_out_start_char")->as_int("start");
  for (const std::string dtype : {"f32", "q8_0"}) {
    SCOPED_TRACE(dtype);
    const Pair models = load_both(kShakespeare, dtype);
    const auto ids = models.cpu.tokenize(text->substr(static_cast<size_t>(*start), 20000));
    ASSERT_TRUE(ids.ok());
    const int64_t window = slow() ? 128 : 512, limit = slow() ? 128 : 4096;
    expect_same_perplexity(models, *ids, window, limit, ActivationMode::f32, 1e-3);
    // Rounding to 8 bits moves single predictions (expect_close_words); their mean needs many.
    if (dtype != "f32" && !slow()) {
      expect_same_perplexity(models, *ids, window, limit, ActivationMode::q8, 5e-3);
    }
  }
}

}  // namespace
}  // namespace loom::core::test

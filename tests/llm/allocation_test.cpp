// No allocation per token: operator new of this program counts, and feeding and sampling a token
// must not call it, on any lane.
#include <atomic>
#include <cstdlib>
#include <new>

#include "llm/sampling/sampler.hpp"
#include "llm/sessions/llm_batch.hpp"
#include "llm/stories.hpp"
#include "support/paths.hpp"

namespace {
std::atomic<int64_t> allocations{0};

void* count_and_allocate(std::size_t size, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  void* memory = alignment <= alignof(std::max_align_t)
                     ? std::malloc(size > 0 ? size : 1)
                     : std::aligned_alloc(alignment, rounded > 0 ? rounded : alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(std::size_t size) {
  return count_and_allocate(size, 1);
}
void* operator new[](std::size_t size) {
  return count_and_allocate(size, 1);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return count_and_allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return count_and_allocate(size, static_cast<std::size_t>(alignment));
}
// The standard library's sorts request their buffers with this operator.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size > 0 ? size : 1);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size > 0 ? size : 1);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace loom::core {
namespace {

TEST(Allocation, TheCounterCounts) {
  const int64_t before = allocations.load();
  const auto p = std::make_unique<std::vector<int>>(100);
  EXPECT_EQ(allocations.load() - before, 2);
}

class AllocationPerToken : public testing::TestWithParam<DType> {};

TEST_P(AllocationPerToken, IsNone) {
  Result<LanguageModel> model = load_language_model(test::kStories, {GetParam(), {}}, test::pool());
  ASSERT_TRUE(model.ok());
  for (const ActivationMode mode : {ActivationMode::q8, ActivationMode::f32}) {
    LlmSessionOptions options;
    options.activations = mode;
    LlmSession session = test::session(*model, options);
    const std::vector<TokenId> prompt = test::encode(*model, "Once upon a time");
    SamplerOptions sampling;
    sampling.temperature = 0.9f;
    sampling.top_k = 40;
    sampling.top_p = 0.9f;
    sampling.repetition_penalty = 1.2f;
    Result<Sampler> sampler = Sampler::create(sampling, model->config().vocab_size);
    ASSERT_TRUE(sampler.ok());
    std::vector<TokenId> history = prompt;
    history.reserve(200);
    // From the first prompt on: nothing is left to the second token.
    const int64_t before = allocations.load();
    bool fed = session.feed(prompt).ok();
    for (int i = 0; i < 100 && fed; ++i) {
      const TokenId id = sampler->next(session.logits(), history);
      history.push_back(id);
      fed = session.feed({&id, 1}).ok();
    }
    const int64_t after = allocations.load();
    EXPECT_TRUE(fed);
    EXPECT_EQ(after - before, 0);
  }
}

// Caps, scales and further norms record additional ops.
TEST(AllocationPerTokenOfOtherDecoders, IsNone) {
  for (const char* name :
       {"gemma2", "gemma3", "phi3", "smollm3", "starcoder2", "bitnet-multiplied"}) {
    const std::string folder = loom_test::source_path("tests/llm/golden/") + name;
    const auto model = load_language_model(folder, LoadModelOptions(), test::pool());
    ASSERT_TRUE(model.ok()) << model.error().str();
    LlmSession session = test::session(*model);
    const int64_t before = allocations.load();
    const TokenId prompt[] = {5, 6, 7};
    bool fed = session.feed(prompt).ok();
    for (TokenId id = 3; id < 60 && fed; ++id) fed = session.feed({&id, 1}).ok();
    const int64_t after = allocations.load();
    EXPECT_TRUE(fed) << name;
    EXPECT_EQ(after - before, 0) << name;
  }
}

TEST(AllocationPerPassOfABatch, IsNone) {
  LlmBatchOptions options;
  options.sequences = 3;
  Result<LlmBatch> batch =
      LlmBatch::create(test::stories(), cpu_ops(best_isa()), test::pool(), options);
  ASSERT_TRUE(batch.ok()) << batch.error().str();
  const TokenId prompt[] = {5, 6, 7};
  const int64_t before = allocations.load();
  bool fed = true;
  for (TokenId id = 3; id < 60 && fed; ++id) {
    const std::span<const TokenId> one(&id, 1);
    const LlmBatch::Piece pieces[] = {{id % 3, one}, {(id + 1) % 3, prompt, false}};
    fed = batch->feed(pieces).ok();
  }
  const int64_t after = allocations.load();
  EXPECT_TRUE(fed);
  EXPECT_EQ(after - before, 0);
}

INSTANTIATE_TEST_SUITE_P(Types, AllocationPerToken,
                         testing::Values(DType::f32, DType::bf16, DType::q8_0, DType::q4_0,
                                         DType::i8, DType::ternary, DType::nf4),
                         [](const auto& type) { return std::string(dtype_name(type.param)); });

}  // namespace
}  // namespace loom::core

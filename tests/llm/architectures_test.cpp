// Tiny checkpoints of every architecture compared with the logits of `transformers`
// (tools/goldens/decoders.py): weights in bf16, activations in f32, prompts longer than the sliding
// windows. The bits do not depend on the split of the prompt. LOOM_DECODERS names a folder with
// more of them (tools/goldens/decoders.py --random), which are too many to store.
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "io/weights/safetensors.hpp"
#include "llm/stories.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

constexpr float kTolerance = 2e-4f;

std::string folder_of(const std::string& name) {
  if (name.starts_with('/')) return name;
  return loom_test::source_path("tests/llm/golden/") + name;
}

struct Golden {
  std::vector<TokenId> ids;
  std::vector<float> logits;  // [ids, vocab]
};

Golden golden_of(const std::string& name) {
  Golden golden;
  const auto file = SafeTensors::open(folder_of(name) + "/golden.safetensors");
  EXPECT_TRUE(file.ok()) << file.error().str();
  if (!file.ok()) return golden;
  const auto values = [&](const char* key) {
    const SafeTensor* tensor = file->find(key);
    std::vector<float> out(tensor == nullptr ? 0 : static_cast<size_t>(tensor->count()));
    EXPECT_TRUE(tensor != nullptr &&
                SafeTensors::to_f32(*tensor, 0, tensor->count(), out.data()).ok());
    return out;
  };
  for (const float id : values("ids")) golden.ids.push_back(static_cast<TokenId>(id));
  golden.logits = values("logits");
  return golden;
}

Result<LanguageModel> load(const std::string& name, LoadModelOptions options = {}) {
  return load_language_model(folder_of(name), options, test::pool());
}

// The logits of every position, the prompt fed `piece` tokens at a time.
std::vector<float> logits_of(const LanguageModel& model, const Golden& golden, size_t piece) {
  LlmSessionOptions options;
  options.context = std::min<int64_t>(32, model.config().max_positions);
  options.activations = ActivationMode::f32;
  LlmSession session = test::session(model, options);
  std::vector<float> all;
  const std::span<const TokenId> ids = golden.ids;
  for (size_t at = 0; at < ids.size(); at += piece) {
    const auto sink = [&](int64_t, std::span<const float> logits) -> Status {
      all.insert(all.end(), logits.begin(), logits.end());
      return {};
    };
    const Status fed = session.feed_all(ids.subspan(at, std::min(piece, ids.size() - at)), sink);
    EXPECT_TRUE(fed.ok()) << fed.error().str();
  }
  return all;
}

void expect_golden(const std::vector<float>& logits, const Golden& golden) {
  ASSERT_EQ(logits.size(), golden.logits.size());
  float worst = 0;
  for (size_t i = 0; i < logits.size(); ++i)
    worst = std::max(worst, std::fabs(logits[i] - golden.logits[i]));
  EXPECT_LE(worst, kTolerance);
}

class Architecture : public ::testing::TestWithParam<std::string> {};

TEST_P(Architecture, GivesTheLogitsOfTransformers) {
  const Golden golden = golden_of(GetParam());
  const Result<LanguageModel> model = load(GetParam());
  ASSERT_TRUE(model.ok()) << model.error().str();
  expect_golden(logits_of(*model, golden, golden.ids.size()), golden);
}

TEST_P(Architecture, GivesTheSameBitsForAPromptInPieces) {
  const Golden golden = golden_of(GetParam());
  const Result<LanguageModel> model = load(GetParam());
  ASSERT_TRUE(model.ok()) << model.error().str();
  const std::vector<float> whole = logits_of(*model, golden, golden.ids.size());
  for (const size_t piece : {1u, 3u}) EXPECT_EQ(logits_of(*model, golden, piece), whole) << piece;
}

std::string name_of(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Architecture,
                         ::testing::Values("llama", "llama-bitlinear", "mistral", "qwen2", "qwen3",
                                           "gemma", "gemma2", "gemma3", "phi3", "smollm3", "gpt2",
                                           "gpt2-odd", "opt", "gpt-neox", "gpt-neox-serial", "phi",
                                           "starcoder2", "mixtral", "qwen2-moe",
                                           "qwen3-moe-stacked", "bitnet", "bitnet-online",
                                           "bitnet-multiplied", "bitnet-divided"),
                         name_of);

TEST(RandomDecoders, GiveTheLogitsOfTransformers) {
  const char* root = std::getenv("LOOM_DECODERS");
  if (root == nullptr) GTEST_SKIP() << "LOOM_DECODERS names no folder of decoders";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::absolute(root))) {
    SCOPED_TRACE(entry.path().string());
    const Golden golden = golden_of(entry.path().string());
    const Result<LanguageModel> model = load(entry.path().string());
    ASSERT_TRUE(model.ok()) << model.error().str();
    const std::vector<float> whole = logits_of(*model, golden, golden.ids.size());
    expect_golden(whole, golden);
    EXPECT_EQ(logits_of(*model, golden, 5), whole);
    ++count;
  }
  EXPECT_GT(count, 0);
  RecordProperty("decoders", count);
}

TEST(Ternary, CheckpointsStayTernaryUnlessAskedOtherwise) {
  for (const std::string name : {"bitnet-online", "bitnet-multiplied", "bitnet-divided"}) {
    const Golden golden = golden_of(name);
    const Result<LanguageModel> packed = load(name), plain = load(name, {DType::f32, {}});
    ASSERT_TRUE(packed.ok() && plain.ok());
    EXPECT_EQ(packed->dtype(), DType::ternary) << name;
    EXPECT_EQ(plain->dtype(), DType::f32);
    expect_golden(logits_of(*plain, golden, golden.ids.size()), golden);
  }
  const Result<LanguageModel> full = load("bitnet");
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(full->dtype(), DType::bf16);
}

// Packing full weights as ternary takes one scale per matrix, as the model was trained.
TEST(Ternary, FullWeightsHaveOneScalePerMatrix) {
  const Result<LanguageModel> model = load("bitnet", {DType::ternary, {}});
  ASSERT_TRUE(model.ok()) << model.error().str();
  int checked = 0;
  for (const Param& param : model->network().params()) {
    if (param.tensor.dtype != DType::ternary) continue;
    const R16 g = r16_geometry(DType::ternary, param.spec.shape[0], param.spec.shape[1]);
    for (int64_t row = 0; row < g.rows; ++row)
      EXPECT_EQ(r16_step(g, param.tensor.data, row, 0), r16_step(g, param.tensor.data, 0, 0));
    ++checked;
  }
  EXPECT_EQ(checked, 14);
}

}  // namespace
}  // namespace loom::core

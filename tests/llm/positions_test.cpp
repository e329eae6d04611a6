// choose_rope_scaling(): contexts beyond those of the training.
#include "llm/positions.hpp"

#include <gtest/gtest.h>

#include "llm/decoder_forms.hpp"

namespace loom::core {
namespace {

DecoderConfig trained_for(int64_t positions) {
  DecoderConfig config;
  config.max_positions = positions;
  return config;
}

TEST(RopeScalingChoice, MultipliesThePositions) {
  struct Row {
    const char* choice;
    RopeKind kind;
    int64_t positions;
  };
  const Row rows[] = {{"linear:4", RopeKind::linear, 4096},
                      {"dynamic:2", RopeKind::dynamic, 2048},
                      {"yarn:1.5", RopeKind::yarn, 1536},
                      {"none", RopeKind::standard, 1024}};
  for (const Row& row : rows) {
    DecoderConfig config = trained_for(1024);
    ASSERT_TRUE(choose_rope_scaling(row.choice, config).ok()) << row.choice;
    EXPECT_EQ(config.rope, row.kind) << row.choice;
    EXPECT_EQ(config.max_positions, row.positions) << row.choice;
    EXPECT_EQ(config.rope_original_max_positions, row.kind == RopeKind::standard ? 8192 : 1024);
  }
}

TEST(RopeScalingChoice, StartsFromThePositionsBeforeAScaling) {
  DecoderConfig config = trained_for(8192);
  config.rope = RopeKind::yarn;
  config.rope_attention = 3;
  config.rope_original_max_positions = 2048;
  ASSERT_TRUE(choose_rope_scaling("linear:2", config).ok());
  EXPECT_EQ(config.max_positions, 4096);
  EXPECT_EQ(config.rope_attention, 1.0);
}

TEST(RopeScalingChoice, RefusesOthersByName) {
  for (const std::string choice :
       {"", "yarn", "yarn:", "yarn:1", "yarn:x", "llama3:4", "linear:2 "}) {
    DecoderConfig config = trained_for(64);
    const Status status = choose_rope_scaling(choice, config);
    ASSERT_FALSE(status.ok()) << choice;
    EXPECT_EQ(status.error().str(), "rope scaling '" + choice +
                                        "' is not known; use none, linear:F, dynamic:F or yarn:F "
                                        "with F above 1");
  }
  DecoderConfig learned = trained_for(64);
  learned.rope = RopeKind::none;
  EXPECT_FALSE(choose_rope_scaling("linear:2", learned).ok());
}

// A chosen scaling is that of a model with the same settings.
TEST(RopeScalingChoice, ComputesThePositionsThatItNames) {
  for (const char* choice : {"linear:3", "yarn:3", "dynamic:3"}) {
    DecoderConfig config = trained_for(8);
    config.hidden_size = config.head_dim = config.intermediate_size = 8;
    config.num_layers = config.num_heads = config.num_kv_heads = 1;
    config.vocab_size = 11;
    const test::FormSource source(config, 5);
    LoadModelOptions options;
    options.dtype = DType::f32;
    options.rope_scaling = choice;
    const auto model = LanguageModel::load(source, options, test::pool());
    ASSERT_TRUE(model.ok()) << model.error().str();
    test::FormSource same(config, 5);
    ASSERT_TRUE(choose_rope_scaling(choice, same.config).ok());
    EXPECT_EQ(model->config().max_positions, 24);
    const auto ids = test::random_ids(config, 3, 20);
    const auto want = test::LiteralDecoder(same).logits(ids);
    LlmSessionOptions session_options;
    session_options.context = 24;
    auto session = LlmSession::create(*model, cpu_ops(best_isa()), test::pool(), session_options);
    ASSERT_TRUE(session.ok()) << session.error().str();
    ASSERT_TRUE(session->feed(ids).ok());
    for (size_t i = 0; i < 11; ++i)
      EXPECT_NEAR(static_cast<double>(session->logits()[i]), want.back()[i], 1e-4) << choice;
  }
}

}  // namespace
}  // namespace loom::core

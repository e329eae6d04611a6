// Every parameter of a decoder has a unique role in its block, and so a unique name in every
// format, whatever parts the model has.
#include "llm/decoder_role.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "base/numbers/rng.hpp"
#include "families/family.hpp"
#include "formats/gguf/names.hpp"
#include "formats/hf/names.hpp"
#include "llm/decoder.hpp"

namespace loom::core {
namespace {

DecoderConfig random_config(uint64_t seed) {
  DecoderConfig c = shape_config("tiny").value();
  const Rng rng(seed, 0);
  uint64_t drawn = 0;
  const auto coin = [&] { return rng.bits(drawn++) % 2 == 0; };
  c.num_layers = 1 + rng.bits(drawn++) % 12;
  c.layer_norms = coin();
  c.learned_positions = coin() ? c.max_positions : 0;
  c.gated_mlp = coin();
  const ResidualKind kinds[] = {ResidualKind::serial, ResidualKind::parallel,
                                ResidualKind::shared_norm};
  c.residual = kinds[rng.bits(drawn++) % 3];
  c.attention_bias = coin();
  c.attention_out_bias = coin();
  c.qk_norm = coin();
  c.sub_norms = c.gated_mlp && coin();
  c.post_norms = !c.layer_norms && c.residual == ResidualKind::serial && coin();
  c.pre_norms = !c.post_norms || coin();
  c.norm_weights = coin();
  c.norm_biases = coin();
  c.mlp_bias = coin();
  c.tie_word_embeddings = coin();
  c.head_bias = !c.tie_word_embeddings && coin();
  c.model_type = coin() ? "phi3" : "llama";
  return c;
}

TEST(DecoderRole, IsOneOfItsBlockForEveryParameterOfRandomDecoders) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const DecoderConfig config = random_config(seed);
    const auto grid = decoder_grid(config);
    ASSERT_TRUE(grid.ok()) << seed;
    const auto network = Network::finalize(*grid, Shape{1, 1});
    ASSERT_TRUE(network.ok()) << seed;
    std::set<std::pair<int64_t, DecoderRole>> pieces;
    std::set<std::tuple<std::string, int64_t>> hf, gguf;
    GgufRules plain = find_family_of_gguf("llama")->gguf;
    plain.fused = config.model_type == "phi3";
    for (const Param& param : network->params()) {
      const DecoderPiece piece = decoder_piece(param, config);
      EXPECT_LT(piece.block, config.num_layers) << param.path;
      EXPECT_TRUE(pieces.insert({piece.block, piece.role}).second) << seed << " " << param.path;
      const TensorPart in_hf = hf_tensor(param, config);
      const TensorPart in_gguf = gguf_tensor(param, config, plain);
      EXPECT_TRUE(hf.insert({in_hf.name, in_hf.first_row}).second) << in_hf.name;
      EXPECT_TRUE(gguf.insert({in_gguf.name, in_gguf.first_row}).second) << in_gguf.name;
      EXPECT_LE(in_hf.first_row + param.spec.shape[0], in_hf.rows) << in_hf.name;
      const bool vocabulary = piece.role == DecoderRole::token_embedding ||
                              piece.role == DecoderRole::positions ||
                              piece.role == DecoderRole::head;
      EXPECT_EQ(is_vocabulary_matrix(param, config.vocab_size), vocabulary) << param.path;
    }
  }
}

TEST(DecoderRole, IsKnownWithoutANetworkInTheOrderOfOne) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const DecoderConfig config = random_config(seed);
    const auto grid = decoder_grid(config);
    ASSERT_TRUE(grid.ok()) << seed;
    const auto network = Network::finalize(*grid, Shape{1, 1});
    ASSERT_TRUE(network.ok()) << seed;
    size_t i = 0;
    each_decoder_param(*grid, [&](const Param& param) {
      ASSERT_LT(i, network->params().size()) << seed;
      const Param& want = network->params()[i++];
      EXPECT_TRUE(param.cell == want.cell) << want.path;
      EXPECT_EQ(param.child, want.child) << want.path;
      EXPECT_EQ(param.spec.name, want.spec.name) << want.path;
      EXPECT_TRUE(param.spec.shape == want.spec.shape) << want.path;
      EXPECT_EQ(decoder_piece(param, config).role, decoder_piece(want, config).role) << want.path;
    });
    EXPECT_EQ(i, network->params().size()) << seed;
  }
}

}  // namespace
}  // namespace loom::core

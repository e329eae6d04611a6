// A decoder described as a plain network is recognized as a decoder: of every class that other
// formats can describe. Otherwise the message names the wrong cell.
#include "convert/network_decoder.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "formats/config/config.hpp"
#include "io/files/file.hpp"
#include "llm/decoder.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

DecoderConfig golden_config(const std::string& name) {
  const std::string path = cat(loom_test::source_path("tests/llm/golden/"), name, "/config.json");
  const auto text = read_file(path);
  EXPECT_TRUE(text.ok()) << path;
  const auto config = parse_hf_config(*text, "", path);
  EXPECT_TRUE(config.ok()) << path;
  return *config;
}

std::string grid_text(const GridSpec& grid) {
  return dump_json(network_json({grid, Shape{1}}));
}

class NetworkDecoder : public ::testing::TestWithParam<const char*> {};

TEST_P(NetworkDecoder, IsFoundAgainByItsCells) {
  const DecoderConfig config = golden_config(GetParam());
  const auto grid = decoder_grid(config);
  ASSERT_TRUE(grid.ok());
  const auto found = decoder_config_of(*grid, config.max_positions);
  ASSERT_TRUE(found.ok()) << found.error().str();
  EXPECT_EQ(found->max_positions, config.max_positions);
  const auto again = decoder_grid(*found);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(grid_text(*again), grid_text(*grid));
}

INSTANTIATE_TEST_SUITE_P(Classes, NetworkDecoder,
                         ::testing::Values("llama", "mistral", "qwen2", "qwen3", "bitnet",
                                           "smollm3", "gemma", "gemma2"),
                         [](const auto& one) { return std::string(one.param); });

GridSpec tiny() {
  return *decoder_grid(shape_config("tiny").value());
}

TEST(NetworkDecoderCells, NamesTheCellThatIsWrong) {
  GridSpec other = tiny();
  ASSERT_TRUE(
      other.put({1, 0, 0, 1}, {*make_layer(LayerKind::dense, {{"in", 64}, {"out", 64}})}).ok());
  const auto dense = decoder_config_of(other, 512);
  ASSERT_FALSE(dense.ok());
  EXPECT_EQ(dense.error().code, Code::unsupported);
  EXPECT_EQ(
      dense.error().message,
      "its network is not a decoder of a language model: cell (1, 0, 0, 1) is a Dense; it must "
      "be a Residual");
  const auto flat = decoder_config_of(GridSpec(2, 1, 1, 1), 512);
  ASSERT_FALSE(flat.ok());
  EXPECT_EQ(
      flat.error().message,
      "its network is not a decoder of a language model: its grid is 2 x 1 x 1 x 1; it must be "
      "blocks + 2 x 1 x 1 x 2");
}

TEST(NetworkDecoderCells, RefusesBlocksThatNoClassCanSay) {
  GridSpec other = tiny();
  // Only the second block has another width of its gated unit.
  std::vector<LayerConfig> children = {
      *make_layer(LayerKind::rms_norm, {{"width", 64}, {"eps", 1e-5}}),
      *make_layer(LayerKind::swiglu, {{"width", 64}, {"inner", 96}})};
  ASSERT_TRUE(
      other.put({2, 0, 0, 1}, {*make_layer(LayerKind::residual, {}, std::move(children))}).ok());
  const auto found = decoder_config_of(other, 512);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, Code::unsupported);
  EXPECT_EQ(
      found.error().message,
      "its network is not a decoder of a language model: no class of decoders has this inner of "
      "SwiGLU in cell (2, 0, 0, 1); the nearest is LlamaForCausalLM");
}

TEST(NetworkDecoderCells, NamesTheFieldThatNoClassHas) {
  GridSpec other = tiny();
  Cell cell = *other.find({1, 0, 0, 0});
  LayerConfig& attention = cell.layer.children[1];
  for (size_t i = 0; i < attention.values.size(); ++i)
    if (attention.def->fields[i].name == "causal") attention.values[i] = FieldValue(0);
  cell.frozen = {"1/q"};
  ASSERT_TRUE(other.put({1, 0, 0, 0}, std::move(cell)).ok());
  const auto found = decoder_config_of(other, 512);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(
      found.error().message,
      "its network is not a decoder of a language model: no class of decoders has this causal "
      "of MultiHeadAttention in cell (1, 0, 0, 0); the nearest is LlamaForCausalLM");
}

}  // namespace
}  // namespace loom::core

// Experts in GGUF: the tensors of a file written from a folder, and its weights when it is read.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.hpp"
#include "formats/gguf/export.hpp"
#include "formats/gguf/source.hpp"
#include "formats/gguf_testing.hpp"
#include "formats/hf/source.hpp"
#include "llm/decoder.hpp"
#include "llm/decoder_role.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

std::vector<float> values_of(const ModelSource& source, const Param& param) {
  const auto weight = source.weight(param);
  EXPECT_TRUE(weight.ok()) << weight.error().str();
  std::vector<float> values(static_cast<size_t>(param.spec.shape.count()));
  const int64_t rows = param.spec.shape[0];
  EXPECT_TRUE(weight.ok() && weight->rows(0, rows, values.data()).ok());
  return values;
}

TEST(GgufExperts, AreTheWeightsOfTheFolder) {
  const test::TemporaryFolder folder;
  for (const char* golden : {"mixtral", "qwen2-moe", "qwen3-moe-stacked"}) {
    auto source = open_hf_folder(loom_test::source_path("tests/llm/golden/") + golden);
    ASSERT_TRUE(source.ok()) << source.error().str();
    // llama.cpp has experts in every layer, one rule of their weights, and no window here.
    DecoderConfig& config = (*source)->config;
    for (DecoderLayer& layer : config.layers) layer.window = 0;
    const bool mixed = std::ranges::any_of(config.layers, &DecoderLayer::dense);
    const std::string path = folder.path(cat(golden, ".gguf"));
    const Status written = write_gguf(path, **source);
    if (mixed) {
      EXPECT_NE(written.error().str().find("cannot say the layers without experts"),
                std::string::npos);
      continue;
    }
    ASSERT_TRUE(written.ok()) << written.error().str();
    const auto read = open_gguf(FileRef(path));
    ASSERT_TRUE(read.ok()) << read.error().str();
    EXPECT_EQ((*read)->config.experts, config.experts);
    int experts = 0;
    each_decoder_param(*decoder_grid(config), [&](const Param& param) {
      EXPECT_EQ(values_of(**read, param), values_of(**source, param)) << param.spec.name;
      experts += is_expert_matrix(decoder_piece(param, config).role) ? 1 : 0;
    });
    EXPECT_EQ(experts, 3 * config.num_layers);
  }
}

}  // namespace
}  // namespace loom::core

// Every row of src/families is complete: a small model of it is read, written and named without
// collisions. A new family is tested here without more.
#include "families/family.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "families/encoder_family.hpp"
#include "formats/config/config.hpp"
#include "formats/config/encoder.hpp"
#include "formats/gguf/names.hpp"
#include "formats/hf/encoder_names.hpp"
#include "formats/hf/names.hpp"
#include "llm/decoder.hpp"

namespace loom::core {
namespace {

// config.json of a small model, with the names of the class.
std::string small_config(const DecoderFamily& family) {
  const ConfigKeys& keys = *family.config.keys;
  const std::pair<std::string_view, int> sizes[] = {
      {keys.hidden, 64}, {keys.inner, 128},   {keys.layers, 4},
      {keys.heads, 4},   {"vocab_size", 300}, {keys.positions, 256},
      {"head_dim", 16},  {keys.kv_heads, 2},  {keys.rotary_width, 8}};
  std::string text = cat("{\"architectures\": [\"", family.hf_class, "\"], \"model_type\": \"",
                         family.model_type, "\"");
  for (const auto& [key, value] : sizes)
    if (!key.empty()) text += cat(", \"", key, "\": ", value);
  if (family.experts != nullptr && family.experts->count_default == 0)
    text += cat(", \"", family.experts->count, "\": 4");
  if (family.experts != nullptr && family.experts->chosen_default == 0)
    text += cat(", \"", family.experts->chosen, "\": 2");
  if (family.mixers != nullptr && keys.heads.empty() && !family.mixers->heads.empty())
    text += cat(", \"", family.mixers->heads, "\": 8");  // twice the width, in heads of 16
  if (family.config.rope_required) text += R"(, "rope_parameters": {"rope_type": "default"})";
  if (family.config.sliding == ConfigRules::Sliding::runs)
    text += R"(, "attention_types": [[["global", "local"], 2]])";
  return text + "}";
}

class EveryFamily : public testing::TestWithParam<const DecoderFamily*> {
 protected:
  const DecoderFamily& family() const { return *GetParam(); }
};

TEST_P(EveryFamily, IsFoundByItsNames) {
  EXPECT_EQ(find_family_of_class(family().hf_class), &family());
  EXPECT_EQ(find_family_of_type(family().model_type), &family());
  const bool experts = family().experts != nullptr;
  const DecoderFamily* in_gguf = find_family_of_gguf(family().gguf.name, experts);
  if (family().gguf.name.empty()) {
    EXPECT_EQ(in_gguf, nullptr);
  } else {
    ASSERT_NE(in_gguf, nullptr);
    EXPECT_EQ(in_gguf != &family(), family().gguf.shared_name && !experts);
  }
}

TEST_P(EveryFamily, WritesTheConfigThatItReads) {
  const auto config = parse_hf_config(small_config(family()), "", "config.json");
  ASSERT_TRUE(config.ok()) << config.error().str();
  EXPECT_EQ(config->hidden_size, 64);
  const std::string written = hf_config_json(*config);
  const auto again = parse_hf_config(written, "", "config.json");
  ASSERT_TRUE(again.ok()) << again.error().str() << "\n" << written;
  EXPECT_EQ(hf_config_json(*again), written);
}

// Windows that have an effect and others, by the rule of the class and by layer_types.
TEST_P(EveryFamily, WritesTheLayersThatItReads) {
  using Sliding = ConfigRules::Sliding;
  const ConfigRules& rules = family().config;
  if (rules.sliding == Sliding::never) return;
  const bool lists = rules.sliding != Sliding::every && rules.sliding != Sliding::runs;
  std::string start = small_config(family());
  start.pop_back();
  if (rules.window_switch) start += ", \"use_sliding_window\": true";
  for (const char* window : {"5", "300"}) {
    for (const char* types : {"", R"("full_attention")", R"("sliding_attention")"}) {
      std::string text = cat(start, ", \"", rules.keys->window, "\": ", window);
      if (types[0] != 0 && !lists) continue;
      if (types[0] != 0)
        text +=
            cat(R"(, "layer_types": ["full_attention", )", types, ", ", types, ", ", types, "]");
      SCOPED_TRACE(text);
      const auto config = parse_hf_config(text + "}", "", "config.json");
      ASSERT_TRUE(config.ok()) << config.error().str();
      const auto again = parse_hf_config(hf_config_json(*config), "", "config.json");
      ASSERT_TRUE(again.ok()) << again.error().str();
      for (int64_t i = 0; i < config->num_layers; ++i)
        EXPECT_EQ(again->layer(i), config->layer(i)) << i << hf_config_json(*config);
    }
  }
}

TEST_P(EveryFamily, HasUniqueTensorRowsForEveryParameter) {
  const auto config = parse_hf_config(small_config(family()), "", "config.json");
  ASSERT_TRUE(config.ok()) << config.error().str();
  const auto grid = decoder_grid(*config);
  ASSERT_TRUE(grid.ok()) << grid.error().str();
  std::set<std::pair<std::string, int64_t>> hf, gguf;
  each_decoder_param(*grid, [&](const Param& param) {
    const TensorPart in_hf = hf_tensor(param, *config);
    EXPECT_TRUE(hf.insert({in_hf.name, in_hf.first_row}).second) << in_hf.name;
    EXPECT_EQ(in_hf.name.find(".."), std::string::npos) << in_hf.name;
    EXPECT_NE(in_hf.name[0], '.') << param.path;
    if (family().gguf.name.empty()) return;
    const TensorPart in_gguf = gguf_tensor(param, *config, family().gguf);
    EXPECT_TRUE(gguf.insert({in_gguf.name, in_gguf.first_row}).second) << in_gguf.name;
  });
  EXPECT_FALSE(hf.empty());
}

INSTANTIATE_TEST_SUITE_P(Families, EveryFamily, testing::ValuesIn(decoder_families()),
                         [](const auto& one) { return std::string(one.param->model_type); });

TEST(NetworkFamilies, AreTriedInTheOrderOfTheirRanks) {
  std::string order;
  int last = 0;
  for (const DecoderFamily* family : network_families()) {
    EXPECT_GT(family->network_rank, last) << family->hf_class;
    last = family->network_rank;
    order += cat(family->model_type, " ");
  }
  EXPECT_EQ(order, "llama qwen2 qwen3 mistral bitnet smollm3 gemma gemma2 gemma3_text ");
}

TEST(EncoderFamilies, AreFoundByEachOfTheirClasses) {
  for (const EncoderFamily* family : encoder_families()) {
    for (const char* kind : {"Model", "ForMaskedLM", "ForSequenceClassification"}) {
      const EncoderClass found = find_encoder_class(cat(family->name, kind));
      EXPECT_EQ(found.family, family) << family->name << kind;
      EXPECT_EQ(found.scores, kind == std::string_view("ForSequenceClassification"));
    }
    EXPECT_EQ(find_encoder_of_type(family->model_type), family);
    EXPECT_EQ(find_encoder_class(family->name).family, nullptr);
  }
}

TEST(EncoderFamilies, HaveUniqueTensorRowsForEveryParameter) {
  for (const EncoderFamily* family : encoder_families()) {
    const EncoderKeys& keys = family->config.keys;
    const auto config = parse_encoder_config(
        cat("{\"architectures\": [\"", family->name, "ForSequenceClassification\"], \"",
            keys.hidden, "\": 64, \"", keys.inner, "\": 128, \"", keys.layers, "\": 2, \"",
            keys.heads, "\": 4, \"vocab_size\": 300}"),
        "config.json");
    ASSERT_TRUE(config.ok()) << family->name << ": " << config.error().str();
    const auto grid = encoder_grid(*config);
    ASSERT_TRUE(grid.ok()) << grid.error().str();
    std::set<std::pair<std::string, int64_t>> names;
    const auto network = Network::finalize(*grid, Shape{1, 1});
    ASSERT_TRUE(network.ok()) << network.error().str();
    for (const Param& param : network->params()) {
      const TensorPart part = hf_encoder_tensor(param, *config);
      if (part.name.empty()) {
        EXPECT_FALSE(family->folder.norm_biases) << param.path;
        continue;
      }
      EXPECT_TRUE(names.insert({part.name, part.first_row}).second) << part.name;
    }
    EXPECT_FALSE(names.empty());
  }
}

}  // namespace
}  // namespace loom::core

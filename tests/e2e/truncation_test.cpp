// A small checkpoint cut at every byte: loading it answers with an Error, in one line, and never
// with a crash or another model.
#include <gmock/gmock.h>

#include "e2e/reference.hpp"
#include "e2e/temp_folder.hpp"

namespace loom::core {
namespace {

constexpr int kWidth = 16, kInner = 32, kVocab = 32, kLayers = 2, kHeadDim = 8;

const char kConfig[] =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 16,
        "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 1, "vocab_size": 32, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": true})";

struct Entry {
  std::string name;
  std::vector<int> shape;
};

std::vector<Entry> entries() {
  std::vector<Entry> all = {{"model.embed_tokens.weight", {kVocab, kWidth}},
                            {"model.norm.weight", {kWidth}}};
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    all.push_back({prefix + "input_layernorm.weight", {kWidth}});
    all.push_back({prefix + "post_attention_layernorm.weight", {kWidth}});
    all.push_back({prefix + "self_attn.q_proj.weight", {kWidth, kWidth}});
    all.push_back({prefix + "self_attn.k_proj.weight", {kHeadDim, kWidth}});
    all.push_back({prefix + "self_attn.v_proj.weight", {kHeadDim, kWidth}});
    all.push_back({prefix + "self_attn.o_proj.weight", {kWidth, kWidth}});
    all.push_back({prefix + "mlp.gate_proj.weight", {kInner, kWidth}});
    all.push_back({prefix + "mlp.up_proj.weight", {kInner, kWidth}});
    all.push_back({prefix + "mlp.down_proj.weight", {kWidth, kInner}});
  }
  return all;
}

// A safetensors file of bf16 values near 1, made from nothing.
std::string small_safetensors() {
  std::string header = "{", data;
  for (const Entry& entry : entries()) {
    int count = 1;
    std::string shape;
    for (const int extent : entry.shape) {
      count *= extent;
      shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    }
    const size_t begin = data.size();
    for (int i = 0; i < count; ++i) {
      data += static_cast<char>((i * 37 + static_cast<int>(begin)) % 251);
      data += '\x3E';
    }
    header += (header.size() > 1 ? "," : "") + ("\"" + entry.name) +
              "\":{\"dtype\":\"BF16\",\"shape\":[" + shape + "],\"data_offsets\":[" +
              std::to_string(begin) + "," + std::to_string(data.size()) + "]}";
  }
  header += "}";
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  return length + header + data;
}

TEST(SmallCheckpoint, LoadsWhenWhole) {
  const test::TempFolder folder;
  folder.write("config.json", kConfig);
  folder.write("model.safetensors", small_safetensors());
  const Result<Model> model = Model::load(test::make_engine(1), folder.path());
  ASSERT_TRUE(model.ok()) << model.error().str();
  EXPECT_EQ(model->info().dtype, loom::DType::bfloat16);
  Result<ModelSession> session = model->session();
  const std::vector<TokenId> ids = {1, 2, 3};
  EXPECT_TRUE(session->feed(ids).ok());
}

TEST(SmallCheckpoint, IsRefusedWhenCutAnywhere) {
  const test::TempFolder folder;
  folder.write("config.json", kConfig);
  const std::string path = folder.write("model.safetensors", small_safetensors());
  const Engine engine = test::make_engine(1);
  for (auto size = std::filesystem::file_size(path); size-- > 0;) {
    std::filesystem::resize_file(path, size);
    const Result<Model> model = Model::load(engine, folder.path());
    ASSERT_FALSE(model.ok()) << "cut to " << size << " bytes";
    const std::string message = model.error().str();
    ASSERT_EQ(model.error().code, Code::bad_file) << message;
    ASSERT_THAT(message, testing::HasSubstr("model.safetensors")) << "cut to " << size;
    ASSERT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(SmallCheckpoint, IsRefusedWhenItsConfigIsCutAnywhere) {
  const test::TempFolder folder;
  folder.write("model.safetensors", small_safetensors());
  const std::string path = folder.write("config.json", kConfig);
  const Engine engine = test::make_engine(1);
  for (auto size = std::filesystem::file_size(path); size-- > 0;) {
    std::filesystem::resize_file(path, size);
    const Result<Model> model = Model::load(engine, folder.path());
    ASSERT_FALSE(model.ok()) << "cut to " << size << " bytes";
    ASSERT_THAT(model.error().str(), testing::HasSubstr("config.json"));
  }
}

TEST(SmallCheckpoint, IsRefusedWhenATensorIsMissingOrHasAnotherShape) {
  const std::string whole = small_safetensors();
  const auto message = [&](const std::string& from, const std::string& to) {
    std::string bytes = whole;
    bytes.replace(bytes.find(from), from.size(), to);
    const test::TempFolder folder;
    folder.write("config.json", kConfig);
    folder.write("model.safetensors", bytes);
    const Result<Model> model = Model::load(test::make_engine(1), folder.path());
    EXPECT_FALSE(model.ok());
    return model.ok() ? std::string() : model.error().str();
  };
  EXPECT_THAT(message("layers.1.self_attn.q_proj", "layers.9.self_attn.q_proj"),
              testing::HasSubstr("model.layers.1.self_attn.q_proj.weight"));
  EXPECT_THAT(message("[32,16]", "[16,32]"), testing::HasSubstr("config.json asks for [32, 16]"));
  EXPECT_THAT(message("\"BF16\"", "\"BF17\""), testing::HasSubstr("BF17"));
}

}  // namespace
}  // namespace loom::core

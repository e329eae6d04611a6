// GGUF files as models, compared with the Hugging Face folder of the same model. An export that is
// opened again has the same packed weights, bit for bit, the same ids and the same template.
// bench/gguf_peer.py has the comparison with llama.cpp.
#include "formats/gguf/source.hpp"

#include <cstring>

#include "base/text.hpp"
#include "formats/config/config.hpp"
#include "formats/gguf/export.hpp"
#include "formats/gguf/names.hpp"
#include "formats/gguf/write.hpp"
#include "formats/gguf_testing.hpp"
#include "io/io_testing.hpp"
#include "llm/stories.hpp"

namespace loom::core {
namespace {

using loom::core::test::bytes_of;
using loom::core::test::TemporaryFolder;

void export_to(const std::string& from, const std::string& to, std::optional<DType> dtype = {}) {
  const auto source = open_model_source(from);
  ASSERT_TRUE(source.ok()) << source.error().str();
  GgufExportOptions options;
  options.dtype = dtype;
  const Status status = write_gguf(to, **source, options);
  ASSERT_TRUE(status.ok()) << status.error().str();
}

LanguageModel load(const std::string& path, std::optional<DType> dtype = {}) {
  Result<LanguageModel> model = load_language_model(path, {dtype, {}}, test::pool());
  EXPECT_TRUE(model.ok()) << model.error().str();
  return std::move(*model);
}

void expect_same_weights(const LanguageModel& a, const LanguageModel& b) {
  ASSERT_EQ(a.network().params().size(), b.network().params().size());
  for (size_t i = 0; i < a.network().params().size(); ++i) {
    const Param &x = a.network().params()[i], &y = b.network().params()[i];
    ASSERT_EQ(x.path, y.path);
    ASSERT_EQ(x.memory.size(), y.memory.size()) << x.path;
    EXPECT_EQ(std::memcmp(x.memory.data(), y.memory.data(), static_cast<size_t>(x.memory.size())),
              0)
        << x.path;
  }
}

class GgufModel : public ::testing::TestWithParam<DType> {};

TEST_P(GgufModel, OpensWithTheWeightsThatTheFolderHasInThatType) {
  const TemporaryFolder folder;
  const std::string path = folder.path("m.gguf");
  export_to(test::kStories, path, GetParam());
  const LanguageModel ours = load(test::kStories, GetParam());
  expect_same_weights(load(path), ours);
  // A file that was written from a GGUF file is that file: nothing was quantized again.
  export_to(path, folder.path("again.gguf"));
  EXPECT_TRUE(*read_file(path) == *read_file(folder.path("again.gguf")));
}

INSTANTIATE_TEST_SUITE_P(Types, GgufModel,
                         ::testing::Values(DType::f32, DType::f16, DType::bf16, DType::q4_0,
                                           DType::q8_0, DType::mxfp4, DType::q4_1, DType::q5_0,
                                           DType::q5_1),
                         [](const auto& test) { return std::string(dtype_name(test.param)); });

TEST(GgufModels, HasTheConfigurationTextAndTemplateOfTheFolder) {
  const TemporaryFolder folder;
  const std::string path = folder.path("m.gguf");
  export_to(test::kStories, path);
  const LanguageModel a = load(test::kStories), b = load(path);
  EXPECT_EQ(a.dtype(), b.dtype());
  expect_same_weights(a, b);
  EXPECT_EQ(a.config().rms_norm_eps, b.config().rms_norm_eps);
  EXPECT_EQ(a.config().rope_theta, b.config().rope_theta);
  EXPECT_EQ(a.config().max_positions, b.config().max_positions);
  EXPECT_EQ(a.config().tie_word_embeddings, b.config().tie_word_embeddings);
  EXPECT_EQ(a.config().eos_token_ids, b.config().eos_token_ids);
  EXPECT_EQ(a.config().bos_token_id, b.config().bos_token_id);
  EXPECT_EQ(a.chat_template() == nullptr, b.chat_template() == nullptr);
  for (const char* text :
       {"Once upon a time, there were 12 dogs.\n\n  Yes!", "", "été 日本 🙂"}) {
    EXPECT_EQ(*a.tokenizer()->encode(text), *b.tokenizer()->encode(text)) << text;
  }
}

TEST(GgufModels, IsPickedByWhatTheFileBeginsWith) {
  const TemporaryFolder folder;
  folder.write("a.gguf", "GGML and more");
  folder.write("b.bin", "GGUF");
  folder.write("c", "");
  EXPECT_EQ(model_file_kind(folder.path("a.gguf")), ModelFileKind::other);
  EXPECT_EQ(model_file_kind(folder.path("b.bin")), ModelFileKind::gguf);
  EXPECT_EQ(model_file_kind(folder.path("c")), ModelFileKind::other);
  EXPECT_EQ(model_file_kind(folder.path("none")), ModelFileKind::none);
  EXPECT_EQ(model_file_kind(folder.path()), ModelFileKind::folder);
  EXPECT_EQ(open_model_source(folder.path("a.gguf")).error().str(),
            folder.path("a.gguf") +
                ": no language model that is read here; give a folder, an .entity or a GGUF file");
}

// ---- small models made here ----

GgufOutput zeros(std::string name, std::vector<int64_t> shape) {
  size_t count = 1;
  for (const int64_t extent : shape) count *= static_cast<size_t>(extent);
  return {std::move(name), "F32", std::move(shape), [count](const GgufSink& sink) -> Status {
            const std::vector<float> values(count);
            return sink(std::as_bytes(std::span(values)));
          }};
}

// As llama.cpp mixes types: most matrices in one, some in a wider one.
class MixedSource : public MadeSource {
 public:
  MixedSource(const DecoderConfig& c, DType most, DType some)
      : MadeSource(c), most_(most), some_(some) {}
  Result<SourceWeight> weight(const Param& param) const override {
    LOOM_ASSIGN(SourceWeight weight, MadeSource::weight(param));
    const bool wider = param.spec.name == "v" || param.spec.name == "down";
    if (param.spec.matrix()) weight.stored = wider ? some_ : most_;
    return weight;
  }

 private:
  DType most_, some_;
};

// A model's weights equal the file: each matrix has the file's type, each value is ggml's.
void expect_packed_as_stored(const LanguageModel& model, const ModelSource& file) {
  for (const Param& param : model.network().params()) {
    if (!param.spec.matrix()) continue;
    const auto weight = file.weight(param);
    ASSERT_TRUE(weight.ok());
    EXPECT_EQ(param.tensor.dtype, weight->stored) << param.path;
    const int64_t rows = param.spec.shape[0], cols = param.spec.shape[1];
    const R16 g = r16_geometry(param.tensor.dtype, rows, cols);
    std::vector<float> want(static_cast<size_t>(cols)), got(want);
    for (int64_t row = 0; row < rows; ++row) {
      ASSERT_TRUE(weight->rows(row, 1, want.data()).ok());
      r16_decode(g, param.memory.data(), row, 0, cols, got.data());
      ASSERT_EQ(want, got) << param.path << " row " << row;
    }
  }
}

TEST(GgufModels, OfMixedKTypesStayPackedTensorByTensor) {
  DecoderConfig config = tiny("LlamaForCausalLM", "llama");
  config.hidden_size = 256;
  config.intermediate_size = 512;
  config.vocab_size = 64;
  const std::pair<DType, DType> mixes[] = {{DType::q4_k, DType::q6_k},
                                           {DType::q6_k, DType::q6_k},
                                           {DType::q5_k, DType::q6_k},
                                           {DType::q2_k, DType::q3_k},
                                           {DType::q3_k, DType::q5_k}};
  for (const auto& [most, some] : mixes) {
    SCOPED_TRACE(dtype_name(most));
    const TemporaryFolder folder;
    const std::string path = folder.path("m.gguf");
    const Status status = write_gguf(path, MixedSource(config, most, some));
    ASSERT_TRUE(status.ok()) << status.error().str();
    const auto source = open_gguf(path);
    ASSERT_TRUE(source.ok()) << source.error().str();
    const LanguageModel model = load(path);
    EXPECT_EQ(model.dtype(), most);
    expect_packed_as_stored(model, **source);
    int64_t bytes = 0;
    for (const Param& param : model.network().params()) bytes += param.bytes();
    EXPECT_LE(bytes * 100, static_cast<int64_t>(read_file(path)->size()) * 105);
    // Written again, it is the same file: nothing was quantized twice.
    export_to(path, folder.path("again.gguf"));
    EXPECT_TRUE(*read_file(path) == *read_file(folder.path("again.gguf")));
  }
}

TEST(GgufSource, ReadsBackWhatItWroteOfEveryArchitecture) {
  std::vector<DecoderConfig> configs;
  configs.push_back(tiny("LlamaForCausalLM", "llama"));
  configs.back().attention_bias = configs.back().attention_out_bias = true;
  configs.back().mlp_bias = true;
  configs.back().tie_word_embeddings = false;
  configs.back().rope = RopeKind::llama3;
  configs.back().rope_factor = 8;
  configs.push_back(tiny("Qwen2ForCausalLM", "qwen2"));
  configs.back().attention_bias = true;
  configs.back().rope = RopeKind::linear;
  configs.back().rope_factor = 2.5;
  configs.push_back(tiny("Qwen3ForCausalLM", "qwen3"));
  configs.back().qk_norm = true;
  configs.back().head_dim = 32;
  configs.back().bos_token_id = 3;
  configs.back().eos_token_ids = {4, 5};
  configs.push_back(parsed(R"("architectures":["SmolLM3ForCausalLM"],"model_type":"smollm3")"));
  configs.push_back(parsed(R"("architectures":["BitNetForCausalLM"],"model_type":"bitnet",
      "hidden_act":"silu","tie_word_embeddings":true)"));
  configs.push_back(parsed(R"("architectures":["Phi3ForCausalLM"],"model_type":"phi3",
      "sliding_window":40,"partial_rotary_factor":0.5)"));
  configs.push_back(parsed(R"("architectures":["Phi3ForCausalLM"],"model_type":"phi3",
      "rope_scaling":{"type":"su","short_factor":[1,1,1,1,1,1,1,2],
      "long_factor":[1,2,3,4,5,6,7,8]})"));
  configs.push_back(parsed(R"("architectures":["Qwen3ForCausalLM"],"model_type":"qwen3",
      "rope_scaling":{"type":"yarn","factor":3,"attention_factor":1.5,"beta_fast":16})"));
  configs.push_back(parsed(R"("architectures":["GemmaForCausalLM"],"model_type":"gemma")"));
  configs.push_back(parsed(R"("architectures":["Gemma2ForCausalLM"],"model_type":"gemma2",
                              "query_pre_attn_scalar":16,"sliding_window":32)"));
  configs.push_back(parsed(R"("architectures":["Gemma3ForCausalLM"],"model_type":"gemma3_text",
                              "query_pre_attn_scalar":16,"sliding_window":32,
                              "rope_scaling":{"rope_type":"linear","factor":8.0})"));
  configs.push_back(parsed(R"("architectures":["GPT2LMHeadModel"],"model_type":"gpt2",
      "n_embd":64,"n_inner":160,"n_layer":2,"n_head":4,"n_positions":100)"));
  configs.push_back(
      parsed(R"("architectures":["Starcoder2ForCausalLM"],"model_type":"starcoder2")"));
  for (const DecoderConfig& config : configs) {
    SCOPED_TRACE(config.architecture);
    const TemporaryFolder folder;
    const MadeSource made(config);
    const Status status = write_gguf(folder.path("m.gguf"), made);
    ASSERT_TRUE(status.ok()) << status.error().str();
    const auto source = open_gguf(folder.path("m.gguf"));
    ASSERT_TRUE(source.ok()) << source.error().str();
    const DecoderConfig& got = (*source)->config;
    EXPECT_EQ(got.architecture, config.architecture);
    EXPECT_EQ(got.head_dim, config.head_dim);
    EXPECT_EQ(got.num_kv_heads, config.num_kv_heads);
    EXPECT_EQ(got.attention_bias, config.attention_bias);
    EXPECT_EQ(got.mlp_bias, config.mlp_bias);
    EXPECT_EQ(got.layer_norms, config.layer_norms);
    EXPECT_EQ(got.learned_positions, config.learned_positions);
    EXPECT_EQ(got.gated_mlp, config.gated_mlp);
    EXPECT_EQ(got.rms_norm_eps, config.rms_norm_eps);
    EXPECT_EQ(got.qk_norm, config.qk_norm);
    EXPECT_EQ(got.tie_word_embeddings, config.tie_word_embeddings);
    EXPECT_EQ(got.rope, config.rope);
    EXPECT_EQ(got.rope_factor, config.rope_factor);
    EXPECT_EQ(got.rope_original_max_positions, config.rope_original_max_positions);
    EXPECT_NEAR(got.rope_attention, config.rope_attention, 1e-6);
    EXPECT_EQ(got.rope_long, config.rope_long);
    for (int64_t i = 0; i < config.num_layers; ++i) EXPECT_EQ(got.layer(i), config.layer(i)) << i;
    EXPECT_EQ(got.embedding_scale, config.embedding_scale);
    EXPECT_EQ(got.attention_soft_cap, config.attention_soft_cap);
    EXPECT_EQ(got.final_soft_cap, config.final_soft_cap);
    EXPECT_EQ(got.bos_token_id, config.bos_token_id);
    EXPECT_EQ(got.eos_token_ids, config.eos_token_ids);
    const auto a = LanguageModel::load(made, {}, test::pool());
    const auto b = LanguageModel::load(**source, {}, test::pool());
    ASSERT_TRUE(a.ok() && b.ok());
    expect_same_weights(*a, *b);
  }
}

TEST(GgufSource, WritesNothingThatItCouldNotReadBack) {
  const struct {
    const char* members;
    const char* error;
  } rows[] = {
      {R"("architectures":["BitNetForCausalLM"],"model_type":"bitnet")",
       "GGUF files of 'bitnet' cannot say hidden_act of this BitNetForCausalLM"},
      {R"("architectures":["MistralForCausalLM"],"model_type":"mistral","sliding_window":64)",
       "GGUF files of 'llama' cannot say the windows of its layers of this MistralForCausalLM"},
      {R"("architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_act":"relu")",
       "GGUF files of 'llama' cannot say hidden_act of this LlamaForCausalLM"},
      {R"("architectures":["GPT2LMHeadModel"],"model_type":"gpt2","n_embd":64,"n_layer":2,
          "n_head":4,"activation_function":"relu")",
       "GGUF files of 'gpt2' cannot say hidden_act of this GPT2LMHeadModel"},
      {R"("architectures":["Starcoder2ForCausalLM"],"model_type":"starcoder2",
          "sliding_window":9)",
       "GGUF files of 'starcoder2' cannot say the windows of its layers of this "
       "Starcoder2ForCausalLM"},
      {R"("architectures":["SmolLM3ForCausalLM"],"model_type":"smollm3",
          "no_rope_layer_interval":3)",
       "GGUF files of 'smollm3' cannot say the rotary positions of its layers of this "
       "SmolLM3ForCausalLM"},
      {R"("architectures":["Gemma2ForCausalLM"],"model_type":"gemma2")",
       "GGUF files of 'gemma2' cannot say the scale of its attention scores of this "
       "Gemma2ForCausalLM"},
      {R"("architectures":["Gemma3ForCausalLM"],"model_type":"gemma3_text",
          "query_pre_attn_scalar":16,"final_logit_softcapping":30.0)",
       "GGUF files of 'gemma3' cannot say its soft caps of this Gemma3ForCausalLM"},
      {R"("architectures":["Gemma3ForCausalLM"],"model_type":"gemma3_text",
          "query_pre_attn_scalar":16,"sliding_window":32,"rope_local_base_freq":500.0)",
       "GGUF files of 'gemma3' cannot say the rotary positions of its layers of this "
       "Gemma3ForCausalLM"},
      {R"("architectures":["LlamaForCausalLM"],"model_type":"llama","rope_parameters":{
          "rope_type":"llama3","rope_theta":10000.0,"factor":8.0,"low_freq_factor":1.5,
          "high_freq_factor":3.0,"original_max_position_embeddings":64})",
       "GGUF files of 'llama' hold the factors of rotary positions, of which rope_low_freq, "
       "rope_high_freq and rope_original of this LlamaForCausalLM cannot be read again"},
  };
  const TemporaryFolder folder;
  for (const auto& row : rows) {
    const MadeSource made(parsed(row.members));
    const Status status = write_gguf(folder.path("m"), made);
    EXPECT_EQ(status.ok() ? "" : status.error().str(), row.error);
    EXPECT_EQ(folder.file_count(), 0u);
  }
}

// The fused tensors of Phi-3 are cut where the decoder's parameters begin.
TEST(GgufSource, ReadsFusedTensors) {
  const TemporaryFolder folder;
  const std::string path = folder.path("m");
  GgufMetadata m;
  m.string("general.architecture", "phi3");
  const std::pair<const char*, uint32_t> sizes[] = {
      {"context_length", 64},      {"embedding_length", 8},        {"block_count", 1},
      {"feed_forward_length", 16}, {"attention.head_count", 2},    {"attention.head_count_kv", 1},
      {"rope.dimension_count", 2}, {"attention.sliding_window", 9}};
  for (const auto& [key, value] : sizes) m.u32(cat("phi3.", key), value);
  m.f32("phi3.attention.layer_norm_rms_epsilon", 1e-5f);
  const auto rows = [](std::string name, std::vector<int64_t> shape) {
    GgufOutput out = zeros(std::move(name), shape);
    out.write = [shape](const GgufSink& sink) -> Status {
      std::vector<float> values;
      for (int64_t i = 0; i < shape[0] * (shape.size() > 1 ? shape[1] : 1); ++i)
        values.push_back(static_cast<float>(shape.size() > 1 ? i / shape[1] : i));
      return sink(std::as_bytes(std::span(values)));
    };
    return out;
  };
  const std::vector<GgufOutput> tensors = {
      rows("token_embd.weight", {10, 8}),       rows("output.weight", {10, 8}),
      rows("blk.0.attn_norm.weight", {8}),      rows("blk.0.attn_qkv.weight", {16, 8}),
      rows("blk.0.attn_output.weight", {8, 8}), rows("blk.0.ffn_norm.weight", {8}),
      rows("blk.0.ffn_up.weight", {32, 8}),     rows("blk.0.ffn_down.weight", {8, 16}),
      rows("output_norm.weight", {8})};
  ASSERT_TRUE(write_gguf_file(path, m, tensors).ok());
  const auto source = open_gguf(path);
  ASSERT_TRUE(source.ok()) << source.error().str();
  EXPECT_EQ((*source)->config.rope_width, 2);
  EXPECT_EQ((*source)->config.layer(0).window, 9);
  const auto grid = decoder_grid((*source)->config);
  const auto network = Network::finalize(*grid, Shape{1, 1});
  const std::pair<std::string_view, float> first[] = {{"q", 0},    {"k", 8},   {"v", 12},
                                                      {"gate", 0}, {"up", 16}, {"down", 0}};
  for (const Param& param : network->params()) {
    for (const auto& [name, value] : first) {
      if (param.spec.name != name || !param.spec.matrix()) continue;
      const auto weight = (*source)->weight(param);
      ASSERT_TRUE(weight.ok()) << weight.error().str();
      std::vector<float> row(static_cast<size_t>(param.spec.shape[1]));
      ASSERT_TRUE(weight->rows(1, 1, row.data()).ok());
      EXPECT_EQ(row[0], value + 1) << name;
    }
  }
}

TEST(GgufSource, PutsTheHalvesOfARotaryPairSideBySide) {
  // Rows 0..7 of a head of 8: the file has 0, 4, 1, 5, 2, 6, 3, 7.
  const int64_t want[] = {0, 4, 1, 5, 2, 6, 3, 7};
  for (int64_t row = 0; row < 8; ++row) {
    EXPECT_EQ(unpaired_row(row, 8), want[row]);
    EXPECT_EQ(unpaired_row(row + 16, 8), want[row] + 16);
    EXPECT_EQ(paired_row(want[row], 8), row);
  }
}

// A change that makes a file invalid, one at a time.
using Change = std::function<void(GgufMetadata&, std::vector<GgufOutput>&)>;

std::string refusal(const Change& change, std::string_view without = {}) {
  const TemporaryFolder folder;
  const std::string path = folder.path("m");
  GgufMetadata metadata;
  const auto u32 = [&](const char* key, uint32_t value) {
    if (key != without) metadata.u32(key, value);
  };
  if (without != "general.architecture") metadata.string("general.architecture", "llama");
  u32("llama.context_length", 64);
  u32("llama.embedding_length", 8);
  u32("llama.block_count", 1);
  u32("llama.feed_forward_length", 16);
  u32("llama.attention.head_count", 2);
  if (without != "eps") metadata.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  std::vector<GgufOutput> tensors = {
      zeros("token_embd.weight", {10, 8}),   zeros("blk.0.attn_norm.weight", {8}),
      zeros("blk.0.attn_q.weight", {8, 8}),  zeros("blk.0.attn_k.weight", {8, 8}),
      zeros("blk.0.attn_v.weight", {8, 8}),  zeros("blk.0.attn_output.weight", {8, 8}),
      zeros("blk.0.ffn_norm.weight", {8}),   zeros("blk.0.ffn_gate.weight", {16, 8}),
      zeros("blk.0.ffn_up.weight", {16, 8}), zeros("blk.0.ffn_down.weight", {8, 16}),
      zeros("output_norm.weight", {8})};
  if (change) change(metadata, tensors);
  EXPECT_TRUE(write_gguf_file(path, metadata, tensors).ok());
  const auto source = open_gguf(path);
  std::string error;
  if (source.ok()) {
    const auto model = LanguageModel::load(**source, {}, test::pool());
    if (model.ok()) return "";
    error = model.error().str();
  } else {
    error = source.error().str();
  }
  return error.substr(0, path.size()) == path ? error.substr(path.size()) : error;
}

std::string known_architectures() {
  std::vector<std::string> names;
  for (const DecoderFamily* family : decoder_families())
    if (!family->gguf.name.empty() && !family->gguf.shared_name)
      names.emplace_back(family->gguf.name);
  return join(names, ", ");
}

TEST(GgufSource, RefusesWhatItCannotHonour) {
  ASSERT_EQ(refusal({}), "");
  const struct {
    const char* without;
    Change change;
    std::string error;
  } rows[] = {
      {"general.architecture", {}, ": gguf key 'general.architecture' is missing"},
      {"llama.block_count", {}, ": gguf key 'llama.block_count' is missing"},
      {"eps", {}, ": gguf key 'llama.attention.layer_norm_rms_epsilon' is missing"},
      {"general.architecture", [](auto& m, auto&) { m.string("general.architecture", "mamba"); },
       ": at byte 300: gguf key 'general.architecture' is 'mamba', which is not supported; these "
       "are: " +
           known_architectures()},
      {"llama.block_count", [](auto& m, auto&) { m.string("llama.block_count", "1"); },
       ": at byte 309: gguf key 'llama.block_count' must be u32, is string"},
      {"llama.block_count", [](auto& m, auto&) { m.u32("llama.block_count", 0); },
       ": num_hidden_layers: expected an integer from 1 to 16777216, found 0"},
      {"llama.block_count", [](auto& m, auto&) { m.u32("llama.block_count", UINT32_MAX); },
       ": num_hidden_layers: expected an integer from 1 to 16777216, found 4294967295"},
      {"llama.block_count", [](auto& m, auto&) { m.u32("llama.block_count", 2); },
       ": tensor blk.1.attn_norm.weight is missing"},
      {"llama.block_count", [](auto& m, auto&) { m.u32("llama.block_count", 1 << 24); },
       ": at byte 309: gguf key 'llama.block_count' asks for 16777216 blocks, the file has 11 "
       "tensors"},
      {"llama.attention.head_count", [](auto& m, auto&) { m.u32("llama.attention.head_count", 0); },
       ": num_attention_heads: expected an integer from 1 to 16777216, found 0"},
      {"llama.attention.head_count", [](auto& m, auto&) { m.u32("llama.attention.head_count", 3); },
       ": at byte 139: gguf key 'llama.embedding_length' is not a multiple of "
       "attention.head_count"},
      {"", [](auto& m, auto&) { m.u32("llama.attention.head_count_kv", 3); },
       ": num_key_value_heads: 3 does not divide num_attention_heads 2"},
      {"", [](auto& m, auto&) { m.u32("llama.expert_count", 8); },
       ": gguf key 'llama.expert_used_count' is missing"},
      {"",
       [](auto& m, auto&) {
         m.u32("llama.expert_count", 8);
         m.u32("llama.expert_used_count", 2);
       },
       ": at byte 2432: tensor 'blk.0.ffn_gate.weight' has no place in a decoder of 1 blocks of "
       "'llama'"},
      {"", [](auto& m, auto&) { m.f32("llama.logit_scale", 2); },
       ": at byte 342: gguf key 'llama.logit_scale' is not supported"},
      {"", [](auto& m, auto&) { m.u32("llama.rope.dimension_count", 2); },
       ": at byte 351: gguf key 'llama.rope.dimension_count' is 2; only the size of a head, 4, is "
       "supported"},
      {"", [](auto& m, auto&) { m.string("llama.rope.scaling.type", "warp"); },
       ": at byte 348: gguf key 'llama.rope.scaling.type' is 'warp', which is not supported; none, "
       "linear, yarn and longrope are"},
      {"", [](auto& m, auto&) { m.string("llama.rope.scaling.type", "longrope"); },
       ": longrope needs tensor rope_factors_short.weight"},
      {"", [](auto& m, auto&) { m.u32("tokenizer.ggml.bos_token_id", 10); },
       ": bos_token_id: expected an integer from 0 to 9, found 10"},
      {"", [](auto&, auto& t) { t.push_back(zeros("rope_freqs.weight", {3})); },
       ": at byte 4000: tensor rope_freqs.weight must have 2 values"},
      {"", [](auto&, auto& t) { t.push_back(zeros("rope_freqs.weight", {2})); },
       ": the factors in tensor rope_freqs.weight are not those of Llama 3"},
      {"",
       [](auto&, auto& t) {
         t.push_back(zeros("blk.1.attn_q.weight", {8, 8}));
       },
       ": at byte 4000: tensor 'blk.1.attn_q.weight' has no place in a decoder of 1 blocks of "
       "'llama'"},
      {"", [](auto&, auto& t) { t.push_back(zeros("blk.0.attn_norm.bias", {8})); },
       ": at byte 4000: tensor 'blk.0.attn_norm.bias' has no place in a decoder of 1 blocks of "
       "'llama'"},
      {"", [](auto&, auto& t) { t.push_back(zeros("blk.0.attn_q.bias", {8})); },
       ": biases of q without one of attn_output, or the other way round"},
      {"", [](auto&, auto& t) { t.erase(t.begin()); }, ": tensor token_embd.weight is missing"},
      {"", [](auto&, auto& t) { t.erase(t.begin() + 4); },
       ": tensor blk.0.attn_v.weight is missing"},
      {"",
       [](auto&, auto& t) {
         t[2] = zeros("blk.0.attn_q.weight", {8, 4});
       },
       ": at byte 1312: blk.0.attn_q.weight has shape [8, 4], the metadata asks for [8, 8]"},
      {"", [](auto&, auto& t) { t[0] = zeros("token_embd.weight", {80}); },
       ": at byte 960: tensor token_embd.weight must have two dimensions"},
      {"",
       [](auto&, auto& t) {
         t[0] = zeros("token_embd.weight", {0, 8});
       },
       ": vocab_size: expected an integer from 1 to 16777216, found 0"},
  };
  for (const auto& row : rows) EXPECT_EQ(refusal(row.change, row.without), row.error);
}

}  // namespace
}  // namespace loom::core

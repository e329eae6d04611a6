// Inconsistent folders: a field of config.json against tensors that contradict it, one parameter
// under two names, and unused tensors.
#include <algorithm>

#include "base/text.hpp"
#include "e2e/temp_folder.hpp"
#include "formats/hf/source.hpp"
#include "io/weights/safetensors_write.hpp"
#include "llm/stories.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

// A golden checkpoint with changes.
struct Folder {
  std::string golden;
  // In config.json `from` is replaced; an empty one adds `to` as the first member.
  std::string from, to;
  // Changes of the tensors.
  std::vector<std::string> without;
  std::vector<std::pair<std::string, std::string>> copies;  // {of, a further name}
  std::string generation = {};
};

void write_folder(const test::TempFolder& folder, const Folder& f) {
  const std::string from = loom_test::source_path("tests/llm/golden/") + f.golden;
  auto config = read_file(from + "/config.json");
  ASSERT_TRUE(config.ok());
  if (f.from.empty()) {
    if (!f.to.empty()) config->insert(config->find('{') + 1, f.to + ",");
  } else {
    ASSERT_NE(config->find(f.from), std::string::npos) << f.from;
    config->replace(config->find(f.from), f.from.size(), f.to);
  }
  folder.write("config.json", *config);
  if (!f.generation.empty()) folder.write("generation_config.json", f.generation);
  const auto tensors = SafeTensors::open(from);
  ASSERT_TRUE(tensors.ok()) << tensors.error().str();
  std::vector<SafeOutput> out;
  std::vector<std::vector<std::byte>> copies;
  copies.reserve(f.copies.size());
  for (const SafeTensor& t : tensors->tensors()) {
    if (std::ranges::find(f.without, t.name) == f.without.end())
      out.push_back({.name = t.name, .dtype = t.dtype, .shape = t.shape, .data = t.data});
    for (const auto& [of, name] : f.copies) {
      if (of != t.name) continue;
      const std::vector<std::byte>& bytes = copies.emplace_back(t.data.begin(), t.data.end());
      out.push_back({.name = name, .dtype = t.dtype, .shape = t.shape, .data = bytes});
    }
  }
  const Status written =
      write_safetensors(folder.path() + "/model.safetensors", std::move(out), {});
  ASSERT_TRUE(written.ok()) << written.error().str();
}

struct Contradiction {
  Folder folder;
  std::string message;
};

// Each message names the tensor and the field, or the class that says it.
TEST(HfFolder, RefusesTensorsThatContradictItsConfig) {
  const std::string q = "model.layers.0.self_attn.q_proj.", k = "model.layers.0.self_attn.k_proj.";
  const std::string up = "model.layers.0.mlp.up_proj.", in = "model.layers.0.";
  const Contradiction rows[] = {
      {{.golden = "llama", .without = {"lm_head.weight"}},
       "tensor lm_head.weight is missing (config.json says tie_word_embeddings: false)"},
      {{.golden = "llama",
        .from = "\"tie_word_embeddings\": false,",
        .to = "",
        .without = {"lm_head.weight"}},
       "tensor lm_head.weight is missing (config.json has no tie_word_embeddings, which "
       "LlamaForCausalLM takes as false)"},
      {{.golden = "llama",
        .from = "\"tie_word_embeddings\": false",
        .to = "\"tie_word_embeddings\": true"},
       "tensor lm_head.weight differs from model.embed_tokens.weight, but config.json says "
       "tie_word_embeddings: true"},
      {{.golden = "qwen2",
        .from = "\"tie_word_embeddings\": true",
        .to = "\"tie_word_embeddings\": false"},
       "tensor lm_head.weight is missing (config.json says tie_word_embeddings: false)"},
      {{.golden = "llama", .from = "\"attention_bias\": true", .to = "\"attention_bias\": false"},
       cat("tensor ", k, "bias is there, but config.json says attention_bias: false")},
      {{.golden = "llama", .without = {q + "bias"}},
       cat("tensor ", q, "bias is missing (config.json says attention_bias: true)")},
      {{.golden = "llama", .from = "\"mlp_bias\": true", .to = "\"mlp_bias\": false"},
       "tensor model.layers.0.mlp.down_proj.bias is there, but config.json says mlp_bias: false"},
      {{.golden = "llama", .without = {up + "bias"}},
       cat("tensor ", up, "bias is missing (config.json says mlp_bias: true)")},
      {{.golden = "mistral", .copies = {{in + "input_layernorm.weight", q + "bias"}}},
       cat("tensor ", q, "bias is not used: MistralForCausalLM has no bias there")},
      {{.golden = "qwen2", .copies = {{q + "bias", in + "self_attn.o_proj.bias"}}},
       "tensor model.layers.0.self_attn.o_proj.bias is not used: Qwen2ForCausalLM has no bias "
       "there"},
      {{.golden = "llama",
        .copies = {{in + "input_layernorm.weight", in + "self_attn.q_norm.weight"}}},
       "tensor model.layers.0.self_attn.q_norm.weight is not one that LlamaForCausalLM has; "
       "correct config.json or remove the tensor"},
      {{.golden = "qwen3", .without = {in + "self_attn.q_norm.weight"}},
       "tensor model.layers.0.self_attn.q_norm.weight is missing"},
      {{.golden = "llama",
        .copies = {{up + "weight", in + "block_sparse_moe.experts.0.w1.weight"}}},
       "tensor model.layers.0.block_sparse_moe.experts.0.w1.weight is not one that "
       "LlamaForCausalLM has; correct config.json or remove the tensor"},
      {{.golden = "llama", .copies = {{up + "weight", "model.layers.2.mlp.up_proj.weight"}}},
       "tensor model.layers.2.mlp.up_proj.weight is beyond the last layer: config.json says that "
       "there are 2"},
      {{.golden = "llama", .from = "\"num_hidden_layers\": 2", .to = "\"num_hidden_layers\": 3"},
       "tensor model.layers.2.input_layernorm.weight is missing"},
      {{.golden = "llama",
        .from = "\"num_key_value_heads\": 2",
        .to = "\"num_key_value_heads\": 4"},
       "model.layers.0.self_attn.k_proj.weight has shape [12, 24], config.json asks for [24, 24] "
       "(num_key_value_heads, head_dim, hidden_size)"},
      {{.golden = "llama", .from = "\"vocab_size\": 64", .to = "\"vocab_size\": 63"},
       "model.embed_tokens.weight has shape [64, 24], config.json asks for [63, 24] (vocab_size, "
       "hidden_size)"},
      {{.golden = "llama", .from = "\"head_dim\": 6", .to = "\"head_dim\": 8"},
       "model.layers.0.self_attn.q_proj.weight has shape [24, 24], config.json asks for [32, 24] "
       "(num_attention_heads, head_dim, hidden_size)"},
      {{.golden = "llama", .from = "\"intermediate_size\": 40", .to = "\"intermediate_size\": 48"},
       "model.layers.0.mlp.gate_proj.weight has shape [40, 24], config.json asks for [48, 24] "
       "(intermediate_size, hidden_size)"},
      {{.golden = "gpt2", .copies = {{"transformer.wte.weight", "wte.weight"}}},
       "tensors transformer.wte.weight and wte.weight are the same parameter; remove one"},
      {{.golden = "gpt2", .from = "\"n_positions\": 45", .to = "\"n_positions\": 44"},
       "transformer.wpe.weight has shape [45, 24], config.json asks for [44, 24] (n_positions, "
       "n_embd)"},
      {{.golden = "gpt2", .to = "\"num_hidden_layers\": 1"},
       "config.json says num_hidden_layers: 1, but n_layer is 2"},
      {{.golden = "gpt-neox", .to = "\"head_dim\": 17"},
       "config.json says head_dim: 17, but hidden_size / num_attention_heads is 8"},
      {{.golden = "encoders/bert",
        .copies = {{"embeddings.LayerNorm.weight", "embeddings.LayerNorm.gamma"}}},
       "tensors embeddings.LayerNorm.weight and embeddings.LayerNorm.gamma are the same "
       "parameter; remove one"},
      {{.golden = "encoders/bert",
        .copies = {{"embeddings.LayerNorm.weight", "encoder.layer.0.attention.adapter.weight"}}},
       "tensor encoder.layer.0.attention.adapter.weight is not one that BertModel has; correct "
       "config.json or remove the tensor"},
  };
  for (const Contradiction& row : rows) {
    SCOPED_TRACE(row.message);
    const test::TempFolder folder;
    write_folder(folder, row.folder);
    const auto source = open_hf_folder(folder.path());
    ASSERT_FALSE(source.ok());
    EXPECT_EQ(source.error().message, row.message);
    EXPECT_EQ(code_name(source.error().code), code_name(Code::bad_file));
  }
}

TEST(HfFolder, RefusesExpertsThatContradictItsConfig) {
  const std::string in = "model.layers.0.";
  const Contradiction rows[] = {
      {{.golden = "mixtral", .without = {in + "block_sparse_moe.experts.3.w2.weight"}},
       "tensor model.layers.0.block_sparse_moe.experts.3.w2.weight is missing"},
      {{.golden = "mixtral", .from = "\"num_local_experts\": 5", .to = "\"num_local_experts\": 4"},
       "model.layers.0.block_sparse_moe.gate.weight has shape [5, 16], config.json asks for "
       "[4, 16] (num_local_experts, intermediate_size, hidden_size)"},
      {{.golden = "qwen3-moe-stacked",
        .from = "\"moe_intermediate_size\": 8",
        .to = "\"moe_intermediate_size\": 9"},
       "model.layers.0.mlp.experts.gate_up_proj has shape [6, 16, 16], config.json asks for "
       "[6, 18, 16] (num_experts, moe_intermediate_size, hidden_size)"},
      {{.golden = "qwen3-moe-stacked",
        .from = "\"mlp_only_layers\": [\n  1\n ]",
        .to = "\"mlp_only_layers\": []"},
       "tensor model.layers.1.mlp.gate.weight is missing"},
  };
  for (const Contradiction& row : rows) {
    SCOPED_TRACE(row.message);
    const test::TempFolder folder;
    write_folder(folder, row.folder);
    const auto source = open_hf_folder(folder.path());
    ASSERT_FALSE(source.ok());
    EXPECT_EQ(source.error().message, row.message);
    EXPECT_EQ(code_name(source.error().code), code_name(Code::bad_file));
  }
}

// Tensors that transformers ignores too, and a head that is stored and tied.
TEST(HfFolder, TellsWhatIsNotUsed) {
  struct Row {
    Folder folder;
    std::vector<std::string> notes;
  };
  const std::string norm = "model.norm.weight";
  const Row rows[] = {
      {{.golden = "llama"}, {}},
      {{.golden = "qwen2"}, {}},
      {{.golden = "gemma3"}, {}},
      {{.golden = "phi"}, {}},
      {{.golden = "phi3"}, {}},
      {{.golden = "encoders/modern"}, {}},
      {{.golden = "encoders/roberta_scores"}, {}},
      {{.golden = "encoders/bert"},
       {"2 tensors are not used: pooler.dense.bias, pooler.dense.weight"}},
      {{.golden = "smollm3"}, {}},
      {{.golden = "mistral"}, {}},
      {{.golden = "gpt2"}, {}},
      {{.golden = "qwen2", .copies = {{"model.embed_tokens.weight", "lm_head.weight"}}}, {}},
      {{.golden = "llama",
        .copies = {{norm, "model.layers.1.self_attn.rotary_emb.inv_freq"},
                   {norm, "v_head.weight"}}},
       {"2 tensors are not used: model.layers.1.self_attn.rotary_emb.inv_freq, v_head.weight"}},
      {{.golden = "gpt2", .copies = {{"transformer.ln_f.bias", "transformer.h.0.attn.bias"}}},
       {"1 tensor is not used: transformer.h.0.attn.bias"}},
      {{.golden = "llama", .to = "\"num_experts\": 8, \"qk_norm\": true, \"use_qk_norm\": null"},
       {"config.json has fields that LlamaForCausalLM does not use: num_experts, qk_norm"}},
      {{.golden = "llama", .to = "\"sliding_window\": 8, \"attn_logit_softcapping\": 30.0"},
       {"config.json has fields that LlamaForCausalLM does not use: sliding_window, "
        "attn_logit_softcapping"}},
      {{.golden = "llama", .from = "\"dtype\": \"bfloat16\"", .to = "\"dtype\": \"float32\""},
       {"config.json says dtype: float32, and the weights are BF16; they stay BF16"}},
      {{.golden = "llama", .generation = "{\"eos_token_id\": [5, 6]}"},
       {"eos_token_id is 2 in config.json and 5 in generation_config.json; both end a text"}},
      {{.golden = "llama", .generation = "{\"eos_token_id\": [2, 6]}"}, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.folder.golden);
    const test::TempFolder folder;
    write_folder(folder, row.folder);
    const auto source = open_hf_folder(folder.path());
    ASSERT_TRUE(source.ok()) << source.error().str();
    EXPECT_EQ((*source)->notes, row.notes);
    const auto model = load_language_model(folder.path(), LoadModelOptions(), test::pool());
    ASSERT_TRUE(model.ok()) << model.error().str();
    EXPECT_EQ(model->notes(), row.notes);
  }
}

TEST(HfFolder, TellsOfAnIndexBesideOneFile) {
  const test::TempFolder folder;
  write_folder(folder, {.golden = "llama"});
  folder.write("model.safetensors.index.json", "{\"weight_map\": {\"x\": \"other.safetensors\"}}");
  const auto source = open_hf_folder(folder.path());
  ASSERT_TRUE(source.ok()) << source.error().str();
  EXPECT_EQ((*source)->notes,
            std::vector<std::string>{
                "model.safetensors.index.json is not used: model.safetensors is there"});
}

}  // namespace
}  // namespace loom::core

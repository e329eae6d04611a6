// Folders of GPT-2, OPT, GPT-NeoX, Phi and StarCoder2: their config.json with refusals, the tensors
// of their parameters, and text files older than tokenizer.json.
#include <cstring>

#include "base/text.hpp"
#include "convert/convert.hpp"
#include "formats/config/bpe_files.hpp"
#include "formats/config/config.hpp"
#include "formats/hf/export.hpp"
#include "formats/hf/source.hpp"
#include "io/io_testing.hpp"
#include "io/weights/safetensors_write.hpp"
#include "llm/stories.hpp"
#include "support/paths.hpp"
#include "text/golden.hpp"

namespace loom::core {
namespace {

using loom::core::test::TemporaryFolder;

constexpr const char* kGoldens[] = {"gpt2", "gpt2-odd",  "opt", "gpt-neox", "gpt-neox-serial",
                                    "phi",  "starcoder2"};

std::string golden_folder(std::string_view name) {
  return cat(loom_test::source_path("tests/llm/golden/"), name);
}

LanguageModel load(const std::string& path) {
  Result<LanguageModel> model = load_language_model(path, LoadModelOptions(), test::pool());
  EXPECT_TRUE(model.ok()) << model.error().str();
  return std::move(*model);
}

void expect_same_weights(const LanguageModel& a, const LanguageModel& b) {
  ASSERT_EQ(a.network().params().size(), b.network().params().size());
  for (size_t i = 0; i < a.network().params().size(); ++i) {
    const Param &x = a.network().params()[i], &y = b.network().params()[i];
    ASSERT_EQ(x.path, y.path);
    ASSERT_EQ(x.bytes(), y.bytes()) << x.path;
    EXPECT_EQ(std::memcmp(x.tensor.data, y.tensor.data, static_cast<size_t>(x.bytes())), 0)
        << x.path;
  }
}

// A config of GPT-2 with these members before its sizes.
Result<DecoderConfig> gpt2_with(std::string_view members) {
  return parse_hf_config(cat(R"({"architectures":["GPT2LMHeadModel"],"model_type":"gpt2",)",
                             members, R"("n_embd":12,"n_layer":2,"n_head":3,"vocab_size":60000})"),
                         "", "config.json");
}

TEST(OlderConfigs, TakeTheDefaultsOfTheirClass) {
  const auto c = gpt2_with("");
  ASSERT_TRUE(c.ok()) << c.error().str();
  EXPECT_EQ(c->intermediate_size, 48);
  EXPECT_EQ(c->max_positions, 1024);
  EXPECT_EQ(c->learned_positions, 1024);
  EXPECT_EQ(c->rope, RopeKind::none);
  EXPECT_EQ(c->rms_norm_eps, 1e-5);
  EXPECT_EQ(c->hidden_act, "gelu_new");
  EXPECT_EQ(c->head_dim, 4);
  EXPECT_EQ(c->num_kv_heads, 3);
  EXPECT_TRUE(c->layer_norms && c->tie_word_embeddings);
  EXPECT_TRUE(c->attention_bias && c->attention_out_bias && c->mlp_bias);
  EXPECT_FALSE(c->gated_mlp || c->head_bias);
  EXPECT_EQ(c->bos_token_id, 50256);
  EXPECT_EQ(c->eos_token_ids, std::vector<int64_t>{50256});
  const auto given = gpt2_with(R"("n_inner":7,"n_positions":9,"layer_norm_epsilon":1e-3,)"
                               R"("activation_function":"relu","tie_word_embeddings":false,)");
  ASSERT_TRUE(given.ok()) << given.error().str();
  EXPECT_EQ(given->intermediate_size, 7);
  EXPECT_EQ(given->learned_positions, 9);
  EXPECT_EQ(given->rms_norm_eps, 1e-3);
  EXPECT_EQ(given->hidden_act, "relu");
  EXPECT_FALSE(given->tie_word_embeddings);
  const auto null = gpt2_with(R"("n_inner":null,)");
  ASSERT_TRUE(null.ok());
  EXPECT_EQ(null->intermediate_size, 48);
}

// Pythia's files use the old field for the rotated part of a head.
TEST(OlderConfigs, ReadThePartThatTurns) {
  const auto neox = [](std::string_view members) {
    return parse_hf_config(
        cat(R"({"architectures":["GPTNeoXForCausalLM"],"model_type":"gpt_neox",)", members,
            R"("hidden_size":64,"intermediate_size":9,"num_hidden_layers":2,)"
            R"("num_attention_heads":2,"vocab_size":50})"),
        "", "config.json");
  };
  const struct {
    const char* members;
    int64_t width;
    double theta;
    ResidualKind residual;
  } rows[] = {
      {"", 8, 10000, ResidualKind::parallel},
      {R"("rotary_pct":0.5,"rotary_emb_base":500,)", 16, 500, ResidualKind::parallel},
      {R"("rotary_pct":1.0,"use_parallel_residual":false,)", 0, 10000, ResidualKind::serial},
      {R"("rope_parameters":{"rope_type":"default","rope_theta":7,"partial_rotary_factor":0.75},)",
       24, 7, ResidualKind::parallel},
  };
  for (const auto& row : rows) {
    const auto c = neox(row.members);
    ASSERT_TRUE(c.ok()) << c.error().str();
    EXPECT_EQ(c->rope_width, row.width) << row.members;
    EXPECT_EQ(c->rope_theta, row.theta) << row.members;
    EXPECT_EQ(c->residual, row.residual) << row.members;
  }
}

TEST(OlderConfigs, RefuseByNameWhatIsNotComputedHere) {
  const struct {
    const char* family;
    const char* members;
    const char* error;
  } rows[] = {
      {R"("GPT2LMHeadModel"],"model_type":"gpt2")", R"("scale_attn_weights":false)",
       "scale_attn_weights: false is not supported"},
      {R"("GPT2LMHeadModel"],"model_type":"gpt2")", R"("scale_attn_by_inverse_layer_idx":true)",
       "scale_attn_by_inverse_layer_idx: true is not supported"},
      {R"("GPT2LMHeadModel"],"model_type":"gpt2")", R"("add_cross_attention":true)",
       "add_cross_attention: true is not supported"},
      {R"("GPT2LMHeadModel"],"model_type":"gpt2")", R"("activation_function":"swish")",
       "activation_function: \"swish\" is not supported; these are: silu, gelu, gelu_new, "
       "gelu_pytorch_tanh, relu, relu2"},
      {R"("OPTForCausalLM"],"model_type":"opt")", R"("do_layer_norm_before":false)",
       "do_layer_norm_before: false is not supported"},
      {R"("OPTForCausalLM"],"model_type":"opt")", R"("word_embed_proj_dim":6)",
       "word_embed_proj_dim: 6 is not supported; only hidden_size is"},
      {R"("OPTForCausalLM"],"model_type":"opt")", R"("enable_bias":false)",
       "enable_bias: false is not supported"},
      {R"("OPTForCausalLM"],"model_type":"opt")", R"("_remove_final_layer_norm":true)",
       "_remove_final_layer_norm: true is not supported"},
      {R"("GPTNeoXForCausalLM"],"model_type":"gpt_neox")", R"("attention_bias":false)",
       "attention_bias: false is not supported"},
      {R"("PhiForCausalLM"],"model_type":"phi")", R"("qk_layernorm":true)",
       "qk_layernorm: true is not supported"},
      {R"("PhiForCausalLM"],"model_type":"phi")", R"("tie_word_embeddings":true)",
       "tie_word_embeddings: true is not supported for PhiForCausalLM, whose head has a bias"},
      {R"("Starcoder2ForCausalLM"],"model_type":"starcoder2","num_key_value_heads":1)",
       R"("use_bias":false)", "use_bias: false is not supported"},
  };
  for (const auto& row : rows) {
    const auto c = parse_hf_config(
        cat(R"({"architectures":[)", row.family, ",", row.members,
            R"(,"n_embd":16,"n_layer":2,"n_head":2,"hidden_size":16,"intermediate_size":9,)"
            R"("ffn_dim":9,"num_hidden_layers":2,"num_attention_heads":2,"vocab_size":60000})"),
        "", "config.json");
    ASSERT_FALSE(c.ok()) << row.members;
    EXPECT_EQ(c.error().code, Code::unsupported);
    EXPECT_EQ(c.error().message, row.error);
  }
}

TEST(OlderFolders, AreWrittenAsTheyAreRead) {
  for (const char* name : kGoldens) {
    SCOPED_TRACE(name);
    const TemporaryFolder folder;
    const auto source = open_hf_folder(golden_folder(name));
    ASSERT_TRUE(source.ok()) << source.error().str();
    const Status written = write_hf_folder(folder.path("out"), **source, {});
    ASSERT_TRUE(written.ok()) << written.error().str();
    expect_same_weights(load(folder.path("out")), load(golden_folder(name)));
    // The same tensors as transformers has.
    const auto a = SafeTensors::open(golden_folder(name)),
               b = SafeTensors::open(folder.path("out"));
    ASSERT_TRUE(a.ok() && b.ok());
    ASSERT_EQ(a->tensors().size(), b->tensors().size());
    for (const SafeTensor& tensor : a->tensors()) {
      const SafeTensor* other = b->find(tensor.name);
      ASSERT_NE(other, nullptr) << tensor.name;
      EXPECT_EQ(other->shape, tensor.shape) << tensor.name;
    }
  }
}

// One file, and back to a folder; and packed, where tables keep eight bits.
TEST(OlderFolders, BecomeEntityFilesAndFoldersAgain) {
  for (const char* name : kGoldens) {
    SCOPED_TRACE(name);
    const TemporaryFolder folder;
    const std::string file = folder.path("m.entity");
    const auto opened = open_model(golden_folder(name));
    ASSERT_TRUE(opened.ok()) << opened.error().str();
    const Status saved = write_model(file, *opened, {}, test::pool());
    ASSERT_TRUE(saved.ok()) << saved.error().str();
    expect_same_weights(load(file), load(golden_folder(name)));
    const auto again = open_model(file);
    ASSERT_TRUE(again.ok()) << again.error().str();
    const Status back = write_model(folder.path("folder"), *again, {}, test::pool());
    ASSERT_TRUE(back.ok()) << back.error().str();
    expect_same_weights(load(folder.path("folder")), load(golden_folder(name)));
    WriteOptions narrow;
    narrow.dtype = DType::q4_0;
    ASSERT_TRUE(write_model(folder.path("q4.entity"), *opened, narrow, test::pool()).ok());
    const LanguageModel packed = load(folder.path("q4.entity"));
    EXPECT_EQ(packed.dtype(), DType::q4_0);
    for (const Param& param : packed.network().params()) {
      if (is_model_table(param, **open_hf_folder(golden_folder(name)))) {
        EXPECT_EQ(param.tensor.dtype, DType::q8_0) << param.path;
      }
    }
    LlmSession session = test::session(packed);
    const TokenId ids[] = {5, 6, 7};
    EXPECT_TRUE(session.feed(ids).ok());
  }
}

// GPT2Model has no head and no prefix, and its files are used as language models all the same.
TEST(OlderFolders, MayLeaveOutThePrefixOfTheirNames) {
  for (const char* name : {"gpt2", "opt", "gpt-neox"}) {
    const TemporaryFolder folder;
    const auto whole = SafeTensors::open(golden_folder(name));
    ASSERT_TRUE(whole.ok());
    std::vector<SafeOutput> tensors;
    std::vector<std::vector<float>> values;
    values.reserve(whole->tensors().size());
    for (const SafeTensor& tensor : whole->tensors()) {
      std::vector<float>& v = values.emplace_back(static_cast<size_t>(tensor.count()));
      ASSERT_TRUE(SafeTensors::to_f32(tensor, 0, tensor.count(), v.data()).ok());
      SafeOutput out;
      const bool head = tensor.name == "embed_out.weight";
      out.name = head ? "lm_head.weight" : tensor.name.substr(tensor.name.find('.') + 1);
      out.shape = tensor.shape;
      out.data = std::as_bytes(std::span(v));
      tensors.push_back(std::move(out));
    }
    ASSERT_TRUE(write_safetensors(folder.path("model.safetensors"), std::move(tensors), {}).ok());
    std::filesystem::copy_file(golden_folder(name) + "/config.json", folder.path("config.json"));
    const auto model = load_language_model(folder.path(), {DType::f32, {}}, test::pool());
    ASSERT_TRUE(model.ok()) << model.error().str();
    const auto expected = load_language_model(golden_folder(name), {DType::f32, {}}, test::pool());
    ASSERT_TRUE(expected.ok());
    expect_same_weights(*model, *expected);
  }
}

TEST(OlderFolders, NameTheTensorThatIsMissing) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_safetensors(folder.path("model.safetensors"), {}, {}).ok());
  std::filesystem::copy_file(golden_folder("gpt2") + "/config.json", folder.path("config.json"));
  const auto model = load_language_model(folder.path(), LoadModelOptions(), test::pool());
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().message, "tensor transformer.wte.weight is missing");
}

// Writes vocab.json and merges.txt of a tokenizer.json with goldens from the tokenizers library.
void write_bpe_files(const TemporaryFolder& folder, const JsonValue& tokenizer, const char* end) {
  const JsonValue& model = member(tokenizer, "model");
  folder.write("vocab.json", dump_json(member(model, "vocab")));
  std::string merges = cat("#version: 0.2", end);
  for (const JsonValue& pair : member(model, "merges").elements())
    merges += cat(pair.elements()[0].text(), " ", pair.elements()[1].text(), end);
  folder.write("merges.txt", merges);
}

TEST(BpeFiles, GiveTheIdsOfTheTokenizerJsonThatIsMadeOfThem) {
  const JsonValue golden = read_golden("family_gpt2.json");
  const JsonValue& tokenizer = member(golden, "tokenizer");
  for (const char* end : {"\n", "\r\n"}) {
    const TemporaryFolder folder;
    write_bpe_files(folder, tokenizer, end);
    const auto text = read_bpe_files(folder.path(), nullptr);
    ASSERT_TRUE(text.ok()) << text.error().str();
    const auto spec = parse_tokenizer_json(*text, "vocab.json");
    ASSERT_TRUE(spec.ok()) << spec.error().str();
    auto expected = parse_tokenizer_json(dump_json(tokenizer), "vocab.json");
    ASSERT_TRUE(expected.ok());
    EXPECT_EQ(tokenizer_json(*spec), tokenizer_json(*expected));
  }
}

TEST(BpeFiles, TakeWhatTokenizerConfigSays) {
  const JsonValue golden = read_golden("family_gpt2.json");
  const TemporaryFolder folder;
  write_bpe_files(folder, member(golden, "tokenizer"), "\n");
  const auto config =
      parse_json(R"({"add_bos_token":true,"add_prefix_space":true,"bos_token":{"content":"!"},)"
                 R"("eos_token":"<|endoftext|>","pad_token":"not there"})",
                 "tokenizer_config.json");
  ASSERT_TRUE(config.ok());
  const auto text = read_bpe_files(folder.path(), &*config);
  ASSERT_TRUE(text.ok()) << text.error().str();
  const auto made = Tokenizer::parse(*text, "vocab.json");
  ASSERT_TRUE(made.ok()) << made.error().str();
  const auto plain = read_bpe_files(folder.path(), nullptr);
  ASSERT_TRUE(plain.ok());
  const auto without = Tokenizer::parse(*plain, "vocab.json");
  ASSERT_TRUE(without.ok());
  const auto ids = made->encode("two words"), expected = without->encode(" two words");
  ASSERT_TRUE(ids.ok() && expected.ok());
  ASSERT_EQ(ids->size(), expected->size() + 1);
  EXPECT_TRUE(std::equal(expected->begin(), expected->end(), ids->begin() + 1));
  EXPECT_EQ(made->decode(std::span(*ids).first(1), false).value_or(""), "!");
  EXPECT_TRUE(made->is_special((*ids)[0]));
}

TEST(BpeFiles, AreNotThereUnlessBothAre) {
  const TemporaryFolder folder;
  EXPECT_EQ(*read_bpe_files(folder.path(), nullptr), "");
  folder.write("vocab.json", R"({"a":0})");
  EXPECT_EQ(*read_bpe_files(folder.path(), nullptr), "");
  folder.write("merges.txt", "#version: 0.2\n");
  EXPECT_NE(*read_bpe_files(folder.path(), nullptr), "");
  const auto config = parse_json(R"({"add_bos_token":true})", "tokenizer_config.json");
  const auto no_bos = read_bpe_files(folder.path(), &*config);
  ASSERT_FALSE(no_bos.ok());
  EXPECT_EQ(no_bos.error().message, "has no token '<|endoftext|>'");
  folder.write("vocab.json", "[1]");
  const auto list = read_bpe_files(folder.path(), nullptr);
  ASSERT_FALSE(list.ok());
  EXPECT_EQ(list.error().message, "is not a vocabulary: expected an object");
}

}  // namespace
}  // namespace loom::core

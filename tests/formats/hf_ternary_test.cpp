// Ternary matrices of Hugging Face checkpoints: the meaning of the bits, and refusals; also whole
// folders whose weights contradict config.json.
#include "formats/hf/ternary.hpp"

#include "e2e/temp_folder.hpp"
#include "llm/stories.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

SafeTensor tensor(std::string name, SafeDType dtype, std::vector<int64_t> shape,
                  std::span<const std::byte> data) {
  SafeTensor t;
  t.name = std::move(name);
  t.dtype = dtype;
  t.shape = std::move(shape);
  t.data = data;
  t.file_offset = 40;
  return t;
}

// Eight rows of three columns: code (row + column) % 3.
struct Packed {
  Packed() : bytes(6) {
    for (int row = 0; row < 8; ++row) {
      for (int k = 0; k < 3; ++k) {
        auto& byte = bytes[static_cast<size_t>(row % 2 * 3 + k)];
        byte |= static_cast<std::byte>((row + k) % 3 << 2 * (row / 2));
      }
    }
  }
  SafeTensor codes(std::vector<int64_t> shape = {2, 3}, SafeDType dtype = SafeDType::u8) const {
    return tensor("w", dtype, std::move(shape), bytes);
  }
  SafeTensor scale(float value, int64_t count = 1) {
    scales = {value, value};
    return tensor("w_scale", SafeDType::f32, {count},
                  std::as_bytes(std::span(scales).first(static_cast<size_t>(count))));
  }
  std::vector<std::byte> bytes;
  std::vector<float> scales;
};

TEST(TernaryMatrix, HoldsFourRowsInAByte) {
  for (const TernaryWeights kind : {TernaryWeights::multiplied, TernaryWeights::divided}) {
    Packed packed;
    const auto m =
        TernaryMatrix::open(packed.codes(), packed.scale(0.25f), Shape{8, 3}, kind, "file");
    ASSERT_TRUE(m.ok()) << m.error().str();
    const float value = kind == TernaryWeights::divided ? 4.0f : 0.25f;
    std::vector<float> out(15);
    ASSERT_TRUE(m->rows(3, 5, out.data()).ok());
    for (int i = 0; i < 15; ++i) {
      const int row = 3 + i / 3, k = i % 3;
      EXPECT_EQ(out[static_cast<size_t>(i)], static_cast<float>((row + k) % 3 - 1) * value) << i;
    }
  }
}

TEST(TernaryMatrix, RefusesWhatIsNone) {
  Packed p;
  const float nan = __builtin_nanf(""), inf = __builtin_inff();
  struct Row {
    SafeTensor codes, scale;
    Shape shape;
    std::string message;
  };
  const std::string codes_message =
      "w does not hold the codes of [8, 3]: expected U8 of a quarter of the rows";
  const Row rows[] = {
      {p.codes({3, 2}), p.scale(1), Shape{8, 3}, codes_message},
      {p.codes({6}), p.scale(1), Shape{8, 3}, codes_message},
      {p.codes({2, 3}, SafeDType::i8), p.scale(1), Shape{8, 3}, codes_message},
      {p.codes(), p.scale(1), Shape{9, 3},
       "w does not hold the codes of [9, 3]: expected U8 of a quarter of the rows"},
      {p.codes(), p.scale(1, 2), Shape{8, 3}, "w_scale has 2 values; expected one"}};
  for (const Row& row : rows) {
    const auto m =
        TernaryMatrix::open(row.codes, row.scale, row.shape, TernaryWeights::multiplied, "file");
    ASSERT_FALSE(m.ok()) << row.message;
    EXPECT_EQ(m.error().str(), "file: at byte 40: " + row.message);
  }
  for (const float scale : {0.0f, -1.0f, nan, inf, 1e-39f}) {
    const auto m = TernaryMatrix::open(p.codes(), p.scale(scale), Shape{8, 3},
                                       TernaryWeights::divided, "file");
    ASSERT_FALSE(m.ok()) << scale;
    EXPECT_EQ(m.error().message, "w_scale is not a positive number");
  }
}

TEST(TernaryMatrix, RefusesTheCodeThatStandsForNothing) {
  Packed p;
  p.bytes[4] |= std::byte{0x0c};  // row 3, column 1
  const auto m =
      TernaryMatrix::open(p.codes(), p.scale(1), Shape{8, 3}, TernaryWeights::multiplied, "file");
  ASSERT_TRUE(m.ok());
  std::vector<float> out(9);
  EXPECT_TRUE(m->rows(0, 3, out.data()).ok());
  const Status status = m->rows(2, 3, out.data());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().str(), "file: w has code 3 in row 3: codes are 0, 1, 2");
}

TEST(Ternary, RoundsToTheGridOfTheMean) {
  const std::vector<float> values = {3, -1, 0.5f, -0.5f, 2, 1, -3.5f, 0.5f};
  const auto source = [&](int64_t first, int64_t count, float* out) -> Status {
    for (int64_t i = 0; i < 4 * count; ++i) out[i] = values[static_cast<size_t>(4 * first + i)];
    return {};
  };
  const Result<float> mean = mean_magnitude(source, Shape{2, 4});
  ASSERT_TRUE(mean.ok());
  EXPECT_EQ(*mean, 1.5f);
  std::vector<float> out = {3, -1, 0.75f, -0.75f, 0.7500001f, -0.76f, 0, __builtin_nanf("")};
  to_ternary(1.5f, 8, out.data());
  EXPECT_EQ(out, (std::vector<float>{1.5f, -1.5f, 0, 0, 1.5f, -1.5f, 0, 0}));
  const Result<float> zero = mean_magnitude(
      [](int64_t, int64_t count, float* o) -> Status {
        for (int64_t i = 0; i < count; ++i) o[i] = 0;
        return {};
      },
      Shape{3, 1});
  ASSERT_TRUE(zero.ok());
  EXPECT_EQ(*zero, 1e-5f);
}

// The weights of one golden checkpoint under the config of another.
TEST(HfFolder, RefusesWeightsOfAnotherModel) {
  struct Row {
    std::string config, weights, from, to, message;
  };
  const Row rows[] = {
      {"bitnet-multiplied", "bitnet", "", "",
       "tensor model.layers.0.self_attn.q_proj.weight_scale is missing"},
      {"bitnet", "bitnet-divided", "", "",
       "model.layers.0.self_attn.q_proj.weight has shape [8, 32], config.json asks for [32, 32] "
       "(num_attention_heads, head_dim, hidden_size)"},
      {"phi3", "mistral", "", "", "tensor model.layers.0.self_attn.qkv_proj.weight is missing"},
      {"phi3", "phi3", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 4",
       "model.layers.0.self_attn.qkv_proj.weight has shape [64, 24], config.json asks for [96, "
       "24] (num_attention_heads, head_dim, hidden_size)"},
      {"gemma2", "gemma", "\"head_dim\": 8", "\"head_dim\": 10",
       "model.layers.0.self_attn.k_proj.weight has shape [10, 24], config.json asks for [20, 24] "
       "(num_key_value_heads, head_dim, hidden_size)"},
  };
  for (const Row& row : rows) {
    const test::TempFolder folder;
    const std::string golden = loom_test::source_path("tests/llm/golden/");
    auto config = read_file(golden + row.config + "/config.json");
    const auto weights = read_file(golden + row.weights + "/model.safetensors");
    ASSERT_TRUE(config.ok() && weights.ok());
    if (!row.from.empty()) {
      ASSERT_NE(config->find(row.from), std::string::npos);
      config->replace(config->find(row.from), row.from.size(), row.to);
    }
    folder.write("config.json", *config);
    folder.write("model.safetensors", *weights);
    const auto model = load_language_model(folder.path(), LoadModelOptions(), test::pool());
    ASSERT_FALSE(model.ok()) << row.message;
    EXPECT_EQ(model.error().message, row.message);
    EXPECT_EQ(code_name(model.error().code), code_name(Code::bad_file));
  }
}

}  // namespace
}  // namespace loom::core

// Every pair of formats: a file of another program keeps its values to the bit, or to the rounding
// of the number type that it is written in. numpy computed the expected values.
#include <bit>
#include <cmath>
#include <map>

#include "convert/golden_testing.hpp"
#include "text/tokenizer.hpp"

namespace loom::core::test {
namespace {

const char* const kNetworks[] = {"net.npz",
                                 "net_f64.npz",
                                 "net_f16.npz",
                                 "net_f64.safetensors",
                                 "net_f32.safetensors",
                                 "net_f16.safetensors",
                                 "net_bf16.safetensors",
                                 "net_f64.onnx",
                                 "net_f32.onnx",
                                 "net_f16.onnx"};
const char* const kNetworkTargets[] = {"to.entity", "to.json", "to.safetensors", "to.npz",
                                       "to.onnx"};
const char* const kDecoders[] = {"llama", "llama.gguf"};
const char* const kDecoderTargets[] = {"to.entity", "to.gguf", "to"};
constexpr std::string_view kFirst = "(0, 0, 0, 0)/weight";
constexpr std::string_view kLast = "(0, 0, 1, 0)/weight";
constexpr std::string_view kValueMatrix = "(1, 0, 0, 0)/1/v";

TEST(GoldenNetwork, IsReadWithTheValuesOfItsWriter) {
  for (const char* from : kNetworks) {
    SCOPED_TRACE(from);
    expect_same_bits(parameters_of(golden(from)), golden_values(from));
  }
}

TEST(GoldenNetwork, KeepsItsBitsInEveryOtherFormat) {
  const TemporaryFolder folder;
  for (const char* from : kNetworks) {
    for (const char* to : kNetworkTargets) {
      SCOPED_TRACE(cat(from, " to ", to));
      expect_same_bits(parameters_of(converted(folder, from, to)), golden_values(from));
    }
  }
}

TEST(GoldenNetwork, IsTheSameLayersInEveryFormat) {
  const TemporaryFolder folder;
  for (const char* from : kNetworks) {
    for (const char* to : kNetworkTargets) {
      SCOPED_TRACE(cat(from, " to ", to));
      const auto model = opened(converted(folder, from, to));
      ASSERT_NE(model, nullptr);
      const auto report = report_model(*model);
      ASSERT_TRUE(report.ok()) << report.error().str();
      std::vector<std::string> layers;
      report_layers(*report, [&](const LayerReport& r) {
        if (r.parameters > 0) layers.push_back(cat(r.at, " ", r.type, " ", r.parameters));
      });
      EXPECT_THAT(layers, testing::ElementsAre("(0, 0, 0, 0) Dense 24", "(0, 0, 1, 0) Dense 15"));
    }
  }
}

TEST(GoldenNetwork, InAFloatTypeIsRoundedAsByNumpy) {
  const TemporaryFolder folder;
  for (const std::string_view name : {"f64", "f32", "f16", "bf16"}) {
    SCOPED_TRACE(name);
    WriteOptions options;
    options.dtype = parse_dtype(name).value();
    const std::string path = converted(folder, "net.npz", cat(name, ".entity"), options);
    const std::vector<float> found = find_values(parameters_of(path), kFirst);
    const NamedValues rounded = golden_values(cat("rounded:", name));
    expect_same_bits({{std::string(kFirst), found}}, rounded);
  }
}

// The largest error of a value over the largest magnitude of its row: half of the widest step of
// the type, by its definition. The steps of the other types depend on the values (tests/dtype).
struct TypeError {
  const char* dtype;
  double bound;
};
constexpr TypeError kTypeErrors[] = {
    {"float64", 0},           {"float32", 0},        {"float16", 0x1p-11}, {"bfloat16", 0x1p-8},
    {"fp8e4m3", 0x1p-4},      {"fp8e5m2", 0x1p-3},   {"int64", 0x1p-23},   {"int32", 0x1p-23},
    {"int16", 0.51 / 32767},  {"int8", 0.51 / 127},  {"uint64", 0x1p-22},  {"uint32", 0x1p-22},
    {"uint16", 1.02 / 65535}, {"uint8", 1.02 / 255}, {"int4", 0.51 / 7},   {"uint4", 1.02 / 15},
    {"fp4", 1.01 / 6},        {"nf4", 0.16},         {"e3m0", 0.26},       {"q4_0", 1.01 / 8},
    {"q8_0", 0.52 / 127},     {"mxfp4", 0.26},       {"nvfp4", 0.2},       {"q4_1", 1.02 / 15},
    {"q5_0", 1.01 / 16},      {"q5_1", 1.02 / 31},   {"uint2", 1.01 / 3}};

TEST(GoldenNetwork, InAnyNumberTypeIsOffByHalfAStepAtMost) {
  const TemporaryFolder folder;
  const std::vector<float> exact = find_values(golden_values("net.npz"), kLast);
  constexpr size_t kCols = 4;
  for (const auto& [name, bound] : kTypeErrors) {
    SCOPED_TRACE(name);
    WriteOptions options;
    options.dtype = parse_dtype(name).value();
    const std::string path = converted(folder, "net.npz", cat(name, ".entity"), options);
    const std::vector<float> found = find_values(parameters_of(path), kLast);
    ASSERT_EQ(found.size(), exact.size());
    for (size_t row = 0; row < exact.size(); row += kCols) {
      double most = 0;
      for (size_t i = row; i < row + kCols; ++i) most = std::max(most, std::abs(double{exact[i]}));
      for (size_t i = row; i < row + kCols; ++i)
        EXPECT_LE(std::abs(double{found[i]} - exact[i]), bound * most) << "value " << i;
    }
  }
}

TEST(GoldenNetwork, ARuleDecidesBeforeTheTypeOfTheOthers) {
  const TemporaryFolder folder;
  WriteOptions options;
  options.dtype = DType::f16;
  options.rules = {{"(0, 0, 1, *", DType::f32}, {"*", DType::bf16}};
  const NamedValues found = parameters_of(converted(folder, "net.npz", "to.entity", options));
  const NamedValues exact = golden_values("net.npz");
  expect_same_bits({{std::string(kFirst), find_values(found, kFirst)}},
                   golden_values("rounded:bf16"));
  expect_same_bits({{std::string(kLast), find_values(found, kLast)}},
                   {{std::string(kLast), find_values(exact, kLast)}});
}

TEST(GoldenDecoder, IsReadWithTheValuesOfItsWriter) {
  for (const char* from : kDecoders) {
    SCOPED_TRACE(from);
    expect_same_bits(parameters_of(golden(from)), golden_values(from));
  }
}

TEST(GoldenDecoder, KeepsItsBitsInEveryOtherFormat) {
  const TemporaryFolder folder;
  for (const char* from : kDecoders) {
    for (const char* to : kDecoderTargets) {
      // A folder has no block types, so its writer takes float32 for them: the values stay.
      SCOPED_TRACE(cat(from, " to ", to));
      std::filesystem::remove_all(folder.path(to));
      expect_same_bits(parameters_of(converted(folder, from, to)), golden_values(from));
    }
  }
}

TEST(GoldenDecoder, KeepsItsConfigurationInEveryFormat) {
  const TemporaryFolder folder;
  for (const char* from : kDecoders) {
    for (const char* to : kDecoderTargets) {
      SCOPED_TRACE(cat(from, " to ", to));
      std::filesystem::remove_all(folder.path(to));
      const auto model = opened(converted(folder, from, to));
      ASSERT_NE(model, nullptr);
      const DecoderConfig& config = model->decoder->config;
      EXPECT_EQ(config.architecture, "LlamaForCausalLM");
      EXPECT_EQ(config.hidden_size, 32);
      EXPECT_EQ(config.num_layers, 1);
      EXPECT_EQ(config.num_heads, 2);
      EXPECT_EQ(config.num_kv_heads, 1);
      EXPECT_EQ(config.max_positions, 64);
      EXPECT_EQ(config.rope_theta, 5000);
      EXPECT_FLOAT_EQ(static_cast<float>(config.rms_norm_eps), 1e-5f);
      EXPECT_TRUE(config.tie_word_embeddings);
      EXPECT_THAT(config.eos_token_ids, testing::ElementsAre(35));
    }
  }
}

// Byte-level BPE by hand: "he" is merged first, "ll" second, both third, " w" last.
TEST(GoldenDecoder, KeepsItsTokenizerInEveryFormat) {
  const TemporaryFolder folder;
  std::map<std::string, TokenId> ids;
  const JsonValue facts = golden_facts();
  for (const JsonValue& token : facts.find("tokens")->elements())
    ids.emplace(token.text(), static_cast<TokenId>(ids.size()));
  const std::vector<TokenId> expected = {ids.at("hello"), ids.at("\u0120w"), ids.at("o"),
                                         ids.at("r"),     ids.at("l"),       ids.at("d"),
                                         ids.at("</s>")};
  for (const char* from : kDecoders) {
    for (const char* to : kDecoderTargets) {
      SCOPED_TRACE(cat(from, " to ", to));
      std::filesystem::remove_all(folder.path(to));
      const auto model = opened(converted(folder, from, to));
      ASSERT_NE(model, nullptr);
      const auto spec = tokenizer_spec(*model->decoder);
      ASSERT_TRUE(spec.ok() && *spec);
      const auto tokenizer = Tokenizer::make(**spec);
      ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().str();
      const auto encoded = tokenizer->encode("hello world</s>");
      ASSERT_TRUE(encoded.ok());
      EXPECT_EQ(*encoded, expected);
    }
  }
}

// In types that the gguf package writes too, the error is at most that of the package.
TEST(GoldenDecoder, IsPackedInAGgufAsWellAsByTheGgufPackage) {
  const TemporaryFolder folder;
  const JsonValue facts = golden_facts();
  const std::vector<float> exact = find_values(golden_values("llama.gguf"), kValueMatrix);
  for (const auto& [name, rms] : facts.find("rms")->members()) {
    SCOPED_TRACE(name);
    WriteOptions options;
    options.dtype = parse_dtype(name).value();
    const std::string path = converted(folder, "llama.gguf", cat(name, ".gguf"), options);
    const std::vector<float> found = find_values(parameters_of(path), kValueMatrix);
    ASSERT_EQ(found.size(), exact.size());
    double sum = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      const double error = double{found[i]} - exact[i];
      sum += error * error;
    }
    EXPECT_LE(std::sqrt(sum / static_cast<double>(exact.size())), *rms.as_double("") * 1.000001);
  }
}

}  // namespace
}  // namespace loom::core::test

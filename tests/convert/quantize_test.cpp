// Recipes, importance matrices, GPTQ and target sizes, through convert().
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/text.hpp"
#include "convert/convert.hpp"
#include "convert/quantize/factor.hpp"
#include "convert/quantize/importance.hpp"
#include "convert/quantize/recipe.hpp"
#include "e2e/temp_folder.hpp"
#include "io/files/file.hpp"
#include "llm/decoder.hpp"
#include "loom/convert.hpp"
#include "loom/language_model.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {
namespace quantize_tests {

const std::string kStories = loom_test::source_path("models/stories.entity");

std::string text() {
  return *read_file(loom_test::source_path("examples/data/stories.txt"));
}

// The types of a recipe in layers of a decoder of 16: "q6_k at 0 1 4 ...".
std::string layers_with(std::string_view name, DecoderRole role, DType dtype) {
  DecoderConfig config = *shape_config("tiny");
  config.num_layers = 16;
  const Recipe& recipe = **parse_recipe(name);
  std::string out;
  each_decoder_param(*decoder_grid(config), [&](const Param& param) {
    const DecoderPiece piece = decoder_piece(param, config);
    if (!param.spec.matrix() || piece.role != role) return;
    if (recipe_dtype(recipe, param, config, DType::f32) == dtype) out += cat(" ", piece.block);
  });
  return out;
}

// By llama_tensor_get_type_impl of llama.cpp, worked out by hand for 16 layers.
TEST(Recipes, GiveLayersTheTypesOfLlamaCpp) {
  const std::string all = " 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", more = " 0 1 4 7 10 13 14 15";
  const struct {
    const char* recipe;
    DecoderRole role;
    DType dtype;
    std::string layers;
  } kCases[] = {
      {"q4_k_m", DecoderRole::v, DType::q6_k, more},
      {"q4_k_m", DecoderRole::down, DType::q6_k, more},
      {"q4_k_m", DecoderRole::q, DType::q4_k, all},
      {"q4_k_s", DecoderRole::v, DType::q5_k, " 0 1 2 3"},
      {"q4_k_s", DecoderRole::down, DType::q5_k, " 0 1"},
      {"q5_k_m", DecoderRole::down, DType::q6_k, more},
      {"q5_k_s", DecoderRole::down, DType::q5_k, all},
      {"q3_k_m", DecoderRole::v, DType::q5_k, " 0 1"},
      {"q3_k_m", DecoderRole::down, DType::q5_k, " 0"},
      {"q3_k_m", DecoderRole::o, DType::q4_k, all},
      {"q3_k_l", DecoderRole::o, DType::q5_k, all},
      {"q3_k_s", DecoderRole::v, DType::q3_k, all},
      {"q2_k", DecoderRole::down, DType::q3_k, all},
      {"q2_k", DecoderRole::gate, DType::q2_k, all},
      {"q2_k_s", DecoderRole::down, DType::q4_k, " 0 1"},
      {"q6_k", DecoderRole::v, DType::q6_k, all},
  };
  for (const auto& one : kCases)
    EXPECT_EQ(layers_with(one.recipe, one.role, one.dtype), one.layers) << one.recipe;
}

TEST(Recipes, AreRefusedByNameIfTheyDoNotExist) {
  const auto none = parse_recipe("q4_k_xl");
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("choose q2_k, q2_k_s"), std::string::npos);
}

TEST(Recipes, FallBackToBlocksOf32AsLlamaCppDoes) {
  EXPECT_EQ(narrower_blocks(DType::q4_k, 512), DType::q4_k);
  EXPECT_EQ(narrower_blocks(DType::q4_k, 192), DType::q5_0);
  EXPECT_EQ(narrower_blocks(DType::q6_k, 192), DType::q8_0);
  EXPECT_EQ(narrower_blocks(DType::q3_k, 96), DType::q4_0);
  EXPECT_EQ(narrower_blocks(DType::q8_0, 40), DType::f16);
}

TEST(Factor, IsTheCholeskyFactorOfTheInverse) {
  constexpr int kN = 90;
  std::vector<float> h(kN * kN);
  for (int i = 0; i < kN; ++i) {
    for (int j = 0; j < kN; ++j)
      h[static_cast<size_t>(i * kN + j)] = std::exp(-0.3f * std::fabs(static_cast<float>(i - j)));
  }
  ThreadPool one(1), two(2, true);
  const std::vector<float> u = inverse_factor(h, kN, 0.01, one);
  EXPECT_EQ(u, inverse_factor(h, kN, 0.01, two));
  // U H U^T is I.
  for (int i = 0; i < kN; ++i) {
    for (int j = 0; j < kN; ++j) {
      double sum = 0;
      for (int a = i; a < kN; ++a) {
        for (int b = j; b < kN; ++b) {
          const double damped = a == b ? 0.01 : 0.0;
          sum += static_cast<double>(u[static_cast<size_t>(i * kN + a)]) *
                 (static_cast<double>(h[static_cast<size_t>(a * kN + b)]) + damped) *
                 static_cast<double>(u[static_cast<size_t>(j * kN + b)]);
        }
      }
      EXPECT_NEAR(sum, i == j ? 1.0 : 0.0, 1e-4) << i << ", " << j;
    }
  }
}

class Quantized : public testing::Test {
 protected:
  test::TempFolder folder_;
  std::string at(const std::string& name) const { return folder_.path() + "/" + name; }
  // The divergence of a file from the model that it was made of.
  double divergence(const std::string& path) {
    const auto own = Model::load(*Engine::shared(), path);
    const auto reference = Model::load(*Engine::shared(), kStories);
    PerplexityOptions options;
    options.window = 128;
    options.limit = 1024;
    options.reference = &*reference;
    const auto ids = own->tokenize(text());
    const auto found = own->perplexity(*ids, options);
    EXPECT_TRUE(found.ok()) << found.error().str();
    return found->kl_divergence;
  }
  Converted made(const std::string& to, ConvertOptions options) {
    options.measure = to.ends_with(".entity");
    const auto done = convert(kStories, to, options);
    EXPECT_TRUE(done.ok()) << done.error().str();
    return done.ok() ? *done : Converted();
  }
};

TEST_F(Quantized, ACalibrationTextIsNeverWorseThanRounding) {
  for (const loom::DType dtype : {loom::DType::int2, loom::DType::mxfp4}) {
    ConvertOptions options;
    options.dtype = dtype;
    made(at("plain.entity"), options);
    const double plain = divergence(at("plain.entity"));
    options.calibration = text();
    options.calibration_windows = 4;
    for (const auto method : {CalibrationMethod::importance, CalibrationMethod::gptq}) {
      options.calibration_method = method;
      made(at("fitted.entity"), options);
      EXPECT_LT(divergence(at("fitted.entity")), plain) << dtype_name(dtype);
    }
  }
}

TEST_F(Quantized, ImportanceMatricesAreTheSameInBothFormats) {
  ConvertOptions options;
  options.dtype = loom::DType::q4_0;
  options.calibration = text();
  options.calibration_method = CalibrationMethod::importance;
  options.calibration_windows = 1;
  for (const char* name : {"i.gguf", "i.dat"}) {
    options.save_importance = at(name);
    made(at("saved.entity"), options);
  }
  const auto model = open_model(kStories);
  const auto gguf = read_importance(at("i.gguf"), *model->decoder);
  const auto dat = read_importance(at("i.dat"), *model->decoder);
  ASSERT_TRUE(gguf.ok()) << gguf.error().str();
  ASSERT_TRUE(dat.ok()) << dat.error().str();
  ASSERT_EQ(gguf->means.size(), dat->means.size());
  for (const auto& [path, means] : gguf->means) {
    const std::vector<float>& other = dat->means.at(path);
    ASSERT_EQ(means.size(), other.size()) << path;
    for (size_t i = 0; i < means.size(); ++i)
      ASSERT_NEAR(means[i], other[i], 1e-5 * static_cast<double>(means[i])) << path;
  }
}

TEST_F(Quantized, ATargetSizeIsReachedWithinOnePercent) {
  ConvertOptions options;
  options.calibration = text();
  options.calibration_windows = 1;
  for (const double bits : {4.5}) {
    options.target_bits = bits;
    double bytes = 0, weights = 0;
    for (const PackedTensor& t : made(at("target.entity"), options).tensors) {
      if (t.shape.size() != 2) continue;
      bytes += static_cast<double>(t.bytes_to);
      weights += static_cast<double>(t.shape[0] * t.shape[1]);
    }
    EXPECT_NEAR(8 * bytes / weights, bits, bits * 0.01);
  }
}

TEST_F(Quantized, WrongOptionsAreRefusedByName) {
  const auto message = [&](ConvertOptions options) {
    const auto done = convert(kStories, at("x.entity"), options);
    return done.ok() ? std::string() : done.error().message;
  };
  ConvertOptions two;
  two.recipe = "q4_k_m";
  two.dtype = loom::DType::q4_0;
  EXPECT_EQ(message(two), "give one of dtype, recipe and target_bits");
  ConvertOptions target;
  target.target_bits = 4.5;
  EXPECT_EQ(message(target), "target_bits needs a calibration text, on which losses are measured");
  target.calibration = text();
  target.calibration_windows = 1;
  target.target_bits = 1.5;
  EXPECT_NE(message(target).find("target_bits is 1.5, must be from"), std::string::npos);
  ConvertOptions other;
  other.dtype = loom::DType::q4_0;
  other.importance = kStories;
  EXPECT_NE(message(other).find("is not an importance matrix"), std::string::npos)
      << message(other);
}

}  // namespace quantize_tests
}  // namespace
}  // namespace loom::core

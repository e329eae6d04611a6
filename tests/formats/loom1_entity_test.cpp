// Entity files of version 1, written from their description: plain networks of every kind of blob,
// and a transformer as our decoder.
#include "formats/loom1_entity_testing.hpp"

namespace loom::core {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

std::string dense(int x, int in, int out, const char* dtype = "float32") {
  Record r{"Dense", cat(R"(,"input_height":)", in, R"(,"output_height":)", out), {}, "Tanh", dtype};
  r.x = x;
  return record_json(r);
}

TEST(Loom1Entity, PlainBlobsAreTheWeightsOfTheirLayers) {
  const auto a = noise(6, 1), x = noise(2, 2);
  const std::string file = entity(
      network_json({dense(0, 2, 3), dense(1, 3, 1, "int8")}),
      {{"layers.0", f32_bytes(a)}, {"layers.1", layout1({1, 254, 127}, 8), "int8", 0.25f, true}});
  EXPECT_TRUE(is_loom1_entity(std::as_bytes(std::span(file))));
  Doubles h = affine(a.data(), nullptr, slice(x, 0, 2), 3);
  double sum = 0;
  const double b[] = {0.25, -0.5, 31.75};
  for (size_t i = 0; i < 3; ++i) sum += b[i] * std::tanh(h[i]);
  expect_near(run(read_entity(file), x).values, {std::tanh(sum)});
}

TEST(Loom1Entity, BytesBeginAsDescribed) {
  const std::string file = entity(network_json({dense(0, 1, 1)}), {{"layers.0", f32_bytes({1})}});
  EXPECT_EQ(file.substr(0, 12), std::string("ENTITY\0\0\1\0\0\0", 12));
  EXPECT_TRUE(read_entity(file).ok());
}

TEST(Loom1Entity, NestedLayersHaveDottedPaths) {
  const auto a = noise(4, 3), b = noise(4, 4), x = noise(2, 5);
  Record inner{"Sequential", "",        {},
               "ReLU",       "float32", cat(R"(,"sequential_layers":[)", dense(0, 2, 2), "]")};
  Record outer{"Parallel",
               "",
               {},
               "ReLU",
               "float32",
               cat(R"(,"parallel_branches":[)", dense(0, 2, 2), ",", record_json(inner),
                   R"(],"combine_mode":"add")")};
  const auto file =
      read_entity(entity(network_json({record_json(outer)}),
                         {{"layers.0.parallel_branches.0", f32_bytes(a)},
                          {"layers.0.parallel_branches.1.sequential_layers.0", f32_bytes(b)}}));
  const Doubles ya = affine(a.data(), nullptr, slice(x, 0, 2), 2);
  const Doubles yb = affine(b.data(), nullptr, slice(x, 0, 2), 2);
  expect_near(run(file, x).values,
              {std::tanh(ya[0]) + std::tanh(yb[0]), std::tanh(ya[1]) + std::tanh(yb[1])});
}

std::string swiglu() {
  return record_json({"SwiGLU", R"(,"input_height":4,"output_height":8)", {}, "Silu", "int4"});
}

TEST(Loom1Entity, Q4MatricesMayHaveLostTheirBiases) {
  std::vector<float> kept[3];
  std::vector<Blob> blobs;
  for (int i = 0; i < 3; ++i) {
    blobs.push_back({cat("layers.0.q4_0.", 100 + i),
                     q4_0(noise(32, 6 + static_cast<uint64_t>(i)), kept[i]), "Q4_0"});
  }
  const auto x = noise(4, 9);
  const Doubles zero(8);
  for (const bool biased : {false, true}) {
    const auto bias = biased ? noise(8 + 8 + 4, 10) : std::vector<float>(20);
    if (biased) blobs.push_back({"layers.0.biases", f32_bytes(bias)});
    const auto file = read_entity(entity(network_json({swiglu()}), blobs));
    const Doubles gate = affine(kept[0].data(), bias.data(), slice(x, 0, 4), 8);
    Doubles m = affine(kept[1].data(), bias.data() + 8, slice(x, 0, 4), 8);
    for (size_t i = 0; i < 8; ++i) m[i] *= gate[i] * logistic(gate[i]);
    expect_near(run(file, x).values, affine(kept[2].data(), bias.data() + 16, m, 4));
    ASSERT_EQ(file->notes.size(), biased ? 0u : 1u);
    if (!biased) {
      EXPECT_EQ(file->notes[0],
                "layers[0]: no biases in the file, taken as 0 (the original drops them from INT4 "
                "files)");
    }
  }
}

TEST(Loom1Entity, BitNetMatricesAreTernary) {
  std::vector<int> codes;
  for (int i = 0; i < 2 * 18; ++i) codes.push_back(i * 7 % 3 - 1);
  const auto x = noise(18, 11);
  const auto file =
      read_entity(entity(network_json({dense(0, 18, 2, "ternary")}),
                         {{"layers.0.bitnet_ternary.10000", bitnet(codes, 2, 18, 0, 0.5f),
                           "BITNET_TERNARY", 0.5f, true}}));
  std::vector<float> w;
  for (const int c : codes) w.push_back(0.5f * static_cast<float>(c));
  Doubles want;
  for (const double v : affine(w.data(), nullptr, slice(x, 0, 18), 2)) want.push_back(std::tanh(v));
  expect_near(run(file, x).values, want);
  EXPECT_EQ(file->spec.grid.cell(0)->dtype, DType::ternary);
}

Result<Loom1Network> read_transformer(bool tied) {
  return read_entity(
      entity(network_json({block_json(0)}, 4), transformer_blobs(tied), transformer_json(tied)));
}

Doubles rms(const Doubles& x, const std::vector<float>& gamma) {
  double square = 0;
  for (const double v : x) square += v * v / static_cast<double>(x.size());
  Doubles y;
  for (size_t i = 0; i < x.size(); ++i)
    y.push_back(static_cast<double>(gamma[i]) * x[i] / std::sqrt(square + 0.001));
  return y;
}

TEST(Loom1Entity, ATransformerIsOurDecoder) {
  for (const bool tied : {false, true}) {
    const auto file = read_transformer(tied);
    // One position attends to itself alone, so attention is Wo (Wv x + bv) + bo for both heads.
    const auto table = noise(kVocab * kD, 24), head = tied ? table : noise(kVocab * kD, 26);
    const auto w = noise(kAttention, 21), s = noise(3 * kD * kInner + 2 * kInner + kD, 23);
    const float *wv = w.data() + kD * kD + 2 * kD, *wo = wv + 2 * kD, *bv = wo + kD * kD + kD + 2;
    Doubles x = slice(table, 3 * kD, kD);
    const Doubles v = affine(wv, bv, rms(x, noise(kD, 20)), 2);
    const Doubles mixed = affine(wo, bv + 2, {v[0], v[1], v[0], v[1]}, kD);
    for (size_t i = 0; i < kD; ++i) x[i] += mixed[i];
    const Doubles n = rms(x, noise(kD, 22));
    const float* bias = s.data() + 3 * kD * kInner;
    const Doubles gate = affine(s.data(), bias, n, kInner);
    Doubles m = affine(s.data() + kD * kInner, bias + kInner, n, kInner);
    for (size_t i = 0; i < kInner; ++i) m[i] *= gate[i] * logistic(gate[i]);
    const Doubles down = affine(s.data() + 2 * kD * kInner, bias + 2 * kInner, m, kD);
    for (size_t i = 0; i < kD; ++i) x[i] += down[i];
    const Doubles want = affine(head.data(), nullptr, rms(x, noise(kD, 25)), kVocab);
    const Ran got = run(file, std::vector<int32_t>{3, 1, 0});
    ASSERT_EQ(got.values.size(), 3 * kVocab);
    expect_near({got.values.begin(), got.values.begin() + kVocab}, want, 2e-5);
  }
}

TEST(Loom1Entity, InnerNormsStandBeforeTheLastProjection) {
  const auto w = noise(3 * 4 * 8 + 8 + 8 + 4, 30), gain = noise(8, 31), x = noise(4, 32);
  const auto file = read_entity(
      entity(network_json({record_json({"SwiGLU", R"(,"input_height":4,"output_height":8)", {}})}),
             {{"layers.0", f32_bytes(w)}, {"layers.0.inner_norm", f32_bytes(gain)}}));
  const float* bias = w.data() + 3 * 4 * 8;
  const Doubles gate = affine(w.data(), bias, slice(x, 0, 4), 8);
  Doubles m = affine(w.data() + 32, bias + 8, slice(x, 0, 4), 8);
  double square = 0;
  for (size_t i = 0; i < 8; ++i) {
    m[i] *= gate[i] * logistic(gate[i]);
    square += m[i] * m[i] / 8;
  }
  for (size_t i = 0; i < 8; ++i) m[i] *= static_cast<double>(gain[i]) / std::sqrt(square + 1e-6);
  expect_near(run(file, x).values, affine(w.data() + 64, bias + 16, m, 4));
}

TEST(Loom1Entity, HeadNormsAndRotationReachTheLayer) {
  const auto file = read_transformer(true);
  ASSERT_TRUE(file.ok()) << file.error().str();
  const LayerConfig& attention = file->spec.grid.find({1, 0, 0, 0})->layer.children[1];
  const auto value = [&](std::string_view name) {
    for (size_t i = 0; i < attention.def->fields.size(); ++i) {
      if (attention.def->fields[i].name == name) return attention.values[i].number;
    }
    return -1.0;
  };
  EXPECT_EQ(value("qk_norm"), 1);
  EXPECT_EQ(value("rope_theta"), 500);
  EXPECT_EQ(value("qk_norm_eps"), 0.001);
  EXPECT_EQ(file->find("(1, 0, 0, 0)/1/k_norm")->values, (std::vector<float>{0.5f, 1}));
}

}  // namespace
}  // namespace loom::core

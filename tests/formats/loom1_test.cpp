// Files of the original project, written from its documentation: a loaded network computes the
// documented formula of every layer, whatever the order of its weights.
#include "formats/original/original.hpp"

#include "dtype/codecs/loom1_codes.hpp"
#include "formats/loom1_testing.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

Result<Loom1Network> read(std::vector<Record> records) {
  return parse_loom1_json(checkpoint(std::move(records)), "net.json");
}

TEST(Loom1, DenseIsItsMatrixAndActivation) {
  const auto w = noise(6, 1), x = noise(4, 2);
  const Ran y = run(read({{"Dense", R"(,"input_height":2,"output_height":3)", w, "Tanh"}}), x, 2);
  Doubles want;
  for (size_t b = 0; b < 2; ++b) {
    for (const double v : affine(w.data(), nullptr, slice(x, 2 * b, 2), 3))
      want.push_back(std::tanh(v));
  }
  expect_near(y.values, want);
}

TEST(Loom1, ActivationsAreThoseOfTheDocuments) {
  const auto gelu = [](double v) {
    return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
  };
  const struct {
    const char* name;
    std::function<double(double)> f;
  } rows[] = {{"Linear", [](double v) { return v; }},
              {"ReLU", [](double v) { return v > 0 ? v : 0; }},
              {"Silu", [](double v) { return v * logistic(v); }},
              {"GELU", gelu},
              {"Tanh", [](double v) { return std::tanh(v); }},
              {"Sigmoid", [](double v) { return logistic(v); }},
              {"LeakyReLU", [](double v) { return v >= 0 ? v : 0.01 * v; }},
              {"LEAKY_RELU", [](double v) { return v >= 0 ? v : 0.01 * v; }},
              {"ReLU2", [](double v) { return v > 0 ? v * v : 0; }}};
  const std::vector<float> x = {-2.0f, -0.5f, 0.25f, 3.0f};
  for (const auto& row : rows) {
    const Ran y =
        run(read({{"Dense", R"(,"input_height":1,"output_height":1)", {1.0f}, row.name}}), x, 4);
    Doubles want;
    for (const float v : x) want.push_back(row.f(static_cast<double>(v)));
    expect_near(y.values, want);
  }
}

TEST(Loom1, NormsScaleAndShift) {
  const std::vector<float> gamma_beta = {0.5f, 1.0f, 2.0f, 0.1f, 0.2f, 0.3f}, x = noise(3, 3);
  const std::vector<float> gamma(gamma_beta.begin(), gamma_beta.begin() + 3);
  double square = 0, mean = 0, variance = 0;
  for (const float v : x) {
    square += static_cast<double>(v) * static_cast<double>(v) / 3;
    mean += static_cast<double>(v) / 3;
  }
  for (const float v : x) variance += std::pow(static_cast<double>(v) - mean, 2) / 3;
  Doubles rms, layer;
  for (size_t i = 0; i < 3; ++i) {
    const auto v = static_cast<double>(x[i]);
    rms.push_back(static_cast<double>(gamma[i]) * v / std::sqrt(square + 1e-6));
    layer.push_back(static_cast<double>(gamma[i]) * (v - mean) / std::sqrt(variance + 1e-5) +
                    static_cast<double>(gamma_beta[3 + i]));
  }
  const auto norm = read({{"RMSNorm", R"(,"input_height":3,"output_height":3)", gamma}});
  expect_near(run(norm, x).values, rms);
  EXPECT_EQ(norm->notes[0], "layers[0]: eps is not in the file, taken as 1e-6");
  expect_near(run(read({{"LayerNorm", R"(,"output_height":3)", gamma_beta}}), x).values, layer);
}

TEST(Loom1, SwiGluGatesWithSilu) {
  constexpr size_t kD = 3, kI = 4;
  const auto w = noise(3 * kD * kI + 2 * kI + kD, 4), x = noise(kD, 5);
  const float* bias = w.data() + 3 * kD * kI;
  const Doubles a = affine(w.data(), bias, slice(x, 0, kD), kI);
  Doubles m = affine(w.data() + kD * kI, bias + kI, slice(x, 0, kD), kI);
  for (size_t i = 0; i < kI; ++i) m[i] *= a[i] * logistic(a[i]);
  const Doubles want = affine(w.data() + 2 * kD * kI, bias + 2 * kI, m, kD);
  expect_near(run(read({{"SwiGLU", R"(,"input_height":3,"output_height":4)", w}}), x).values, want);
}

TEST(Loom1, LstmGatesStandInBlocksInTheOrderInputForgetCellOutput) {
  constexpr size_t kI = 2, kH = 3, kT = 4, kBlock = kH * kI + kH * kH + kH;
  const auto w = noise(4 * kBlock, 6), x = noise(kT * kI, 7);
  Doubles h(kH), c(kH), want;
  for (size_t t = 0; t < kT; ++t) {
    Doubles gate[4];
    for (size_t g = 0; g < 4; ++g) {
      const float* block = w.data() + g * kBlock;
      gate[g] = affine(block, block + kH * (kI + kH), slice(x, t * kI, kI), kH);
      const Doubles from_state = affine(block + kH * kI, nullptr, h, kH);
      for (size_t i = 0; i < kH; ++i) gate[g][i] += from_state[i];
    }
    for (size_t i = 0; i < kH; ++i) {
      c[i] = logistic(gate[1][i]) * c[i] + logistic(gate[0][i]) * std::tanh(gate[2][i]);
      h[i] = logistic(gate[3][i]) * std::tanh(c[i]);
      want.push_back(h[i]);
    }
  }
  const auto file =
      read({{"LSTM", R"(,"input_height":2,"output_height":3,"seq_length":4)", w, "ReLU"}});
  expect_near(run(file, x).values, want);
  EXPECT_EQ(file->spec.input, (Shape{4, 2}));
}

TEST(Loom1, RnnRunsThroughTime) {
  constexpr size_t kI = 2, kH = 2, kT = 3;
  const auto w = noise(kH * kI + kH * kH + kH, 8), x = noise(kT * kI, 9);
  Doubles h(kH), want;
  for (size_t t = 0; t < kT; ++t) {
    Doubles next = affine(w.data(), w.data() + kH * (kI + kH), slice(x, t * kI, kI), kH);
    const Doubles from_state = affine(w.data() + kH * kI, nullptr, h, kH);
    for (size_t i = 0; i < kH; ++i) next[i] = std::tanh(next[i] + from_state[i]);
    h = next;
    want.insert(want.end(), h.begin(), h.end());
  }
  expect_near(
      run(read({{"RNN", R"(,"input_height":2,"output_height":2,"seq_length":3)", w}}), x).values,
      want);
}

// A convolution over `axes` cubes of extent n by its sum, zero outside.
Doubles convolved(const std::vector<float>& x, const std::vector<float>& w, int axes, int64_t n,
                  int64_t channels, int64_t filters, int64_t kernel, int64_t stride, int64_t pad) {
  const int64_t out = (n + 2 * pad - kernel) / stride + 1;
  const auto power = [&](int64_t base) {
    int64_t p = 1;
    for (int i = 0; i < axes; ++i) p *= base;
    return p;
  };
  Doubles y;
  for (int64_t f = 0; f < filters; ++f) {
    for (int64_t o = 0; o < power(out); ++o) {
      double sum = 0;
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t k = 0; k < power(kernel); ++k) {
          int64_t at = 0, step = 1, left_o = o, left_k = k;
          bool inside = true;
          for (int i = 0; i < axes; ++i) {  // the fastest axis first
            const int64_t p = left_o % out * stride + left_k % kernel - pad;
            inside = inside && p >= 0 && p < n;
            at += p * step;
            step *= n;
            left_o /= out;
            left_k /= kernel;
          }
          if (!inside) continue;
          sum +=
              static_cast<double>(x[static_cast<size_t>(c * power(n) + at)]) *
              static_cast<double>(w[static_cast<size_t>((f * channels + c) * power(kernel) + k)]);
        }
      }
      y.push_back(sum);
    }
  }
  return y;
}

TEST(Loom1, ConvolutionsCorrelate) {
  for (int axes = 1; axes <= 3; ++axes) {
    const size_t points = axes == 1 ? 5 : axes == 2 ? 25 : 125;
    const size_t taps = axes == 1 ? 3 : axes == 2 ? 9 : 27;
    const auto x = noise(2 * points, 10), w = noise(3 * 2 * taps, 11);
    const Ran y = run(read({{cat("CNN", axes),
                             R"(,"input_height":5,"output_height":3,"input_channels":2,)"
                             R"("filters":3,"kernel_size":3,"stride":2,"padding":1)",
                             w}}),
                      x);
    expect_near(y.values, convolved(x, w, axes, 5, 2, 3, 3, 2, 1));
  }
}

TEST(Loom1, TransposedConvolutionsScatterFilterByFilter) {
  // out[f, i s - p + k] += x[c, i] W[f, c, k]
  constexpr size_t kIn = 4, kC = 2, kF = 3, kK = 3, kOut = 8;
  const auto x = noise(kC * kIn, 12), w = noise(kF * kC * kK, 13);
  Doubles want(kF * kOut);
  for (size_t f = 0; f < kF; ++f) {
    for (size_t c = 0; c < kC; ++c) {
      for (size_t i = 0; i < kIn; ++i) {
        for (size_t k = 0; k < kK; ++k) {
          if (i * 2 + k < 1 || i * 2 + k - 1 >= kOut) continue;
          want[f * kOut + i * 2 + k - 1] +=
              static_cast<double>(x[c * kIn + i]) * static_cast<double>(w[(f * kC + c) * kK + k]);
        }
      }
    }
  }
  // The formula gives 7; the file says 8, and 8 are computed.
  const auto file = read({{"ConvTransposed1D",
                           R"(,"input_width":4,"output_width":8,"input_channels":2,"filters":3,)"
                           R"("kernel_size":3,"stride":2,"padding":1,"output_padding":5)",
                           w}});
  expect_near(run(file, x).values, want);
}

TEST(Loom1, AttentionIsCausalGroupedAndRotated) {
  constexpr size_t kD = 8, kHeads = 4, kKv = 2, kDim = 2, kT = 3;
  constexpr size_t kQ = kHeads * kDim, kKvWidth = kKv * kDim;
  const auto w = noise(2 * kQ * kD + 2 * kKvWidth * kD + kQ + 2 * kKvWidth + kD, 14, 0.7f);
  const auto x = noise(kT * kD, 15);
  const float *wq = w.data(), *wk = wq + kQ * kD, *wv = wk + kKvWidth * kD,
              *wo = wv + kKvWidth * kD;
  const float *bq = wo + kD * kQ, *bk = bq + kQ, *bv = bk + kKvWidth, *bo = bv + kKvWidth;
  const auto rotate = [](Doubles v, size_t position) {
    for (size_t h = 0; h < v.size(); h += kDim) {
      const double angle = static_cast<double>(position);  // base^0, one pair
      const double a = v[h], b = v[h + 1];
      v[h] = a * std::cos(angle) - b * std::sin(angle);
      v[h + 1] = a * std::sin(angle) + b * std::cos(angle);
    }
    return v;
  };
  std::vector<Doubles> q, k, v;
  for (size_t t = 0; t < kT; ++t) {
    const Doubles row = slice(x, t * kD, kD);
    q.push_back(rotate(affine(wq, bq, row, kQ), t));
    k.push_back(rotate(affine(wk, bk, row, kKvWidth), t));
    v.push_back(affine(wv, bv, row, kKvWidth));
  }
  Doubles want;
  for (size_t t = 0; t < kT; ++t) {
    Doubles mixed(kQ);
    for (size_t h = 0; h < kHeads; ++h) {
      const size_t g = h / (kHeads / kKv);
      Doubles p;
      double sum = 0;
      for (size_t s = 0; s <= t; ++s) {
        double score = 0;
        for (size_t i = 0; i < kDim; ++i) score += q[t][h * kDim + i] * k[s][g * kDim + i];
        p.push_back(std::exp(score / std::sqrt(static_cast<double>(kDim))));
        sum += p.back();
      }
      for (size_t s = 0; s <= t; ++s) {
        for (size_t i = 0; i < kDim; ++i) mixed[h * kDim + i] += p[s] / sum * v[s][g * kDim + i];
      }
    }
    const Doubles row = affine(wo, bo, mixed, kD);
    want.insert(want.end(), row.begin(), row.end());
  }
  const std::string fields =
      R"(,"num_heads":4,"num_kv_heads":2,"d_model":8,"seq_length":3,"rope_freq_base":10000)";
  for (const char* name : {"MultiHeadAttention", "MHA", "attention"}) {
    const auto file = read({{name, fields, w, "ReLU"}});
    expect_near(run(file, x).values, want);
    EXPECT_TRUE(file->notes.empty());
  }
}

TEST(Loom1, EmbeddingLooksUpAndActivates) {
  const auto w = noise(5 * 3, 16);
  const auto file = read({{"Embedding", R"(,"vocab_size":5,"embedding_dim":3)", w, "ReLU"},
                          {"Dense", R"(,"input_height":6,"output_height":1)", noise(6, 17)}});
  EXPECT_EQ(file->spec.input, Shape{2}) << "the dense layer takes two steps at once";
  const auto one =
      read({{"Embedding", R"(,"vocab_size":5,"embedding_dim":3,"seq_length":2)", w, "ReLU"}});
  Doubles want;
  for (const size_t id : {4u, 1u}) {
    for (const double v : slice(w, id * 3, 3)) want.push_back(v > 0 ? v : 0);
  }
  expect_near(run(one, std::vector<int32_t>{4, 1}).values, want);
}

TEST(Loom1, KMeansAssignsSoftly) {
  const auto w = noise(3 * 2, 18), x = noise(2, 19);
  Doubles p;
  double sum = 0;
  for (size_t k = 0; k < 3; ++k) {
    double d = 0;
    for (size_t i = 0; i < 2; ++i) d += std::pow(static_cast<double>(x[i] - w[k * 2 + i]), 2);
    p.push_back(std::exp(-d / (2 * 0.25)));
    sum += p.back();
  }
  Doubles mixed(2);
  for (size_t k = 0; k < 3; ++k) {
    p[k] /= sum;
    for (size_t i = 0; i < 2; ++i) mixed[i] += p[k] * static_cast<double>(w[k * 2 + i]);
  }
  const std::string fields = R"(,"input_height":2,"num_clusters":3,"kmeans_temperature":0.5)";
  expect_near(run(read({{"KMeans", fields, w}}), x).values, p);
  expect_near(run(read({{"KMeans", fields + R"(,"output_mode":"features")", w}}), x).values, mixed);
}

TEST(Loom1, SoftmaxTypesHaveTheirNamesAndNumbers) {
  const auto x = noise(4, 20);
  const auto soft = [&](size_t from, size_t count, double tau) {
    Doubles p = slice(x, from, count);
    double sum = 0;
    for (double& v : p) sum += (v = std::exp(v / tau));
    for (double& v : p) v /= sum;
    return p;
  };
  Doubles grid = soft(0, 2, 1);
  for (const double v : soft(2, 2, 1)) grid.push_back(v);
  const std::vector<float> eye = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
  const Record dense{"Dense", R"(,"input_height":4,"output_height":4)", eye};
  const struct {
    const char* fields;
    Doubles want;
  } rows[] = {{R"(,"softmax_type":"Standard")", soft(0, 4, 1)},
              {R"(,"softmax_type":"Temperature","temperature":0.5)", soft(0, 4, 0.5)},
              {R"(,"softmax_type":"Adaptive")", soft(0, 4, 1)},
              {R"(,"softmax_type":"Mixture","softmax_rows":2,"softmax_cols":2)", soft(0, 4, 1)},
              {R"(,"softmax_type":"Masked")", soft(0, 4, 1)},
              {R"(,"softmax_type":"Grid","softmax_rows":2,"softmax_cols":2)", grid}};
  for (const auto& row : rows)
    expect_near(run(read({dense, {"Softmax", row.fields, {}}}), x).values, row.want);
}

TEST(Loom1, ContainersNest) {
  const auto a = noise(9, 21), b = noise(9, 22), x = noise(3, 23);
  const std::string dense = R"(,"input_height":3,"output_height":3)";
  const std::string first = record_json({"Dense", dense, a});
  const std::string second = record_json({"Dense", dense, b, "Tanh"});
  const std::string bare = record_json({"Residual", "", {}});
  const Doubles ax = affine(a.data(), nullptr, slice(x, 0, 3), 3);
  Doubles bx = affine(b.data(), nullptr, slice(x, 0, 3), 3), residual, sum, joined = ax;
  for (size_t i = 0; i < 3; ++i) {
    bx[i] = std::tanh(bx[i]);
    residual.push_back(ax[i] + static_cast<double>(x[i]));
    sum.push_back(ax[i] + bx[i]);
  }
  joined.insert(joined.end(), bx.begin(), bx.end());
  const auto sequence = read({{"Sequential",
                               "",
                               {},
                               "ReLU",
                               "float32",
                               cat(R"(,"sequential_layers":[)", first, ",", bare, "]")}});
  expect_near(run(sequence, x).values, residual);
  const auto parallel = [&](const char* mode) {
    return read({{"Parallel",
                  "",
                  {},
                  "ReLU",
                  "float32",
                  cat(R"(,"parallel_branches":[)", first, ",", second, "]", mode)}});
  };
  expect_near(run(parallel(R"(,"combine_mode":"add")"), x).values, sum);
  expect_near(run(parallel(""), x).values, joined);
  expect_near(run(parallel(R"(,"combine_mode":"grid_scatter")"), x).values, joined);
  EXPECT_NE(parallel("")->find("(0, 0, 0, 0)/1/weight"), nullptr);
}

TEST(Loom1, ResidualsWithNothingBeforePassTheirInputOn) {
  const auto a = noise(9, 24), x = noise(3, 25);
  const Record dense{"Dense", R"(,"input_height":3,"output_height":3)", a};
  const Doubles ax = affine(a.data(), nullptr, slice(x, 0, 3), 3);
  Doubles sum = ax;
  for (size_t i = 0; i < 3; ++i) sum[i] += static_cast<double>(x[i]);
  expect_near(run(read({{"Residual", "", {}}, dense}), x).values, ax);
  const auto file = read({dense, {"Residual", "", {}}});
  expect_near(run(file, x).values, sum);
  EXPECT_EQ(file->notes.back(),
            "layers[1]: adds the input of the layer before it; the original passes its input on");
}

TEST(Loom1, ArchitecturesHaveLinksMasksLevelsAndNumbers) {
  const std::string text = network_json(
      {R"({"type":"Dense","dtype":"FP32","activation":"ReLU","input_height":4,"output_height":4})",
       R"({"x":1,"type":"Softmax","softmax_type":5,"mask":[true,false,true,true]})",
       R"({"x":2,"type":"Softmax","softmax_type":2,"hierarchy_levels":[2,2],)"
       R"("is_remote_link":true})",
       R"({"x":3,"type":"Dense","dtype":"Int4","input_height":4,"output_height":4,)"
       R"("is_remote_link":true,"target_x":3})"});
  const auto file = parse_loom1_json(text, "net.json");
  ASSERT_TRUE(file.ok()) << file.error().str();
  EXPECT_TRUE(file->params.empty());
  EXPECT_EQ(file->notes.back(), "layers: no weights in the file, an architecture");
  const GridSpec& grid = file->spec.grid;
  EXPECT_EQ(grid.find({0, 0, 2, 0})->link->from, (Coord{0, 0, 0, 0}));
  EXPECT_FALSE(grid.find({0, 0, 2, 0})->link->feedback);
  EXPECT_TRUE(grid.find({0, 0, 3, 0})->link->feedback);
  EXPECT_EQ(grid.find({0, 0, 3, 0})->dtype, DType::i4);
  EXPECT_EQ(file->spec.input, Shape{4});
}

TEST(Loom1, DisabledLayersAreSkipped) {
  const auto a = noise(9, 26), x = noise(3, 27);
  Record off{"Dense", R"(,"input_height":3,"output_height":3)", a};
  off.tail = R"(,"use_tiling":true,"tile_size":8,"is_disabled":true)";
  const Record on{"Dense", R"(,"input_height":3,"output_height":3)", a};
  expect_near(run(read({off, on}), x).values, affine(a.data(), nullptr, slice(x, 0, 3), 3));
}

struct Codes {
  const char* dtype;
  int bits;
  std::vector<uint64_t> codes;
  Doubles values;  // times the scale, if the type has one
};
const std::vector<Codes> kCodes = {
    {"float64", 64, {0x3ff8000000000000}, {1.5}},
    {"float32", 32, {0xbf800000, 0x3f000000}, {-1, 0.5}},
    {"float16", 16, {0x3c00, 0xc000, 0x0001}, {1, -2, 0x1p-24}},
    {"bfloat16", 16, {0x3f80, 0xc000}, {1, -2}},
    {"fp8e4m3", 8, {0x38, 0xb8, 0x7e, 0x7f, 0x80}, {1, -1, 448, 480, 0}},
    {"fp8e5m2", 8, {0x3c, 0xbc, 0x7b}, {1, -1, 57344}},
    {"int64", 64, {5, UINT64_MAX}, {5, -1}},
    {"int32", 32, {5, 0xffffffff}, {5, -1}},
    {"int16", 16, {5, 0xffff}, {5, -1}},
    {"int8", 8, {5, 0xff, 0x80}, {5, -1, -128}},
    {"uint64", 64, {5, 1000}, {5, 1000}},
    {"uint32", 32, {5, 0xffff}, {5, 65535}},
    {"uint16", 16, {5, 0xffff}, {5, 65535}},
    {"uint8", 8, {5, 0xff}, {5, 255}},
    {"int4", 4, {1, 14, 7}, {1, -2, 7}},
    {"uint4", 4, {1, 14, 7}, {1, 14, 7}},
    {"fp4", 4, {1, 9, 5, 2, 12}, {0.75, -0.75, 3, 1, -2}},
    {"int2", 2, {1, 2, 3, 0, 1}, {1, -2, -1, 0, 1}},
    {"uint2", 2, {1, 2, 3, 0, 1}, {1, 2, 3, 0, 1}},
    {"ternary", 2, {1, 0, 3, 1, 3}, {1, 0, -1, 1, -1}},
    {"binary", 1, {1, 0, 1, 1, 0, 0, 0, 1, 1}, {1, -1, 1, 1, -1, -1, -1, 1, 1}},
};

TEST(Loom1, CodesOfAllTypesMeanWhatTheOriginalMeant) {
  ASSERT_EQ(kCodes.size(), 21u);
  for (const Codes& row : kCodes) {
    const bool scaled = loom1_scaled(*parse_dtype(row.dtype));
    const std::string bytes = layout1(row.codes, row.bits);
    const std::string text =
        cat(R"({"x":0,"type":"Dense","activation":"Linear","dtype":")", row.dtype,
            R"(","input_height":)", row.codes.size(), R"(,"output_height":1,"weights":")",
            base64(bytes), R"(","native":true,"scale":0.5})");
    const auto file = parse_loom1_json(network_json({text}), "net.json");
    ASSERT_TRUE(file.ok()) << file.error().str();
    const Loom1Param* w = file->find("(0, 0, 0, 0)/weight");
    ASSERT_NE(w, nullptr) << row.dtype;
    ASSERT_EQ(w->values.size(), row.values.size());
    for (size_t i = 0; i < row.values.size(); ++i) {
      EXPECT_EQ(static_cast<double>(w->values[i]), row.values[i] * (scaled ? 0.5 : 1.0))
          << row.dtype << " " << i;
    }
    EXPECT_EQ(file->spec.grid.cell(0)->dtype, *parse_dtype(row.dtype));
  }
}

TEST(Loom1, PackedBytesAreThoseOfTheDescription) {
  EXPECT_EQ(layout1({1, 14, 7}, 4), "\x1e\x70");
  EXPECT_EQ(layout1({1, 0, 3, 1, 3}, 2), "\x4d\xc0");
  EXPECT_EQ(layout1({1, 0, 1, 1, 0, 0, 0, 1, 1}, 1), "\xb1\x80");
  EXPECT_EQ(layout1({1, 9}, 4), "\x19");
}

TEST(Loom1, SmallFloatsDifferFromTheStandardWhereTheOriginalDoes) {
  EXPECT_EQ(loom1_value(DType::f8e4m3, 1), 1.125 * 0x1p-10);
  EXPECT_EQ(loom1_value(DType::f8e5m2, 1), 1.25 * 0x1p-15);
  EXPECT_EQ(loom1_value(DType::f8e5m2, 0xfc), -__builtin_inf());
  EXPECT_TRUE(std::isnan(loom1_value(DType::f4, 7)));
  EXPECT_TRUE(std::isnan(loom1_value(DType::ternary, 2)));
}

TEST(Loom1, AScaleOfOneIsNoted) {
  const std::string text =
      R"({"type":"Dense","activation":"Linear","dtype":"int8","input_height":1,"output_height":1,)"
      R"("weights":"AQ==","native":true,"scale":1})";
  const auto file = parse_loom1_json(network_json({text}), "net.json");
  ASSERT_TRUE(file.ok()) << file.error().str();
  ASSERT_EQ(file->notes.size(), 1u);
  EXPECT_EQ(file->notes[0],
            "layers[0]: scale is 1.0, which the original also writes when it had not computed one: "
            "then all weights are too large by one factor, which the file does not tell");
}

TEST(Loom1, SixteenBitFloatsOfOldVersionsStandAsFloat32) {
  const std::string text =
      cat(R"({"type":"Dense","activation":"Linear","dtype":"float16","input_height":2,)"
          R"("output_height":1,"weights":")",
          base64(f32_bytes({0.5f, 3})), R"(","native":true,"scale":1})");
  const auto file = parse_loom1_json(network_json({text}), "net.json");
  ASSERT_TRUE(file.ok()) << file.error().str();
  EXPECT_EQ(file->params[0].values, (std::vector<float>{0.5f, 3}));
}

// Codes whose scale came from the largest weight are met again when packed in their own type.
TEST(Loom1, NativeCodesComeBackFromPackedWeights) {
  const struct {
    const char* dtype;
    int bits;
    std::vector<uint64_t> codes;
  } rows[] = {{"int8", 8, {127, 3, 0xc0, 0}},
              {"int16", 16, {32767, 3, 0xff00, 0}},
              {"int4", 4, {7, 9, 1, 0}},
              {"ternary", 2, {1, 0, 3, 0}},
              {"binary", 1, {1, 0, 0, 1}}};
  for (const auto& row : rows) {
    const std::string text =
        cat(R"({"x":0,"type":"Dense","activation":"Linear","dtype":")", row.dtype,
            R"(","input_height":4,"output_height":1,"weights":")",
            base64(layout1(row.codes, row.bits)), R"(","native":true,"scale":0.01})");
    const auto file = parse_loom1_json(network_json({text}), "net.json");
    ASSERT_TRUE(file.ok()) << file.error().str();
    Network network = *Network::finalize(file->spec.grid, Shape{1, 4});
    ThreadPool pool(1);
    ASSERT_TRUE(load_loom1(*file, network, DType::f32, pool).ok());
    std::vector<float> back(4);
    Recorder recorder(cpu_ops(best_isa()), pool, ActivationMode::f32);
    ASSERT_TRUE(recorder.convert({network.params()[0].tensor, f32_matrix(back.data(), 1, 4)}).ok());
    ASSERT_TRUE(recorder.flush().ok());
    for (size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(back[i], file->params[0].values[i], 1e-6f) << row.dtype << " " << i;
  }
}

TEST(Loom1, FilesAreRecognized) {
  EXPECT_TRUE(is_loom1_json(checkpoint({{"Residual", "", {}}})));
  EXPECT_FALSE(is_loom1_json(R"({"loom":1,"layers":[]})"));
  EXPECT_FALSE(is_loom1_json(""));
}

}  // namespace
}  // namespace loom::core

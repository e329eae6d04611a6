// Bare tensor files as networks: torch state dicts, blocks of language models, our own files, and
// files that must be refused. The known faults of the original's loader each have a test (W1-W4).
#include "formats/universal/infer.hpp"

#include "base/threads/thread_pool.hpp"
#include "bridge/network_json.hpp"
#include "formats/hf/names.hpp"
#include "formats/loom1_testing.hpp"
#include "grid/init.hpp"
#include "io/weights/safetensors_write.hpp"
#include "layers/core/fields.hpp"
#include "llm/decoder.hpp"

namespace loom::core {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

struct Source {
  std::string name;
  std::vector<int64_t> shape;
  SafeDType dtype = SafeDType::f32;
};

// A file whose tensor i holds noise of stream i (integers: zeros).
struct File {
  std::vector<std::vector<float>> values;
  std::vector<std::string> half;
  std::string bytes;
  std::unique_ptr<SafeTensorsFile> tensors;
  std::vector<Source> sources;

  const std::vector<float>& of(const std::string& name) const {
    for (size_t i = 0; i < sources.size(); ++i) {
      if (sources[i].name == name) return values[i];
    }
    ADD_FAILURE() << name;
    return values[0];
  }
};

File make(std::vector<Source> sources, const SafeMetadata& metadata = {}) {
  File file;
  file.sources = sources;
  std::vector<SafeOutput> out;
  file.values.reserve(sources.size());
  file.half.reserve(sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    size_t n = 1;
    for (const int64_t e : sources[i].shape) n *= static_cast<size_t>(e);
    file.values.push_back(noise(n, 100 + i));
    const uint64_t bytes = n * safe_dtype_bits(sources[i].dtype) / 8;
    file.half.emplace_back(bytes, '\0');
    const auto data = sources[i].dtype == SafeDType::f32
                          ? std::as_bytes(std::span(file.values.back()))
                          : std::as_bytes(std::span(file.half.back()));
    out.push_back({sources[i].name, sources[i].dtype, sources[i].shape, data});
  }
  file.bytes = *safetensors_bytes(std::move(out), metadata);
  auto parsed = SafeTensors::parse(std::as_bytes(std::span(file.bytes)), "f");
  EXPECT_TRUE(parsed.ok()) << parsed.error().str();
  file.tensors = std::make_unique<SafeTensorsFile>(std::move(*parsed));
  return file;
}

// Takes the usual choices, which the tests of assumptions look at.
Result<InferredNetwork> infer(const File& file, InferOptions options = {}) {
  options.assume = true;
  return infer_network(*file.tensors, "f", options);
}
// As the program opens a file.
Result<InferredNetwork> open_strict(const File& file, const InferOptions& options = {}) {
  return infer_network(*file.tensors, "f", options);
}

// The network with the values of the file, run once.
template <class T>
std::vector<float> run_inferred(const File& file, const Result<InferredNetwork>& made,
                                std::vector<T> x, const Shape& sample) {
  EXPECT_TRUE(made.ok()) << made.error().str();
  if (!made.ok()) return {};
  Result<Network> network = Network::finalize(made->spec.grid, sample.after(1));
  EXPECT_TRUE(network.ok()) << network.error().str();
  ThreadPool pool(1);
  const Status loaded = load_inferred(*made, *file.tensors, *network, DType::f32, pool);
  EXPECT_TRUE(loaded.ok()) << loaded.error().str();
  SessionOptions options;
  options.activations = ActivationMode::f32;
  const Shape input = sample.after(1);
  Result<Session> session = Session::create(*network, cpu_ops(best_isa()), pool, input, options);
  EXPECT_TRUE(session.ok()) << session.error().str();
  Tensor t;
  t.dtype = std::is_same_v<T, float> ? DType::f32 : DType::i32;
  t.shape = input;
  t.row_stride = input.last();
  t.data = reinterpret_cast<std::byte*>(x.data());
  const Result<Tensor> y = session->forward(t, 0, network->cells().size());
  EXPECT_TRUE(y.ok()) << y.error().str();
  std::vector<float> out;
  for (int64_t r = 0; y.ok() && r < y->rows(); ++r)
    out.insert(out.end(), y->f32_row(r), y->f32_row(r) + y->cols());
  return out;
}

bool assumed(const Result<InferredNetwork>& made, const std::string& text) {
  return std::any_of(made->assumptions.begin(), made->assumptions.end(),
                     [&](const std::string& a) { return a.find(text) != std::string::npos; });
}

TEST(Universal, ASequentialStateDictRunsInTheOrderOfItsNumbers) {
  const File file = make({{"10.weight", {2, 4}},
                          {"10.bias", {2}},
                          {"2.weight", {4, 5}},
                          {"2.bias", {4}},
                          {"0.weight", {5, 3}},
                          {"0.bias", {5}},
                          {"1.weight", {5}},
                          {"1.bias", {5}}});
  const auto made = infer(file);
  const auto x = noise(3, 1);
  Doubles h = affine(file.of("0.weight").data(), file.of("0.bias").data(), slice(x, 0, 3), 5);
  double mean = 0, variance = 0;
  for (const double v : h) mean += v / 5;
  for (const double v : h) variance += (v - mean) * (v - mean) / 5;
  for (size_t i = 0; i < 5; ++i) {
    h[i] =
        (h[i] - mean) / std::sqrt(variance + 1e-5) * static_cast<double>(file.of("1.weight")[i]) +
        static_cast<double>(file.of("1.bias")[i]);
  }
  h = affine(file.of("2.weight").data(), file.of("2.bias").data(), h, 4);
  for (double& v : h) v = v > 0 ? v : 0;  // 3 to 9 hold no weights
  h = affine(file.of("10.weight").data(), file.of("10.bias").data(), h, 2);
  expect_near(run_inferred(file, made, x, Shape{3}), h);
  EXPECT_TRUE(assumed(made, "'2' is followed by relu: a number is left out in the names"));
  EXPECT_EQ(made->assumptions.size(), 1u);
  for (const InferredTensor& t : made->report)
    EXPECT_EQ(t.confidence, Confidence::high) << t.tensor;
  EXPECT_NE(describe(*made).find("10.bias -> (0, 0, 3, 0)/bias (high; Dense: a matrix and a bias)"),
            std::string::npos)
      << describe(*made);
}

std::vector<Source> llama(int64_t layers, bool fused, bool biased, bool tied) {
  constexpr int64_t kD = 16, kKv = 8, kI = 64;  // gate and up are four times as high as wide
  std::vector<Source> s = {{"model.embed_tokens.weight", {11, kD}}, {"model.norm.weight", {kD}}};
  if (!tied) s.push_back({"lm_head.weight", {11, kD}});
  for (int64_t l = 0; l < layers; ++l) {
    const auto add = [&](const char* name, std::vector<int64_t> shape) {
      s.push_back({cat("model.layers.", l, ".", name), std::move(shape)});
    };
    add("input_layernorm.weight", {kD});
    add("post_attention_layernorm.weight", {kD});
    add("self_attn.o_proj.weight", {kD, kD});
    add("mlp.down_proj.weight", {kD, kI});
    if (fused) {
      add("self_attn.qkv_proj.weight", {kD + 2 * kKv, kD});
      add("mlp.gate_up_proj.weight", {2 * kI, kD});
      continue;
    }
    add("self_attn.q_proj.weight", {kD, kD});
    add("self_attn.k_proj.weight", {kKv, kD});
    add("self_attn.v_proj.weight", {kKv, kD});
    add("mlp.gate_proj.weight", {kI, kD});
    add("mlp.up_proj.weight", {kI, kD});
    if (!biased) continue;
    add("self_attn.q_proj.bias", {kD});
    add("self_attn.k_proj.bias", {kKv});
    add("self_attn.v_proj.bias", {kKv});
  }
  return s;
}

// The output of the language-model loader for the same tensors.
std::vector<float> reference_run(const File& file, bool biased, bool tied,
                                 std::vector<int32_t> ids) {
  DecoderConfig c = *shape_config("tiny");
  c.hidden_size = 16, c.intermediate_size = 64, c.num_layers = 12, c.num_heads = 4;
  c.num_kv_heads = 2, c.head_dim = 4, c.vocab_size = 11, c.rms_norm_eps = 1e-6;
  c.rope_theta = 10000, c.attention_bias = biased, c.tie_word_embeddings = tied;
  const Shape input{1, static_cast<int64_t>(ids.size())};
  Result<Network> network = Network::finalize(*decoder_grid(c), input);
  EXPECT_TRUE(network.ok()) << network.error().str();
  ThreadPool pool(1);
  for (size_t i = 0; i < network->params().size(); ++i) {
    const Param& p = network->params()[i];
    const std::vector<float>& values = file.of(hf_tensor(p, c).name);
    const int64_t cols = p.spec.matrix() ? p.spec.shape[1] : 1;
    const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
      std::copy_n(values.begin() + first * cols, count * cols, out);
      return {};
    };
    EXPECT_TRUE(network->load_param(static_cast<int>(i), DType::f32, rows, pool).ok());
  }
  SessionOptions options;
  options.activations = ActivationMode::f32;
  Result<Session> session = Session::create(*network, cpu_ops(best_isa()), pool, input, options);
  EXPECT_TRUE(session.ok());
  Tensor t;
  t.dtype = DType::i32;
  t.shape = input;
  t.row_stride = input.last();
  t.data = reinterpret_cast<std::byte*>(ids.data());
  const Result<Tensor> y = session->forward(t, 0, network->cells().size());
  std::vector<float> out;
  for (int64_t r = 0; y.ok() && r < y->rows(); ++r)
    out.insert(out.end(), y->f32_row(r), y->f32_row(r) + y->cols());
  return out;
}

TEST(Universal, ALanguageModelHasTheBitsOfItsOwnLoader) {
  const std::vector<int32_t> ids = {3, 1, 4, 1, 5};
  for (const bool biased : {false, true}) {
    for (const bool tied : {false, true}) {
      const File file = make(llama(12, false, biased, tied));
      InferOptions options;
      options.heads = 4;
      const auto made = infer(file, options);
      ASSERT_TRUE(made.ok()) << made.error().str();
      EXPECT_TRUE(assumed(made, "4 heads and 2 key-value heads of 4, as asked for"));
      EXPECT_EQ(assumed(made, "so the embedding is it"), tied);
      EXPECT_EQ(run_inferred(file, made, ids, Shape{5}), reference_run(file, biased, tied, ids));
    }
  }
}

TEST(Universal, HeadsFollowTheRatioOfShapesAndTheRestIsAssumed) {
  const auto made = infer(make(llama(1, false, false, true)));
  ASSERT_TRUE(made.ok()) << made.error().str();
  EXPECT_TRUE(assumed(made, "2 heads and 1 key-value heads of 8, assumed"));
  const auto row = std::find_if(made->report.begin(), made->report.end(), [](const auto& t) {
    return t.tensor == "model.layers.0.self_attn.k_proj.weight";
  });
  EXPECT_EQ(row->became, "(0, 0, 1, 0)/1/k");
  EXPECT_EQ(row->confidence, Confidence::low);
}

TEST(Universal, NormsOfHeadsTellHowWideAHeadIs) {
  std::vector<Source> s = llama(1, false, false, true);
  s.push_back({"model.layers.0.self_attn.q_norm.weight", {4}});
  s.push_back({"model.layers.0.self_attn.k_norm.weight", {4}});
  const auto made = infer(make(s));
  ASSERT_TRUE(made.ok()) << made.error().str();
  EXPECT_FALSE(assumed(made, "key-value heads of"));
  for (const InferredTensor& t : made->report) EXPECT_EQ(t.confidence, Confidence::high);
}

// W1: a bias of a projection is not the first row of its matrix.
TEST(Universal, BiasesOfProjectionsAreBiases) {
  const File file = make(llama(1, false, true, true));
  const auto made = infer(file);
  ASSERT_TRUE(made.ok()) << made.error().str();
  Result<Network> network = Network::finalize(made->spec.grid, made->spec.input.after(1));
  ThreadPool pool(1);
  ASSERT_TRUE(load_inferred(*made, *file.tensors, *network, DType::f32, pool).ok());
  const Param& bias =
      network->params()[static_cast<size_t>(network->find_param("(0, 0, 1, 0)/1/k_bias"))];
  const std::vector<float>& want = file.of("model.layers.0.self_attn.k_proj.bias");
  EXPECT_EQ(std::vector<float>(bias.tensor.f32(), bias.tensor.f32() + 8), want);
}

// W2: "qkv_proj" is not a v_proj, "gate_up_proj" no up_proj.
TEST(Universal, FusedProjectionsAreSplit) {
  const File fused = make(llama(1, true, false, true));
  const auto made = infer(fused);
  ASSERT_TRUE(made.ok()) << made.error().str();
  const auto first = [&](const char* path) {
    for (const InferredParam& p : made->params) {
      if (p.path == path) return p.pieces[0].first;
    }
    return int64_t{-1};
  };
  EXPECT_EQ(first("(0, 0, 1, 0)/1/q"), 0);
  EXPECT_EQ(first("(0, 0, 1, 0)/1/k"), 16 * 16);
  EXPECT_EQ(first("(0, 0, 1, 0)/1/v"), (16 + 8) * 16);
  EXPECT_EQ(first("(0, 0, 2, 0)/1/gate"), 0);
  EXPECT_EQ(first("(0, 0, 2, 0)/1/up"), 64 * 16);
  EXPECT_EQ(run_inferred(fused, made, std::vector<int32_t>{1, 2}, Shape{2}).size(), 22u);
}

// W3: two tensors whose names end alike are not taken at random.
TEST(Universal, TwoTensorsForOneRoleAreRefused) {
  std::vector<Source> s = llama(1, false, false, false);
  s.push_back({"encoder.norm.weight", {16}});
  EXPECT_EQ(infer(make(s)).error().str(),
            "f: 'encoder.norm' and 'model.norm' stand for the same layer");
  s.back() = {"decoder.output.weight", {11, 16}};
  EXPECT_EQ(infer(make(s)).error().str(),
            "f: 'decoder.output' and 'lm_head' stand for the same layer");
}

// W4: q, k, v, o of equal shapes are identified by name, not by order.
TEST(Universal, SquareProjectionsKeepTheirNames) {
  const auto made = infer(make({{"attn.o_proj.weight", {8, 8}},
                                {"attn.k_proj.weight", {8, 8}},
                                {"attn.v_proj.weight", {8, 8}},
                                {"attn.q_proj.weight", {8, 8}}}));
  ASSERT_TRUE(made.ok()) << made.error().str();
  for (const InferredTensor& t : made->report)
    EXPECT_EQ(t.became.back(), t.tensor[5]) << t.tensor << " " << t.became;
}

TEST(Universal, AnLstmAddsItsBiases) {
  const File file = make({{"rnn.weight_ih_l0", {12, 2}},
                          {"rnn.weight_hh_l0", {12, 3}},
                          {"rnn.bias_ih_l0", {12}},
                          {"rnn.bias_hh_l0", {12}},
                          {"out.weight", {1, 3}},
                          {"out.bias", {1}}});
  const auto made = infer(file);
  const auto x = noise(4, 2);
  Doubles h(3), c(3), want;
  for (size_t t = 0; t < 2; ++t) {
    Doubles g = affine(file.of("rnn.weight_ih_l0").data(), file.of("rnn.bias_ih_l0").data(),
                       slice(x, 2 * t, 2), 12);
    const Doubles more =
        affine(file.of("rnn.weight_hh_l0").data(), file.of("rnn.bias_hh_l0").data(), h, 12);
    for (size_t i = 0; i < 12; ++i) g[i] += more[i];
    for (size_t i = 0; i < 3; ++i) {
      c[i] = logistic(g[3 + i]) * c[i] + logistic(g[i]) * std::tanh(g[6 + i]);
      h[i] = logistic(g[9 + i]) * std::tanh(c[i]);
    }
    want.push_back(affine(file.of("out.weight").data(), file.of("out.bias").data(), h, 1)[0]);
  }
  expect_near(run_inferred(file, made, x, Shape{2, 2}), want);
  EXPECT_TRUE(assumed(made, "the order is the only one in which shapes follow: rnn.l0, out"));
}

TEST(Universal, RecurrentLayersAreToldByTheirGates) {
  const struct {
    int64_t rows;
    LayerKind kind;
  } kRows[] = {{3, LayerKind::rnn}, {9, LayerKind::gru}, {12, LayerKind::lstm}};
  for (const auto& row : kRows) {
    const auto made = infer(make({{"weight_ih_l0", {row.rows, 2}},
                                  {"weight_hh_l0", {row.rows, 3}},
                                  {"bias_ih_l0", {row.rows}},
                                  {"bias_hh_l0", {row.rows}},
                                  {"weight_ih_l1", {row.rows, 3}},
                                  {"weight_hh_l1", {row.rows, 3}},
                                  {"bias_ih_l1", {row.rows}},
                                  {"bias_hh_l1", {row.rows}}}));
    ASSERT_TRUE(made.ok()) << made.error().str();
    ASSERT_EQ(made->spec.grid.size(), 2);
    for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(made->spec.grid.cell(i)->layer.def->kind, row.kind);
  }
}

TEST(Universal, ConvolutionsTakeTheSampleThatTheirDenseLayerNeeds) {
  const File file = make({{"0.weight", {4, 1, 3, 3}},
                          {"0.bias", {4}},
                          {"2.weight", {2, 4, 3, 3}},
                          {"2.bias", {2}},
                          {"5.weight", {3, 2 * 6 * 6}},
                          {"5.bias", {3}}});
  const auto made = infer(file);
  ASSERT_TRUE(made.ok()) << made.error().str();
  EXPECT_EQ(made->spec.input, (Shape{1, 10, 10}));
  EXPECT_TRUE(assumed(made, "stride 1, without padding, on samples of [1, 10, 10]"));
  InferOptions options;
  options.input = Shape{1, 6, 6};
  const auto padded = infer(file, options);
  ASSERT_TRUE(padded.ok()) << padded.error().str();
  EXPECT_TRUE(assumed(padded, "stride 1, padded by half their kernel"));
  EXPECT_EQ(run_inferred(file, padded, noise(36, 3), options.input).size(), 3u);
}

TEST(Universal, TransposedConvolutionsAreToldByTheirBias) {
  InferOptions options;
  options.input = Shape{3, 5};
  const auto made = infer(make({{"up.weight", {3, 2, 4}}, {"up.bias", {2}}}), options);
  ASSERT_TRUE(made.ok()) << made.error().str();
  EXPECT_EQ(made->spec.grid.cell(0)->layer.def->kind, LayerKind::conv_transposed1);
}

TEST(Universal, AttentionOfTorchIsTaken) {
  const auto made = infer(make({{"in_proj_weight", {24, 8}},
                                {"in_proj_bias", {24}},
                                {"out_proj.weight", {8, 8}},
                                {"out_proj.bias", {8}}}));
  ASSERT_TRUE(made.ok()) << made.error().str();
  EXPECT_TRUE(assumed(made, "every position sees every other, no rotation"));
  EXPECT_EQ(made->params.size(), 8u);
}

TEST(Universal, AMatrixThatOnlyFitsAsATableIsOne) {
  const auto made = infer(make({{"a.weight", {50, 4}}, {"b.weight", {2, 4}}, {"b.bias", {2}}}));
  ASSERT_TRUE(made.ok()) << made.error().str();
  EXPECT_EQ(made->spec.grid.cell(0)->layer.def->kind, LayerKind::embedding);
  EXPECT_EQ(made->report[0].confidence, Confidence::medium);
}

TEST(Universal, OrderComesFromShapesWhereNamesSayAnother) {
  const auto made = infer(make({{"decode.weight", {2, 5}},
                                {"decode.bias", {2}},
                                {"encode.weight", {5, 3}},
                                {"encode.bias", {5}}}));
  ASSERT_TRUE(made.ok()) << made.error().str();
  EXPECT_EQ(made->spec.input, Shape{3});
  EXPECT_TRUE(assumed(made, "the order is the only one in which shapes follow: encode, decode"));
  EXPECT_EQ(made->report[0].confidence, Confidence::medium);
}

// In the original the first tensor of a file counts as none.
TEST(Universal, ANormMayComeFirst) {
  const File file = make({{"0.weight", {3}}, {"1.weight", {2, 3}}, {"1.bias", {2}}});
  const auto made = infer(file);
  ASSERT_TRUE(made.ok()) << made.error().str();
  EXPECT_EQ(made->spec.grid.cell(0)->layer.def->kind, LayerKind::rms_norm);
  EXPECT_EQ(made->params.size(), 3u);
  EXPECT_EQ(run_inferred(file, made, noise(3, 5), Shape{3}).size(), 2u);
}

TEST(Universal, HalfWeightsStayHalf) {
  const auto made = infer(make({{"0.weight", {2, 3}, SafeDType::bf16}, {"0.bias", {2}}}));
  ASSERT_TRUE(made.ok()) << made.error().str();
  EXPECT_EQ(made->spec.grid.cell(0)->dtype, DType::bf16);
}

TEST(Universal, OurOwnFilesHoldTheirNetwork) {
  const NetworkSpec spec = *build_cnn({.input = Shape{1, 8, 8}, .filters = {2}, .out = 3});
  const Network network = *Network::finalize(spec.grid, spec.input.after(1));
  std::vector<Source> s;
  for (const Param& p : network.params()) {
    std::vector<int64_t> shape;
    for (int i = 0; i < p.spec.shape.rank(); ++i) shape.push_back(p.spec.shape[i]);
    s.push_back({p.path, shape});
  }
  s.push_back({"input/shift", {1}});
  const File file = make(s, {{"loom", "weights 1"}, {"network", write_network(spec)}});
  const auto made = infer(file);
  ASSERT_TRUE(made.ok()) << made.error().str();
  EXPECT_EQ(write_network(made->spec), write_network(spec));
  EXPECT_TRUE(assumed(made, "input/shift"));
  EXPECT_EQ(run_inferred(file, made, noise(64, 4), spec.input).size(), 3u);
  s.erase(s.begin());
  EXPECT_EQ(infer(make(s, {{"loom", "weights 1"}, {"network", write_network(spec)}})).error().str(),
            "f: has no tensor '(0, 0, 0, 0)/weight'");
}

constexpr std::string_view kDescribe =
    "; describe the network in JSON, and give this file with --weights";

TEST(Universal, WhatHasNoPlaceIsRefusedByName) {
  const struct {
    std::vector<Source> sources;
    const char* message;
  } kRows[] = {
      {{{"0.weight", {2, 3}},
        {"1.weight", {2}},
        {"1.bias", {2}},
        {"1.running_mean", {2}},
        {"1.running_var", {2}},
        {"1.num_batches_tracked", {}, SafeDType::i64}},
       "5 tensors have no place in a network of ours: 1.bias, 1.num_batches_tracked, "
       "1.running_mean, 1.running_var, 1.weight"},
      {{{"0.weight", {2, 3}}, {"0.bias", {5}}},
       "2 tensors have no place in a network of ours: 0.bias, 0.weight"},
      {{{"0.weight", {2, 3}, SafeDType::i8}},
       "1 tensor has no place in a network of ours: 0.weight"},
      {{{"wpe.gain", {4, 4}}}, "1 tensor has no place in a network of ours: wpe.gain"},
      {{{"0.weight", {0, 3}}}, "1 tensor has no place in a network of ours: 0.weight"},
      {{{"l.weight_ih_l0", {12, 2}}, {"l.weight_hh_l0", {12, 3}}},
       "2 tensors have no place in a network of ours: l.weight_hh_l0, l.weight_ih_l0"},
      {{{"a.weight", {2, 3}}, {"b.weight", {4, 5}}},
       "'b' takes 5 values, but 'a' before it gives 2, and no other order fits; describe the "
       "network in JSON"},
      {{{"a.weight", {3, 3}}, {"b.weight", {5, 3}}, {"c.weight", {3, 3}}},
       "'c' takes 3 values, but 'b' before it gives 5, and more than one other order fits; "
       "describe the network in JSON"},
      {{{"0.weight", {2, 3, 3}}},
       "weights do not tell how large the input is; give the shape of one sample "
       "(--input-shape C,H,W)"},
      {{{"x.layers.0.mlp.gate_proj.weight", {4, 2}},
        {"x.layers.0.mlp.up_proj.weight", {4, 2}},
        {"x.layers.0.mlp.down_proj.weight", {2, 4}}},
       "block 'x.layers.0' has no norm before x.layers.0.mlp"},
      {{}, "no tensor is known as a weight"},
  };
  for (const auto& row : kRows) {
    const auto made = infer(make(row.sources));
    ASSERT_FALSE(made.ok()) << row.message;
    const bool names = std::string_view(row.message).find("no place") != std::string_view::npos;
    EXPECT_EQ(made.error().str(), cat("f: ", row.message, names ? kDescribe : ""));
    EXPECT_EQ(made.error().code, Code::unsupported);
  }
}

// Issue 37, line 11: a guess that changes numbers is an error, and names the option that settles
// it.
TEST(Universal, AGuessThatChangesNumbersIsAnErrorWithTheOptionThatSettlesIt) {
  const struct {
    std::vector<Source> sources;
    const char* message;
  } kRows[] = {
      {{{"0.weight", {16, 4}}, {"0.bias", {16}}, {"2.weight", {3, 16}}, {"2.bias", {3}}},
       "the activation after '0' (--activation NAME, as relu, tanh, or linear for none)"},
      {{{"fc1.weight", {5, 4}}, {"fc2.weight", {5, 5}}, {"out.weight", {3, 5}}},
       "the activation after 'fc1', the activation after 'fc2' (--activation NAME, as relu, tanh, "
       "or linear for none)"},
      {{{"0.weight", {5, 4}}, {"1.weight", {5}}, {"1.bias", {5}}, {"3.weight", {3, 5}}},
       "the activation after '1' (--activation NAME, as relu, tanh, or linear for none)"},
      {{{"0.weight", {4, 1, 3, 3}}, {"1.weight", {3, 144}}, {"1.bias", {3}}},
       "strides and padding of convolutions (--stride N --padding N); the size of the input "
       "(--input-shape C,H,W)"},
      {{{"norm.weight", {4}}}, "the kind of norm and the epsilon of 'norm'"},
      {{{"rnn.weight_ih_l0", {3, 2}},
        {"rnn.weight_hh_l0", {3, 3}},
        {"rnn.bias_ih_l0", {3}},
        {"rnn.bias_hh_l0", {3}}},
       "the function of 'rnn.l0' (tanh or relu)"},
      {{{"in_proj_weight", {24, 8}}, {"out_proj.weight", {8, 8}}},
       "the mask of ''; the heads of '' (--attention-heads N)"},
      {{{"a.weight", {4, 4}}, {"b.weight", {4, 4}}},
       "the order of layers, which is that of their names; the activation after 'a' (--activation "
       "NAME, as relu, tanh, or linear for none)"},
  };
  for (const auto& row : kRows) {
    const auto made = open_strict(make(row.sources));
    ASSERT_FALSE(made.ok()) << row.message;
    EXPECT_EQ(made.error().code, Code::unsupported);
    EXPECT_EQ(made.error().str(),
              cat("f: weights do not tell ", row.message,
                  "; give the options, here or to loom convert, or --assume to take the usual "
                  "choices"));
    EXPECT_TRUE(infer(make(row.sources)).ok());
  }
}

TEST(Universal, TheActivationThatIsAskedForRuns) {
  const File file =
      make({{"0.weight", {16, 4}}, {"0.bias", {16}}, {"2.weight", {3, 16}}, {"2.bias", {3}}});
  InferOptions options;
  options.activation = "tanh";
  const auto made = open_strict(file, options);
  const auto x = noise(4, 9);
  Doubles h = affine(file.of("0.weight").data(), file.of("0.bias").data(), slice(x, 0, 4), 16);
  for (double& v : h) v = std::tanh(v);
  h = affine(file.of("2.weight").data(), file.of("2.bias").data(), h, 3);
  expect_near(run_inferred(file, made, x, Shape{4}), h);
  options.activation = "sinus";
  EXPECT_EQ(open_strict(file, options).error().code, Code::invalid_argument);
}

// Sequential(Linear, LayerNorm, Tanh, Linear): the number that is left out is after the norm.
TEST(Universal, AnActivationAfterANormRunsThere) {
  const File file = make({{"0.weight", {5, 3}},
                          {"1.weight", {5}},
                          {"1.bias", {5}},
                          {"3.weight", {2, 5}},
                          {"3.bias", {2}}});
  InferOptions options;
  options.activation = "tanh";
  const auto made = open_strict(file, options);
  ASSERT_TRUE(made.ok()) << made.error().str();
  ASSERT_EQ(made->spec.grid.size(), 4);
  EXPECT_EQ(made->spec.grid.cell(2)->layer.def->kind, LayerKind::unary);
  EXPECT_EQ(run_inferred(file, made, noise(3, 5), Shape{3}).size(), 2u);
}

TEST(Universal, ConvolutionsTakeTheWindowThatIsAskedFor) {
  const File file = make({{"0.weight", {4, 1, 3, 3}},
                          {"1.weight", {2, 4, 3, 3}},
                          {"2.weight", {3, 2 * 3 * 3}},
                          {"2.bias", {3}}});
  InferOptions options;
  options.input = Shape{1, 10, 10};
  options.stride = {2, 1};
  options.padding = {1, 0};
  const auto made = open_strict(file, options);
  ASSERT_TRUE(made.ok()) << made.error().str();
  const LayerConfig& first = made->spec.grid.cell(0)->layer;
  EXPECT_EQ(first.list(field_index(first, "stride"))[0], 2);
  options.stride = {1};
  EXPECT_EQ(open_strict(file, options).error().code, Code::unsupported);
  options.stride = {1, 1, 1};
  EXPECT_EQ(open_strict(file, options).error().str(),
            "f: --stride and --padding take 1 or 2 values");
}

TEST(Universal, EveryTensorOfABlockMustBeKnown) {
  std::vector<Source> s = llama(1, false, false, true);
  s.push_back({"model.layers.0.pre_feedforward_layernorm.weight", {16}});
  EXPECT_EQ(infer(make(s)).error().str(),
            "f: what 'model.layers.0.pre_feedforward_layernorm' does in its block is not known");
  s.back() = {"transformer.wpe.weight", {32, 16}};
  EXPECT_EQ(infer(make(s)).error().str(), "f: the position of 'transformer.wpe' is not known");
}

}  // namespace
}  // namespace loom::core

// ONNX import and export. Networks of every kind that are written and read back compute the same.
// Files exported by PyTorch compute PyTorch's results (golden/, made by
// tools/goldens/onnx_models.py). Unsupported networks are refused with the location.
// bench/onnx_peer.py opens the files with ONNX Runtime.
#include <algorithm>
#include <filesystem>

#include "base/threads/thread_pool.hpp"
#include "formats/onnx_network_testing.hpp"
#include "io/files/file.hpp"
#include "io/weights/safetensors.hpp"
#include "onnx/file/model.hpp"
#include "ops/activation.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

constexpr int64_t kBatch = 3;

// A network in JSON, its parameters random.
Network network_of(const std::string& json, ThreadPool& pool, DType dtype = DType::f32) {
  const auto spec = parse_network(json, "net");
  EXPECT_TRUE(spec.ok()) << spec.error().str();
  auto network = Network::finalize(spec->grid, spec->input.after(kBatch));
  EXPECT_TRUE(network.ok()) << network.error().str();
  fill_random(*network, pool, dtype);
  return std::move(*network);
}

Shape sample_of(const Network& network) {
  Shape sample;
  for (int i = network.input().rank(); i-- > 1;) sample = sample.after(network.input()[i]);
  return sample;
}

std::string layers(const std::string& input, const std::string& list) {
  return cat("{\"loom\": 1, \"input\": ", input, ", \"layers\": [", list, "]}");
}

void expect_same_after_a_round_trip(const Network& network, ThreadPool& pool,
                                    const OnnxExportOptions& options = {}) {
  const auto model = export_onnx(network, sample_of(network), options);
  ASSERT_TRUE(model.ok()) << model.error().str();
  const auto bytes = onnx_bytes(*model);
  ASSERT_TRUE(bytes.ok());
  const auto parsed = parse_onnx(std::as_bytes(std::span(*bytes)), "f");
  ASSERT_TRUE(parsed.ok()) << parsed.error().str();
  EXPECT_EQ(*onnx_bytes(*parsed), *bytes);
  const auto imported = import_onnx(*parsed, "f");
  ASSERT_TRUE(imported.ok()) << imported.error().str();
  EXPECT_EQ(imported->input, model->graph.inputs[0].name);
  EXPECT_EQ(imported->output, model->graph.outputs[0].name);
  auto again = Network::finalize(imported->network.grid, imported->network.input.after(kBatch));
  ASSERT_TRUE(again.ok()) << again.error().str();
  const Status filled = imported->fill(*again, pool, DType::f32);
  ASSERT_TRUE(filled.ok()) << filled.error().str();
  const std::vector<std::byte> x = random_input(network);
  expect_close(run_network(*again, pool, x), run_network(network, pool, x), 1e-5f);
}

struct RoundTrip {
  const char *name, *input, *layers;
};

const RoundTrip kRoundTrips[] = {
    {"Dense", "[5]",
     R"({"type": "Dense", "in": 5, "out": 8, "activation": "gelu_tanh"},
        {"type": "Dense", "in": 8, "out": 3, "bias": false})"},
    {"DenseRows", "[3, 4]", R"({"type": "Dense", "in": 4, "out": 6, "activation": "mish"})"},
    {"DenseFlat", "[3, 4]", R"({"type": "Dense", "in": 12, "out": 6})"},
    {"Cnn1", "[4, 9]",
     R"({"type": "CNN1", "channels": 4, "filters": 6, "groups": 2, "stride": 2, "padding": 1,
         "activation": "relu"}, {"type": "Dense", "in": 30, "out": 2})"},
    {"Cnn2", "[4, 9, 7]",
     R"({"type": "CNN2", "channels": 4, "filters": 6, "kernel": [3, 2], "dilation": [1, 2],
         "activation": "silu"})"},
    {"Cnn3", "[2, 4, 3, 5]", R"({"type": "CNN3", "channels": 2, "filters": 3, "kernel": 2})"},
    {"ConvTransposed", "[4, 3, 4]",
     R"({"type": "ConvTransposed2D", "channels": 4, "filters": 6, "groups": 2, "stride": 2,
         "padding": 1, "output_padding": 1, "activation": "tanh"})"},
    {"LayerNorm", "[4, 7]", R"({"type": "LayerNorm", "width": 7, "eps": 0.001})"},
    {"RmsNorm", "[4, 7]", R"({"type": "RMSNorm", "width": 7, "eps": 0.01})"},
    {"BatchNorm", "[3, 6]",
     R"({"type": "CNN1", "channels": 3, "filters": 4}, {"type": "BatchNorm", "channels": 4},
        {"type": "Dropout"}, {"type": "Dense", "in": 16, "out": 6},
        {"type": "BatchNorm", "channels": 6, "affine": false, "eps": 0.01})"},
    {"Rnn", "[6, 5]", R"({"type": "RNN", "in": 5, "hidden": 4, "activation": "leaky_relu"})"},
    {"Lstm", "[6, 5]",
     R"({"type": "LSTM", "in": 5, "hidden": 4},
        {"type": "LSTM", "in": 4, "hidden": 3, "return_sequence": false})"},
    {"Gru", "[6, 5]",
     R"({"type": "GRU", "in": 5, "hidden": 4},
        {"type": "GRU", "in": 4, "hidden": 3, "return_sequence": false})"},
    {"Embedding", "[6]", R"({"type": "Embedding", "vocab": 9, "width": 4})"},
    {"EmbeddingPlaces", "[6]",
     R"({"type": "Embedding", "vocab": 9, "width": 4, "scale": 2.5, "positions": 8})"},
    {"Attention", "[6, 8]",
     R"({"type": "MultiHeadAttention", "width": 8, "heads": 4, "kv_heads": 2, "head_dim": 3,
         "bias": true, "out_bias": true, "rope": false})"},
    {"AttentionWindow", "[6, 8]",
     R"({"type": "MultiHeadAttention", "width": 8, "heads": 2, "kv_heads": 2, "head_dim": 4,
         "rope": false, "causal": false, "window": 2})"},
    {"SwiGlu", "[4, 6]",
     R"({"type": "SwiGLU", "width": 6, "inner": 9, "bias": true, "activation": "gelu_erf"})"},
    {"Softmax", "[6]",
     R"({"type": "Softmax", "temperature": 0.5},
        {"type": "Softmax", "variant": "grid", "rows": 2, "cols": 3})"},
    {"Residual", "[5]",
     R"({"type": "Dense", "in": 5, "out": 5, "activation": "relu"}, {"type": "Residual"},
        {"type": "Residual", "children": [{"type": "RMSNorm", "width": 5},
          {"type": "Dense", "in": 5, "out": 9, "activation": "elu"},
          {"type": "Residual", "children": [{"type": "Dense", "in": 9, "out": 9}]},
          {"type": "Dense", "in": 9, "out": 5}]})"},
    {"Parallel", "[5]",
     R"({"type": "Parallel", "children": [
          {"type": "Dense", "in": 5, "out": 4, "activation": "sigmoid"},
          {"type": "Sequential", "children": [{"type": "Dense", "in": 5, "out": 3},
                                              {"type": "Dense", "in": 3, "out": 2}]}]},
        {"type": "Parallel", "combine": "avg", "children": [
          {"type": "Dense", "in": 6, "out": 3}, {"type": "Dense", "in": 6, "out": 3},
          {"type": "Dense", "in": 6, "out": 3, "activation": "softplus"}]})"},
    {"GroupNorm", "[6, 5]",
     R"({"type": "GroupNorm", "channels": 6, "groups": 2}, {"type": "GroupNorm", "channels": 6,
         "groups": 3, "affine": false, "eps": 0.01}, {"type": "InstanceNorm", "channels": 6},
        {"type": "InstanceNorm", "channels": 6, "affine": true})"},
    {"MaxPool", "[3, 7, 9]",
     R"({"type": "Pool", "kernel": [2, 3], "stride": 2, "padding": [0, 1, 1, 1], "ceil": true},
        {"type": "Pool", "kernel": 2, "dilation": 2, "stride": 1})"},
    {"AveragePool", "[3, 11]",
     R"({"type": "Pool", "kind": "average", "kernel": 3, "padding": 1, "include_padding": true},
        {"type": "Pool", "kind": "average", "kernel": 2, "stride": 3, "ceil": true})"},
    {"GlobalPool", "[3, 4, 5]",
     R"({"type": "Parallel", "children": [{"type": "Pool", "output": 1},
        {"type": "Pool", "kind": "average", "output": 1}]})"},
    {"AdaptivePool", "[3, 7, 5]",
     R"({"type": "Pool", "kind": "average", "output": [3, 4]},
        {"type": "Pool", "output": [2, 4]})"},
    {"LpPool", "[3, 7, 5]", R"({"type": "Pool", "kind": "lp", "kernel": [3, 2], "stride": 1})"},
    {"Views", "[3, 4, 5]",
     R"({"type": "Permute", "axes": [2, 0, 1]}, {"type": "Reshape", "shape": [6, -1]},
        {"type": "Flatten"})"},
    {"Pads", "[3, 4, 5]",
     R"({"type": "Pad", "before": [1, 2], "after": [0, 1], "value": 0.5},
        {"type": "Pad", "before": [2, 1], "after": [2, 0], "mode": "reflect"},
        {"type": "Pad", "before": [1], "after": [2], "mode": "edge"},
        {"type": "Pad", "before": [3], "after": [1], "mode": "wrap"})"},
    {"Upsample", "[2, 3, 5]",
     R"({"type": "Upsample", "factor": [2, 3]}, {"type": "Upsample", "output": [9, 7]})"},
    {"UpsampleLinear", "[2, 3, 5]",
     R"({"type": "Upsample", "mode": "linear", "factor": 2},
        {"type": "Upsample", "mode": "linear", "output": [9, 7], "align_corners": true})"},
    {"PixelShuffle", "[8, 3, 3]",
     R"({"type": "PixelShuffle"}, {"type": "PixelShuffle", "factor": 3, "inverse": true})"},
    {"PixelShuffle1", "[6, 4]",
     R"({"type": "PixelShuffle", "factor": 3},
        {"type": "PixelShuffle", "factor": 2, "inverse": true})"},
    {"Unary", "[5]",
     R"({"type": "Unary", "function": "exp"}, {"type": "Unary", "function": "reciprocal"},
        {"type": "Unary", "function": "abs"}, {"type": "Unary", "function": "sqrt"},
        {"type": "Unary", "function": "log"}, {"type": "Unary", "function": "neg"},
        {"type": "Unary", "function": "square"}, {"type": "Unary", "function": "tanh"})"},
    {"Reduce", "[3, 4, 5]",
     R"({"type": "Parallel", "children": [
          {"type": "Reduce", "function": "mean", "axes": [2], "keep": true},
          {"type": "Reduce", "function": "max", "axes": [1, 2]},
          {"type": "Reduce", "function": "min"}, {"type": "Reduce", "function": "l1", "axes": [-1]},
          {"type": "Reduce", "function": "l2", "axes": [1]},
          {"type": "Reduce", "function": "sum_squares"}]})"},
    {"Graph", "[3, 4]",
     R"({"type": "Graph", "nodes": [
          {"name": "turned", "type": "Transpose", "axes": [0, -1, 1]},
          {"name": "part", "type": "Slice", "from": ["input"], "starts": [0, -1], "ends": [3, -4],
           "axes": [1, 2], "steps": [2, -2]},
          {"name": "table", "type": "Constant", "from": [], "shape": [1, 2, 2]},
          {"name": "wide", "type": "Expand", "from": ["table", "input"], "shape": [1, 2, 2]},
          {"name": "product", "type": "MatMul", "from": ["part", "wide"], "transpose_b": true},
          {"name": "flat", "type": "View", "from": ["product"], "shape": [0, -1]},
          {"name": "sum", "type": "Reduce", "from": ["turned"], "axes": [1, 2]},
          {"name": "column", "type": "View", "from": ["sum"], "shape": [-1, 1]},
          {"name": "biased", "type": "Binary", "from": ["flat", "column"], "function": "sub"},
          {"name": "inner", "type": "Graph", "from": ["biased"], "nodes": [
             {"type": "Dense", "in": 4, "out": 3}, {"type": "Unary", "function": "silu"}]},
          {"name": "joined", "type": "Concat", "from": ["inner", "biased", "flat"], "axis": 1}],
        "outputs": ["joined"]})"},
};

class OnnxRoundTrip : public ::testing::TestWithParam<RoundTrip> {};

TEST_P(OnnxRoundTrip, ComputesTheSame) {
  ThreadPool pool(2, true);
  const Network network = network_of(layers(GetParam().input, GetParam().layers), pool);
  for (const int opset : {20, 23}) {
    OnnxExportOptions options;
    options.opset = opset;
    expect_same_after_a_round_trip(network, pool, options);
  }
}
INSTANTIATE_TEST_SUITE_P(Kinds, OnnxRoundTrip, ::testing::ValuesIn(kRoundTrips),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(Onnx, ReadsActivationsBackAsTheyWere) {
  ThreadPool pool(1);
  for (int i = 0; i < kActivations; ++i) {
    const std::string name(activation_name(static_cast<Activation>(i)));
    const Network network = network_of(
        layers("[4]", cat(R"({"type": "Dense", "in": 4, "out": 4, "activation": ")", name, "\"}")),
        pool);
    const auto model = export_onnx(network, Shape{4});
    ASSERT_TRUE(model.ok()) << name;
    const auto imported = import_onnx(*model, "f");
    ASSERT_TRUE(imported.ok()) << imported.error().str();
    ASSERT_EQ(imported->network.grid.size(), 1);
    EXPECT_NE(write_network(imported->network).find(cat("\"activation\":\"", name, "\"")),
              std::string::npos)
        << write_network(imported->network);
  }
}

TEST(Onnx, KeepsTheShapeOfATransformer) {
  ThreadPool pool(1);
  TransformerOptions o;
  o.vocab = 11;
  o.width = 8;
  o.heads = 2;
  o.time = 5;
  const auto spec = build_transformer(o);
  ASSERT_TRUE(spec.ok());
  std::string text = write_network(*spec);
  for (size_t at = text.find("\"rope\":true"); at != std::string::npos;
       at = text.find("\"rope\":true"))
    text.replace(at, 11, "\"rope\":false");
  const Network network = network_of(text, pool);
  const auto imported = import_onnx(*export_onnx(network, Shape{5}), "f");
  ASSERT_TRUE(imported.ok()) << imported.error().str();
  EXPECT_EQ(imported->network.grid.size(), spec->grid.size());
  EXPECT_EQ(imported->params.size(), network.params().size());
  for (const ImportedParam& p : imported->params) {
    EXPECT_GE(network.find_param(p.path), 0) << p.path;
  }
  expect_same_after_a_round_trip(network, pool);
}

TEST(Onnx, WritesWhatPackedWeightsStandFor) {
  ThreadPool pool(1);
  const Network network =
      network_of(layers("[40]", R"({"type": "Dense", "in": 40, "out": 20})"), pool, DType::i8);
  expect_same_after_a_round_trip(network, pool);
}

TEST(Onnx, WritesLinksAndSharedWeights) {
  ThreadPool pool(1);
  const Network network = network_of(R"({"loom": 1, "grid": [1, 1, 4, 1], "input": [5], "cells": [
    {"at": [0,0,0,0], "type": "Dense", "in": 5, "out": 5, "activation": "tanh"},
    {"at": [0,0,1,0], "type": "Dense", "in": 5, "out": 5, "shared_with": [0,0,0,0]},
    {"at": [0,0,2,0], "type": "Residual", "link": {"from": [0,0,0,0]}},
    {"at": [0,0,3,0], "type": "Dense", "in": 5, "out": 2, "link": {"from": [0,0,1,0]}}]})",
                                     pool);
  expect_same_after_a_round_trip(network, pool);
}

// Several inputs and outputs keep their names; a constant that is an output, and one value under
// two names, are copied.
TEST(Onnx, WritesTheInputsAndOutputsOfAGraph) {
  ThreadPool pool(1);
  const Network network = network_of(layers("[3]", R"({"type": "Graph", "inputs": ["x"], "nodes": [
          {"name": "state", "type": "Input", "from": ["x"], "input": "state", "shape": [3]},
          {"name": "factors", "type": "Input", "from": ["x"], "input": "factors", "shape": [3],
           "batched": false},
          {"name": "sum", "type": "Binary", "from": ["x", "state"]},
          {"name": "next", "type": "Binary", "from": ["sum", "factors"], "function": "mul"},
          {"name": "fixed", "type": "Constant", "from": [], "shape": [2, 2]}],
        "outputs": ["next", "sum", "fixed", "sum"]})"),
                                     pool);
  const auto model = export_onnx(network, Shape{3});
  ASSERT_TRUE(model.ok()) << model.error().str();
  const auto report = [](const std::vector<OnnxValue>& values) {
    std::string text;
    for (const OnnxValue& v : values) {
      text += cat(" ", v.name);
      for (const OnnxDim& d : v.shape)
        text += cat(",", d.symbol.empty() ? cat(d.extent) : d.symbol);
    }
    return text;
  };
  EXPECT_EQ(report(model->graph.inputs), " x,batch,3 state,batch,3 factors,3");
  EXPECT_EQ(report(model->graph.outputs), " next,batch,3 sum,batch,3 fixed,2,2 sum_,batch,3");
  const auto imported = import_onnx(*model, "f");
  ASSERT_TRUE(imported.ok()) << imported.error().str();
  auto again = Network::finalize(imported->network.grid, imported->network.input.after(kBatch));
  ASSERT_TRUE(again.ok()) << again.error().str();
  EXPECT_EQ(again->extra_inputs().size(), 2U);
  EXPECT_EQ(again->more_outputs().size(), 2U)
      << "a constant is not an output of an imported network";
}

TEST(Onnx, WritesANetworkOfOneSampleForOne) {
  ThreadPool pool(1);
  const auto spec = parse_network(
      layers("[6]", R"({"type": "Graph", "nodes": [{"type": "View", "shape": [1, 2, 3]}]})"),
      "net");
  ASSERT_TRUE(spec.ok()) << spec.error().str();
  const auto network = Network::finalize(spec->grid, spec->input.after(1));
  ASSERT_TRUE(network.ok()) << network.error().str();
  const auto model = export_onnx(*network, Shape{6});
  ASSERT_TRUE(model.ok()) << model.error().str();
  EXPECT_EQ(model->graph.inputs[0].shape[0].extent, 1);
}

TEST(Onnx, LeavesOutWhatIsDisabled) {
  ThreadPool pool(1);
  const Network network =
      network_of(layers("[5]", R"({"type": "Dense", "in": 5, "out": 5, "disabled": true},
                       {"type": "Dense", "in": 5, "out": 2})"),
                 pool);
  expect_same_after_a_round_trip(network, pool);
}

TEST(Onnx, GivesEqualBytesForEqualNetworks) {
  ThreadPool pool(1);
  const std::string json = layers("[6, 5]", R"({"type": "LSTM", "in": 5, "hidden": 4})");
  const Network a = network_of(json, pool), b = network_of(json, pool);
  EXPECT_EQ(*onnx_bytes(*export_onnx(a, Shape{6, 5})), *onnx_bytes(*export_onnx(b, Shape{6, 5})));
}

TEST(Onnx, RefusesToWriteWhatHasNoForm) {
  struct Row {
    const char *input, *layers, *error;
  };
  const Row rows[] = {
      {"[5]", R"({"type": "Softmax", "variant": "sparse"})",
       "cell (0, 0, 0, 0) (Softmax): the variant sparse has no form in ONNX"},
      {"[5]", R"({"type": "Dense", "in": 5, "out": 5}, {"type": "Residual", "children": [
                  {"type": "Softmax", "variant": "entmax"}]})",
       "cell (0, 0, 1, 0)/0 (Softmax): entmax with alpha above 1 has no form in ONNX"},
      {"[5]", R"({"type": "Softmax", "variant": "gumbel", "hard": true})",
       "cell (0, 0, 0, 0) (Softmax): gumbel with noise or hard choices has no form in ONNX"},
      {"[6, 5]", R"({"type": "RNN", "in": 5, "hidden": 3, "activation": "gelu_erf"})",
       "cell (0, 0, 0, 0) (RNN): an RNN with activation gelu_erf has no form in ONNX"},
      {"[5]", R"({"type": "Parallel", "combine": "filter", "top_k": 1, "children": [
                  {"type": "Dense", "in": 5, "out": 5}, {"type": "Dense", "in": 5, "out": 1}]})",
       "cell (0, 0, 0, 0) (Parallel): top_k has no operator that computes it; export with top_k 0"},
      {"[6]", R"({"type": "Embedding", "vocab": 9, "width": 4, "positions": 5})",
       "cell (0, 0, 0, 0) (Embedding): texts of 6 ids, but it has learned 5 positions"},
  };
  ThreadPool pool(1);
  for (const Row& row : rows) {
    const Network network = network_of(layers(row.input, row.layers), pool);
    const auto model = export_onnx(network, sample_of(network));
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.error().str(), row.error);
  }
  const auto spec = parse_network(layers("[5]", R"({"type": "Dense", "in": 5, "out": 5})"), "net");
  const auto empty = Network::finalize(spec->grid, spec->input.after(1));
  EXPECT_EQ(export_onnx(*empty, Shape{5}).error().str(),
            "parameter (0, 0, 0, 0)/weight was never loaded");
  OnnxExportOptions old;
  old.opset = 13;
  EXPECT_EQ(export_onnx(*empty, Shape{5}, old).error().str(),
            "opset 13 is not written; use 20 to 23");
}

// With the normalization as layers, and as a separate normalization.
TEST(Onnx, NormalizesInputsInFront) {
  ThreadPool pool(1);
  const Network network = network_of(
      layers("[2, 3]", R"({"type": "Dense", "in": 6, "out": 4, "activation": "tanh"})"), pool);
  OnnxExportOptions options;
  options.normalization = {{10, 20, 30, 40, 50, 60}, {0.5f, 0.25f, 2, 1, 0.1f, 3}};
  options.metadata = {{"key", "value"}};
  const auto model = export_onnx(network, Shape{2, 3}, options);
  ASSERT_TRUE(model.ok()) << model.error().str();
  const auto apart = import_onnx(*model, "f", {.take_normalization = true});
  ASSERT_TRUE(apart.ok()) << apart.error().str();
  EXPECT_EQ(apart->normalization, options.normalization);
  EXPECT_EQ(apart->metadata, options.metadata);
  EXPECT_EQ(apart->network.grid.size(), 1);
  // A constant per value of two axes is two nodes of a graph; per value of one it is a layer.
  const auto graph = import_onnx(*model, "f");
  ASSERT_TRUE(graph.ok()) << graph.error().str();
  EXPECT_EQ(graph->network.grid.cell(0)->layer.def->name, "Graph");
  const Network flat = network_of(
      layers("[6]", R"({"type": "Dense", "in": 6, "out": 4, "activation": "tanh"})"), pool);
  const auto inside = import_onnx(*export_onnx(flat, Shape{6}, options), "f");
  ASSERT_TRUE(inside.ok()) << inside.error().str();
  EXPECT_TRUE(inside->normalization.empty());
  auto whole = Network::finalize(inside->network.grid, inside->network.input.after(1));
  ASSERT_TRUE(inside->fill(*whole, pool, DType::f32).ok());
  const std::vector<float> raw = {12, 24, 31, 38, 55, 60};
  std::vector<float> normalized;
  for (size_t i = 0; i < raw.size(); ++i)
    normalized.push_back((raw[i] - options.normalization.shift[i]) *
                         options.normalization.scale[i]);
  const auto one = [&](const Network& n, const std::vector<float>& x) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(x));
    std::vector<std::byte> three;
    for (int64_t i = 0; i < n.input()[0]; ++i)
      three.insert(three.end(), bytes.begin(), bytes.end());
    std::vector<float> y = run_network(n, pool, std::move(three));
    y.resize(4);
    return y;
  };
  expect_close(one(*whole, raw), one(flat, normalized), 1e-5f);
  options.normalization.shift.pop_back();
  EXPECT_EQ(export_onnx(network, Shape{2, 3}, options).error().str(),
            "a normalization of 5 values for an input of 6");
}

TEST(Onnx, SaysWhichOutputsItLeavesOut) {
  ThreadPool pool(1);
  const Network network =
      network_of(layers("[4]", R"({"type": "Dense", "in": 4, "out": 4})"), pool);
  OnnxModel model = *export_onnx(network, Shape{4});
  EXPECT_TRUE(import_onnx(model, "f")->notes.empty());
  model.graph.outputs.push_back({"input", OnnxType::f32, false, {}});
  EXPECT_TRUE(import_onnx(model, "f")->notes.empty()) << "what is given can be handed on";
  const std::string weights = model.graph.initializers[0].name;
  model.graph.outputs.push_back({weights, OnnxType::f32, false, {}});
  EXPECT_EQ(import_onnx(model, "f")->notes,
            std::vector<std::string>{"output '" + weights + "' is left out: no layer computes it"});
}

// The mean of every second value: a dilated pool is a dilated convolution.
TEST(Onnx, ReadsADilatedPool) {
  ThreadPool pool(1);
  OnnxModel m;
  m.ir_version = 9;
  m.opsets = {{"", 20}};
  OnnxValue x{"x", OnnxType::f32, true, {{-1, "b"}, {1, ""}, {6, ""}}};
  m.graph.inputs = {x};
  m.graph.outputs = {{"y", OnnxType::f32, false, {}}};
  OnnxNode n;
  n.op = "AveragePool";
  n.inputs = {"x"};
  n.outputs = {"y"};
  n.attributes = {onnx_attribute("kernel_shape", std::vector<int64_t>{2}),
                  onnx_attribute("dilations", std::vector<int64_t>{2})};
  m.graph.nodes = {n};
  const auto imported = import_onnx(m, "f");
  ASSERT_TRUE(imported.ok()) << imported.error().str();
  auto network = Network::finalize(imported->network.grid, imported->network.input.after(1));
  ASSERT_TRUE(imported->fill(*network, pool, DType::f32).ok());
  const std::vector<float> in = {1, 2, 5, 4, 9, 0};
  const std::span<const std::byte> bytes = std::as_bytes(std::span(in));
  EXPECT_EQ(run_network(*network, pool, {bytes.begin(), bytes.end()}),
            (std::vector<float>{3, 3, 7, 2}));
}

class OnnxGolden : public ::testing::TestWithParam<std::string> {};

std::string golden(const std::string& file) {
  return cat(loom_test::source_path("tests/formats/golden/"), file);
}

std::vector<std::string> golden_names() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(golden(""))) {
    if (entry.path().extension() == ".onnx") out.push_back(entry.path().stem().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST_P(OnnxGolden, ComputesWhatPyTorchComputed) {
  ThreadPool pool(2, true);
  const auto imported = load_onnx(golden(GetParam() + ".onnx"));
  ASSERT_TRUE(imported.ok()) << imported.error().str();
  const auto tensors = SafeTensors::open(golden("onnx.safetensors"));
  ASSERT_TRUE(tensors.ok()) << tensors.error().str();
  const SafeTensor* x = tensors->find(GetParam() + "/x");
  const SafeTensor* y = tensors->find(GetParam() + "/y");
  ASSERT_TRUE(x != nullptr && y != nullptr);
  auto network =
      Network::finalize(imported->network.grid, imported->network.input.after(x->shape[0]));
  ASSERT_TRUE(network.ok()) << network.error().str();
  ASSERT_TRUE(imported->fill(*network, pool, DType::f32).ok());
  std::vector<float> want(static_cast<size_t>(y->count()));
  ASSERT_TRUE(SafeTensors::to_f32(*y, 0, y->count(), want.data()).ok());
  expect_close(run_network(*network, pool, {x->data.begin(), x->data.end()}), want, 1e-5f);
}
INSTANTIATE_TEST_SUITE_P(Files, OnnxGolden, ::testing::ValuesIn(golden_names()),
                         [](const auto& c) { return c.param; });

}  // namespace
}  // namespace loom::core::test

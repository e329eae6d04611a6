// Network descriptions: builders and their JSON round trip, and a table of bad descriptions with
// the exact line that each gives.
#include "base/text.hpp"
#include "bridge/network_json_testing.hpp"
#include "grid/network.hpp"

namespace loom::core {
namespace {

using test::BadNetwork;
using test::expect_refused;
using test::kDense;

void expect_round_trip(const Result<NetworkSpec>& made) {
  ASSERT_TRUE(made.ok()) << made.error().str();
  const std::string text = write_network(*made);
  const Result<NetworkSpec> read = parse_network(text, "net");
  ASSERT_TRUE(read.ok()) << read.error().str() << "\n" << text;
  EXPECT_EQ(write_network(*read), text);
}

TEST(NetworkJson, BuildersFinalizeAndRoundTrip) {
  expect_round_trip(build_mlp({784, 10, {256, 128}, "relu"}));
  expect_round_trip(build_mlp({3, 1, {}, "tanh"}));
  expect_round_trip(build_cnn({}));
  CnnOptions cnn;
  cnn.input = Shape{3, 32, 20};
  cnn.filters = {4, 5, 6};
  cnn.hidden = {12};
  expect_round_trip(build_cnn(cnn));
  expect_round_trip(build_transformer({}));
  for (const char* cell : {"rnn", "lstm", "gru"}) {
    RecurrentOptions o;
    o.cell = cell;
    o.hidden = {8, 4};
    expect_round_trip(build_recurrent(o));
    o.vocab = 20;
    o.sequence = true;
    expect_round_trip(build_recurrent(o));
  }
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomOptions o;
    o.seed = seed;
    o.layers = 2;
    expect_round_trip(build_random(o));
  }
  EXPECT_EQ(write_network(*build_random({})), write_network(*build_random({})));
}

constexpr const char* kGraphText = R"({"loom": 1, "input": [5], "layers": [
  {"type": "Graph", "nodes": [
    {"name": "wide", "type": "Dense", "in": 5, "out": 4},
    {"name": "gate", "from": "input", "type": "Dense", "in": 5, "out": 4, "activation": "sigmoid"},
    {"name": "table", "from": [], "type": "Constant", "shape": [1, 4]},
    {"name": "mix", "from": ["wide", "gate", "table"], "type": "Binary", "function": "mul"},
    {"from": ["mix", "wide"], "type": "Concat"}
  ], "outputs": "4"}, {"type": "Dense", "in": 8, "out": 2}]})";

TEST(NetworkJson, AGraphIsNodesWithNames) {
  const Result<NetworkSpec> net = parse_network(kGraphText, "net");
  ASSERT_TRUE(net.ok()) << net.error().str();
  expect_round_trip(net);
  const Result<Network> made = Network::finalize(net->grid, net->input.after(3));
  ASSERT_TRUE(made.ok()) << made.error().str();
  EXPECT_EQ(made->output().str(), "[3, 2]");
  EXPECT_GE(made->find_param("(0, 0, 0, 0)/2/value"), 0);
  const std::string text = write_network(*net);
  EXPECT_NE(text.find("\"from\":[\"wide\",\"gate\",\"table\"]"), std::string::npos) << text;
  EXPECT_EQ(text.find("wires"), std::string::npos) << "numbers are for passes";
}

TEST(NetworkJson, WhatIsWrongInAGraphIsSaidWithItsPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type": "Graph"})", "layers[0]: \"nodes\" is required, but absent"},
      {R"({"type": "Graph", "nodes": [{"type": "Unary", "from": 3}]})",
       "layers[0].nodes[0].from: expected a name or a list of names, found 3"},
      {R"({"type": "Graph", "nodes": [{"type": "Unary", "from": "a"}]})",
       "layers[0]: Graph: node 0 reads 'a', which no node before it is called; before it are "
       "input"},
      {R"({"type": "Graph", "wires": [1], "nodes": []})",
       "layers[0].wires: unknown key; a Graph has inputs, nodes, outputs"},
      {R"({"type": "Graph", "nodes": [{"type": "Unary", "at": [0, 0, 0, 0]}]})",
       "layers[0].nodes[0].at: unknown key; Unary has function"},
      {R"({"type": "Unary", "from": "x"})", "layers[0].from: unknown key; Unary has function"},
  };
  for (const auto& [layer, says] : cases) {
    const Result<NetworkSpec> net =
        parse_network(cat(R"({"loom": 1, "input": [5], "layers": [)", layer, "]}"), "net");
    ASSERT_FALSE(net.ok()) << layer;
    EXPECT_NE(net.error().str().find(says), std::string::npos) << net.error().str();
  }
}

TEST(NetworkJson, BuildersRefuseWhatCannotBe) {
  EXPECT_EQ(build_mlp({0, 1, {}, "relu"}).ok(), false);
  EXPECT_EQ(build_mlp({2, 2, {3}, "nope"}).ok(), false);
  TransformerOptions t;
  t.width = 30;
  EXPECT_EQ(build_transformer(t).error().str(),
            "width 30 must be a multiple of twice the heads, 8: rotary embedding turns pairs");
  RecurrentOptions r;
  r.cell = "elman";
  EXPECT_EQ(build_recurrent(r).error().str(), "unknown cell 'elman'; known are rnn, lstm, gru");
  CnnOptions c;
  c.input = Shape{28, 28};
  EXPECT_EQ(build_cnn(c).error().str(), "an image is [channels, height, width], not [28, 28]");
}

TEST(NetworkJson, ReadsLinksSharingDTypesChildrenAndOldNames) {
  const std::string text = R"({"loom": 1, "grid": [1, 1, 4, 1], "input": [6], "cells": [
    {"at": [0,0,1,0], "type": "Dense", "input_height": 6, "out": 6, "dtype": "int8",
     "shared_with": [0,0,0,0]},
    {"at": [0,0,0,0], "type": "Dense", "in": 6, "output_height": 6, "activation": "tanh",
     "dtype": "int8"},
    {"at": [0,0,2,0], "type": "Residual", "children": [{"type": "RMSNorm", "width": 6},
     {"type": "Dense", "in": 6, "out": 6, "disabled": true}]},
    {"at": [0,0,3,0], "type": "Dense", "in": 6, "out": 2,
     "frozen": ["weight", "b*"], "link": {"from": [0,0,0,0], "feedback": true},
     "adapters": [{"weights": "wei*", "rank": 3, "scale": 0.5, "dropout": 0.25, "name": "x-1"},
      {"weights": ["weight"]}]}]})";
  const Result<NetworkSpec> read = parse_network(text, "net");
  ASSERT_TRUE(read.ok()) << read.error().str();
  EXPECT_EQ(read->grid.find({0, 0, 3, 0})->frozen, (std::vector<std::string>{"weight", "b*"}));
  EXPECT_EQ(read->grid.find({0, 0, 3, 0})->adapters,
            (std::vector<AdapterSpec>{{{"wei*"}, "x-1", 3, 0.5, 0.25}, {{"weight"}}}));
  const Cell* shared = read->grid.find({0, 0, 1, 0});
  ASSERT_NE(shared, nullptr);
  EXPECT_EQ(shared->dtype, DType::i8);
  EXPECT_EQ(shared->shared_with, (Coord{0, 0, 0, 0}));
  EXPECT_TRUE(read->grid.find({0, 0, 3, 0})->link->feedback);
  EXPECT_TRUE(read->grid.find({0, 0, 2, 0})->layer.children[1].disabled);
  expect_round_trip(read);
}

TEST(NetworkJson, LeavesOutWhatEarlierVersionsWroteAndNothingReads) {
  const auto network = [](const std::string& more) {
    return R"({"loom": 1, "input": [4, 8], "layers": [{"type": "MultiHeadAttention",)"
           R"( "width": 8, "heads": 2, "kv_heads": 2, "head_dim": 4)" +
           more + "}]}";
  };
  const Result<NetworkSpec> plain = parse_network(network(""), "net");
  const Result<NetworkSpec> older = parse_network(network(R"(, "rope_bf16": false)"), "net");
  ASSERT_TRUE(plain.ok()) << plain.error().str();
  ASSERT_TRUE(older.ok()) << older.error().str();
  EXPECT_EQ(write_network(*older), write_network(*plain));
  const Result<NetworkSpec> rounded = parse_network(network(R"(, "rope_bf16": true)"), "net");
  ASSERT_FALSE(rounded.ok());
  EXPECT_NE(rounded.error().str().find("rope_bf16: unknown key"), std::string::npos);
}

TEST(NetworkJson, OmitsLateFieldsAtTheirDefaults) {
  const auto text = [](const std::string& fields) {
    const auto spec = parse_network(
        R"({"loom":1,"input":[3],"layers":[{"type":"Dense","in":3,"out":2)" + fields + "}]}",
        "net");
    EXPECT_TRUE(spec.ok()) << spec.error().str();
    return write_network(*spec);
  };
  EXPECT_EQ(text(R"(,"scale":1)").find("scale"), std::string::npos);
  EXPECT_NE(text(R"(,"scale":0.5)").find("\"soft_cap\":0.0,\"scale\":0.5"), std::string::npos);
}

TEST(NetworkJson, WritesEveryFieldOfTheShortForm) {
  const Result<NetworkSpec> read = parse_network(
      R"({"loom":1,"input":[3],"layers":[{"type":"Dense","in":3,"out":2},{"type":"Softmax"}]})",
      "net");
  ASSERT_TRUE(read.ok()) << read.error().str();
  const std::string cells =
      R"(    {"at":[0,0,0,0],"type":"Dense","disabled":false,"in":3,"out":2,"bias":true,)"
      R"("activation":"linear","soft_cap":0.0},)"
      "\n"
      R"(    {"at":[0,0,1,0],"type":"Softmax","disabled":false,"variant":"standard",)"
      R"("temperature":1.0,"rows":0,"cols":0,"levels":[],"alpha":1.5,"mask":[],"noise":false,)"
      R"("kappa":1.0,"target_entropy":0.5,"hard":false})"
      "\n";
  EXPECT_EQ(write_network(*read),
            "{\n  \"loom\": 1,\n  \"grid\": [1,1,2,1],\n  \"input\": [3],\n  \"cells\": [\n" +
                cells + "  ]\n}\n");
  ;
}

// Descriptions around one layer; `members` are the layer's members.
std::string around(const std::string& members) {
  return R"({"loom":1,"input":[3],"layers":[{)" + members + "}]}";
}
std::string cells(const std::string& list) {
  return R"({"loom":1,"grid":[1,1,2,1],"input":[3],"cells":[)" + list + "]}";
}

const BadNetwork kBadDocuments[] = {
    {"[1]", "at byte 0: expected an object that describes a network, found an array"},
    {"{}", R"(at byte 0: "loom" is required, but absent)"},
    {R"({"loom":2,"input":[3],"layers":[]})",
     "at byte 8: loom: expected 1, the version of the form, found 2"},
    {R"({"loom":1,"layers":[]})", R"(at byte 0: "input" is required, but absent)"},
    {R"({"loom":1,"input":[],"layers":[]})",
     "at byte 18: input: expected a list of 1 to 5 integers, found 0"},
    {R"({"loom":1,"input":[0],"layers":[]})",
     "at byte 19: input[0]: expected an integer from 1 to 16777216, found 0"},
    {R"({"loom":1,"input":[16777216,16777216],"layers":[]})",
     "at byte 18: input: has more than 2147483648 values"},
    {R"({"loom":1,"input":[3],"layers":[]})", "at byte 31: layers: must hold at least one layer"},
    {R"({"loom":1,"input":[3],"layers":{}})",
     "at byte 31: layers: expected a list of layers, found an object"},
    {R"({"loom":1,"input":[3],"layer":[]})",
     "at byte 30: layer: unknown key; a network has loom, input, grid, cells, layers"},
    {R"({"loom":1,"input":[3],"layers":[],"grid":[1,1,1,1]})",
     "at byte 31: layers: replaces grid and cells; give one or the other"},
    {R"({"loom":1,"input":[3]})", R"(at byte 0: "layers" or "grid" is required, but absent)"},
    {R"({"loom":1,"input":[3],"cells":[]})", R"(at byte 0: "grid" is required, but absent)"},
    {R"({"loom":1,"input":[3],"grid":[1,1,1],"cells":[]})",
     "at byte 29: grid: expected a list of 4 integers, found 3"},
    {R"({"loom":1,"input":[3],"grid":[1,0,1,1],"cells":[]})",
     "at byte 32: grid[1]: expected an integer from 1 to 16777216, found 0"},
    {R"({"loom":1,"input":[3],"grid":[9999,9999,9999,9999],"cells":[]})",
     "at byte 29: grid: has more than 262144 cells"},
    {R"({"loom":1,"input":[3],"grid":[1,1,1,1],"cells":[]})",
     "the grid has no enabled layer; put at least one"},
};

TEST(NetworkJson, RefusesBadDocuments) {
  for (const BadNetwork& bad : kBadDocuments) expect_refused(bad.text, bad.message);
}

const BadNetwork kBadLayers[] = {
    {"", R"(at byte 32: layers[0]: "type" is required, but absent)"},
    {R"("type":7)", "at byte 40: layers[0].type: expected the name of a layer, found 7"},
    {R"("type":"Dens")",
     std::string("at byte 40: layers[0].type: unknown layer 'Dens'; known are Dense, ") +
         "MultiHeadAttention, SwiGLU, RMSNorm, CNN1, CNN2, CNN3, RNN, LSTM, LayerNorm, "
         "ConvTransposed1D, ConvTransposed2D, ConvTransposed3D, Embedding, KMeans, Softmax, "
         "Parallel, Sequential, Residual, GRU, Dropout, BatchNorm, GroupNorm, InstanceNorm, Pool, "
         "Flatten, Reshape, Permute, Pad, Upsample, PixelShuffle" +
         test::unreleased_layers()},
    {R"("type":"Dense","in":0)",
     "at byte 53: layers[0].in: expected an integer from 1 to 16777216, found 0"},
    {R"("type":"Dense","in":3.5)",
     "at byte 53: layers[0].in: expected an integer from 1 to 16777216, found 3.5"},
    {R"("type":"Dense","in":"3")",
     R"(at byte 53: layers[0].in: expected an integer from 1 to 16777216, found "3")"},
    {R"("type":"Dense","bias":1)", "at byte 55: layers[0].bias: expected true or false, found 1"},
    {R"("type":"Dense","activation":null)",
     "at byte 61: layers[0].activation: expected a string, found null"},
    {R"("type":"Dense","width":3)",
     "at byte 56: layers[0].width: unknown key; Dense has in, out, bias, activation, soft_cap, "
     "scale"},
    {R"("type":"Dense","in":3,"input_height":3)",
     "at byte 70: layers[0].input_height: 'in' is given twice"},
    {R"("type":"Dense","children":[])",
     "at byte 59: layers[0].children: unknown key; Dense has in, out, bias, activation, soft_cap, "
     "scale"},
    {R"("type":"Dense","disabled":0)",
     "at byte 59: layers[0].disabled: expected true or false, found 0"},
    {R"("type":"Dense","at":[0,0,0,0])",
     "at byte 53: layers[0].at: unknown key; Dense has in, out, bias, activation, soft_cap, scale"},
    {R"("type":"RMSNorm","width":3,"eps":2)",
     "at byte 66: layers[0].eps: expected a number from 0 to 1, found 2"},
    {R"("type":"CNN1","kernel":[3,"a"])",
     R"(at byte 59: layers[0].kernel[1]: expected an integer from 1 to 4096, found "a")"},
    {R"("type":"CNN1","kernel":0)",
     "at byte 56: layers[0].kernel: expected an integer from 1 to 4096, found 0"},
    {R"("type":"CNN1","kernel":true)",
     "at byte 56: layers[0].kernel: expected an integer or a list of them, found true"},
    {R"("type":"Residual","children":[{"type":"x"}])", ""},
    {R"("type":"Dense","in":4,"out":2)",
     "cell (0, 0, 0, 0) does not fit the input: Dense: input [1, 3] must end in 4, or have that "
     "many values per sample"},
    {R"("type":"Dense","in":3,"out":2,"activation":"rleu")", ""},
};

TEST(NetworkJson, RefusesBadLayers) {
  for (const BadNetwork& bad : kBadLayers) expect_refused(around(bad.text), bad.message);
}

const BadNetwork kBadCells[] = {
    {"{" + kDense + "}", R"(at byte 48: cells[0]: "at" is required, but absent)"},
    {R"({"at":[0,0,0],)" + kDense + "}",
     "at byte 54: cells[0].at: expected a list of 4 integers, found 3"},
    {R"({"at":[0,0,2,0],)" + kDense + "}",
     "at byte 54: cells[0].at: cell (0, 0, 2, 0) is outside the grid 1 x 1 x 2 x 1: x must be "
     "from 0 to 1"},
    {R"({"at":[0,0,0,0],)" + kDense + R"(},{"at":[0,0,0,0],)" + kDense + "}",
     "at byte 101: cells[1].at: there is a layer at (0, 0, 0, 0) already"},
    {R"({"at":[0,0,0,0],"dtype":"int7",)" + kDense + "}", ""},
    {R"({"at":[0,0,0,0],"link":{},)" + kDense + "}",
     R"(at byte 71: cells[0].link: "from" is required, but absent)"},
    {R"({"at":[0,0,0,0],"link":{"to":1},)" + kDense + "}",
     "at byte 77: cells[0].link.to: unknown key; a link has from, feedback"},
    {R"({"at":[0,0,0,0],"link":{"from":[0,0,1,0]},)" + kDense + "}",
     "cell (0, 0, 0, 0) is linked to (0, 0, 1, 0), where there is no enabled layer"},
    {R"({"at":[0,0,0,0],"frozen":["wieght"],)" + kDense + "}",
     "cell (0, 0, 0, 0): frozen: it has no parameter 'wieght' of its own"},
    {R"({"at":[0,0,0,0],"frozen":[3],)" + kDense + "}",
     "at byte 74: cells[0].frozen[0]: expected a name, found 3"},
    {R"({"at":[0,0,0,0],"adapters":{},)" + kDense + "}",
     "at byte 75: cells[0].adapters: expected a list of adapters, found an object"},
    {R"({"at":[0,0,0,0],"adapters":[{"rank":2}],)" + kDense + "}",
     R"(at byte 76: cells[0].adapters[0]: "weights" is required, but absent)"},
    {R"({"at":[0,0,0,0],"adapters":[{"weights":"*","r":2}],)" + kDense + "}",
     "at byte 95: cells[0].adapters[0].r: unknown key; an adapter has weights, name, rank, scale, "
     "dropout"},
    {R"({"at":[0,0,0,0],"adapters":[{"weights":"*","rank":"2"}],)" + kDense + "}",
     R"(at byte 98: cells[0].adapters[0].rank: expected a number, found "2")"},
    {R"({"at":[0,0,0,0],"adapters":[{"weights":"wieght"}],)" + kDense + "}",
     "cell (0, 0, 0, 0): the adapter 'lora' selects 'wieght'; it has weight"},
    {R"({"at":[0,0,0,0],"shared_with":[0,0,1,0],)" + kDense + "}",
     "cell (0, 0, 0, 0) shares weights with (0, 0, 1, 0), which is not a layer before it"},
};

TEST(NetworkJson, RefusesBadCells) {
  for (const BadNetwork& bad : kBadCells) expect_refused(cells(bad.text), bad.message);
}

TEST(NetworkJson, KeepsTheNamesOfAStateDict) {
  const std::string names = R"("state_dict":{"fc.weight":"[2, 3] (0, 0, 0, 0)/weight","t":"as u"})";
  const std::string row = R"({"loom":1,"input":[3],"layers":[{)" + kDense + "}]," + names + "}";
  const Result<NetworkSpec> read = parse_network(row, "net");
  ASSERT_TRUE(read.ok()) << read.error().str();
  ASSERT_EQ(read->state_dict.size(), 2u);
  EXPECT_EQ(read->state_dict[0].second, "[2, 3] (0, 0, 0, 0)/weight");
  const std::string text = write_network(*read);
  EXPECT_NE(text.find("\"state_dict\": {"), std::string::npos) << text;
  const Result<NetworkSpec> again = parse_network(text, "net");
  ASSERT_TRUE(again.ok()) << again.error().str();
  EXPECT_EQ(again->state_dict, read->state_dict);
  EXPECT_EQ(write_network(*again), text);
  for (const char* bad : {R"({"w":3})", "[]", R"("w")"}) {
    const std::string other =
        R"({"loom":1,"input":[3],"layers":[{)" + kDense + R"(}],"state_dict":)" + bad + "}";
    const Result<NetworkSpec> refused = parse_network(other, "net");
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_NE(refused.error().str().find("state_dict"), std::string::npos) << refused.error().str();
  }
}

TEST(NetworkJson, RefusesShapesThatNoMemoryHolds) {
  const std::string layer =
      R"({"type":"ConvTransposed1D","channels":1,"filters":1,"kernel":4096,"stride":4096})";
  std::string list = layer;
  for (int i = 0; i < 8; ++i) list += "," + layer;
  for (const std::string& text :
       {R"({"loom":1,"input":[1,1000],"layers":[)" + list + "]}",
        R"({"loom":1,"input":[1,1000],"layers":[{"type":"Sequential","children":[)" + list +
            "]}]}"}) {
    const Result<NetworkSpec> read = parse_network(text, "net");
    ASSERT_FALSE(read.ok());
    EXPECT_NE(read.error().message.find("is too large"), std::string::npos) << read.error().str();
  }
}

}  // namespace
}  // namespace loom::core

// Training of an imported file changes the values of its tensors, and none that the importer added
// to compute the same predictions.
#include <cmath>

#include "base/numbers/rng.hpp"
#include "base/threads/thread_pool.hpp"
#include "formats/onnx_network_testing.hpp"

namespace loom::core::test::onnx_training {
namespace {

OnnxNode node_of(const std::string& op, std::vector<std::string> inputs, const std::string& output,
                 std::vector<OnnxAttribute> attributes = {}) {
  OnnxNode n;
  n.op = op;
  n.inputs = std::move(inputs);
  n.outputs = {output};
  n.attributes = std::move(attributes);
  return n;
}

OnnxAttribute list_of(const std::string& name, std::vector<int64_t> values) {
  OnnxAttribute a;
  a.name = name;
  a.type = OnnxAttributeType::integers;
  a.integers = std::move(values);
  return a;
}

// Values that are all different, and none of them 0 or 1.
OnnxTensor tensor_of(const std::string& name, const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t d : dims) count *= d;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(0.03f * static_cast<float>(i % 19) - 0.31f);
  return onnx_tensor(name, dims, std::move(values));
}

OnnxNode constant_node(const OnnxTensor& tensor) {
  OnnxAttribute value;
  value.name = "value";
  value.type = OnnxAttributeType::tensor;
  value.tensors = {tensor};
  return node_of("Constant", {}, tensor.name, {value});
}

const OnnxImportOptions kForTraining = {.for_training = true};

struct Case {
  const char* name;
  std::vector<int64_t> input;  // of one sample
  std::vector<OnnxTensor> tensors;
  std::vector<OnnxNode> nodes;  // the last one gives y
};

OnnxModel model_of(const Case& c) {
  OnnxModel m;
  m.ir_version = 9;
  m.opsets = {{"", 17}};
  OnnxValue x{"x", OnnxType::f32, true, {{-1, "b"}}};
  for (const int64_t d : c.input) x.shape.push_back({d, ""});
  m.graph.inputs = {std::move(x)};
  m.graph.outputs = {{"y", OnnxType::f32, false, {}}};
  m.graph.initializers = c.tensors;
  m.graph.nodes = c.nodes;
  return m;
}

int64_t trained_values(const Network& network) {
  return network.param_counts().trained;
}

// Its last state.
OnnxNode lstm_of(const std::string& x, const std::string& y) {
  OnnxNode n = node_of("LSTM", {x, "w", "r", "b"}, "", {onnx_attribute("hidden_size", int64_t{5})});
  n.outputs = {"", y};
  return n;
}

std::vector<Case> cases() {
  const auto kernel = [] { return list_of("kernel_shape", {3, 3}); };
  const auto padding = [] { return list_of("pads", {1, 1, 1, 1}); };
  return {
      {"a mean of every channel",
       {1, 6, 5},
       {tensor_of("w1", {4, 1, 3, 3}), tensor_of("b1", {4}), tensor_of("w2", {4, 3}),
        tensor_of("b2", {3})},
       {node_of("Conv", {"x", "w1", "b1"}, "c", {kernel(), padding()}), node_of("Relu", {"c"}, "r"),
        node_of("GlobalAveragePool", {"r"}, "p"), node_of("Flatten", {"p"}, "f"),
        node_of("MatMul", {"f", "w2"}, "m"), node_of("Add", {"m", "b2"}, "y")}},
      {"means of windows",
       {2, 6, 5},
       {tensor_of("w1", {4, 2, 3, 3})},
       {node_of("Conv", {"x", "w1"}, "c", {kernel()}),
        node_of("AveragePool", {"c"}, "y", {list_of("kernel_shape", {2, 2})})}},
      {"a function before the first product",
       {8},
       {tensor_of("w", {8, 3}), tensor_of("b", {3})},
       {node_of("Tanh", {"x"}, "t"), node_of("MatMul", {"t", "w"}, "m"),
        node_of("Add", {"m", "b"}, "y")}},
      {"a function after a norm",
       {8},
       {tensor_of("g", {8}), tensor_of("b", {8}), tensor_of("w", {8, 3})},
       {node_of("LayerNormalization", {"x", "g", "b"}, "n"), node_of("Relu", {"n"}, "r"),
        node_of("MatMul", {"r", "w"}, "y")}},
      {"a scale per channel after a product",
       {8},
       {tensor_of("w", {8, 8}), tensor_of("g", {8})},
       {node_of("MatMul", {"x", "w"}, "m"), node_of("Mul", {"m", "g"}, "s"),
        node_of("Add", {"s", "x"}, "y")}},
      {"a scale of the input",
       {8},
       {tensor_of("g", {8}), tensor_of("w", {8, 3})},
       {node_of("Mul", {"x", "g"}, "s"), node_of("MatMul", {"s", "w"}, "y")}},
      {"a second bias",
       {8},
       {tensor_of("w", {8, 5}), tensor_of("b", {5}), tensor_of("b2", {5})},
       {node_of("MatMul", {"x", "w"}, "m"), node_of("Add", {"m", "b"}, "s"),
        node_of("Add", {"s", "b2"}, "y")}},
      {"a table of positions that is not a weight",
       {4, 8},
       {tensor_of("w", {8, 3})},
       {constant_node(tensor_of("table", {4, 8})), node_of("Add", {"x", "table"}, "s"),
        node_of("MatMul", {"s", "w"}, "y")}},
      {"a matrix that is not a weight",
       {8},
       {tensor_of("w", {5, 3}), tensor_of("b", {3})},
       {constant_node(tensor_of("fourier", {8, 5})), node_of("MatMul", {"x", "fourier"}, "f"),
        node_of("Tanh", {"f"}, "s"), node_of("Gemm", {"s", "w", "b"}, "y")}},
      {"a bias that is not a weight",
       {8},
       {tensor_of("w", {8, 3})},
       {constant_node(tensor_of("offset", {3})), node_of("Gemm", {"x", "w", "offset"}, "y")}},
      {"a weight of one number",
       {8},
       {tensor_of("w", {8, 8}), tensor_of("block.alpha", {})},
       {node_of("MatMul", {"x", "w"}, "m"), node_of("Tanh", {"m"}, "t"),
        node_of("Mul", {"t", "block.alpha"}, "s"), node_of("Add", {"s", "x"}, "y")}},
      {"a bias of one number",
       {8},
       {tensor_of("w", {8, 1}), tensor_of("head.bias", {1})},
       {node_of("MatMul", {"x", "w"}, "m"), node_of("Add", {"m", "head.bias"}, "y")}},
      {"a bias of one number with a number in its name",
       {8},
       {tensor_of("weights_78", {8, 1}), tensor_of("bias_79", {1})},
       {node_of("MatMul", {"x", "weights_78"}, "m"), node_of("Add", {"m", "bias_79"}, "y")}},
      {"a number of a formula",
       {8},
       {tensor_of("w", {8, 3})},
       {constant_node(tensor_of("val_2", {})), node_of("MatMul", {"x", "w"}, "m"),
        node_of("Mul", {"m", "val_2"}, "y")}},
      {"a function of weights",
       {8},
       {tensor_of("a_log", {8}), tensor_of("w", {8, 3})},
       {node_of("Exp", {"a_log"}, "a"), node_of("Mul", {"x", "a"}, "s"),
        node_of("MatMul", {"s", "w"}, "y")}},
      {"weights and their transpose",
       {8},
       {tensor_of("w", {8, 3})},
       {node_of("MatMul", {"x", "w"}, "h"), node_of("Transpose", {"w"}, "t"),
        node_of("MatMul", {"h", "t"}, "y")}},
      {"a weight that is read twice",
       {8},
       {tensor_of("g", {8}), tensor_of("w", {8, 3})},
       {node_of("Mul", {"g", "g"}, "s"), node_of("Mul", {"x", "s"}, "m"),
        node_of("Add", {"m", "g"}, "a"), node_of("MatMul", {"a", "w"}, "y")}},
      {"what a mask chooses",
       {8},
       {tensor_of("w", {8, 8}), tensor_of("mask.token", {8})},
       {constant_node(tensor_of("edge", {8})), node_of("MatMul", {"x", "w"}, "m"),
        node_of("Greater", {"m", "edge"}, "c"), node_of("Where", {"c", "m", "mask.token"}, "y")}},
      {"an LSTM with both biases",
       {4, 8},
       {tensor_of("w", {1, 20, 8}), tensor_of("r", {1, 20, 5}), tensor_of("b", {1, 40}),
        onnx_tensor("axis", {1}, std::vector<int64_t>{0})},
       {node_of("Transpose", {"x"}, "t", {list_of("perm", {1, 0, 2})}), lstm_of("t", "y_all"),
        node_of("Squeeze", {"y_all", "axis"}, "y")}},
  };
}

TEST(OnnxTraining, LearnsAsManyValuesAsTheFileHas) {
  ThreadPool pool(1);
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    int64_t want = 0;
    for (const OnnxTensor& t : c.tensors) want += t.type == OnnxType::f32 ? t.count() : 0;
    const auto imported = import_onnx(model_of(c), "f", kForTraining);
    ASSERT_TRUE(imported.ok()) << imported.error().str();
    EXPECT_EQ(imported->made_up, 0);
    const auto network =
        Network::finalize(imported->network.grid, imported->network.input.after(1));
    ASSERT_TRUE(network.ok()) << network.error().str();
    EXPECT_EQ(trained_values(*network), want);
  }
}

// A slope of 1 makes it the function that layers have.
TEST(OnnxTraining, TheSlopeOfASwishTrains) {
  const auto imported = import_onnx(
      model_of({"swish",
                {8},
                {tensor_of("w", {8, 8}), onnx_tensor("act.beta", {}, std::vector<float>{1.0f})},
                {node_of("MatMul", {"x", "w"}, "m"), node_of("Mul", {"m", "act.beta"}, "b"),
                 node_of("Sigmoid", {"b"}, "s"), node_of("Mul", {"m", "s"}, "y")}}),
      "f", kForTraining);
  ASSERT_TRUE(imported.ok()) << imported.error().str();
  EXPECT_EQ(imported->made_up, 0);
  const auto network = Network::finalize(imported->network.grid, imported->network.input.after(1));
  ASSERT_TRUE(network.ok()) << network.error().str();
  EXPECT_EQ(trained_values(*network), 65);
}

OnnxModel gelu_of(const std::string& half, const std::string& root) {
  return model_of({"gelu",
                   {8},
                   {tensor_of("w", {8, 8}), onnx_tensor(half, {}, std::vector<float>{0.5f}),
                    onnx_tensor(root, {}, std::vector<float>{0.70710677f}),
                    onnx_tensor("one", {}, std::vector<float>{1.0f})},
                   {node_of("MatMul", {"x", "w"}, "m"), node_of("Mul", {"m", half}, "h"),
                    node_of("Mul", {"m", root}, "r"), node_of("Erf", {"r"}, "e"),
                    node_of("Add", {"e", "one"}, "a"), node_of("Mul", {"h", "a"}, "y")}});
}

TEST(OnnxTraining, NumbersOfAFormulaOfTensorFlowAreNoWeights) {
  const auto imported =
      import_onnx(gelu_of("m/Gelu/mul/x:0", "m/Gelu/truediv_recip:0"), "f", kForTraining);
  ASSERT_TRUE(imported.ok()) << imported.error().str();
  EXPECT_TRUE(imported->notes.empty());
  EXPECT_EQ(imported->params.size(), 1U);
}

TEST(OnnxTraining, AWeightThatIsAPartOfAFunctionIsSaid) {
  const auto gelu = import_onnx(gelu_of("act.half", "act.root"), "f", kForTraining);
  ASSERT_TRUE(gelu.ok()) << gelu.error().str();
  const auto note = [](const std::string& name) {
    return "the weight '" + name + "' is part of a function and does not train";
  };
  EXPECT_EQ(gelu->notes, (std::vector<std::string>{note("act.half"), note("act.root")}));
  const auto power = import_onnx(
      model_of({"power",
                {8},
                {tensor_of("w", {8, 8}), onnx_tensor("pool.p", {}, std::vector<float>{3.0f})},
                {node_of("MatMul", {"x", "w"}, "m"), node_of("Pow", {"m", "pool.p"}, "y")}}),
      "f", kForTraining);
  ASSERT_TRUE(power.ok()) << power.error().str();
  EXPECT_EQ(power->notes, std::vector<std::string>{note("pool.p")});
}

TEST(OnnxTraining, ConstantsAreWeightsWhereNoInitializerIs) {
  // As Paddle's exporter writes: each weight is a Constant. A number of a formula stays one.
  const Case paddle = {"constants",
                       {8},
                       {},
                       {constant_node(tensor_of("w", {8, 3})), constant_node(tensor_of("b", {3})),
                        constant_node(tensor_of("gain", {})), node_of("MatMul", {"x", "w"}, "m"),
                        node_of("Add", {"m", "b"}, "s"), node_of("Mul", {"s", "gain"}, "y")}};
  const struct {
    std::vector<std::string> trainable, frozen;
    int64_t trained;
  } rows[] = {{{}, {}, 27}, {{}, {"b"}, 24}, {{"w"}, {"*"}, 0}};
  for (const auto& row : rows) {
    const OnnxImportOptions options = {
        .for_training = true, .trainable = row.trainable, .frozen = row.frozen};
    const auto imported = import_onnx(model_of(paddle), "f", options);
    ASSERT_TRUE(imported.ok()) << imported.error().str();
    EXPECT_EQ(imported->made_up, 0);
    const auto network =
        Network::finalize(imported->network.grid, imported->network.input.after(1));
    EXPECT_EQ(trained_values(*network), row.trained);
  }
}

TEST(OnnxTraining, WeightsThatAreConstantsMayBeReadAsOftenAsInitializers) {
  std::vector<OnnxNode> nodes;
  std::string from = "x";
  for (const std::string to : {"a", "b", "c", "y"}) {
    nodes.push_back(constant_node(tensor_of("w." + to, {1024, 1024})));
    nodes.push_back(node_of("MatMul", {from, "w." + to}, to));
    from = to;
  }
  const auto imported =
      import_onnx(model_of({"constants", {1024}, {}, std::move(nodes)}), "f", kForTraining);
  ASSERT_TRUE(imported.ok()) << imported.error().str();
  EXPECT_EQ(imported->params.size(), 4U);
}

TEST(OnnxTraining, PatternsSayWhatTrainsAndNeverNothing) {
  const Case c = {
      "patterns",
      {8},
      {tensor_of("w", {8, 3}), tensor_of("val_2", {}), tensor_of("reconstruct.gain", {})},
      {node_of("MatMul", {"x", "w"}, "m"), node_of("Mul", {"m", "val_2"}, "s"),
       node_of("Mul", {"s", "reconstruct.gain"}, "y")}};
  const struct {
    std::vector<std::string> trainable, frozen;
    int64_t trained;  // -1 means refused
  } rows[] = {{{}, {}, 25},      {{"val_*"}, {}, 26},  {{}, {"w"}, 1},
              {{"*"}, {"w"}, 2}, {{"wieght"}, {}, -1}, {{}, {"val_3"}, -1}};
  for (const auto& row : rows) {
    const OnnxImportOptions options = {
        .for_training = true, .trainable = row.trainable, .frozen = row.frozen};
    const auto imported = import_onnx(model_of(c), "f", options);
    ASSERT_EQ(imported.ok(), row.trained >= 0);
    if (!imported.ok()) {  // the file is as it should be: the option is not
      EXPECT_EQ(imported.error().code, Code::invalid_argument);
      EXPECT_EQ(imported.error().where, row.frozen.empty() ? "--trainable" : "--frozen");
      continue;
    }
    const auto network =
        Network::finalize(imported->network.grid, imported->network.input.after(1));
    EXPECT_EQ(trained_values(*network), row.trained);
  }
}

// The constant half of the biases was left out of predictions, and learned in a GRU.
TEST(OnnxTraining, OneOfTheBiasesOfARecurrenceMayBeAConstant) {
  ThreadPool pool(1);
  const auto half = [](const std::string& name, int64_t count, float first) {
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(first + 0.02f * static_cast<float>(i));
    return onnx_tensor(name, {1, count}, std::move(values));
  };
  for (const auto& [op, gates] : {std::pair{"LSTM", 4}, std::pair{"GRU", 3}}) {
    const int64_t rows = int64_t{5} * gates;
    std::vector<std::vector<float>> predicted;
    for (const int trained : {-1, 0, 1}) {
      SCOPED_TRACE(cat(op, " ", trained));
      Case c = {op,
                {4, 8},
                {tensor_of("w", {1, rows, 8}), tensor_of("r", {1, rows, 5}),
                 onnx_tensor("axis", {1}, std::vector<int64_t>{0})},
                {node_of("Transpose", {"x"}, "t", {list_of("perm", {1, 0, 2})})}};
      for (const int i : {0, 1}) {
        const OnnxTensor bias = half(cat("b", i), rows, i == 0 ? -0.2f : 0.1f);
        if (trained < 0 || trained == i) {
          c.tensors.push_back(bias);
        } else {
          c.nodes.push_back(constant_node(bias));
        }
      }
      c.nodes.push_back(node_of("Concat", {"b0", "b1"}, "b", {onnx_attribute("axis", int64_t{1})}));
      OnnxNode cell = node_of(op, {"t", "w", "r", "b"}, "",
                              {onnx_attribute("hidden_size", int64_t{5}),
                               onnx_attribute("linear_before_reset", int64_t{1})});
      if (gates == 4) cell.attributes.pop_back();
      cell.outputs = {"", "y_all"};
      c.nodes.push_back(cell);
      c.nodes.push_back(node_of("Squeeze", {"y_all", "axis"}, "y"));
      for (const bool training : {false, true}) {
        const auto imported = import_onnx(model_of(c), "f", {.for_training = training});
        ASSERT_TRUE(imported.ok()) << imported.error().str();
        auto network = Network::finalize(imported->network.grid, imported->network.input.after(1));
        ASSERT_TRUE(network.ok()) << network.error().str();
        EXPECT_EQ(trained_values(*network), rows * 13 + rows * (trained < 0 ? 2 : 1));
        ASSERT_TRUE(imported->fill(*network, pool, DType::f32).ok());
        predicted.push_back(run_network(*network, pool, random_input(*network)));
        EXPECT_EQ(predicted.back(), predicted.front());
      }
    }
  }
}

TEST(OnnxTraining, AFileMaySayThatItsInitializersAreWeights) {
  const Case c = {"named as constants",
                  {8},
                  {tensor_of("w", {8, 3}), tensor_of("g1", {}), tensor_of("const_gain", {})},
                  {node_of("MatMul", {"x", "w"}, "m"), node_of("Mul", {"m", "g1"}, "s"),
                   node_of("Mul", {"s", "const_gain"}, "y")}};
  for (const bool says : {false, true}) {
    OnnxModel model = model_of(c);
    if (says) model.metadata = {{"loom.initializers", "weights"}};
    const auto imported = import_onnx(model, "f", kForTraining);
    ASSERT_TRUE(imported.ok()) << imported.error().str();
    const auto network =
        Network::finalize(imported->network.grid, imported->network.input.after(1));
    EXPECT_EQ(trained_values(*network), says ? 26 : 24);
  }
}

TEST(OnnxTraining, SharedWeightsThatPartAreNoted) {
  const auto kernel = [] { return list_of("kernel_shape", {3}); };
  const Case alike = {
      "one convolution, twice",
      {2, 9},
      {tensor_of("w", {2, 2, 3}), tensor_of("b", {2})},
      {node_of("Conv", {"x", "w", "b"}, "c", {kernel()}), node_of("Relu", {"c"}, "r"),
       node_of("Conv", {"r", "w", "b"}, "y", {kernel()})}};
  Case apart = alike;
  apart.tensors.push_back(tensor_of("b2", {2}));
  apart.nodes.back().inputs[2] = "b2";
  for (const Case* c : {&alike, static_cast<const Case*>(&apart)}) {
    const auto imported = import_onnx(model_of(*c), "f", kForTraining);
    ASSERT_TRUE(imported.ok()) << imported.error().str();
    EXPECT_EQ(imported->notes.size(), c == &apart ? 1u : 0u);
  }
}

// ---- random rows of operators -------------------------------------------------------------------

using Row = std::vector<double>;

// A file in progress, and its output for one sample, in double precision.
struct Drawn {
  Case c{"random", {}, {}, {}};
  Rng rng;
  uint64_t next = 0;
  std::string at = "x", before = "x";
  Row value, value_before;

  explicit Drawn(uint64_t seed) : rng(seed, 5) {
    for (int i = 0; i < 2 + pick(7); ++i) value.push_back(draw());
    value_before = value;
    c.input = {width()};
  }
  int64_t width() const { return std::ssize(value); }
  int pick(int count) { return static_cast<int>(rng.bits(next++) % static_cast<uint32_t>(count)); }
  float draw() { return 2 * rng.uniform(next++) - 1; }

  std::vector<float> tensor(const std::string& name, const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (const int64_t d : dims) count *= d;
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(draw());
    c.tensors.push_back(onnx_tensor(name, dims, values));
    return values;
  }
  void step(const std::string& op, std::vector<std::string> inputs, Row row) {
    const std::string made = "v" + std::to_string(c.nodes.size());
    c.nodes.push_back(node_of(op, std::move(inputs), made));
    before = std::exchange(at, made);
    value_before = std::exchange(value, std::move(row));
  }
  void add_one();
};

void Drawn::add_one() {
  const std::string name = "layer." + std::to_string(c.nodes.size()) + ".w";
  Row row = value;
  const auto each = [&](auto f) {
    for (size_t i = 0; i < row.size(); ++i) row[i] = f(row[i], i);
  };
  const int what = pick(11);
  if (what == 0 || what == 1) {
    const int64_t out = 1 + pick(8);
    const std::vector<float> w = tensor(name, {width(), out});
    row.assign(static_cast<size_t>(out), 0);
    for (size_t i = 0; i < w.size(); ++i)
      row[i % row.size()] += value[i / row.size()] * static_cast<double>(w[i]);
    return step("MatMul", {at, name}, row);
  }
  if (what == 2 || what == 3) {
    const std::vector<float> w = tensor(name, {width()});
    each([&](double v, size_t i) {
      const auto by = static_cast<double>(w[i]);
      return what == 2 ? v + by : v * by;
    });
    return step(what == 2 ? "Add" : "Mul", {at, name}, row);
  }
  if (what == 4) {
    each([](double v, size_t) { return std::tanh(v); });
    return step("Tanh", {at}, row);
  }
  if (what == 5) {
    each([](double v, size_t) { return std::max(v, 0.0); });
    return step("Relu", {at}, row);
  }
  if (what == 6 && value_before.size() == value.size() && before != at) {
    each([&](double v, size_t i) { return v + value_before[i]; });
    return step("Add", {at, before}, row);
  }
  if (what == 7) {  // no weight
    const std::vector<float> w = tensor(name, {width()});
    c.nodes.push_back(constant_node(c.tensors.back()));
    c.tensors.pop_back();
    each([&](double v, size_t i) { return v + static_cast<double>(w[i]); });
    return step("Add", {at, name}, row);
  }
  if (what == 8) {  // a function of a weight
    const std::vector<float> w = tensor(name, {width()});
    c.nodes.push_back(node_of("Exp", {name}, name + "_exp"));
    each([&](double v, size_t i) { return v * std::exp(static_cast<double>(w[i])); });
    return step("Mul", {at, name + "_exp"}, row);
  }
  if (what == 9) {
    const auto by = static_cast<double>(tensor(name, {})[0]);
    each([&](double v, size_t) { return v * by; });
    return step("Mul", {at, name}, row);
  }
  if (width() < 2) return;
  const std::vector<float> g = tensor(name, {width()}), b = tensor(name + "b", {width()});
  double mean = 0, square = 0;
  for (const double v : value) mean += v / static_cast<double>(width());
  for (const double v : value) square += (v - mean) * (v - mean) / static_cast<double>(width());
  each([&](double v, size_t i) {
    return (v - mean) / std::sqrt(square + 1e-2) * static_cast<double>(g[i]) +
           static_cast<double>(b[i]);
  });
  const std::vector<std::string> inputs = {at, name, name + "b"};
  step("LayerNormalization", inputs, row);
  c.nodes.back().attributes.push_back(onnx_attribute("epsilon", 1e-2f));
}

TEST(OnnxTraining, RandomRowsOfOperatorsLearnWhatTheirFilesHave) {
  ThreadPool pool(1);
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Drawn drawn(seed);
    const std::vector<float> x(drawn.value.begin(), drawn.value.end());
    for (int i = 0; i < 1 + drawn.pick(8); ++i) drawn.add_one();
    if (drawn.c.nodes.empty() || drawn.c.tensors.empty()) continue;
    drawn.c.nodes.push_back(node_of("Identity", {drawn.at}, "y"));
    std::string message = cat("seed ", seed, ":");
    for (const OnnxNode& n : drawn.c.nodes)
      message += cat(" ", n.op, "(", join(n.inputs, ", "), ")");
    SCOPED_TRACE(message);
    int64_t want = 0;
    for (const OnnxTensor& t : drawn.c.tensors) want += t.count();
    const auto imported = import_onnx(model_of(drawn.c), "f", kForTraining);
    ASSERT_TRUE(imported.ok()) << imported.error().str();
    auto network = Network::finalize(imported->network.grid, imported->network.input.after(1));
    ASSERT_TRUE(network.ok()) << network.error().str();
    EXPECT_EQ(imported->made_up, 0);
    EXPECT_EQ(trained_values(*network), want);
    ASSERT_TRUE(imported->fill(*network, pool, DType::f32).ok());
    const std::span<const std::byte> bytes = std::as_bytes(std::span(x));
    const std::vector<float> y = run_network(*network, pool, {bytes.begin(), bytes.end()});
    expect_close(y, {drawn.value.begin(), drawn.value.end()}, 1e-4f);
  }
}

}  // namespace
}  // namespace loom::core::test::onnx_training

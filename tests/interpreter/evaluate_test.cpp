// Graphs that run unchanged: types, control flow, refusals, damaged files.
// tests/outside/onnx_standard.py compares every operator with the standard's own tests.
#include "onnx/interpreter/evaluator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu.hpp"
#include "base/text.hpp"
#include "onnx/interpreter/body.hpp"
#include "onnx/interpreter/folder.hpp"

namespace loom::core::evaluate {
namespace {

OnnxAttribute whole_attribute(std::string name, int64_t value) {
  OnnxAttribute a;
  a.name = std::move(name);
  a.integer = value;
  return a;
}

OnnxAttribute graph_attribute(std::string name, OnnxGraph graph) {
  OnnxAttribute a;
  a.name = std::move(name);
  a.type = OnnxAttributeType::graph;
  a.graphs.push_back(std::move(graph));
  return a;
}

OnnxNode node(std::string op, std::vector<std::string> inputs, std::vector<std::string> outputs,
              std::vector<OnnxAttribute> attributes = {}) {
  OnnxNode n;
  n.name = cat(op, " of ", outputs.empty() ? "nothing" : outputs[0]);
  n.op = std::move(op);
  n.inputs = std::move(inputs);
  n.outputs = std::move(outputs);
  n.attributes = std::move(attributes);
  return n;
}

OnnxValue value(std::string name, OnnxType type) {
  OnnxValue v;
  v.name = std::move(name);
  v.type = type;
  return v;
}

OnnxModel model_of(OnnxGraph graph, int64_t opset = 20) {
  OnnxModel m;
  m.ir_version = 8;
  m.opsets = {{"", opset}};
  m.graph = std::move(graph);
  return m;
}

template <class T>
Value array(Memory& memory, OnnxType type, Dims dims, const std::vector<T>& values) {
  Value v = *Value::make(memory, type, std::move(dims));
  std::copy(values.begin(), values.end(), v.data<T>());
  return v;
}
template <class T>
std::vector<T> values_of(const Slot& s) {
  return {s.tensor.data<T>(), s.tensor.data<T>() + s.tensor.count()};
}

struct Rig {
  ThreadPool pool{1};
  std::string bytes;
  Result<Evaluator> load(const OnnxModel& model) {
    bytes = *onnx_bytes(model);
    return open(bytes);
  }
  Result<Evaluator> open(const std::string& file) {
    return Evaluator::load(FileRef::of_bytes("test.onnx", std::as_bytes(std::span(file))),
                           cpu_ops(best_isa()), pool);
  }
};

OnnxGraph two_inputs(std::string op, OnnxType type, std::vector<OnnxAttribute> attributes = {}) {
  OnnxGraph g;
  g.inputs = {value("a", type), value("b", type)};
  g.outputs = {value("y", type)};
  g.nodes = {node(std::move(op), {"a", "b"}, {"y"}, std::move(attributes))};
  return g;
}

template <class T>
std::vector<T> run_pair(const std::string& op, OnnxType type, const std::vector<T>& a,
                        const std::vector<T>& b) {
  Rig rig;
  Result<Evaluator> e = rig.load(model_of(two_inputs(op, type)));
  EXPECT_TRUE(e.ok()) << e.error().str();
  const Dims dims{static_cast<int64_t>(a.size())};
  std::vector<Slot> in{Slot::of(array(e->memory(), type, dims, a)),
                       Slot::of(array(e->memory(), type, dims, b))};
  const Result<std::vector<Slot>> y = e->run(std::move(in));
  EXPECT_TRUE(y.ok()) << y.error().str();
  EXPECT_EQ((*y)[0].tensor.type, type);
  return values_of<T>((*y)[0]);
}

OnnxTensor floats(std::string name, Dims shape, uint32_t seed) {
  OnnxTensor t;
  t.name = std::move(name);
  t.type = OnnxType::f32;
  t.shape = std::move(shape);
  std::vector<float> values;
  for (int64_t i = 0; i < product(t.shape); ++i) {
    seed = seed * 1664525 + 1013904223;
    values.push_back(static_cast<float>(seed >> 16) / 65536.0F + 0.1F);
  }
  const auto bytes = std::as_bytes(std::span(values));
  t.own.assign(bytes.begin(), bytes.end());
  return t;
}

// x -> convolution -> norm -> act, where the values between may be outputs too.
OnnxModel normed(const std::string& act, bool shown, Dims kernel) {
  OnnxGraph g;
  g.inputs = {value("x", OnnxType::f32)};
  g.nodes = {node("Conv", {"x", "w", "b"}, {"c"}),
             node("BatchNormalization", {"c", "scale", "shift", "mean", "var"}, {"n"})};
  if (act == "SiLU") {
    g.nodes.push_back(node("Sigmoid", {"n"}, {"s"}));
    g.nodes.push_back(node("Mul", {"n", "s"}, {"y"}));
  } else {
    g.nodes.push_back(node(act, {"n"}, {"y"}));
  }
  g.outputs = {value("y", OnnxType::f32)};
  if (shown) {
    g.outputs.push_back(value("c", OnnxType::f32));
    g.outputs.push_back(value("n", OnnxType::f32));
  }
  kernel.insert(kernel.begin(), {3, 2});
  g.initializers = {floats("w", kernel, 1),  floats("b", {3}, 2),    floats("scale", {3}, 3),
                    floats("shift", {3}, 4), floats("mean", {3}, 5), floats("var", {3}, 6)};
  return model_of(std::move(g));
}

TEST(Evaluate, NormsAndActivationsBehindAConvolutionBecomePartOfIt) {
  struct Row {
    std::string act;
    Dims kernel;
    int64_t steps, apart;  // as one, and with the values between as outputs
  };
  const std::vector<Row> rows = {{"SiLU", {3, 3}, 1, 4},
                                 {"HardSwish", {1, 1}, 1, 3},
                                 {"Sigmoid", {2, 3}, 1, 3},
                                 {"Tanh", {5, 4}, 1, 3},
                                 {"Relu", {3, 3}, 2, 3}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.act);
    std::vector<float> made[2];
    for (const bool shown : {false, true}) {
      Rig rig;
      Result<Evaluator> e = rig.load(normed(row.act, shown, row.kernel));
      ASSERT_TRUE(e.ok()) << e.error().str();
      EXPECT_EQ(e->steps(), shown ? row.apart : row.steps);
      std::vector<float> x;
      for (int i = 0; i < 2 * 2 * 6 * 7; ++i) x.push_back(0.1F * static_cast<float>(i % 13) - 0.5F);
      const auto y = e->run({Slot::of(array(e->memory(), OnnxType::f32, {2, 2, 6, 7}, x))});
      ASSERT_TRUE(y.ok()) << y.error().str();
      made[shown ? 1 : 0] = values_of<float>((*y)[0]);
    }
    ASSERT_EQ(made[0].size(), made[1].size());
    for (size_t i = 0; i < made[0].size(); ++i) EXPECT_NEAR(made[0][i], made[1][i], 1e-5) << i;
  }
}

TEST(Evaluate, WholeNumbersWrapAsTheirTypeDoes) {
  EXPECT_EQ(run_pair<int8_t>("Add", OnnxType::i8, {127, -128, 5}, {1, -1, 6}),
            (std::vector<int8_t>{-128, 127, 11}));
  EXPECT_EQ(run_pair<uint16_t>("Mul", OnnxType::u16, {65535, 256}, {2, 256}),
            (std::vector<uint16_t>{65534, 0}));
  EXPECT_EQ(run_pair<int64_t>("Add", OnnxType::i64, {INT64_MAX, (int64_t{1} << 53) + 1}, {1, 1}),
            (std::vector<int64_t>{INT64_MIN, (int64_t{1} << 53) + 2}));
}

TEST(Evaluate, DivisionOfWholeNumbersNeverEndsTheProcess) {
  EXPECT_EQ(run_pair<int64_t>("Div", OnnxType::i64, {7, -7, 5, INT64_MIN}, {2, 2, 0, -1}),
            (std::vector<int64_t>{3, -3, 0, INT64_MIN}));
  EXPECT_EQ(run_pair<int64_t>("Mod", OnnxType::i64, {7, -7, 5, INT64_MIN}, {3, 3, 0, -1}),
            (std::vector<int64_t>{1, 2, 0, 0}));
}

TEST(Evaluate, SmallFloatsRoundToNearestEvenAndSaturate) {
  const Casting saturating, open{.saturate = false};
  EXPECT_EQ(
      small_float_value(OnnxType::f8e4m3fn, small_float_code(OnnxType::f8e4m3fn, 1000, saturating)),
      448.0F);
  EXPECT_TRUE(std::isnan(
      small_float_value(OnnxType::f8e4m3fn, small_float_code(OnnxType::f8e4m3fn, 1000, open))));
  for (const OnnxType type :
       {OnnxType::f8e4m3fn, OnnxType::f8e4m3fnuz, OnnxType::f8e5m2, OnnxType::f8e5m2fnuz}) {
    for (int code = 0; code < 256; ++code) {  // every number is its own nearest one
      const float v = small_float_value(type, static_cast<uint8_t>(code));
      if (std::isfinite(v)) {
        EXPECT_EQ(small_float_code(type, v, saturating), code);
      }
    }
  }
}

// y = a > 0 ? a + b : a - b, b being read from outside of the branches.
OnnxGraph branch(const std::string& op) {
  OnnxGraph g;
  g.outputs = {value("r", OnnxType::f32)};
  g.nodes = {node(op, {"a", "b"}, {"r"})};
  return g;
}

TEST(Evaluate, BranchesReadWhatIsAroundThem) {
  OnnxGraph g;
  g.inputs = {value("c", OnnxType::boolean), value("a", OnnxType::f32), value("b", OnnxType::f32)};
  g.outputs = {value("y", OnnxType::f32)};
  g.nodes = {node("If", {"c"}, {"y"},
                  {graph_attribute("then_branch", branch("Add")),
                   graph_attribute("else_branch", branch("Sub"))})};
  Rig rig;
  Result<Evaluator> e = rig.load(model_of(g));
  ASSERT_TRUE(e.ok()) << e.error().str();
  for (const bool yes : {true, false}) {
    std::vector<Slot> in{
        Slot::of(array<uint8_t>(e->memory(), OnnxType::boolean, {}, {uint8_t{yes}})),
        Slot::of(array<float>(e->memory(), OnnxType::f32, {2}, {5, 1})),
        Slot::of(array<float>(e->memory(), OnnxType::f32, {2}, {2, 3}))};
    const auto y = e->run(std::move(in));
    ASSERT_TRUE(y.ok()) << y.error().str();
    EXPECT_EQ(values_of<float>((*y)[0]),
              yes ? (std::vector<float>{7, 4}) : (std::vector<float>{3, -2}));
  }
}

// s = s + i while i < n; what each step has goes to a scan output.
TEST(Evaluate, LoopsCarryStatesAndStackWhatTheyGive) {
  OnnxGraph body;
  body.inputs = {value("i", OnnxType::i64), value("go", OnnxType::boolean),
                 value("s", OnnxType::i64)};
  body.outputs = {value("go_on", OnnxType::boolean), value("t", OnnxType::i64),
                  value("seen", OnnxType::i64)};
  body.nodes = {node("Add", {"s", "i"}, {"t"}), node("Identity", {"go"}, {"go_on"}),
                node("Identity", {"t"}, {"seen"})};
  OnnxGraph g;
  g.inputs = {value("n", OnnxType::i64), value("s0", OnnxType::i64)};
  g.outputs = {value("sum", OnnxType::i64), value("all", OnnxType::i64)};
  g.nodes = {node("Loop", {"n", "", "s0"}, {"sum", "all"}, {graph_attribute("body", body)})};
  Rig rig;
  Result<Evaluator> e = rig.load(model_of(g));
  ASSERT_TRUE(e.ok()) << e.error().str();
  const auto y = e->run({Slot::of(array<int64_t>(e->memory(), OnnxType::i64, {}, {4})),
                         Slot::of(array<int64_t>(e->memory(), OnnxType::i64, {}, {10}))});
  ASSERT_TRUE(y.ok()) << y.error().str();
  EXPECT_EQ(values_of<int64_t>((*y)[0]), (std::vector<int64_t>{16}));
  EXPECT_EQ(values_of<int64_t>((*y)[1]), (std::vector<int64_t>{10, 11, 13, 16}));
}

struct Refusal {
  std::string what;
  OnnxGraph graph;
  std::string message;
};

TEST(Evaluate, WhatIsNotKnownIsRefusedByNameWhenTheGraphIsOpened) {
  const std::vector<Refusal> refusals = {
      {"an operator", two_inputs("Frobnicate", OnnxType::f32),
       "(Frobnicate): an operator that Loom does not know"},
      {"an attribute", two_inputs("Add", OnnxType::f32, {whole_attribute("colour", 3)}),
       "(Add): its attribute 'colour' is not known"},
      {"a count of inputs", two_inputs("Relu", OnnxType::f32), "(Relu): has 2 inputs"},
  };
  for (const Refusal& r : refusals) {
    Rig rig;
    const Result<Evaluator> e = rig.load(model_of(r.graph));
    ASSERT_FALSE(e.ok()) << r.what;
    EXPECT_EQ(e.error().code, Code::unsupported) << r.what;
    EXPECT_NE(e.error().str().find(r.message), std::string::npos) << e.error().str();
  }
}

TEST(Evaluate, InputsAreComparedWithTheFile) {
  Rig rig;
  Result<Evaluator> e = rig.load(model_of(two_inputs("Add", OnnxType::f32)));
  ASSERT_TRUE(e.ok());
  const Slot right = Slot::of(array<float>(e->memory(), OnnxType::f32, {2}, {1, 2}));
  const Slot other = Slot::of(array<int64_t>(e->memory(), OnnxType::i64, {2}, {1, 2}));
  const Slot longer = Slot::of(array<float>(e->memory(), OnnxType::f32, {3}, {1, 2, 3}));
  EXPECT_FALSE(e->run({right}).ok());
  EXPECT_NE(e->run({right, other}).error().str().find("'b' is float in the file, int64 given"),
            std::string::npos);
  EXPECT_NE(e->run({right, longer}).error().str().find("(Add): shapes that do not fit"),
            std::string::npos);
}

TEST(Evaluate, ValuesHaveALimitOfMemory) {
  OnnxGraph g;
  g.inputs = {value("n", OnnxType::i64)};
  g.outputs = {value("y", OnnxType::f32)};
  g.nodes = {node("ConstantOfShape", {"n"}, {"y"})};
  Rig rig;
  rig.bytes = *onnx_bytes(model_of(g));
  Result<Evaluator> e =
      Evaluator::load(FileRef::of_bytes("test.onnx", std::as_bytes(std::span(rig.bytes))),
                      cpu_ops(best_isa()), rig.pool, {.memory_limit = 1 << 20});
  ASSERT_TRUE(e.ok());
  const auto y =
      e->run({Slot::of(array<int64_t>(e->memory(), OnnxType::i64, {2}, {1 << 16, 1 << 16}))});
  ASSERT_FALSE(y.ok());
  EXPECT_EQ(y.error().code, Code::out_of_memory);
}

TEST(Evaluate, CutAndFlippedFilesEndInAnError) {
  OnnxGraph g;
  g.inputs = {value("c", OnnxType::boolean), value("a", OnnxType::f32), value("b", OnnxType::f32)};
  g.outputs = {value("y", OnnxType::f32)};
  g.nodes = {node("If", {"c"}, {"y"},
                  {graph_attribute("then_branch", branch("Add")),
                   graph_attribute("else_branch", branch("Sub"))})};
  const std::string whole = *onnx_bytes(model_of(g));
  Rig rig;
  for (size_t n = 0; n < whole.size(); ++n) (void)rig.open(whole.substr(0, n));
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = whole;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      (void)rig.open(bad);
    }
  }
}

TEST(Evaluate, EveryOperatorHasANameOfItsOwn) {
  std::vector<std::string> names;
  for (const auto families : {common_families(), operator_families()}) {
    for (const auto family : families) {
      for (const Operator& o : family) names.push_back(cat(o.domain, ":", o.name));
    }
  }
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
  EXPECT_GT(names.size(), 180U);
}

OnnxAttribute listed(std::string name, std::vector<int64_t> integers, std::vector<float> reals = {},
                     std::vector<std::string> texts = {}) {
  OnnxAttribute a;
  a.name = std::move(name);
  a.type = !integers.empty() ? OnnxAttributeType::integers
           : !reals.empty()  ? OnnxAttributeType::reals
                             : OnnxAttributeType::texts;
  a.integers = std::move(integers);
  a.reals = std::move(reals);
  a.texts = std::move(texts);
  return a;
}

// x <= 0.5 ? class 4 : (class 7 half the time), of one tree.
OnnxModel tree_model(std::vector<int64_t> yes, std::vector<int64_t> no, int64_t of_class = 1) {
  OnnxNode n =
      node("TreeEnsembleClassifier", {"x"}, {"label", "scores"},
           {listed("nodes_treeids", {0, 0, 0}), listed("nodes_nodeids", {0, 1, 2}),
            listed("nodes_featureids", {1, 0, 0}), listed("nodes_truenodeids", yes),
            listed("nodes_falsenodeids", no), listed("nodes_values", {}, {0.5f, 0, 0}),
            listed("nodes_modes", {}, {}, {"BRANCH_LEQ", "LEAF", "LEAF"}),
            listed("class_treeids", {0, 0, 0}), listed("class_nodeids", {1, 2, 2}),
            listed("class_ids", {0, 0, of_class}), listed("class_weights", {}, {1, 0.25f, 0.75f}),
            listed("classlabels_int64s", {4, 7})});
  n.domain = "ai.onnx.ml";
  OnnxGraph g;
  g.nodes = {n};
  g.inputs = {value("x", OnnxType::f32)};
  g.outputs = {value("label", OnnxType::i64), value("scores", OnnxType::f32)};
  OnnxModel m = model_of(g);
  m.opsets.emplace_back("ai.onnx.ml", 3);
  return m;
}

TEST(EvaluateMl, TreesGiveLabelsAndScores) {
  ThreadPool pool(1);
  auto graph = Evaluator::of(tree_model({1, 0, 0}, {2, 0, 0}), cpu_ops(best_isa()), pool);
  ASSERT_TRUE(graph.ok()) << graph.error().str();
  const auto out = graph->run(
      {Slot::of(array<float>(graph->memory(), OnnxType::f32, {2, 2}, {9, 0.5f, 9, 0.75f}))});
  ASSERT_TRUE(out.ok()) << out.error().str();
  const auto* labels = (*out)[0].tensor.data<int64_t>();
  EXPECT_EQ(std::vector<int64_t>(labels, labels + 2), (std::vector<int64_t>{4, 7}));
  const auto* scores = (*out)[1].tensor.data<float>();
  EXPECT_EQ(std::vector<float>(scores, scores + 4), (std::vector<float>{1, 0, 0.25f, 0.75f}));
}

TEST(EvaluateMl, TreesThatLeadNowhereOrBackAreRefused) {
  ThreadPool pool(1);
  const auto error = [&](const OnnxModel& m) {
    const auto graph = Evaluator::of(m, cpu_ops(best_isa()), pool);
    return graph.ok() ? "" : graph.error().message;
  };
  const std::string who = "node 'TreeEnsembleClassifier of label' (TreeEnsembleClassifier): ";
  EXPECT_EQ(error(tree_model({1, 0, 0}, {3, 0, 0})), who + "node 0 of tree 0 leads nowhere");
  EXPECT_EQ(error(tree_model({1, 0, 0}, {0, 0, 0})), who + "a tree that leads back into itself");
  EXPECT_EQ(error(tree_model({1, 0, 0}, {2, 0, 0}, 2)), who + "weight 2 is of no node or no class");
}

TEST(EvaluateFolder, ComputesOneNodeOfConstants) {
  const OnnxFolder fold = evaluating_folder(cpu_ops(best_isa()));
  const std::vector<float> x = {1, 2, 3};
  const OnnxTensor tensor = onnx_tensor("t", {3}, std::span<const float>(x));
  const OnnxTensor* inputs[] = {&tensor};
  const auto sums = fold(node("ReduceSum", {"t"}, {"y"}), 20, inputs);
  ASSERT_TRUE(sums.ok()) << sums.error().str();
  ASSERT_EQ(sums->size(), 1u);
  EXPECT_EQ(*onnx_f32((*sums)[0]), (std::vector<float>{6}));
  const auto pair = fold(node("TopK", {"t", "k"}, {"", "places"}), 20, inputs);
  ASSERT_FALSE(pair.ok());
  EXPECT_EQ(pair.error().message, "node 'TopK of ' (TopK): its input 'k' is not known");
  const auto list = fold(node("SequenceConstruct", {"t"}, {"y"}), 20, inputs);
  ASSERT_FALSE(list.ok());
  EXPECT_EQ(
      list.error().message,
      "node 'SequenceConstruct of y' (SequenceConstruct): its constant output is not a tensor");
}

}  // namespace
}  // namespace loom::core::evaluate

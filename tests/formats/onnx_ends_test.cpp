// Handmade models with ends that misled the importer: another shape than that of their last layer,
// and functions of a value whose activation went into a layer.
#include <cmath>
#include <functional>

#include "base/threads/thread_pool.hpp"
#include "formats/onnx_network_testing.hpp"

namespace loom::core::test::onnx_ends {
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

constexpr int64_t kBatch = 7;

// x [b, 2] times 3 times the identity, as v1.
OnnxModel tripled(std::vector<OnnxNode> nodes, const std::vector<std::string>& outputs) {
  OnnxModel m;
  m.ir_version = 9;
  m.opsets = {{"", 17}};
  m.graph.inputs = {{"x", OnnxType::f32, true, {{-1, "b"}, {2, ""}}}};
  for (const std::string& name : outputs)
    m.graph.outputs.push_back({name, OnnxType::f32, false, {}});
  m.graph.initializers = {onnx_tensor("w", {2, 2}, std::vector<float>{3, 0, 0, 3})};
  m.graph.nodes = {node_of("MatMul", {"x", "w"}, "v1")};
  for (OnnxNode& n : nodes) m.graph.nodes.push_back(std::move(n));
  return m;
}

std::vector<float> ran(const OnnxModel& model, ThreadPool& pool, const std::vector<float>& x) {
  const auto imported = import_onnx(model, "f");
  EXPECT_TRUE(imported.ok()) << imported.error().str();
  auto network = Network::finalize(imported->network.grid, imported->network.input.after(1));
  EXPECT_TRUE(imported->fill(*network, pool, DType::f32).ok());
  const std::span<const std::byte> bytes = std::as_bytes(std::span(x));
  return run_network(*network, pool, {bytes.begin(), bytes.end()});
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// Issue 37, line 29: the type of an output may be left to what computes it.
TEST(OnnxEnds, AnOutputWithoutATypeIsWhatItsNodeGives) {
  ThreadPool pool(1);
  const std::vector<OnnxNode> by_nodes = {node_of("Sigmoid", {"v1"}, "s"),
                                          node_of("Log", {"s"}, "y")};
  for (const auto& nodes : {std::vector<OnnxNode>{node_of("Sigmoid", {"v1"}, "y")}, by_nodes}) {
    OnnxModel model = tripled(nodes, {"y"});
    const std::vector<float> x(2, 0.25f), want = ran(model, pool, x);
    model.graph.outputs[0].type = OnnxType::undefined;
    EXPECT_EQ(ran(model, pool, x), want);
  }
}

TEST(OnnxEnds, FunctionsOfAnActivationInALayerAreNotItsOwnAgain) {
  ThreadPool pool(1);
  const auto s = [] { return node_of("Sigmoid", {"v1"}, "s"); };
  const auto r = [] { return node_of("Relu", {"v1"}, "s"); };
  struct Case {
    const char* name;
    std::vector<OnnxNode> nodes;
    std::vector<std::string> outputs;
    std::function<double(double)> want;
  };
  const Case cases[] = {
      {"the larger of itself", {s(), node_of("Max", {"s", "s"}, "y")}, {"y"}, sigmoid},
      {"the same, and the value", {s(), node_of("Max", {"s", "s"}, "y")}, {"y", "s"}, sigmoid},
      {"its logarithm",
       {s(), node_of("Log", {"s"}, "y")},
       {"y"},
       [](double v) { return std::log(sigmoid(v)); }},
      {"its logarithm, and the value",
       {s(), node_of("Log", {"s"}, "y")},
       {"y", "s"},
       [](double v) { return std::log(sigmoid(v)); }},
      {"a value that another reads too",
       {s(), node_of("Log", {"s"}, "l"), node_of("Add", {"l", "s"}, "y")},
       {"y"},
       [](double v) { return std::log(sigmoid(v)) + sigmoid(v); }},
      {"a value that goes by two names",
       {node_of("Identity", {"v1"}, "i"), node_of("Sigmoid", {"i"}, "s"),
        node_of("Add", {"s", "v1"}, "y")},
       {"y"},
       [](double v) { return v + sigmoid(v); }},
      {"the same, in the other order",
       {node_of("Identity", {"v1"}, "i"), node_of("Sigmoid", {"v1"}, "s"),
        node_of("Add", {"s", "i"}, "y")},
       {"y", "s"},
       [](double v) { return v + sigmoid(v); }},
      {"the negated one",
       {r(), node_of("Neg", {"s"}, "y")},
       {"y"},
       [](double v) { return -std::max(v, 0.0); }},
  };
  const std::vector<float> x = {0.7f, -1.1f};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    std::vector<float> want;
    for (const float v : x) want.push_back(static_cast<float>(c.want(3.0 * v)));
    expect_close(ran(tripled(c.nodes, c.outputs), pool, x), want, 1e-5f);
  }
}

// If(condition) { Neg(v1) } else { Sigmoid(v1) }, whose nodes have the same names in both.
OnnxNode branching(const std::string& condition, const std::string& output) {
  OnnxNode n = node_of("If", {condition}, output);
  for (const bool then : {true, false}) {
    OnnxAttribute a;
    a.name = then ? "then_branch" : "else_branch";
    a.type = OnnxAttributeType::graph;
    OnnxGraph g;
    g.name = a.name;
    g.nodes = {node_of(then ? "Neg" : "Sigmoid", {"v1"}, "inner")};
    g.outputs = {{"inner", OnnxType::f32, false, {}}};
    a.graphs = {std::move(g)};
    n.attributes.push_back(std::move(a));
  }
  return n;
}

TEST(OnnxEnds, AnIfWhoseConditionIsKnownIsTheBranchThatItTakes) {
  ThreadPool pool(1);
  const std::vector<float> x = {0.7f, -1.1f};
  for (const bool taken : {true, false}) {
    SCOPED_TRACE(taken);
    // Two of them, with the same names inside; the value is read in a branch and outside.
    OnnxModel m = tripled({branching("asked", "a"), branching("asked", "b"),
                           node_of("Add", {"a", "b"}, "c"), node_of("Add", {"c", "v1"}, "y")},
                          {"y"});
    m.graph.initializers.push_back(onnx_tensor("asked", {1}, std::vector<int64_t>{taken ? 1 : 0}));
    m.graph.initializers.back().type = OnnxType::boolean;
    m.graph.initializers.back().own = {static_cast<std::byte>(taken ? 1 : 0)};
    std::vector<float> want;
    for (const float v : x)
      want.push_back(static_cast<float>(3 * v + 2 * (taken ? -3 * v : sigmoid(3 * v))));
    expect_close(ran(m, pool, x), want, 1e-5f);
    // The same as a file, which the reader for networks has to enter.
    const Result<std::string> bytes = onnx_bytes(m);
    ASSERT_TRUE(bytes.ok()) << bytes.error().str();
    const auto read = parse_onnx(std::as_bytes(std::span(*bytes)), "f");
    ASSERT_TRUE(read.ok()) << read.error().str();
    expect_close(ran(*read, pool, x), want, 1e-5f);
  }
}

TEST(OnnxEnds, AnIfThatDependsOnTheInputIsRefusedByName) {
  OnnxModel m =
      tripled({node_of("ReduceMax", {"v1"}, "most", {onnx_attribute("keepdims", int64_t{0})}),
               node_of("Cast", {"most"}, "asked", {onnx_attribute("to", int64_t{9})}),
               branching("asked", "y")},
              {"y"});
  const auto imported = import_onnx(m, "f");
  ASSERT_FALSE(imported.ok());
  EXPECT_NE(imported.error().str().find("(If): its condition depends on an input"),
            std::string::npos)
      << imported.error().str();
}

TEST(OnnxEnds, OutputsHaveTheShapeThatTheFileGivesThem) {
  struct Case {
    std::vector<OnnxNode> nodes;
    Shape want;
  };
  const auto reshape = [](const char* to) { return node_of("Reshape", {"v1", to}, "y"); };
  const Case cases[] = {
      {{node_of("Identity", {"v1"}, "y")}, {kBatch, 2}},
      {{reshape("line")}, {kBatch, 1, 2}},
      {{reshape("column")}, {kBatch, 2, 1}},
      {{node_of("Reshape", {"v1", "line"}, "a"), node_of("Flatten", {"a"}, "y")}, {kBatch, 2}},
      {{node_of("Reshape", {"v1", "line"}, "a"), node_of("Relu", {"a"}, "b"),
        node_of("Flatten", {"b"}, "y")},
       {kBatch, 2}},
  };
  for (const Case& c : cases) {
    OnnxModel m = tripled(c.nodes, {"y"});
    m.graph.initializers.push_back(onnx_tensor("line", {3}, std::vector<int64_t>{-1, 1, 2}));
    m.graph.initializers.push_back(onnx_tensor("column", {3}, std::vector<int64_t>{-1, 2, 1}));
    const auto imported = import_onnx(m, "f");
    ASSERT_TRUE(imported.ok()) << imported.error().str();
    const auto network =
        Network::finalize(imported->network.grid, imported->network.input.after(kBatch));
    ASSERT_TRUE(network.ok()) << network.error().str();
    EXPECT_EQ(network->output(), c.want);
  }
}

// The place of a word as one row of a table: [b, 1] to [b, 1, 1], laid flat again.
TEST(OnnxEnds, ARowOfATableOfOneNumberLiesFlat) {
  OnnxModel m = tripled({}, {"y"});
  m.graph.inputs = {{"ids", OnnxType::i64, true, {{-1, "b"}, {1, ""}}}};
  m.graph.initializers[0].shape = {4, 1};
  m.graph.nodes = {node_of("Gather", {"w", "ids"}, "rows"), node_of("Flatten", {"rows"}, "y")};
  const auto imported = import_onnx(m, "f");
  ASSERT_TRUE(imported.ok()) << imported.error().str();
  const auto network =
      Network::finalize(imported->network.grid, imported->network.input.after(kBatch));
  ASSERT_TRUE(network.ok()) << network.error().str();
  EXPECT_EQ(network->output(), (Shape{kBatch, 1}));
}

}  // namespace
}  // namespace loom::core::test::onnx_ends

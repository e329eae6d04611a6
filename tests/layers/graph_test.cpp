// Graph and its kinds: names and wires, refusals with their messages, and values computed by hand.
// tests/outside has random graphs against an independent evaluator.
#include "layers/core/graph.hpp"

#include <gmock/gmock.h>

#include "layers/layer_fixture.hpp"

namespace loom::core::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using List = std::vector<int64_t>;

LayerConfig made(LayerKind kind, const std::vector<Field>& fields = {},
                 std::vector<LayerConfig> children = {}) {
  Result<LayerConfig> layer = make_layer(kind, fields, std::move(children));
  EXPECT_TRUE(layer.ok()) << layer.error().str();
  return std::move(*layer);
}

LayerConfig graph_of(const GraphNames& names, std::vector<LayerConfig> nodes) {
  const Result<GraphWiring> wiring = wire_graph(names);
  EXPECT_TRUE(wiring.ok()) << wiring.error().str();
  Result<LayerConfig> graph = make_graph(*wiring, std::move(nodes));
  EXPECT_TRUE(graph.ok()) << graph.error().str();
  return std::move(*graph);
}

// One input, and nodes in order, each with its list of inputs.
std::vector<float> run_nodes(const std::vector<std::vector<std::string>>& from,
                             std::vector<LayerConfig> nodes, const std::vector<float>& x,
                             const Shape& shape) {
  GraphNames names;
  for (const auto& read : from) names.nodes.push_back({"", read});
  return LayerRig(graph_of(names, std::move(nodes)), shape, shape[0]).run(x, shape);
}

TEST(Graph, ANodeReadsTheOneBeforeItUnlessItSaysOtherwise) {
  GraphNames names;
  names.nodes = {{"a", {}}, {"", {}}, {"sum", {{"a", "1"}}}};
  const Result<GraphWiring> w = wire_graph(names);
  ASSERT_TRUE(w.ok()) << w.error().str();
  EXPECT_THAT(w->nodes[0], ElementsAre(GraphValue{kGraphInput, 0}));
  EXPECT_THAT(w->nodes[1], ElementsAre(GraphValue{0, 0}));
  EXPECT_THAT(w->nodes[2], ElementsAre(GraphValue{0, 0}, GraphValue{1, 0}));
  EXPECT_THAT(w->outputs, ElementsAre(GraphValue{2, 0}));
}

TEST(Graph, NamesSurviveTheWayThroughNumbers) {
  GraphNames names;
  names.inputs = {"picture"};
  names.nodes = {{"a", {{"picture"}}}, {"", {{"a"}}}, {"join", {{"a", "1", "picture"}}}};
  names.outputs = {"join"};
  const LayerConfig graph =
      graph_of(names, {made(LayerKind::unary), made(LayerKind::unary), made(LayerKind::concat)});
  const GraphNames back = graph_names(graph);
  EXPECT_EQ(back.inputs, names.inputs);
  EXPECT_EQ(back.outputs, names.outputs);
  ASSERT_EQ(back.nodes.size(), names.nodes.size());
  for (size_t i = 0; i < names.nodes.size(); ++i) {
    EXPECT_EQ(back.nodes[i].name, names.nodes[i].name);
    EXPECT_EQ(back.nodes[i].from, names.nodes[i].from);
  }
}

TEST(Graph, WhatCannotBeIsRefusedInOneLine) {
  struct Case {
    std::string_view name;
    GraphNames names;
    std::string_view says;
  };
  const Case cases[] = {
      {"a later node",
       {{"x"}, {{"a", {{"b"}}}, {"b", {{"x"}}}}, {}},
       "'a' reads 'b', which no node"},
      {"itself", {{"x"}, {{"a", {{"a"}}}}, {}}, "'a' reads 'a', which no node before it is called"},
      {"twice", {{"x"}, {{"a", {}}, {"a", {}}}, {}}, "the name 'a' occurs twice"},
      {"like the input", {{"x"}, {{"x", {}}}, {}}, "the name 'x' occurs twice"},
      {"a number", {{"x"}, {{"7", {}}}, {}}, "'7' cannot be a name"},
      {"a colon", {{"x"}, {{"a:b", {}}}, {}}, "'a:b' cannot be a name"},
      {"no output",
       {{"x"}, {{"a", {{"x:z"}}}}, {}},
       "give the number of an output after the colon"},
      {"second input value", {{"x"}, {{"a", {{"x:1"}}}}, {}}, "an input is one value"},
      {"unknown output", {{"x"}, {{"a", {}}}, {"b"}}, "the list of outputs reads 'b'"},
  };
  for (const Case& c : cases) {
    const Result<GraphWiring> w = wire_graph(c.names);
    ASSERT_FALSE(w.ok()) << c.name;
    EXPECT_THAT(w.error().message, HasSubstr(std::string(c.says))) << c.name;
  }
}

std::string inferred(const LayerConfig& layer, const Shape& in) {
  const Result<Shape> out = infer_shape(layer, in);
  return out.ok() ? out->str() : out.error().message;
}

TEST(Graph, ShapesAndTheirErrorsNameTheNode) {
  GraphNames names;
  names.nodes = {{"left", {{"input"}}}, {"right", {{"input"}}}, {"both", {{"left", "right"}}}};
  const auto nodes = [](int64_t right) {
    return std::vector<LayerConfig>{made(LayerKind::dense, {{"in", 5}, {"out", 3}}),
                                    made(LayerKind::dense, {{"in", 5}, {"out", right}}),
                                    made(LayerKind::binary, {{"function", "mul"}})};
  };
  EXPECT_EQ(inferred(graph_of(names, nodes(3)), Shape{2, 5}), "[2, 3]");
  EXPECT_EQ(inferred(graph_of(names, nodes(1)), Shape{2, 5}), "[2, 3]");
  EXPECT_THAT(inferred(graph_of(names, nodes(4)), Shape{2, 5}),
              HasSubstr("node 'both' of Graph: Binary mul: [2, 3] and [2, 4]"));
  EXPECT_THAT(inferred(graph_of(names, nodes(3)), Shape{2, 6}), HasSubstr("node 'left' of Graph"));
}

TEST(Graph, ANodeThatNobodyReadsIsAMistake) {
  GraphNames names;
  names.nodes = {{"lost", {}}, {"a", {{"input"}}}};
  const LayerConfig graph = graph_of(names, {made(LayerKind::unary), made(LayerKind::unary)});
  EXPECT_THAT(inferred(graph, Shape{1, 2}), HasSubstr("node 'lost' is not read by any node"));
}

TEST(Graph, KindsOfSeveralInputsStandOnlyInAGraph) {
  EXPECT_THAT(inferred(made(LayerKind::binary), Shape{1, 2}),
              HasSubstr("Binary takes at least 2 inputs, but 1 is given"));
  EXPECT_THAT(inferred(made(LayerKind::constant), Shape{1, 2}),
              HasSubstr("Constant takes 0 inputs"));
  GraphNames names;
  names.nodes = {{"", {{"input", "input"}}}};
  EXPECT_THAT(inferred(graph_of(names, {made(LayerKind::softmax)}), Shape{1, 2}),
              HasSubstr("node 0 of Graph: Softmax takes 1 input, but 2 are given"));
  LayerConfig two = made(LayerKind::graph, {{"inputs", 2}});
  EXPECT_THAT(inferred(two, Shape{1, 2}), HasSubstr("Graph takes 2 inputs, but 1 is given"));
}

TEST(Graph, ADisabledNodePassesItsFirstInputOn) {
  LayerConfig off = made(LayerKind::binary, {{"function", "mul"}});
  off.disabled = true;
  EXPECT_THAT(run_nodes({{"input"}, {"0", "input"}},
                        {made(LayerKind::unary, {{"function", "neg"}}), off}, {1, 2}, Shape{1, 2}),
              ElementsAre(-1, -2));
}

TEST(Graph, ABareResidualAddsItsSecondInput) {
  EXPECT_THAT(
      run_nodes({{"input"}, {"0", "input"}},
                {made(LayerKind::unary, {{"function", "square"}}), made(LayerKind::residual)},
                {3, 4}, Shape{1, 2}),
      ElementsAre(12, 20));
}

TEST(Binary, BroadcastsAsNumPyDoes) {
  const auto mul = [] { return made(LayerKind::binary, {{"function", "mul"}}); };
  const auto sub = [] { return made(LayerKind::binary, {{"function", "sub"}}); };
  const auto sum = [](int64_t axis) {
    return made(LayerKind::reduce, {{"axes", List{axis}}, {"keep", true}});
  };
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  // A column, a row, and both outer sides of [1, 2, 3].
  EXPECT_THAT(run_nodes({{"input"}, {"input", "0"}}, {sum(-1), mul()}, x, Shape{1, 2, 3}),
              ElementsAre(6, 12, 18, 60, 75, 90));
  EXPECT_THAT(run_nodes({{"input"}, {"0", "input"}}, {sum(1), sub()}, x, Shape{1, 2, 3}),
              ElementsAre(4, 5, 6, 1, 2, 3));
  EXPECT_THAT(
      run_nodes({{"input"}, {"input"}, {"0", "1"}}, {sum(1), sum(2), sub()}, x, Shape{1, 2, 3}),
      ElementsAre(5 - 6, 7 - 6, 9 - 6, 5 - 15, 7 - 15, 9 - 15));
}

TEST(Binary, ThreeInputsAreTakenFromTheLeft) {
  EXPECT_THAT(run_nodes({{"input", "input", "input"}},
                        {made(LayerKind::binary, {{"function", "sub"}})}, {1, 5}, Shape{1, 2}),
              ElementsAre(-1, -5));
}

TEST(Concat, JoinsAlongAnyAxis) {
  const auto concat = [](int64_t axis) { return made(LayerKind::concat, {{"axis", axis}}); };
  const std::vector<float> x = {1, 2, 3, 4};
  EXPECT_THAT(run_nodes({{"input", "input"}}, {concat(-1)}, x, Shape{1, 2, 2}),
              ElementsAre(1, 2, 1, 2, 3, 4, 3, 4));
  EXPECT_THAT(run_nodes({{"input", "input"}}, {concat(1)}, x, Shape{1, 2, 2}),
              ElementsAre(1, 2, 3, 4, 1, 2, 3, 4));
  EXPECT_THAT(inferred(concat(3), Shape{1, 2, 2}), HasSubstr("axis 3 is not one of the 3 axes"));
}

TEST(Slice, TakesWhatPythonTakes) {
  // x[0, start:end:step] of range(6).
  struct Case {
    int64_t start, end, step;
    std::vector<float> want;
  };
  constexpr int64_t kFar = int64_t{1} << 50;
  const Case cases[] = {
      {0, 6, 1, {0, 1, 2, 3, 4, 5}}, {1, 4, 1, {1, 2, 3}},  {-2, kFar, 1, {4, 5}},
      {0, -1, 2, {0, 2, 4}},         {1, 6, 2, {1, 3, 5}},  {5, -kFar, -1, {5, 4, 3, 2, 1, 0}},
      {kFar, 2, -2, {5, 3}},         {-kFar, 2, 1, {0, 1}}, {4, 0, -3, {4, 1}}};
  for (const Case& c : cases) {
    const LayerConfig layer = made(LayerKind::slice, {{"starts", List{c.start}},
                                                      {"ends", List{c.end}},
                                                      {"axes", List{1}},
                                                      {"steps", List{c.step}}});
    EXPECT_EQ(run_nodes({{"input"}}, {layer}, {0, 1, 2, 3, 4, 5}, Shape{1, 6}), c.want)
        << c.start << ":" << c.end << ":" << c.step;
  }
  const LayerConfig nothing =
      made(LayerKind::slice, {{"starts", List{3}}, {"ends", List{3}}, {"axes", List{1}}});
  EXPECT_THAT(inferred(nothing, Shape{1, 6}), HasSubstr("nothing is left of axis 1 of [1, 6]"));
}

TEST(Transpose, OrdersAxesWithTheBatch) {
  EXPECT_THAT(run_nodes({{"input"}}, {made(LayerKind::transpose)}, {1, 2, 3, 4, 5, 6}, Shape{2, 3}),
              ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_EQ(inferred(made(LayerKind::transpose, {{"axes", List{0, 3, 1, 2}}}), Shape{2, 3, 4, 5}),
            "[2, 5, 3, 4]");
  EXPECT_THAT(inferred(made(LayerKind::transpose, {{"axes", List{0, 1}}}), Shape{2, 3, 4}),
              HasSubstr("axes has 2 numbers, its input has 3 axes"));
  EXPECT_THAT(inferred(made(LayerKind::transpose, {{"axes", List{0, 1, 1}}}), Shape{2, 3, 4}),
              HasSubstr("axis 1 is named twice"));
}

TEST(Reduce, EachFunctionOverEachAxis) {
  struct Case {
    std::string_view function;
    std::vector<float> over_rows, over_columns;  // of [[1, -2, 3], [-4, 5, -6]]
  };
  const Case cases[] = {{"sum", {2, -5}, {-3, 3, -3}},
                        {"max", {3, 5}, {1, 5, 3}},
                        {"min", {-2, -6}, {-4, -2, -6}},
                        {"l1", {6, 15}, {5, 7, 9}},
                        {"sum_squares", {14, 77}, {17, 29, 45}}};
  const std::vector<float> x = {1, -2, 3, -4, 5, -6};
  for (const Case& c : cases) {
    const auto layer = [&](int64_t axis) {
      return made(LayerKind::reduce, {{"function", std::string(c.function)}, {"axes", List{axis}}});
    };
    EXPECT_EQ(run_nodes({{"input"}}, {layer(-1)}, x, Shape{1, 2, 3}), c.over_rows) << c.function;
    EXPECT_EQ(run_nodes({{"input"}}, {layer(1)}, x, Shape{1, 2, 3}), c.over_columns) << c.function;
  }
}

TEST(MatMul, BroadcastsItsBatches) {
  // [1, 2, 2] times its own transpose, and times a constant [2, 1].
  const std::vector<float> x = {1, 2, 3, 4};
  EXPECT_THAT(run_nodes({{"input", "input"}}, {made(LayerKind::matmul, {{"transpose_b", true}})}, x,
                        Shape{1, 2, 2}),
              ElementsAre(5, 11, 11, 25));
  EXPECT_THAT(run_nodes({{"input", "input"}}, {made(LayerKind::matmul, {{"transpose_a", true}})}, x,
                        Shape{1, 2, 2}),
              ElementsAre(10, 14, 14, 20));
  EXPECT_THAT(
      inferred(graph_of({{"input"}, {{"", {{"input", "input"}}}}, {}}, {made(LayerKind::matmul)}),
               Shape{1, 2, 3}),
      HasSubstr("sums of 3 and of 2 values do not fit"));
}

}  // namespace
}  // namespace loom::core::test

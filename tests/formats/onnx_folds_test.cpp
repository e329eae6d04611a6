// Constants that are folded by the rows of operators, without the interpreter of whole graphs, as
// in a browser: values by the text of the standard, and what is refused. Random ones beside ONNX
// Runtime: tests/outside/onnx_folds.py.
#include "onnx/import/values.hpp"

#include "backend/reference/reference.hpp"
#include "formats/onnx_network_testing.hpp"
#include "onnx/interpreter/folder.hpp"

namespace loom::core::test::onnx_folds {
namespace {

using List = std::vector<int64_t>;
using Numbers = std::vector<double>;

ConstantRef constant(List dims, Numbers values, OnnxType type = OnnxType::i64) {
  return std::make_shared<const Constant>(Constant{std::move(dims), type, std::move(values)});
}
ConstantRef list(Numbers values) {
  const auto count = static_cast<int64_t>(values.size());
  return constant({count}, std::move(values));
}

OnnxNode node(const std::string& op, std::vector<OnnxAttribute> attributes = {}) {
  OnnxNode n;
  n.name = "n";
  n.op = op;
  n.outputs = {"y"};
  n.attributes = std::move(attributes);
  return n;
}

struct Row {
  OnnxNode node;
  std::vector<ConstantRef> inputs;
  List dims;
  Numbers values;
  OnnxType type = OnnxType::i64;
};

constexpr OnnxType kF32 = OnnxType::f32, kBool = OnnxType::boolean;

TEST(OnnxFolds, GiveWhatTheStandardSays) {
  const ConstantRef six = list({1, 2, 3, 4, 5, 6}), grid = constant({2, 3}, {1, 2, 3, 4, 5, 6});
  const std::vector<Row> rows = {
      {node("Slice"), {six, list({-1}), list({-9}), list({0}), list({-2})}, {3}, {6, 4, 2}},
      {node("Slice"), {grid, list({1}), list({kMaxFolded}), list({1})}, {2, 2}, {2, 3, 5, 6}},
      {node("Concat", {onnx_attribute("axis", int64_t{0})}), {six, list({})}, {6}, six->values},
      {node("Max"), {six, list({3}), list({4})}, {6}, {4, 4, 4, 4, 5, 6}},
      {node("Min"), {six}, {6}, six->values},
      {node("Pow"), {list({2, -3}), list({3})}, {2}, {8, -27}},
      {node("Pow"), {constant({1}, {2}, kF32), constant({}, {-1}, kF32)}, {1}, {0.5}, kF32},
      {node("Div"), {list({-7, 7}), list({2})}, {2}, {-3, 3}},
      {node("ReduceProd"), {grid, list({1})}, {2, 1}, {6, 120}},
      {node("NonZero"), {constant({2, 2}, {0, 1, 1, 0}, kF32)}, {2, 2}, {0, 1, 1, 0}},
      {node("NonZero"), {constant({2}, {0, 0}, kF32)}, {1, 0}, {}},
      {node("Range"), {constant({}, {5}), constant({}, {0}), constant({}, {-2})}, {3}, {5, 3, 1}},
      {node("Transpose"), {grid}, {3, 2}, {1, 4, 2, 5, 3, 6}},
      {node("Where"), {constant({2}, {1, 0}, kBool), list({7}), list({8})}, {2}, {7, 8}},
      {node("Cast", {onnx_attribute("to", int64_t{2})}),
       {constant({2}, {-0.5, 255.5}, kF32)},
       {2},
       {0, 255},
       OnnxType::u8},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.node.op);
    ASSERT_TRUE(folds(row.node));
    const Result<Constant> made = fold(row.node, 20, row.inputs);
    ASSERT_TRUE(made.ok()) << made.error().str();
    EXPECT_EQ(made->dims, row.dims);
    EXPECT_EQ(made->values, row.values);
    EXPECT_EQ(made->type, row.type);
  }
}

// One number stands for as many as the extents say, so that masks of an open batch stay small.
TEST(OnnxFolds, KeepOneNumberForAllPlaces) {
  constexpr int64_t kLarge = int64_t{1} << 20;
  const ConstantRef zeros = constant({kLarge, 4, 64}, {3}, kF32);
  const std::vector<Row> rows = {
      {node("Expand"), {constant({}, {3}, kF32), list({kLarge, 4, 64})}, {kLarge, 4, 64}, {}},
      {node("ConstantOfShape"), {list({kLarge, 4, 64})}, {kLarge, 4, 64}, {}},
      {node("Gather"), {zeros, constant({}, {1})}, {4, 64}, {}},
      {node("Slice"), {zeros, list({5}), list({1}), list({0}), list({-1})}, {4, 4, 64}, {}},
      {node("Transpose"), {zeros}, {64, 4, kLarge}, {}},
      {node("Mul"), {zeros, constant({4, 1}, {2}, kF32)}, {kLarge, 4, 64}, {}},
      {node("Where"), {constant({}, {1}, kBool), zeros, zeros}, {kLarge, 4, 64}, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.node.op);
    const Result<Constant> made = fold(row.node, 20, row.inputs);
    ASSERT_TRUE(made.ok()) << made.error().str();
    EXPECT_EQ(made->dims, row.dims);
    EXPECT_EQ(made->values.size(), 1U);
  }
}

// Whole numbers beyond 2^53 are cut to it: they may be moved, as ends of slices are.
TEST(OnnxFolds, RefuseWhatTheStandardLeavesOpenAndWhatIsTooLarge) {
  constexpr double kEnd = 9007199254740992;
  const ConstantRef ends = list({kEnd, -kEnd});
  const Result<Constant> moved = fold(node("Gather"), 20, {ends, constant({}, {1})});
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(moved->values, Numbers{-kEnd});
  const ConstantRef wide = constant({int64_t{1} << 21, 1}, {1}),
                    tall = constant({1, 4}, {1, 2, 3, 4});
  struct Bad {
    OnnxNode node;
    std::vector<ConstantRef> inputs;
    std::string why;
  };
  const std::vector<Bad> rows = {
      {node("Add"), {ends, list({1})}, "computes with an integer beyond 2^53"},
      {node("Mul"), {list({kEnd / 2}), list({4})}, "computes with an integer beyond 2^53"},
      {node("Div"), {list({1}), list({0})}, "divides an integer by 0"},
      {node("Pow"),
       {constant({}, {50000}, OnnxType::i32), constant({}, {2})},
       "makes int32 of a number that it cannot hold"},
      {node("Cast", {onnx_attribute("to", int64_t{3})}),
       {constant({}, {-129.5}, kF32)},
       "makes int8 of a number that it cannot hold"},
      {node("Add"), {wide, tall}, "a constant of more than 4194304 values, or no shape at all"},
      {node("Range"),
       {constant({}, {0}), constant({}, {1e9}), constant({}, {1})},
       "a constant of more than 4194304 values, or no shape at all"},
      {node("Slice"), {list({1}), constant({}, {0}), list({1})}, "input 1 must be a list"},
      {node("Slice"), {list({1}), list({0}), list({1}), list({0}), list({0})}, "a step of 0"},
      {node("Add"), {list({1, 2}), list({1, 2, 3})}, "shapes that do not fit"},
      {node("Concat", {onnx_attribute("axis", int64_t{0})}),
       {list({1}), nullptr, list({1})},
       "input 1 is absent"},
      {node("Add"), {list({1}), list({1}), list({1})}, "has 3 inputs"},
  };
  for (const Bad& row : rows) {
    SCOPED_TRACE(row.node.op);
    const Result<Constant> made = fold(row.node, 20, row.inputs);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().message, cat("node 'n' (", row.node.op, "): ", row.why));
  }
}

// x [batch, 3] times a constant that the nodes before it make.
OnnxModel model_of(std::vector<OnnxNode> made) {
  OnnxModel m;
  m.ir_version = 9;
  m.opsets = {{"", 20}};
  OnnxValue x;
  x.name = "x";
  x.has_shape = true;
  x.shape = {{-1, "batch"}, {3, ""}};
  m.graph.inputs = {x};
  m.graph.outputs = {x};
  m.graph.outputs[0].name = "out";
  const std::vector<float> numbers = {0.5f, 1, 2};
  const List minus = {-1}, far = {-9};
  m.graph.initializers = {onnx_tensor("c", {3}, std::span(numbers)),
                          onnx_tensor("minus", {1}, std::span(minus)),
                          onnx_tensor("far", {1}, std::span(far))};
  m.graph.nodes = std::move(made);
  OnnxNode mul = node("Mul");
  mul.inputs = {"x", "y"};
  mul.outputs = {"out"};
  m.graph.nodes.push_back(std::move(mul));
  return m;
}

// A build without the interpreter makes the same network, to the bit.
TEST(OnnxFolds, AreTheSameWithAndWithoutTheInterpreter) {
  struct Case {
    std::string op;
    std::vector<std::string> inputs;
    std::vector<OnnxAttribute> attributes;
  };
  const std::vector<Case> rows = {{"Slice", {"c", "minus", "far", "", "minus"}, {}},
                                  {"Cos", {"c"}, {}},
                                  {"Exp", {"c"}, {}},
                                  {"Floor", {"c"}, {}},
                                  {"ReduceSum", {"c"}, {}},
                                  {"CumSum", {"c", "minus"}, {}}};
  for (const Case& row : rows) {
    SCOPED_TRACE(row.op);
    OnnxNode n = node(row.op, row.attributes);
    n.inputs = row.inputs;
    const OnnxModel model = model_of({n});
    const auto with =
        import_onnx(model, "f", {.folder = evaluate::evaluating_folder(reference_ops())});
    ASSERT_TRUE(with.ok()) << with.error().str();
    const auto without = import_onnx(model, "f");
    ASSERT_TRUE(without.ok()) << without.error().str();
    ASSERT_EQ(with->params.size(), without->params.size());
    for (size_t i = 0; i < with->params.size(); ++i)
      EXPECT_EQ(with->params[i].values, without->params[i].values);
  }
}

}  // namespace
}  // namespace loom::core::test::onnx_folds

// Refusals of the importer, each with its exact line: the node, its operator, the reason.
#include "base/threads/thread_pool.hpp"
#include "formats/onnx_network_testing.hpp"
#include "onnx/file/model.hpp"

namespace loom::core::test {
namespace {

OnnxValue value(const std::string& name, std::vector<int64_t> dims, OnnxType type = OnnxType::f32) {
  OnnxValue v;
  v.name = name;
  v.type = type;
  v.has_shape = true;
  for (const int64_t d : dims) v.shape.push_back({d, d < 0 ? "open" : ""});
  return v;
}

OnnxNode node(const std::string& op, std::vector<std::string> inputs,
              std::vector<OnnxAttribute> attributes = {}) {
  OnnxNode n;
  n.name = "n";
  n.op = op;
  n.inputs = std::move(inputs);
  n.outputs = {"y"};
  n.attributes = std::move(attributes);
  return n;
}

OnnxAttribute ints_attr(const std::string& name, std::vector<int64_t> values) {
  OnnxAttribute a;
  a.name = name;
  a.type = OnnxAttributeType::integers;
  a.integers = std::move(values);
  return a;
}

OnnxTensor tensor(const std::string& name, std::vector<int64_t> shape) {
  int64_t count = 1;
  for (const int64_t d : shape) count *= d;
  const std::vector<float> values(static_cast<size_t>(count), 0.5f);
  return onnx_tensor(name, std::move(shape), std::span(values));
}

// x [batch, 4] -> the node -> y, with some weights around.
OnnxModel model_of(OnnxNode n, std::vector<int64_t> input = {-1, 4}) {
  OnnxModel m;
  m.ir_version = 9;
  m.opsets = {{"", 20}};
  m.graph.inputs = {value("x", std::move(input))};
  m.graph.outputs = {value("y", {-1, 4})};
  m.graph.nodes = {std::move(n)};
  m.graph.initializers = {tensor("w", {4, 4}), tensor("w5", {5, 5}), tensor("b", {4}),
                          tensor("k", {2, 2, 3}), tensor("one", {1})};
  return m;
}

void expect_refused(const OnnxModel& m, const std::string& error) {
  const auto made = import_onnx(m, "f");
  ASSERT_FALSE(made.ok()) << "expected: " << error;
  EXPECT_EQ(made.error().str(), "f: " + error);
}

TEST(OnnxRefusals, NameTheNodeTheOperatorAndTheReason) {
  struct Row {
    OnnxNode node;
    std::string error;
    std::vector<int64_t> input = {-1, 4};
  };
  OnnxNode other = node("Gelu", {"x"});
  other.domain = "com.microsoft";
  const std::vector<Row> rows = {
      {other, "node 'n' (Gelu): the domain 'com.microsoft' is not read"},
      {node("Relu", {"z"}),
       "node 'n' (Relu): its input 'z' is made by no node before it, or is an output Loom does not "
       "compute"},
      {node("Relu", {""}), "node 'n' (Relu): input 0 is absent"},
      {node("MatMul", {"x", "w5"}), "node 'n' (MatMul): rows of 4 times weights of 5 rows"},
      {node("MatMul", {"w", "x"}),
       "node 'n' (MatMul): MatMul: [4, 4] times [batch, 4]: sums of 4 and of batch values do not "
       "fit"},
      {node("Gemm", {"x", "b"}), "node 'n' (Gemm): weights that are not a matrix"},
      {node("Gemm", {"x", "w", "one5"}),
       "node 'n' (Gemm): its input 'one5' is made by no node before it, or is an output Loom does "
       "not compute"},
      {node("Transpose", {"x"}, {ints_attr("perm", {0, 0})}),
       "node 'n' (Transpose): Transpose: axis 0 is named twice"},
      {node("Atan", {"x"}), ""},
      {node("Erf", {"x"}), "node 'y' (output): is not what a layer computes"},
      {node("Conv", {"x", "k"}),
       "node 'n' (Conv): an input [batch, 4] and weights of 3 axes; one to three axes of positions "
       "are read"},
      {node("Conv", {"x", "k"}, {ints_attr("pads", {0, -1})}),
       "node 'n' (Conv): pads below 0",
       {-1, 2, 6}},
      {node("Conv", {"x", "k"}, {ints_attr("strides", {1, 1})}),
       "node 'n' (Conv): pads, strides or dilations of the wrong length",
       {-1, 2, 6}},
      {node("Relu", {"x"}),
       "input 'x' leaves axis 1 open ('open') or too large; give its extent "
       "with --open-extent",
       {-1, -1}},
      {node("Relu", {"x"}),
       "input 'x' leaves axis 1 open ('') or too large; give its extent "
       "with --open-extent",
       {-1, int64_t{1} << 40}},
      {node("Relu", {"x"}), "input 'x' has 0 axes; a batch and 0 to 4 more are read", {}},
      {node("Gather", {"w", "x"}),
       "node 'n' (Gather): input 1 holds float values, which it does not take"},
      {node("Expand", {"w", "b"}),
       "node 'n' (Expand): input 1 holds float values, which it does not take"},
  };
  for (const Row& row : rows) {
    if (!row.error.empty()) expect_refused(model_of(row.node, row.input), row.error);
  }
  const auto unknown = import_onnx(model_of(node("Atan", {"x"})), "f");
  ASSERT_FALSE(unknown.ok());
  EXPECT_TRUE(unknown.error().str().starts_with(
      "f: node 'n' (Atan): no layer computes this operator; read are elementwise functions, "
      "Attention,"))
      << unknown.error().str();
}

TEST(OnnxRefusals, NameWhatTheModelAsksFor) {
  OnnxModel old = model_of(node("Relu", {"x"}));
  old.opsets = {{"", 6}};
  expect_refused(old, "opset 6 is not read; export with one from 7 to 28");
  OnnxModel none = model_of(node("Relu", {"x"}));
  none.opsets = {{"ai.onnx.ml", 3}};
  expect_refused(none, "the model imports no opset of ONNX itself");
  OnnxModel two = model_of(node("Relu", {"x"}));
  two.graph.inputs.push_back(value("z", {-1, 4}));
  two.graph.inputs.back().type = OnnxType::u8;
  expect_refused(two, "input 'z' holds uint8 values; floats, booleans, int32 and int64 are read");
  OnnxModel ids = model_of(node("Relu", {"x"}));
  ids.graph.inputs[0].type = OnnxType::i64;
  expect_refused(
      ids, "node 'n' (Relu): computes with the ids of the input; only an embedding reads ids");
  OnnxModel twice = model_of(node("Relu", {"x"}));
  twice.graph.nodes.push_back(twice.graph.nodes[0]);
  expect_refused(twice, "node 'n' (Relu): its output 'y' occurs twice");
  OnnxModel same = model_of(node("Relu", {"x"}));
  same.graph.initializers.push_back(same.graph.initializers[0]);
  expect_refused(same, "initializer 'w' has no name, or occurs twice");
  OnnxModel empty = model_of(node("Relu", {"x"}));
  empty.graph.outputs.clear();
  expect_refused(empty, "the model has no output");
}

OnnxAttribute number(const std::string& name, int64_t value) {
  return onnx_attribute(name, value);
}

TEST(OnnxRefusals, NodesThatAreNotWhatTheirOperatorIs) {
  OnnxNode large = node("Relu", {"x"});
  large.outputs.push_back("z");
  struct Row {
    OnnxNode node;
    std::string error;
  };
  const std::vector<Row> rows = {
      {node("Relu", {"x"}, {number("odd", 1)}), "(Relu): has no attribute 'odd' in opset 20"},
      {node("Elu", {"x"}, {number("alpha", 1)}), "(Elu): its attribute 'alpha' must be a number"},
      {node("Cast", {"x"}), "(Cast): its attribute 'to' is absent"},
      {node("ReduceMean", {"x"}, {number("keepdims", 2)}),
       "(ReduceMean): its attribute 'keepdims' must be 0 or 1"},
      {node("Relu", {"x", "w"}), "(Relu): has 2 inputs, takes 1"},
      {large, "(Relu): has 2 outputs, must have 1 to 1"},
      {node("Unsqueeze", {"x"}), "(Unsqueeze): input 1 is absent"},
      {node("RMSNormalization", {"x", "b"}),
       "(RMSNormalization): opset 20, which the model imports, has no such operator"},
      {node("Gemm", {"x", "ids"}),
       "(Gemm): inputs 0 and 1 hold float and int64 values, must hold the same"},
      {node("Dropout", {"x", "half", "yes"}),
       "(Dropout): training_mode drops values at random; export for inference"},
      {node("Gelu", {"x"}, {onnx_attribute("approximate", std::string("odd"))}),
       "(Gelu): approximate 'odd'; none and tanh are read"},
      {node("Flatten", {"x"}, {number("axis", 9)}), "(Flatten): axis 9"},
      {node("Cast", {"x"}, {number("to", 10)}),
       "(Cast): rounds computed values to float16, which no layer does; export the model in one "
       "type"},
      {node("Cast", {"x"}, {number("to", 3)}),
       "(Cast): makes int8 of computed float values, which no layer does"},
  };
  for (const Row& row : rows) {
    OnnxModel m = model_of(row.node);
    const std::vector<int64_t> ids(16);
    m.graph.initializers.push_back(onnx_tensor("ids", {4, 4}, std::span(ids)));
    const std::vector<float> half = {0.5f};
    m.graph.initializers.push_back(onnx_tensor("half", {}, std::span(half)));
    OnnxTensor yes;
    yes.name = "yes";
    yes.type = OnnxType::boolean;
    yes.own = {std::byte{1}};
    m.graph.initializers.push_back(yes);
    expect_refused(m, "node 'n' " + row.error);
  }
}

// Files that ONNX Runtime refuses too, or that no layer computes.
TEST(OnnxRefusals, BiasesWindowsAndSequencesThatNoLayerHas) {
  struct Row {
    OnnxNode node;
    std::vector<int64_t> input;
    std::string error;
  };
  const std::vector<Row> rows = {
      {node("Gemm", {"x", "w", "column"}),
       {4, 4},
       "(output): works for a batch of 4 alone: export the model with an open batch"},
      {node("ConvTranspose", {"x", "k"}, {ints_attr("output_padding", {1})}),
       {-1, 2, 6},
       "(ConvTranspose): an output_padding that is not below the stride"},
      {node("AveragePool", {"x"},
            {ints_attr("kernel_shape", {2}), ints_attr("pads", {2, 2}),
             number("count_include_pad", 1)}),
       {-1, 2, 6},
       "(AveragePool): pads that are not below the kernel"},
      {node("AveragePool", {"x"}, {ints_attr("kernel_shape", {2}), ints_attr("dilations", {0})}),
       {-1, 2, 6},
       "(AveragePool): strides, dilations or kernels below 1"},
      {node("LSTM", {"x", "lstm", "lstm"}, {number("layout", 1), number("hidden_size", 1)}),
       {-1, 3, 1},
       "(LSTM): layout 1 (the batch first) is not read; export with layout 0 and Transpose"},
  };
  for (const Row& row : rows) {
    OnnxModel m = model_of(row.node, row.input);
    m.graph.initializers.push_back(tensor("column", {4, 1}));
    m.graph.initializers.push_back(tensor("lstm", {1, 4, 1}));
    const bool end = row.error.starts_with("(output)");
    expect_refused(m, (end ? "node 'y' " : "node 'n' ") + row.error);
  }
}

// The batch is open: its size must not become a weight.
TEST(OnnxRefusals, ValuesThatDependOnTheBatch) {
  OnnxNode shape = node("Shape", {"x"}, {number("end", 1)});
  shape.outputs = {"s"};
  OnnxNode real = node("Cast", {"s"}, {number("to", 1)});
  real.outputs = {"f"};
  OnnxModel m = model_of(node("Mul", {"x", "f"}));
  m.graph.nodes.insert(m.graph.nodes.begin(), {shape, real});
  expect_refused(m,
                 "computes with the size of the batch, which the file leaves open; export it with "
                 "a fixed batch");
  shape.attributes = {number("start", 1)};  // the width
  m.graph.nodes[0] = shape;
  EXPECT_TRUE(import_onnx(m, "f").ok());
}

// A few bytes must not become gigabytes.
TEST(OnnxRefusals, StopModelsThatGrow) {
  OnnxModel grows = model_of(node("Relu", {"x"}));
  grows.graph.nodes.clear();
  const std::vector<int64_t> millions = {1, 1 << 22};
  grows.graph.initializers.push_back(onnx_tensor("shape", {2}, std::span(millions)));
  const std::vector<float> pair = {1, 2};
  grows.graph.initializers.push_back(onnx_tensor("pair", {2, 1}, std::span(pair)));
  OnnxNode too_large = node("Expand", {"pair", "shape"});
  grows.graph.nodes = {too_large};
  expect_refused(grows,
                 "node 'n' (Expand): a constant of more than 4194304 values, or no shape at all");
  const std::vector<int64_t> half = {1, 1 << 19};
  grows.graph.initializers.push_back(onnx_tensor("half", {2}, std::span(half)));
  grows.graph.nodes.clear();
  for (int i = 0; i < 3; ++i) {
    OnnxNode n = node("Expand", {"pair", "half"});
    n.outputs = {cat("c", i)};
    grows.graph.nodes.push_back(n);
  }
  expect_refused(grows,
                 "node 'n' (Expand): the model computes far more values than it has; Loom does "
                 "not import such a model");
}

TEST(OnnxRefusals, FillNamesTheParameter) {
  ThreadPool pool(1);
  OnnxModel m = model_of(node("MatMul", {"x", "w"}));
  auto made = import_onnx(m, "f");
  ASSERT_TRUE(made.ok()) << made.error().str();
  auto network = Network::finalize(made->network.grid, made->network.input.after(1));
  made->params[0].shape = Shape{2, 8};
  EXPECT_EQ(made->fill(*network, pool, DType::f32).error().str(),
            "parameter (0, 0, 0, 0)/weight is [2, 8] in the file, [4, 4] in the network");
  made->params.clear();
  EXPECT_EQ(made->fill(*network, pool, DType::f32).error().str(),
            "the file has no parameter (0, 0, 0, 0)/weight");
}

}  // namespace
}  // namespace loom::core::test

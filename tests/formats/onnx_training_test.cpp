// What training learns of an imported file: the values of its tensors, and nothing that the
// importer added to compute the same predictions.
#include "base/thread_pool.hpp"
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
  int64_t count = 0;
  for (const Param& p : network.params()) count += p.spec.trained ? p.spec.shape.count() : 0;
  return count;
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
  };
}

TEST(OnnxTraining, LearnsAsManyValuesAsTheFileHas) {
  ThreadPool pool(1);
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    int64_t want = 0;
    for (const OnnxTensor& t : c.tensors) want += t.count();
    const auto imported = import_onnx(model_of(c), "f");
    ASSERT_TRUE(imported.ok()) << imported.error().str();
    EXPECT_EQ(imported->made_up, 0);
    const auto network =
        Network::finalize(imported->network.grid, imported->network.input.after(1));
    ASSERT_TRUE(network.ok()) << network.error().str();
    EXPECT_EQ(trained_values(*network), want);
  }
}

}  // namespace
}  // namespace loom::core::test::onnx_training

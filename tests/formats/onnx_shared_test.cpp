// Models whose nodes read the same weights, and which of them become layers that share.
#include <random>

#include "base/threads/thread_pool.hpp"
#include "formats/onnx_network_testing.hpp"

namespace loom::core::test::onnx_shared {
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

// x [b, 3] through nodes to y; u, v: [3, 3] of different numbers, ones: [3, 3], a, c: [3].
OnnxModel model_of(std::vector<OnnxNode> nodes) {
  OnnxModel m;
  m.ir_version = 9;
  m.opsets = {{"", 17}};
  m.graph.inputs = {{"x", OnnxType::f32, true, {{-1, "b"}, {3, ""}}}};
  m.graph.outputs = {{"y", OnnxType::f32, false, {}}};
  std::vector<float> u(9), v(9);
  for (size_t i = 0; i < 9; ++i) {
    u[i] = 0.25f * static_cast<float>(i) - 1.0f;
    v[i] = 0.5f - 0.125f * static_cast<float>(i);
  }
  const std::vector<float> ones(9, 1.0f), a = {0.5f, -1, 2}, c = {1, 2, 3};
  m.graph.initializers = {onnx_tensor("u", {3, 3}, u),       onnx_tensor("v", {3, 3}, v),
                          onnx_tensor("u again", {3, 3}, u), onnx_tensor("ones", {3, 3}, ones),
                          onnx_tensor("a", {3}, a),          onnx_tensor("c", {3}, c)};
  m.graph.nodes = std::move(nodes);
  return m;
}

int64_t parameters_of(const OnnxModel& model) {
  const auto imported = import_onnx(model, "f");
  EXPECT_TRUE(imported.ok()) << imported.error().str();
  if (!imported.ok()) return -1;
  ThreadPool pool(1);
  auto network = Network::finalize(imported->network.grid, imported->network.input.after(2));
  EXPECT_TRUE(network.ok()) << network.error().str();
  EXPECT_TRUE(imported->fill(*network, pool, DType::f32).ok());
  return network->param_count();
}

struct Case {
  std::string name;
  std::vector<OnnxNode> nodes;
  int64_t parameters;
};

TEST(OnnxShared, LayersOfOneTensorAreOneSetOfWeights) {
  const auto gemm = [](const char* x, const char* w, const char* b, const char* y) {
    return node_of("Gemm", {x, w, b}, y, {onnx_attribute("transB", int64_t{1})});
  };
  const auto tanh = [](const char* x, const char* y) { return node_of("Tanh", {x}, y); };
  const std::vector<Case> cases = {
      {"a block that is taken again",
       {gemm("x", "u", "a", "1"), tanh("1", "2"), gemm("2", "u", "a", "3"), tanh("3", "y")},
       12},
      {"a product taken three times",
       {node_of("MatMul", {"x", "u"}, "1"), tanh("1", "2"), node_of("MatMul", {"2", "u"}, "3"),
        tanh("3", "4"), node_of("MatMul", {"4", "u"}, "y")},
       9},
      {"two tensors that only hold the same",
       {gemm("x", "u", "a", "1"), tanh("1", "2"), gemm("2", "u again", "a", "3"), tanh("3", "y")},
       24},
      {"two weights", {gemm("x", "u", "a", "1"), tanh("1", "2"), gemm("2", "v", "a", "y")}, 24},
      {"one weight and two biases",
       {gemm("x", "u", "a", "1"), tanh("1", "2"), gemm("2", "u", "c", "y")},
       24},
      {"ones, of which exporters make one tensor",
       {node_of("MatMul", {"x", "ones"}, "1"), tanh("1", "2"),
        node_of("MatMul", {"2", "ones"}, "y")},
       18},
      {"a weight that is transposed once for both",
       {node_of("Transpose", {"u"}, "t"), node_of("MatMul", {"x", "t"}, "1"), tanh("1", "2"),
        node_of("MatMul", {"2", "t"}, "y")},
       9},
      {"a weight that is transposed for each",
       {node_of("Transpose", {"u"}, "t"), node_of("MatMul", {"x", "t"}, "1"), tanh("1", "2"),
        node_of("Transpose", {"u"}, "s"), node_of("MatMul", {"2", "s"}, "y")},
       9},
      {"a weight and itself transposed",
       {node_of("MatMul", {"x", "u"}, "1"), tanh("1", "2"), node_of("Transpose", {"u"}, "s"),
        node_of("MatMul", {"2", "s"}, "y")},
       18},
  };
  for (const Case& c : cases) EXPECT_EQ(parameters_of(model_of(c.nodes)), c.parameters) << c.name;
}

// Both directions of a recurrence read the same tensors, and the second reading goes by other
// names.
TEST(OnnxShared, ARecurrenceThatReadsTwiceIsOneInBothDirections) {
  OnnxModel m;
  m.ir_version = 9;
  m.opsets = {{"", 17}};
  m.graph.inputs = {{"x", OnnxType::f32, true, {{-1, "b"}, {3, ""}, {4, ""}}}};
  m.graph.outputs = {{"y", OnnxType::f32, false, {}}};
  std::vector<float> w(16), r(8);
  for (size_t i = 0; i < w.size(); ++i) w[i] = 0.125f * static_cast<float>(i) - 1.0f;
  for (size_t i = 0; i < r.size(); ++i) r[i] = 0.5f - 0.25f * static_cast<float>(i);
  const std::vector<int64_t> rows = {0, 0, 4};
  m.graph.initializers = {onnx_tensor("w", {2, 2, 4}, w), onnx_tensor("r", {2, 2, 2}, r),
                          onnx_tensor("rows", {3}, rows)};
  const auto transposed = [](const char* x, const char* y, std::vector<int64_t> perm) {
    return node_of("Transpose", {x}, y, {onnx_attribute("perm", std::move(perm))});
  };
  const auto rnn = [](std::vector<std::string> inputs, const char* y) {
    return node_of("RNN", std::move(inputs), y,
                   {onnx_attribute("hidden_size", int64_t{2}),
                    onnx_attribute("direction", std::string("bidirectional"))});
  };
  m.graph.nodes = {transposed("x", "t", {1, 0, 2}),       rnn({"t", "w", "r"}, "1"),
                   transposed("1", "2", {0, 2, 1, 3}),    node_of("Reshape", {"2", "rows"}, "3"),
                   node_of("Identity", {"w"}, "w again"), node_of("Identity", {"r"}, "r again"),
                   rnn({"3", "w again", "r again"}, "4"), transposed("4", "5", {2, 0, 1, 3}),
                   node_of("Reshape", {"5", "rows"}, "y")};
  EXPECT_EQ(parameters_of(m), 2 * (8 + 4 + 2));
}

// Random chains of products and activations over few tensors. There are as many weights as
// different tensors, and the values equal those of nodes with separate tensors.
TEST(OnnxShared, RandomRowsComputeAsTheirCopies) {
  ThreadPool pool(1);
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 draw(seed);
    const auto among = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(draw);
    };
    const int length = among(2, 6);
    OnnxModel shared = model_of({}), copied = model_of({});
    std::vector<OnnxNode> nodes, own;
    std::string last = "x";
    bool used[2] = {false, false};
    for (int i = 0; i < length; ++i) {
      const int which = among(0, 1);
      used[which] = true;
      const std::string w = which == 0 ? "u" : "v", copy = "copy " + std::to_string(i);
      const std::string out = i + 1 == length ? "y" : "h" + std::to_string(i);
      OnnxTensor tensor = shared.graph.initializers[static_cast<size_t>(which)];
      tensor.name = copy;
      copied.graph.initializers.push_back(std::move(tensor));
      nodes.push_back(node_of("MatMul", {last, w}, out + " p"));
      own.push_back(node_of("MatMul", {last, copy}, out + " p"));
      nodes.push_back(node_of("Tanh", {out + " p"}, out));
      own.push_back(node_of("Tanh", {out + " p"}, out));
      last = out;
    }
    shared.graph.nodes = nodes;
    copied.graph.nodes = own;
    EXPECT_EQ(parameters_of(shared), 9 * (used[0] + used[1]));
    EXPECT_EQ(parameters_of(copied), 9 * length);
    const std::vector<float> x = {0.5f, -0.25f, 1.0f};
    const auto message = [&](const OnnxModel& model) {
      const auto imported = import_onnx(model, "f");
      auto network = Network::finalize(imported->network.grid, imported->network.input.after(1));
      EXPECT_TRUE(imported->fill(*network, pool, DType::f32).ok());
      const std::span<const std::byte> bytes = std::as_bytes(std::span(x));
      return run_network(*network, pool, {bytes.begin(), bytes.end()});
    };
    EXPECT_EQ(message(shared), message(copied));
  }
}

}  // namespace
}  // namespace loom::core::test::onnx_shared

// Files whose samples are not the first axis of each input and output.
#include <algorithm>
#include <cmath>

#include "base/threads/thread_pool.hpp"
#include "bridge/network_json.hpp"
#include "formats/onnx_network_testing.hpp"

namespace loom::core::test::onnx_batch {
namespace {

constexpr int64_t kSteps = 5, kIn = 3, kHidden = 2;

OnnxNode node_of(const std::string& op, std::vector<std::string> inputs,
                 std::vector<std::string> outputs, std::vector<OnnxAttribute> attributes = {}) {
  OnnxNode n;
  n.op = op;
  n.inputs = std::move(inputs);
  n.outputs = std::move(outputs);
  n.attributes = std::move(attributes);
  return n;
}

OnnxAttribute axes_of(const std::string& name, std::vector<int64_t> values) {
  OnnxAttribute a;
  a.name = name;
  a.type = OnnxAttributeType::integers;
  a.integers = std::move(values);
  return a;
}

std::vector<float> values_of(int64_t count, float start) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(start - 0.07f * static_cast<float>(i % 11));
  return out;
}

// x [steps, in]: a separate sequence, without a batch.
OnnxModel sequence_model(int64_t opset) {
  OnnxModel m;
  m.ir_version = 8;
  m.opsets = {{"", opset}};
  m.graph.inputs = {{"x", OnnxType::f32, true, {{-1, "steps"}, {kIn, ""}}}};
  m.graph.outputs = {{"y", OnnxType::f32, true, {{-1, "steps"}, {kHidden, ""}}}};
  m.graph.initializers = {
      onnx_tensor("w", {1, kHidden, kIn}, values_of(kHidden * kIn, 0.4f)),
      onnx_tensor("r", {1, kHidden, kHidden}, values_of(kHidden * kHidden, 0.3f)),
      onnx_tensor("b", {1, 2 * kHidden}, values_of(2 * kHidden, 0.2f))};
  const bool older = opset < 13;
  const auto view = [&](const char* op, const char* from, const char* to,
                        std::vector<int64_t> axes) {
    if (older) return node_of(op, {from}, {to}, {axes_of("axes", axes)});
    const std::string name = std::string(op) + " axes";
    const auto count = static_cast<int64_t>(axes.size());
    m.graph.initializers.push_back(onnx_tensor(name, {count}, axes));
    return node_of(op, {from, name}, {to});
  };
  m.graph.nodes = {
      view("Unsqueeze", "x", "wide", {1}),
      node_of("RNN", {"wide", "w", "r", "b"}, {"all"}, {onnx_attribute("hidden_size", kHidden)}),
      view("Squeeze", "all", "y", {1, 2})};
  return m;
}

std::vector<float> by_steps(const std::vector<float>& x) {
  const std::vector<float> w = values_of(kHidden * kIn, 0.4f),
                           r = values_of(kHidden * kHidden, 0.3f), b = values_of(2 * kHidden, 0.2f);
  const auto at = [](const std::vector<float>& v, int64_t i) {
    return static_cast<double>(v[static_cast<size_t>(i)]);
  };
  std::vector<double> h(kHidden);
  std::vector<float> out;
  for (int64_t t = 0; t < kSteps; ++t) {
    std::vector<double> next(kHidden);
    for (int64_t i = 0; i < kHidden; ++i) {
      double sum = at(b, i) + at(b, kHidden + i);
      for (int64_t k = 0; k < kIn; ++k) sum += at(w, i * kIn + k) * at(x, t * kIn + k);
      for (int64_t k = 0; k < kHidden; ++k)
        sum += at(r, i * kHidden + k) * h[static_cast<size_t>(k)];
      next[static_cast<size_t>(i)] = std::tanh(sum);
    }
    h = next;
    for (const double v : h) out.push_back(static_cast<float>(v));
  }
  return out;
}

std::vector<float> computed(const OnnxModel& model, const OnnxImportOptions& options,
                            const std::vector<float>& x, const std::string& note) {
  const auto imported = import_onnx(model, "f", options);
  EXPECT_TRUE(imported.ok()) << imported.error().str();
  if (!imported.ok()) return {};
  EXPECT_EQ(imported->notes, std::vector<std::string>{note});
  ThreadPool pool(1);
  auto network = Network::finalize(imported->network.grid, imported->network.input.after(1));
  EXPECT_TRUE(network.ok()) << network.error().str();
  EXPECT_TRUE(imported->fill(*network, pool, DType::f32).ok());
  const std::span<const std::byte> bytes = std::as_bytes(std::span(x));
  return run_network(*network, pool, {bytes.begin(), bytes.end()});
}

TEST(OnnxBatch, ARecurrenceAlongTheFirstAxisReadsOneSequenceASample) {
  const std::vector<float> x = values_of(kSteps * kIn, 0.5f);
  for (const int64_t opset : {11, 17}) {
    for (const bool for_training : {false, true}) {
      const OnnxImportOptions options = {.open_extent = kSteps, .for_training = for_training};
      expect_close(computed(sequence_model(opset), options, x,
                            "a recurrence runs along the first axis of 'x': a sample is a whole "
                            "input of the file"),
                   by_steps(x), 1e-6f);
    }
  }
}

TEST(OnnxBatch, ARecurrenceAlongTheFirstAxisNeedsItsExtent) {
  const auto imported = import_onnx(sequence_model(17), "f");
  ASSERT_FALSE(imported.ok());
  EXPECT_NE(imported.error().message.find("--open-extent"), std::string::npos)
      << imported.error().message;
}

TEST(OnnxBatch, AnOutputWithItsStepsFirstIsGivenWithItsBatchFirst) {
  OnnxModel m;
  m.ir_version = 8;
  m.opsets = {{"", 17}};
  m.graph.inputs = {{"x", OnnxType::f32, true, {{-1, "b"}, {4, ""}, {kIn, ""}}}};
  m.graph.outputs = {{"y", OnnxType::f32, false, {}}};
  m.graph.initializers = {onnx_tensor("w", {kIn, 2}, values_of(kIn * 2, 0.4f))};
  m.graph.nodes = {node_of("MatMul", {"x", "w"}, {"m"}),
                   node_of("Transpose", {"m"}, {"y"}, {axes_of("perm", {1, 0, 2})})};
  const std::vector<float> x = values_of(4 * kIn, 0.5f);
  std::vector<float> want;
  const std::vector<float> w = values_of(kIn * 2, 0.4f);
  for (size_t row = 0; row < 4; ++row) {
    for (size_t c = 0; c < 2; ++c) {
      float sum = 0;
      for (size_t k = 0; k < kIn; ++k) sum += x[row * kIn + k] * w[k * 2 + c];
      want.push_back(sum);
    }
  }
  expect_close(computed(m, {}, x, "output 'y' is given with its batch first"), want, 1e-6f);
}

// x [rows, columns]: an image without a batch, as from exporters without one.
TEST(OnnxBatch, AFileWithoutABatchReadsOneInputASample) {
  OnnxModel m;
  m.ir_version = 8;
  m.opsets = {{"", 17}};
  m.graph.inputs = {{"x", OnnxType::f32, true, {{-1, "rows"}, {kIn, ""}}}};
  m.graph.outputs = {{"y", OnnxType::f32, false, {}}};
  m.graph.initializers = {onnx_tensor("pads", {4}, std::vector<int64_t>{1, 0, 1, 0}),
                          onnx_tensor("axes", {2}, std::vector<int64_t>{0, 1}),
                          onnx_tensor("w", {1, 1, 3, kIn}, values_of(3 * kIn, 0.4f))};
  m.graph.nodes = {node_of("Pad", {"x", "pads"}, {"p"}), node_of("Unsqueeze", {"p", "axes"}, {"u"}),
                   node_of("Conv", {"u", "w"}, {"c"}), node_of("Squeeze", {"c", "axes"}, {"y"})};
  m.graph.nodes[0].name = "rim";
  const std::vector<float> x = values_of(kSteps * kIn, 0.5f), w = values_of(3 * kIn, 0.4f);
  std::vector<float> want;
  for (int64_t row = 0; row < kSteps; ++row) {
    double sum = 0;
    for (int64_t k = 0; k < 3; ++k) {
      const int64_t from = row + k - 1;
      if (from < 0 || from >= kSteps) continue;
      for (int64_t c = 0; c < kIn; ++c)
        sum += static_cast<double>(x[static_cast<size_t>(from * kIn + c)]) *
               static_cast<double>(w[static_cast<size_t>(k * kIn + c)]);
    }
    want.push_back(static_cast<float>(sum));
  }
  expect_close(computed(m, {.open_extent = kSteps}, x,
                        "the first axis of 'x' is not a batch (node 'rim' (Pad): makes the batch "
                        "larger): a sample is a whole input of the file"),
               want, 1e-6f);
  EXPECT_FALSE(import_onnx(m, "f").ok());  // how many rows a sample has is not known
}

// x minus the largest value of the whole input, whose first axis is called `symbol`, or is 1.
OnnxModel less_largest(const std::string& symbol) {
  OnnxModel m;
  m.ir_version = 8;
  m.opsets = {{"", 17}};
  m.graph.inputs = {{"x", OnnxType::f32, true, {{symbol.empty() ? 1 : -1, symbol}, {kIn, ""}}}};
  m.graph.outputs = {{"y", OnnxType::f32, false, {}}};
  m.graph.nodes = {node_of("ReduceMax", {"x"}, {"m"}), node_of("Sub", {"x", "m"}, {"y"})};
  m.graph.nodes[0].name = "most";
  return m;
}

// A network whose samples depend on each other would depend on how many run at once.
TEST(OnnxBatch, AFileThatComputesWithAllOfItsBatchTakesOneSampleAtATime) {
  const std::string why =
      "node 'most' (ReduceMax): computes with several samples of the batch at once";
  const std::vector<float> x = {1, 4, 2}, want = {-3, 0, -2};
  expect_close(computed(less_largest(""), {}, x,
                        "the file fixes the batch at 1: samples are computed one by one"),
               want, 0);
  expect_close(
      computed(less_largest("batch_size"), {}, x, why + "; here samples are computed one by one"),
      want, 0);
  for (const char* symbol : {"", "batch_size"}) {
    const auto imported = import_onnx(less_largest(symbol), "f");
    ASSERT_TRUE(imported.ok()) << imported.error().str();
    EXPECT_FALSE(Network::finalize(imported->network.grid, imported->network.input.after(2)).ok());
  }
}

TEST(OnnxBatch, AFileThatComputesWithAllOfItsRowsReadsOneInputASample) {
  const std::vector<float> x = values_of(kSteps * kIn, 0.5f);
  std::vector<float> want;
  for (const float v : x) want.push_back(v - *std::ranges::max_element(x));
  expect_close(computed(less_largest("rows"), {.open_extent = kSteps}, x,
                        "the first axis of 'x' is not a batch (node 'most' (ReduceMax): computes "
                        "with several samples of the batch at once): a sample is a whole input of "
                        "the file"),
               want, 1e-6f);
}

TEST(OnnxBatch, AnotherOutputOfAllSamplesIsLeftOutAndSaid) {
  OnnxModel m = less_largest("rows");
  m.graph.nodes.push_back(node_of("Tanh", {"x"}, {"t"}));
  m.graph.outputs = {{"t", OnnxType::f32, false, {}}, {"y", OnnxType::f32, false, {}}};
  const std::vector<float> x = {1, 4, 2};
  expect_close(computed(m, {}, x,
                        "output 'y' is left out: node 'most' (ReduceMax): computes with several "
                        "samples of the batch at once"),
               {std::tanh(1.0f), std::tanh(4.0f), std::tanh(2.0f)}, 1e-6f);
}

// The parts of a model that has none of some kind: slices and fills of nothing.
TEST(OnnxBatch, PartsWithoutValuesAreLeftOutOfAJoin) {
  OnnxModel m;
  m.ir_version = 8;
  m.opsets = {{"", 17}};
  m.graph.inputs = {{"x", OnnxType::f32, true, {{-1, "b"}, {4, ""}}}};
  m.graph.outputs = {{"y", OnnxType::f32, false, {}}};
  const auto list = [](const std::string& name, std::vector<int64_t> values) {
    const auto count = static_cast<int64_t>(values.size());
    return onnx_tensor(name, {count}, std::move(values));
  };
  m.graph.initializers = {list("four", {4}), list("end", {9}), list("one", {1}),
                          list("none", {2, 0}), onnx_tensor("half", {}, std::vector<float>{0.5f})};
  m.graph.nodes = {
      node_of("Slice", {"x", "four", "end", "one"}, {"rest"}),
      node_of("ConstantOfShape", {"none"}, {"fill"}), node_of("Mul", {"fill", "half"}, {"mask"}),
      node_of("Concat", {"x", "rest", "mask", "x"}, {"y"}, {onnx_attribute("axis", int64_t{1})})};
  const auto imported = import_onnx(m, "f");
  ASSERT_TRUE(imported.ok()) << imported.error().str();
  ThreadPool pool(1);
  auto network = Network::finalize(imported->network.grid, imported->network.input.after(1));
  ASSERT_TRUE(network.ok()) << network.error().str();
  const std::vector<float> x = {1, 2, 3, 4};
  const std::span<const std::byte> bytes = std::as_bytes(std::span(x));
  expect_close(run_network(*network, pool, {bytes.begin(), bytes.end()}), {1, 2, 3, 4, 1, 2, 3, 4},
               0);
}

OnnxModel two_inputs(const char* other, const std::string& op) {
  OnnxModel m;
  m.ir_version = 8;
  m.opsets = {{"", 17}};
  m.graph.inputs = {{"x", OnnxType::f32, true, {{-1, "unk__1"}, {2, ""}}},
                    {"z", OnnxType::f32, true, {{-1, other}, {2, ""}}}};
  m.graph.outputs = {{"y", OnnxType::f32, false, {}}};
  std::vector<OnnxAttribute> axis;
  if (op == "Concat") axis = {onnx_attribute("axis", int64_t{1})};
  m.graph.nodes = {node_of(op, {"x", "z"}, {"y"}, axis)};
  return m;
}

TEST(OnnxBatch, InputsWhoseBatchesHaveOtherNamesShareOne) {
  for (const std::string op : {"Concat", "Add"}) {
    const auto imported = import_onnx(two_inputs("unk__2", op), "f", {.open_extent = 7});
    ASSERT_TRUE(imported.ok()) << imported.error().str();
    EXPECT_EQ(imported->notes, std::vector<std::string>{
                                   "the first axis of 'z' is read as the batch of 'x'; the file "
                                   "gives it another name"});
    const auto named = import_onnx(two_inputs("unk__1", op), "f", {.open_extent = 7});
    ASSERT_TRUE(named.ok()) << named.error().str();
    EXPECT_EQ(write_network(imported->network), write_network(named->network));
    EXPECT_TRUE(named->notes.empty());
  }
}

}  // namespace
}  // namespace loom::core::test::onnx_batch

// Files whose samples are not the first axis of each input and output.
#include <cmath>

#include "base/thread_pool.hpp"
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

// x [steps, in]: a sequence of its own, without a batch.
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

}  // namespace
}  // namespace loom::core::test::onnx_batch

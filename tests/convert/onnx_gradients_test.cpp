// One step of SGD through operators that no layer computes: sines, and rounded values, which have
// no gradient. The step is worked out by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "loom/loom.hpp"
#include "onnx/file/model.hpp"

namespace loom::onnx_gradients {
namespace {

using core::OnnxNode;
using core::OnnxType;

constexpr double kRate = 0.5;
const std::vector<float> kInputs = {0.75f, -1.5f, 2.25f, 40.0f}, kWeights = {1.5f, 0.9f, -3, 0.71f},
                         kTargets = {2, -3, 0.5f, 1};

OnnxNode node(const std::string& op, std::vector<std::string> inputs, const std::string& output,
              std::vector<core::OnnxAttribute> attributes = {}) {
  OnnxNode n;
  n.name = output;
  n.op = op;
  n.inputs = std::move(inputs);
  n.outputs = {output};
  n.attributes = std::move(attributes);
  return n;
}

// y = f(x weight), by the operators from "m" to "y".
Network load(std::vector<OnnxNode> f) {
  core::OnnxModel m;
  m.ir_version = 9;
  m.opsets = {{"", 17}};
  m.graph.inputs = {{"x", OnnxType::f32, true, {{-1, "batch"}, {4, ""}}}};
  m.graph.outputs = {{"y", OnnxType::f32, true, {{-1, "batch"}, {4, ""}}}};
  m.graph.nodes = {node("Mul", {"x", "weight"}, "m")};
  for (OnnxNode& n : f) m.graph.nodes.push_back(std::move(n));
  m.graph.initializers = {core::onnx_tensor("weight", {4}, std::span<const float>(kWeights))};
  const std::string bytes = core::onnx_bytes(m).or_exit();
  LoadOptions options;
  options.for_training = true;
  return Network::load(FileBytes{std::as_bytes(std::span(bytes)), "m.onnx"}, options).or_exit();
}

std::vector<float> weights(const Network& net) {
  const std::vector<ParameterInfo> all = net.parameters();
  EXPECT_EQ(net.info().trainable, 4);  // others are numbers of formulas
  const Tensor t = net.parameter(all[0].name).or_exit();
  const std::span<const float> values = t.values<float>().or_exit();
  return {values.begin(), values.end()};
}

struct Row {
  const char* name;
  std::vector<OnnxNode> nodes;
  double (*f)(double);
  double (*slope)(double);
};

double none(double) {
  return 0;
}

std::vector<Row> rows() {
  const auto one = [](const char* op) { return std::vector<OnnxNode>{node(op, {"m"}, "y")}; };
  const auto to = [](OnnxType type) {
    return std::vector{core::onnx_attribute("to", static_cast<int64_t>(type))};
  };
  return {
      {"Sin", one("Sin"), std::sin, std::cos},
      {"Cos", one("Cos"), std::cos, [](double v) { return -std::sin(v); }},
      {"Round", one("Round"), std::nearbyint, none},
      {"Floor", one("Floor"), std::floor, none},
      {"Ceil", one("Ceil"), std::ceil, none},
      {"Sign", one("Sign"), [](double v) { return v > 0 ? 1.0 : -1.0; }, none},
      {"Cast",
       {node("Cast", {"m"}, "i", to(OnnxType::i32)), node("Cast", {"i"}, "y", to(OnnxType::f32))},
       std::trunc,
       none},
      {"the fractional part",
       {node("Floor", {"m"}, "i"), node("Sub", {"m", "i"}, "y")},
       [](double v) { return v - std::floor(v); },
       [](double) { return 1.0; }}};
}

TEST(OnnxGradients, OfSinesAndRoundedValuesAreThoseOfTheStandard) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name);
    Network net = load(row.nodes);
    const Tensor x = Tensor::view(kInputs.data(), {1, 4}),
                 t = Tensor::view(kTargets.data(), {1, 4});
    Session session = net.session().or_exit();
    const Tensor y = session.run(x).or_exit();
    const std::span<const float> got = y.values<float>().or_exit();
    const TrainerOptions options = {
        .loss = Loss::mse, .optimizer = {OptimizerKind::sgd}, .rate = kRate, .batch = 1};
    Trainer trainer = Trainer::create(net, options).or_exit();
    (void)trainer.train_step(x, t).or_exit();
    const std::vector<float> after = weights(net);
    for (size_t i = 0; i < 4; ++i) {
      const double m = static_cast<double>(kInputs[i]) * kWeights[i], value = row.f(m);
      EXPECT_NEAR(got[i], value, 2e-6) << i;
      const double step = 2.0 / 4 * (value - kTargets[i]) * row.slope(m) * kInputs[i];
      EXPECT_NEAR(after[i], kWeights[i] - kRate * step, 2e-5) << i;
    }
  }
}

}  // namespace
}  // namespace loom::onnx_gradients

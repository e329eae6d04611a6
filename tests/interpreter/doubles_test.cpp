// Pooling and convolutions in double, which plain loops compute, compared with the same file in
// float32, which the kernels of networks compute. Inputs are small integers, so sums are exact in
// both. LOOM_EVALUATE_CASES: how many random ones.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "backend/cpu/cpu.hpp"
#include "base/text.hpp"
#include "onnx/interpreter/body.hpp"
#include "onnx/interpreter/evaluator.hpp"

namespace loom::core::evaluate::doubles {
namespace {

int random_cases() {
  const char* text = std::getenv("LOOM_EVALUATE_CASES");
  return text != nullptr ? std::atoi(text) : 300;
}

// One node over x, and weights where it is a convolution.
struct Case {
  OnnxNode node;
  Dims x, w;
  std::vector<double> values, weights;
};

Case drawn(uint32_t seed) {
  std::mt19937 draw(seed);
  const auto random_integer = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(draw);
  };
  constexpr std::string_view kOps[] = {"MaxPool", "AveragePool", "LpPool", "Conv"};
  Case c;
  c.node.op = c.node.name = kOps[random_integer(0, 3)];
  const bool conv = c.node.op == "Conv";
  const int axes = static_cast<int>(random_integer(1, 3));
  const int64_t groups = conv ? random_integer(1, 3) : 1, channels = groups * random_integer(1, 3);
  c.x = {random_integer(1, 2), channels};
  Dims kernel, strides, dilations, before, after;
  for (int a = 0; a < axes; ++a) {
    kernel.push_back(random_integer(1, 3));
    strides.push_back(random_integer(1, 3));
    dilations.push_back(random_integer(1, 2));
    const int64_t span = (kernel.back() - 1) * dilations.back() + 1;
    before.push_back(random_integer(0, kernel.back() - 1));
    after.push_back(random_integer(0, kernel.back() - 1));
    c.x.push_back(std::max<int64_t>(1, span - before.back() - after.back()) + random_integer(0, 6));
  }
  Dims pads = before;
  pads.insert(pads.end(), after.begin(), after.end());
  c.node.attributes = {onnx_attribute("kernel_shape", kernel), onnx_attribute("strides", strides),
                       onnx_attribute("dilations", dilations), onnx_attribute("pads", pads)};
  if (conv) {
    c.w = {groups * random_integer(1, 3), channels / groups};
    c.w.insert(c.w.end(), kernel.begin(), kernel.end());
    c.node.attributes.push_back(onnx_attribute("group", groups));
  } else {
    c.node.attributes.push_back(onnx_attribute("ceil_mode", random_integer(0, 1)));
  }
  if (c.node.op == "AveragePool")
    c.node.attributes.push_back(onnx_attribute("count_include_pad", random_integer(0, 1)));
  if (c.node.op == "LpPool") c.node.attributes.push_back(onnx_attribute("p", random_integer(1, 3)));
  for (int64_t i = 0; i < product(c.x); ++i)
    c.values.push_back(static_cast<double>(random_integer(-9, 9)));
  for (int64_t i = 0; conv && i < product(c.w); ++i)
    c.weights.push_back(static_cast<double>(random_integer(-9, 9)));
  c.node.inputs = {"x"};
  if (conv) c.node.inputs.emplace_back("w");
  c.node.outputs = {"y"};
  if (c.node.op == "MaxPool") c.node.outputs.emplace_back("places");
  return c;
}

template <class T>
Slot slot_of(Memory& memory, OnnxType type, const Dims& dims, const std::vector<double>& values) {
  Value v = *Value::make(memory, type, dims);
  for (size_t i = 0; i < values.size(); ++i) v.data<T>()[i] = static_cast<T>(values[i]);
  return Slot::of(std::move(v));
}

// The outputs as doubles, one after the other, or the error.
template <class T>
Result<std::vector<double>> run(const Case& c, OnnxType type, ThreadPool& pool) {
  OnnxModel m;
  m.ir_version = 8;
  m.opsets = {{"", 22}};
  m.graph.nodes = {c.node};
  for (const std::string& name : c.node.inputs) m.graph.inputs.push_back({name, type, false, {}});
  for (const std::string& name : c.node.outputs)
    m.graph.outputs.push_back({name, name == "places" ? OnnxType::i64 : type, false, {}});
  LOOM_ASSIGN(const std::string bytes, onnx_bytes(m));
  LOOM_ASSIGN(Evaluator e,
              Evaluator::load(FileRef::of_bytes("d.onnx", std::as_bytes(std::span(bytes))),
                              cpu_ops(best_isa()), pool));
  std::vector<Slot> in{slot_of<T>(e.memory(), type, c.x, c.values)};
  if (!c.w.empty()) in.push_back(slot_of<T>(e.memory(), type, c.w, c.weights));
  LOOM_ASSIGN(const std::vector<Slot> out, e.run(std::move(in)));
  std::vector<double> all;
  for (const Slot& s : out) {
    for (const int64_t extent : s.tensor.dims) all.push_back(static_cast<double>(extent));
    for (int64_t i = 0; i < s.tensor.count(); ++i) {
      all.push_back(s.tensor.type == OnnxType::i64
                        ? static_cast<double>(s.tensor.data<int64_t>()[i])
                        : static_cast<double>(s.tensor.data<T>()[i]));
    }
  }
  return all;
}

TEST(Doubles, WindowsAreThoseOfTheKernelsForFloats) {
  ThreadPool pool(2);
  int computed = 0;
  for (int i = 0; i < random_cases(); ++i) {
    const Case c = drawn(static_cast<uint32_t>(i));
    SCOPED_TRACE(cat("case ", i, ", ", c.node.op));
    const auto floats = run<float>(c, OnnxType::f32, pool);
    const auto doubles = run<double>(c, OnnxType::f64, pool);
    ASSERT_EQ(floats.ok(), doubles.ok())
        << (floats.ok() ? doubles.error().str() : floats.error().str());
    if (!floats.ok()) continue;
    ++computed;
    ASSERT_EQ(floats->size(), doubles->size());
    for (size_t k = 0; k < floats->size(); ++k)
      ASSERT_NEAR((*floats)[k], (*doubles)[k], 1e-6 * (1 + std::abs((*doubles)[k]))) << "at " << k;
  }
  EXPECT_GT(computed, random_cases() * 3 / 4);
}

}  // namespace
}  // namespace loom::core::evaluate::doubles

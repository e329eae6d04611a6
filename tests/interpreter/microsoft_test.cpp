// Operators of com.microsoft: a result by hand for each kind of row, and refusals.
// tests/outside/onnx_microsoft.py compares each operator with ONNX Runtime.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu.hpp"
#include "onnx/interpreter/evaluator.hpp"

namespace loom::core::evaluate::microsoft {
namespace {

OnnxTensor constant(std::string name, OnnxType type, Dims shape, const void* data, size_t bytes) {
  OnnxTensor t;
  t.name = std::move(name);
  t.type = type;
  t.shape = std::move(shape);
  const auto* from = static_cast<const std::byte*>(data);
  t.own.assign(from, from + bytes);
  return t;
}
OnnxTensor floats(std::string name, Dims shape, const std::vector<float>& v) {
  return constant(std::move(name), OnnxType::f32, std::move(shape), v.data(), v.size() * 4);
}
OnnxTensor bytes(std::string name, Dims shape, const std::vector<uint8_t>& v) {
  return constant(std::move(name), OnnxType::u8, std::move(shape), v.data(), v.size());
}

OnnxValue named(std::string name) {
  OnnxValue v;
  v.name = std::move(name);
  return v;
}

// One node over input x and constants.
struct Rig {
  OnnxModel model;
  ThreadPool pool{1};

  Rig(std::string op, std::vector<std::string> inputs, std::vector<OnnxTensor> constants,
      std::vector<OnnxAttribute> attributes = {}, std::string domain = "com.microsoft") {
    model.ir_version = 8;
    model.opsets = {{"", 20}, {"com.microsoft", 1}, {domain, 1}};
    OnnxNode n;
    n.name = "n";
    n.op = std::move(op);
    n.domain = std::move(domain);
    n.inputs = std::move(inputs);
    n.outputs = {"y"};
    n.attributes = std::move(attributes);
    model.graph.nodes.push_back(std::move(n));
    model.graph.inputs = {named("x")};
    model.graph.outputs = {named("y")};
    model.graph.initializers = std::move(constants);
  }
  Result<std::vector<float>> run(Dims dims, const std::vector<float>& x) {
    LOOM_ASSIGN(Evaluator e, Evaluator::of(model, cpu_ops(best_isa()), pool));
    LOOM_ASSIGN(Value v, Value::make(e.memory(), OnnxType::f32, std::move(dims)));
    std::ranges::copy(x, v.data<float>());
    LOOM_ASSIGN(const std::vector<Slot> y, e.run({Slot::of(v)}));
    return std::vector<float>(y[0].tensor.data<float>(),
                              y[0].tensor.data<float>() + y[0].tensor.count());
  }
  std::string why(Dims dims, const std::vector<float>& x) {
    const auto done = run(std::move(dims), x);
    return done.ok() ? "" : done.error().str();
  }
};

std::vector<OnnxAttribute> four_bits(int64_t n, int64_t k) {
  return {onnx_attribute("N", n), onnx_attribute("K", k), onnx_attribute("bits", int64_t{4}),
          onnx_attribute("block_size", int64_t{16})};
}

TEST(Microsoft, WeightsOfFourBitsAreDecodedWithScalesAndZeroPoints) {
  // One row of 17: a block of 16 and one more. Codes 1 and 2 in a byte, low bits first.
  std::vector<uint8_t> codes(16, 0x21);
  Rig plain("MatMulNBits", {"x", "b", "s"},
            {bytes("b", {1, 2, 8}, codes), floats("s", {1, 2}, {0.5F, 2})}, four_bits(1, 17));
  std::vector<float> x(17, 0);
  x[0] = 1, x[1] = 10, x[16] = 100;
  // (1 - 8) 0.5 + 10 (2 - 8) 0.5 + 100 (1 - 8) 2
  EXPECT_EQ(*plain.run({1, 17}, x), std::vector<float>{-3.5F - 30 - 1400});
  Rig with(
      "MatMulNBits", {"x", "b", "s", "z"},
      {bytes("b", {1, 2, 8}, codes), floats("s", {1, 2}, {0.5F, 2}), bytes("z", {1, 1}, {0x31})},
      four_bits(1, 17));
  // Zero points 1 and 3.
  EXPECT_EQ(*with.run({1, 17}, x), std::vector<float>{0 + 5 - 400});
}

TEST(Microsoft, ASkippedSumIsNormalized) {
  Rig rig("SkipSimplifiedLayerNormalization", {"x", "skip", "scale"},
          {floats("skip", {1, 1, 2}, {2, 2}), floats("scale", {2}, {1, 2})});
  const auto y = *rig.run({1, 1, 2}, {1, 2});  // 3 and 4: a root mean square of sqrt(12.5)
  EXPECT_NEAR(y[0], 3 / std::sqrt(12.5), 1e-6);
  EXPECT_NEAR(y[1], 8 / std::sqrt(12.5), 1e-6);
}

TEST(Microsoft, WhatIsNotComputedIsRefusedByItsName) {
  const std::vector<uint8_t> codes(8, 0);
  auto attributes = four_bits(1, 16);
  attributes.push_back(onnx_attribute("weight_prepacked", int64_t{1}));
  Rig rig("MatMulNBits", {"x", "b", "s"}, {bytes("b", {1, 1, 8}, codes), floats("s", {1, 1}, {1})},
          attributes);
  EXPECT_NE(rig.why({1, 16}, std::vector<float>(16)).find("weight_prepacked"), std::string::npos);
  Rig mlp("MatMulNBitsMlp", {"x"}, {});
  EXPECT_NE(mlp.why({1}, {1}).find("com.microsoft:MatMulNBitsMlp"), std::string::npos);
  Rig blocked("Conv", {"x"}, {}, {}, "com.microsoft.nchwc");
  EXPECT_NE(blocked.why({1}, {1}).find("ORT_ENABLE_EXTENDED"), std::string::npos);
}

TEST(Microsoft, InputsThatAreLeftOutOrDoNotFitAreErrors) {
  Rig scale("QLinearSigmoid", {"x", "", "", "s"}, {floats("s", {}, {1})});
  EXPECT_NE(scale.why({1}, {1}), "");
  Rig tables("EmbedLayerNormalization", {"x", "", "", "", "", "", "g"}, {floats("g", {1}, {1})});
  EXPECT_NE(tables.why({1, 1}, {0}), "");
  Rig lengths(
      "GroupQueryAttention", {"x"}, {},
      {onnx_attribute("num_heads", int64_t{1}), onnx_attribute("kv_num_heads", int64_t{1})});
  EXPECT_NE(lengths.why({1, 1, 6}, std::vector<float>(6)).find("seqlens_k"), std::string::npos);
  Rig small("MatMulNBits", {"x", "b", "s"},
            {bytes("b", {1, 1, 7}, std::vector<uint8_t>(7)), floats("s", {1, 1}, {1})},
            four_bits(1, 16));
  EXPECT_NE(small.why({1, 16}, std::vector<float>(16)).find("weights"), std::string::npos);
  Rig heads("MultiHeadAttention", {"x", "x", "x"}, {}, {onnx_attribute("num_heads", int64_t{0})});
  EXPECT_NE(heads.why({1, 1, 6}, std::vector<float>(6)), "");
}

}  // namespace
}  // namespace loom::core::evaluate::microsoft

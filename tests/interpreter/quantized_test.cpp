// Products and convolutions of 8-bit numbers: every sum is exact, however long, with the second
// operand as a constant of the file and as an input. LOOM_EVALUATE_CASES: how many random ones.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "backend/cpu/cpu.hpp"
#include "base/text.hpp"
#include "onnx/interpreter/body.hpp"
#include "onnx/interpreter/evaluator.hpp"

namespace loom::core::evaluate {
namespace {

int random_cases() {
  const char* text = std::getenv("LOOM_EVALUATE_CASES");
  return text != nullptr ? std::atoi(text) : 200;
}

// Numbers of 8 bits, with or without a sign, kept as what they are.
struct Codes {
  bool sign = false;
  Dims dims;
  std::vector<int64_t> values;
  int64_t zero = 0;
  OnnxType type() const { return sign ? OnnxType::i8 : OnnxType::u8; }
  int64_t at(int64_t i) const { return values[static_cast<size_t>(i)] - zero; }
};

class QuantizedRig {
 public:
  explicit QuantizedRig(uint32_t seed) : draw_(seed) {}

  int64_t random_integer(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(draw_);
  }
  // A third of them has nothing but the ends of its range, where sums grow the fastest.
  Codes codes(Dims dims, bool is_signed) {
    Codes c{is_signed, std::move(dims), {}, 0};
    const int64_t low = is_signed ? -128 : 0, high = low + 255;
    const bool ends = random_integer(0, 2) == 0;
    c.zero = random_integer(0, 1) == 0 ? random_integer(low, high) : is_signed ? 0 : 128;
    for (int64_t i = 0; i < product(c.dims); ++i)
      c.values.push_back(ends ? high : random_integer(low, high));
    return c;
  }

  // `op` over both. If `constant`, y and the zero points are constants of the file.
  std::vector<int32_t> run(const std::string& op, const Codes& a, const Codes& b, bool constant,
                           std::vector<OnnxAttribute> attributes = {}) {
    OnnxGraph g;
    const auto named = [](std::string name, OnnxType type) {
      OnnxValue v;
      v.name = std::move(name);
      v.type = type;
      return v;
    };
    g.inputs = {named("a", a.type())};
    if (!constant) g.inputs.push_back(named("b", b.type()));
    g.outputs = {named("y", OnnxType::i32)};
    OnnxNode n;
    n.name = op;
    n.op = op;
    n.inputs = {"a", "b", "a_zero", "b_zero"};
    n.outputs = {"y"};
    n.attributes = std::move(attributes);
    g.nodes = {n};
    if (constant) g.initializers.push_back(tensor("b", b.type(), b.dims, b.values));
    g.initializers.push_back(tensor("a_zero", a.type(), {}, {a.zero}));
    g.initializers.push_back(tensor("b_zero", b.type(), {}, {b.zero}));
    OnnxModel model;
    model.ir_version = 8;
    model.opsets = {{"", 20}};
    model.graph = std::move(g);
    const std::string bytes = *onnx_bytes(model);
    Result<Evaluator> e = Evaluator::load(
        FileRef::of_bytes("q.onnx", std::as_bytes(std::span(bytes))), cpu_ops(best_isa()), pool_);
    EXPECT_TRUE(e.ok()) << e.error().str();
    std::vector<Slot> in{slot(e->memory(), a)};
    if (!constant) in.push_back(slot(e->memory(), b));
    const Result<std::vector<Slot>> y = e->run(std::move(in));
    EXPECT_TRUE(y.ok()) << y.error().str();
    const Value& out = (*y)[0].tensor;
    return {out.data<int32_t>(), out.data<int32_t>() + out.count()};
  }

 private:
  static OnnxTensor tensor(std::string name, OnnxType type, Dims dims,
                           const std::vector<int64_t>& values) {
    OnnxTensor t;
    t.name = std::move(name);
    t.type = type;
    t.shape = std::move(dims);
    for (const int64_t v : values) t.own.push_back(static_cast<std::byte>(v & 255));
    return t;
  }
  static Slot slot(Memory& memory, const Codes& c) {
    Value v = *Value::make(memory, c.type(), c.dims);
    for (size_t i = 0; i < c.values.size(); ++i)
      v.data<uint8_t>()[i] = static_cast<uint8_t>(c.values[i] & 255);
    return Slot::of(std::move(v));
  }

  std::mt19937 draw_;
  ThreadPool pool_{2};
};

TEST(Quantized, ProductsOf8BitsAreExactHoweverLong) {
  for (int i = 0; i < random_cases(); ++i) {
    QuantizedRig rig(static_cast<uint32_t>(i));
    const int64_t m = rig.random_integer(1, 9), n = rig.random_integer(1, 20);
    const int64_t k = i % 4 == 0 ? rig.random_integer(1, 3000) : rig.random_integer(1, 300);
    const Codes a = rig.codes({m, k}, rig.random_integer(0, 1) == 1);
    const Codes b = rig.codes({k, n}, rig.random_integer(0, 1) == 1);
    std::vector<int32_t> want;
    for (int64_t y = 0; y < m * n; ++y) {
      int64_t sum = 0;
      for (int64_t j = 0; j < k; ++j) sum += a.at(y / n * k + j) * b.at(j * n + y % n);
      want.push_back(static_cast<int32_t>(sum));
    }
    ASSERT_EQ(rig.run("MatMulInteger", a, b, true), want) << "case " << i;
    ASSERT_EQ(rig.run("MatMulInteger", a, b, false), want) << "case " << i;
  }
}

TEST(Quantized, ConvolutionsOf8BitsAreExactHoweverManyChannels) {
  for (int i = 0; i < random_cases() / 2; ++i) {
    QuantizedRig rig(static_cast<uint32_t>(7000 + i));
    const int64_t groups = rig.random_integer(1, 3),
                  per = i % 4 == 0 ? rig.random_integer(1, 90) : rig.random_integer(1, 9);
    const int64_t filters = groups * rig.random_integer(1, 4), size = rig.random_integer(1, 3);
    const int64_t high = rig.random_integer(size, 7), wide = rig.random_integer(size, 7),
                  pad = rig.random_integer(0, 1);
    const Codes x = rig.codes({1, groups * per, high, wide}, rig.random_integer(0, 1) == 1);
    const Codes w = rig.codes({filters, per, size, size}, rig.random_integer(0, 1) == 1);
    const int64_t rows = high + 2 * pad - size + 1, cols = wide + 2 * pad - size + 1;
    std::vector<int32_t> want;
    for (int64_t y = 0; y < filters * rows * cols; ++y) {
      const int64_t f = y / (rows * cols), top = y / cols % rows - pad, left = y % cols - pad;
      int64_t sum = 0;
      for (int64_t t = 0; t < per * size * size; ++t) {
        const int64_t r = top + t / size % size, q = left + t % size;
        if (r < 0 || r >= high || q < 0 || q >= wide) continue;
        const int64_t channel = f / (filters / groups) * per + t / (size * size);
        sum += x.at((channel * high + r) * wide + q) * w.at(f * per * size * size + t);
      }
      want.push_back(static_cast<int32_t>(sum));
    }
    OnnxAttribute group, pads;
    group.name = "group";
    group.integer = groups;
    pads.name = "pads";
    pads.type = OnnxAttributeType::integers;
    pads.integers = {pad, pad, pad, pad};
    ASSERT_EQ(rig.run("ConvInteger", x, w, true, {group, pads}), want) << "case " << i;
    ASSERT_EQ(rig.run("ConvInteger", x, w, false, {group, pads}), want) << "case " << i;
  }
}

}  // namespace
}  // namespace loom::core::evaluate

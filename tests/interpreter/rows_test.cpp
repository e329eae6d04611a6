// Rows of operators over many elements: what blocks, strides and types of a wider kind must not
// change. The oracle takes one element at a time, in C++ of the test.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "backend/reference/reference.hpp"
#include "base/text.hpp"
#include "onnx/operators/alone.hpp"

namespace loom::core::evaluate {
namespace {

constexpr OnnxType kTypes[] = {
    OnnxType::f32,    OnnxType::f64,    OnnxType::f16,     OnnxType::bf16,       OnnxType::i8,
    OnnxType::u8,     OnnxType::i16,    OnnxType::u16,     OnnxType::i32,        OnnxType::u32,
    OnnxType::i64,    OnnxType::u64,    OnnxType::boolean, OnnxType::f8e4m3fn,   OnnxType::f8e5m2,
    OnnxType::f4e2m1, OnnxType::f8e8m0, OnnxType::u4,      OnnxType::f8e5m2fnuz, OnnxType::i4,
    OnnxType::u2,     OnnxType::i2};

struct Bench {
  Alone alone{reference_ops(), int64_t{1} << 30};
  Memory& memory() { return alone.memory(); }
  template <class T>
  Value array(OnnxType type, Dims dims, const std::vector<T>& values) {
    Value v = *Value::make(memory(), type, std::move(dims));
    std::copy(values.begin(), values.end(), v.data<T>());
    return v;
  }
  // The first output of an operator.
  Result<Value> run(std::string op, const std::vector<Value>& inputs) {
    OnnxNode node;
    node.name = node.op = std::move(op);
    node.outputs = {"y"};
    std::vector<Slot> in;
    for (const Value& v : inputs) {
      node.inputs.push_back(cat("x", in.size()));
      in.push_back(Slot::of(v));
    }
    const Operator* row = find_common_operator("", node.op);
    LOOM_ASSIGN(const std::vector<Slot> out, alone.run(*row, node, 20, in));
    return out[0].tensor;
  }
};

// Numbers at the ends of types, ties, signs and NaN.
std::vector<double> corners(size_t count) {
  std::mt19937_64 random(5);
  std::vector<double> out = {0,   -0.0, 0.5, 1.5,     -1.5,   127.5, 255.5, 256,  -129,
                             300, 7.5,  -8,  65504,   1e5,    -1e5,  3e9,   -3e9, 9.3e18,
                             3,   2e19, -1,  -9.3e18, 1e-310, 1e-40, 448,   464,  1e300};
  out.push_back(std::numeric_limits<double>::infinity());
  out.push_back(-std::numeric_limits<double>::infinity());
  out.push_back(std::numeric_limits<double>::quiet_NaN());
  while (out.size() < count) {
    const auto bits = static_cast<int64_t>(random());
    out.push_back(std::ldexp(static_cast<double>(bits), static_cast<int>(random() % 80) - 70));
  }
  return out;
}

TEST(Rows, CastsOfManyElementsAreThoseOfEachAlone) {
  Bench b;
  const std::vector<double> numbers = corners(700);
  const Value wide = b.array(OnnxType::f64, {700}, numbers);
  for (const OnnxType from : kTypes) {
    const Value x = *cast(b.memory(), wide, from);
    const auto from_bytes = static_cast<int64_t>(element_bytes(from));
    for (const OnnxType to : kTypes) {
      const Value all = *cast(b.memory(), x, to);
      const auto to_bytes = static_cast<int64_t>(element_bytes(to));
      for (int64_t i = 0; i < 700; ++i) {
        Value one = *Value::make(b.memory(), from, {});
        std::copy_n(x.data<std::byte>() + i * from_bytes, from_bytes, one.data<std::byte>());
        const Value alone = *cast(b.memory(), one, to);
        ASSERT_TRUE(std::equal(alone.data<std::byte>(), alone.data<std::byte>() + to_bytes,
                               all.data<std::byte>() + i * to_bytes))
            << onnx_type_name(from) << " to " << onnx_type_name(to) << " at " << i;
      }
    }
  }
}

// Whole numbers are cut and wrap, a float is rounded once, and a boolean is what is not 0.
TEST(Rows, CastsKeepWhatTheirTypesHold) {
  Bench b;
  const std::vector<int64_t> whole = {0,   -1,      INT64_MAX, INT64_MIN, (int64_t{1} << 53) + 1,
                                      300, 16777217};
  const Value x = b.array(OnnxType::i64, {7}, whole);
  const auto to = [&](OnnxType type) { return *cast(b.memory(), x, type); };
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(to(OnnxType::f32).data<float>()[i], static_cast<float>(whole[i]));
    EXPECT_EQ(to(OnnxType::f64).data<double>()[i], static_cast<double>(whole[i]));
    EXPECT_EQ(to(OnnxType::i8).data<int8_t>()[i], static_cast<int8_t>(whole[i]));
    EXPECT_EQ(to(OnnxType::u32).data<uint32_t>()[i], static_cast<uint32_t>(whole[i]));
    EXPECT_EQ(to(OnnxType::u64).data<uint64_t>()[i], static_cast<uint64_t>(whole[i]));
    EXPECT_EQ(to(OnnxType::boolean).data<uint8_t>()[i], whole[i] != 0 ? 1 : 0);
  }
}

// The expected results for pairs of T, computed by C++ alone.
template <class T>
T expected(const std::string& op, T a, T b) {
  using U = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  const auto u = static_cast<U>(a), v = static_cast<U>(b);
  if (op == "Add") return static_cast<T>(u + v);
  if (op == "Sub") return static_cast<T>(u - v);
  if (op == "Mul") return static_cast<T>(u * v);
  if (op == "Max") return a > b ? a : b;
  if (op == "Min") return a < b ? a : b;
  return a / b;  // Div; the test has no 0 there
}
bool expected_test(const std::string& op, auto a, auto b) {
  if (op == "Less") return a < b;
  if (op == "LessOrEqual") return a <= b;
  if (op == "Greater") return a > b;
  return op == "Equal" ? a == b : a >= b;
}

// Extents of 1 are repeated: the place of an element of the result in an input.
int64_t place_in(const Dims& dims, const Dims& full, int64_t i) {
  int64_t flat_index = 0, step = 1;
  for (size_t k = 0; k < full.size(); ++k) {
    const int64_t at = i % full[full.size() - 1 - k];
    i /= full[full.size() - 1 - k];
    if (k >= dims.size()) continue;
    const int64_t extent = dims[dims.size() - 1 - k];
    flat_index += (extent == 1 ? 0 : at) * step;
    step *= extent;
  }
  return flat_index;
}

template <class T>
void pairs_are_right(OnnxType type) {
  Bench b;
  std::mt19937_64 random(static_cast<uint64_t>(type));
  const auto number = [&] {
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(static_cast<double>(random() % 2001) / 8 - 125.0625);
    const T v = static_cast<T>(random() >> (random() % 64));
    return v == T{} || v == static_cast<T>(-1) ? T{3} : v;
  };
  for (int turn = 0; turn < 60; ++turn) {
    Dims full(1 + random() % 4), x(full.size()), z(full.size());
    for (size_t a = 0; a < full.size(); ++a) {
      full[a] = static_cast<int64_t>(1 + random() % 5);
      x[a] = random() % 3 == 0 ? 1 : full[a];
      z[a] = x[a] == 1 || random() % 3 != 0 ? full[a] : 1;
    }
    if (random() % 3 == 0) z.erase(z.begin());
    for (size_t a = 0; a < full.size(); ++a) {
      const size_t k = full.size() - z.size();
      full[a] = a < k ? x[a] : std::max(x[a], z[a - k]);
    }
    std::vector<T> p(static_cast<size_t>(product(x))), q(static_cast<size_t>(product(z)));
    for (T& v : p) v = number();
    for (T& v : q) v = number();
    const Value left = b.array(type, x, p), right = b.array(type, z, q);
    for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min", "Less", "LessOrEqual",
                           "Greater", "GreaterOrEqual", "Equal"}) {
      const Result<Value> y = b.run(op, {left, right});
      ASSERT_TRUE(y.ok()) << y.error().str();
      ASSERT_EQ(y->dims, full);
      for (int64_t i = 0; i < y->count(); ++i) {
        const T u = p[static_cast<size_t>(place_in(x, full, i))];
        const T v = q[static_cast<size_t>(place_in(z, full, i))];
        if (y->type == OnnxType::boolean)
          ASSERT_EQ(y->data<uint8_t>()[i], expected_test(op, u, v) ? 1 : 0) << op << " at " << i;
        else
          ASSERT_EQ(y->data<T>()[i], expected(op, u, v)) << op << " at " << i;
      }
    }
  }
}

TEST(Rows, PairsAreThoseOfEachElementInEveryType) {
  pairs_are_right<float>(OnnxType::f32);
  pairs_are_right<double>(OnnxType::f64);
  pairs_are_right<int8_t>(OnnxType::i8);
  pairs_are_right<uint16_t>(OnnxType::u16);
  pairs_are_right<int32_t>(OnnxType::i32);
  pairs_are_right<int64_t>(OnnxType::i64);
  pairs_are_right<uint64_t>(OnnxType::u64);
}

// Any byte but 0 is true, also beside another such byte.
TEST(Rows, BooleansOfAFileMayHoldAnyByte) {
  Bench b;
  const Value x = b.array<uint8_t>(OnnxType::boolean, {4}, {0, 1, 2, 4});
  const Value z = b.array<uint8_t>(OnnxType::boolean, {4}, {1, 2, 1, 0});
  const auto bytes = [&](const char* op) {
    const Value y = *b.run(op, {x, z});
    return std::vector<uint8_t>(y.data<uint8_t>(), y.data<uint8_t>() + 4);
  };
  EXPECT_EQ(bytes("And"), (std::vector<uint8_t>{0, 1, 1, 0}));
  EXPECT_EQ(bytes("Or"), (std::vector<uint8_t>{1, 1, 1, 1}));
  EXPECT_EQ(bytes("Xor"), (std::vector<uint8_t>{1, 0, 0, 1}));
}

TEST(Rows, SlopesOfWholeNumbersWrap) {
  Bench b;
  const Value x = b.array<int64_t>(OnnxType::i64, {2}, {INT64_MIN, 5});
  const Value slope = b.array<int64_t>(OnnxType::i64, {2}, {3, 7});
  const Value y = *b.run("PRelu", {x, slope});
  EXPECT_EQ(y.data<int64_t>()[0], INT64_MIN);
  EXPECT_EQ(y.data<int64_t>()[1], 5);
}

// Each type by the sign it has: a negative number is below 0, and a large unsigned one is not.
TEST(Rows, FunctionsKnowTheSignOfWholeNumbers) {
  Bench b;
  const std::vector<uint64_t> bits = {uint64_t{1} << 63, ~uint64_t{0}, 5, 0};
  const auto first = [&](const char* op, OnnxType type) {
    const Value y = *b.run(op, {b.array(type, {4}, bits)});
    return std::vector<uint64_t>(y.data<uint64_t>(), y.data<uint64_t>() + 4);
  };
  const uint64_t low = uint64_t{1} << 63, minus = ~uint64_t{0};
  EXPECT_EQ(first("Relu", OnnxType::i64), (std::vector<uint64_t>{0, 0, 5, 0}));
  EXPECT_EQ(first("Relu", OnnxType::u64), bits);
  EXPECT_EQ(first("Abs", OnnxType::i64), (std::vector<uint64_t>{low, 1, 5, 0}));
  EXPECT_EQ(first("Sign", OnnxType::i64), (std::vector<uint64_t>{minus, minus, 1, 0}));
  EXPECT_EQ(first("Sign", OnnxType::u64), (std::vector<uint64_t>{1, 1, 1, 0}));
  EXPECT_EQ(first("BitwiseNot", OnnxType::i64),
            (std::vector<uint64_t>{low - 1, 0, ~bits[2], minus}));
}

}  // namespace
}  // namespace loom::core::evaluate

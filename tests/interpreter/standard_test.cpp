// 1,421 small tests of the ONNX standard, from golden/standard.npz (tools/goldens/onnx_standard.py
// writes it). tests/outside/onnx_standard.py runs all of them if the package onnx is installed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu.hpp"
#include "base/threads/thread_pool.hpp"
#include "interpreter/values.hpp"
#include "io/arrays/array_file.hpp"
#include "io/json/json.hpp"
#include "support/paths.hpp"

namespace loom::core::evaluate {
namespace {

struct Bounds {
  double relative, absolute;
};

Bounds bounds_of(OnnxType type, Bounds b) {
  if (type == OnnxType::f16) return {std::max(b.relative, 2e-3), std::max(b.absolute, 1e-3)};
  if (type == OnnxType::bf16) return {std::max(b.relative, 1e-2), std::max(b.absolute, 1e-3)};
  return b;
}

template <class T>
std::string difference(const Value& got, const Value& expected, Bounds b) {
  for (int64_t i = 0; i < expected.count(); ++i) {
    const T x = got.data<T>()[i], y = expected.data<T>()[i];
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(x) && std::isnan(y)) continue;
      const double bound = b.absolute + b.relative * std::abs(static_cast<double>(y));
      if (x == y || std::abs(static_cast<double>(x) - static_cast<double>(y)) <= bound) continue;
    } else if (x == y) {
      continue;
    }
    return cat("value ", i, " is ", x, ", expected ", y);
  }
  return {};
}

Result<std::string> compare_tensors(Memory& memory, const Value& got, const Value& expected,
                                    Bounds b) {
  if (got.type != expected.type) return std::string("another type");
  if (got.dims != expected.dims) return std::string("another shape");
  LOOM_ASSIGN(const Value x, widen(memory, got));
  LOOM_ASSIGN(const Value y, widen(memory, expected));
  b = bounds_of(expected.type, b);
  switch (y.type) {
    case OnnxType::f32: return difference<float>(x, y, b);
    case OnnxType::f64: return difference<double>(x, y, b);
    case OnnxType::i64: return difference<int64_t>(x, y, b);
    case OnnxType::u64: return difference<uint64_t>(x, y, b);
    default: return std::string("a type that is not compared");
  }
}

Result<std::string> compare(Memory& memory, const Slot& got, const Slot& expected, Bounds b) {
  if (got.kind != expected.kind) return std::string("another kind of value");
  if (got.kind == Slot::Kind::tensor)
    return compare_tensors(memory, got.tensor, expected.tensor, b);
  if (got.kind != Slot::Kind::sequence) return std::string();
  if (got.items->size() != expected.items->size()) return std::string("another length of a list");
  for (size_t i = 0; i < got.items->size(); ++i) {
    LOOM_ASSIGN(const std::string why, compare(memory, (*got.items)[i], (*expected.items)[i], b));
    if (!why.empty()) return cat("element ", i, ": ", why);
  }
  return std::string();
}

// The parts of a case, in the order of the file.
struct Case {
  std::string name;
  Bounds bounds;
  std::span<const std::byte> model, inputs, outputs;
};

std::vector<Case> cases_of(const JsonValue& index, std::span<const std::byte> bytes) {
  std::vector<Case> out;
  size_t at = 0;
  for (const JsonValue& row : index.elements()) {
    const auto& e = row.elements();
    const auto part = [&](size_t i) {
      const auto size = static_cast<size_t>(e[i].as_int("").value_or(0));
      at += size;
      return bytes.subspan(at - size, size);
    };
    const Bounds bounds{e[1].as_double("").value_or(0), e[2].as_double("").value_or(0)};
    const auto model = part(3), inputs = part(4), outputs = part(5);
    out.push_back({e[0].text(), bounds, model, inputs, outputs});
  }
  return out;
}

// Empty if the outputs are those of the standard.
Result<std::string> run(const Case& c, ThreadPool& pool) {
  LOOM_ASSIGN(OnnxModel model, parse_onnx(c.model, c.name, OnnxReading::everything));
  LOOM_ASSIGN(Evaluator evaluator, Evaluator::of(std::move(model), cpu_ops(best_isa()), pool));
  Memory& memory = evaluator.memory();
  LOOM_ASSIGN(std::vector<Slot> inputs, parse_values(c.inputs, c.name, memory));
  LOOM_ASSIGN(const std::vector<Slot> expected, parse_values(c.outputs, c.name, memory));
  LOOM_ASSIGN(const std::vector<Slot> got, evaluator.run(std::move(inputs)));
  if (got.size() != expected.size()) return cat(got.size(), " outputs");
  for (size_t i = 0; i < got.size(); ++i) {
    LOOM_ASSIGN(const std::string why, compare(memory, got[i], expected[i], c.bounds));
    if (!why.empty()) return cat("output ", i, ": ", why);
  }
  return std::string();
}

TEST(Standard, SmallTestsOfTheStandardHold) {
  auto file = ArrayFile::open(loom_test::source_path("tests/interpreter/golden/standard.npz"));
  ASSERT_TRUE(file.ok()) << file.error().str();
  const auto index_view = file->find("index"), bytes_view = file->find("cases");
  ASSERT_TRUE(index_view.ok() && bytes_view.ok());
  const auto index_bytes = index_view->data, bytes = bytes_view->data;
  const std::string text(reinterpret_cast<const char*>(index_bytes.data()), index_bytes.size());
  const auto index = parse_json(text, "index");
  ASSERT_TRUE(index.ok()) << index.error().str();
  ThreadPool pool(2);
  const std::vector<Case> cases = cases_of(*index, bytes);
  EXPECT_GT(cases.size(), 1400u);
  for (const Case& c : cases) {
    const Result<std::string> why = run(c, pool);
    EXPECT_EQ(why.ok() ? *why : why.error().str(), "") << c.name;
  }
}

}  // namespace
}  // namespace loom::core::evaluate

// Issue 37, line 12: weights that are NaN, infinite, or too large for the type they are packed in.
#include "bridge/finite_weight.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "base/threads/thread_pool.hpp"
#include "bridge/network_source.hpp"
#include "grid/builders.hpp"
#include "layers/core/layer.hpp"

namespace loom::core {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// Dense 64 -> 20 with a bias; the weights are 0.5.
NetworkSpec small() {
  NetworkSpec spec{GridSpec(1, 1, 1, 1), Shape{64}};
  Cell cell{*make_layer(LayerKind::dense, {{"in", 64}, {"out", 20}, {"bias", true}})};
  EXPECT_TRUE(spec.grid.put({0, 0, 0, 0}, std::move(cell)).ok());
  return spec;
}

std::unique_ptr<MemorySource> source_with(size_t at, float value, bool in_bias = false) {
  auto source = std::make_unique<MemorySource>(small());
  source->path = "w.safetensors";
  source->values["(0, 0, 0, 0)/weight"].assign(64 * 20, 0.5f);
  source->values["(0, 0, 0, 0)/bias"].assign(20, 0.5f);
  source->values[in_bias ? "(0, 0, 0, 0)/bias" : "(0, 0, 0, 0)/weight"][at] = value;
  return source;
}

Status load(const MemorySource& source, DType dtype) {
  ThreadPool pool(1);
  Network network = *Network::finalize(source.spec.grid, source.spec.input.after(1));
  for (size_t i = 0; i < network.params().size(); ++i) {
    const Param& param = network.params()[i];
    LOOM_ASSIGN(const SourceWeight weight, finite_weight(source, param));
    const DType type = param.spec.matrix() ? dtype : DType::f32;
    LOOM_TRY(load_weight(network, static_cast<int>(i), type, weight, pool));
  }
  return {};
}

TEST(FiniteWeight, NanAndInfinityAreNamedInEveryNumberType) {
  for (const DTypeInfo& type : dtype_table()) {
    SCOPED_TRACE(type.name);
    for (const float bad : {kNan, kInf, -kInf}) {
      const auto source = source_with(64 * 3 + 7, bad);
      const Status loaded = load(*source, type.dtype);
      ASSERT_FALSE(loaded.ok());
      EXPECT_EQ(loaded.error().code, Code::bad_file);
      EXPECT_EQ(loaded.error().str(),
                std::string("w.safetensors: '(0, 0, 0, 0)/weight' is ") +
                    (bad != bad ? "NaN" : "infinite") +
                    " at [3, 7]; restore the file, or go on with --allow-nonfinite");
      source->allow_nonfinite = true;
      EXPECT_TRUE(load(*source, type.dtype).ok());
    }
    EXPECT_TRUE(load(*source_with(0, 0.25f), type.dtype).ok());
  }
  EXPECT_EQ(load(*source_with(4, kNan, true), DType::f32).error().str(),
            "w.safetensors: '(0, 0, 0, 0)/bias' is NaN at [4]; restore the file, or go on with "
            "--allow-nonfinite");
}

TEST(FiniteWeight, AValueTooLargeForTheTypeIsNamed) {
  const auto large = [](float v, DType dtype) { return load(*source_with(64 * 2 + 40, v), dtype); };
  EXPECT_EQ(large(1e6f, DType::f16).error().str(),
            "w.safetensors: '(0, 0, 0, 0)/weight' is too large for float16 at [2, 40]; choose a "
            "type with a larger range, or go on with --allow-nonfinite");
  EXPECT_TRUE(large(65504.0f, DType::f16).ok());
  EXPECT_TRUE(large(1e6f, DType::bf16).ok());
  EXPECT_TRUE(large(1e6f, DType::i8).ok());
  // A block's scale is a float16: 2^30 / 127 is above its largest.
  for (const DType dtype : {DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0})
    EXPECT_EQ(large(1073741824.0f, dtype).error().code, Code::bad_file) << dtype_name(dtype);
  EXPECT_FALSE(large(3.4e38f, DType::bf16).ok());
}

// Any bad element of random matrices is found at its index.
TEST(FiniteWeight, EveryPlaceOfAMatrixIsLookedAt) {
  for (size_t at = 0; at < 64 * 20; at += 37) {
    const Status loaded = load(*source_with(at, kNan), DType::q8_0);
    ASSERT_FALSE(loaded.ok());
    EXPECT_NE(loaded.error().message.find("[" + std::to_string(at / 64) + ", " +
                                          std::to_string(at % 64) + "]"),
              std::string::npos)
        << loaded.error().str();
  }
}

}  // namespace
}  // namespace loom::core

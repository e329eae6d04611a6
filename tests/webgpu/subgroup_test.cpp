// Sums in registers (backend/webgpu/wgsl/subgroup.hpp): used if possible, with the same bits as
// those in workgroup memory.
#include "base/text.hpp"
#include "webgpu/sheet.hpp"

namespace loom::core::test {
namespace {

TEST(GpuSubgroups, AreUsedWhereSubgroupsLieInARow) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  const webgpu::AdapterReport& adapter = gpu()->adapter();
  if (!adapter.subgroups) GTEST_SKIP() << "the adapter has no subgroups";
  const bool one_size = adapter.subgroup_min == adapter.subgroup_max;
  if (one_size && adapter.subgroup_min != 0) {
    EXPECT_EQ(adapter.subgroup, static_cast<int>(adapter.subgroup_min));
  } else {
    EXPECT_EQ(adapter.subgroup > 1, adapter.software);
  }
}

TEST(GpuSubgroups, AreNotUsedWithoutTheFeature) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  const auto plain = gpu_without_features();
  ASSERT_NE(plain, nullptr);
  EXPECT_EQ(plain->adapter().subgroup, 1);
}

TEST(GpuSubgroups, SumsHaveTheBitsOfThoseWithout) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  if (!gpu()->adapter().software) GTEST_SKIP() << "a compiler may fuse the two differently";
  const auto plain = gpu_without_features();
  ASSERT_NE(plain, nullptr);
  // Rows of one workgroup of 32 invocations, of one of 256, and in parts.
  for (const int64_t cols : {7, 100, 128, 700, 3000, 5000}) {
    const auto list = [&](Sheet& s) -> Status {
      const Tensor x = s.matrix(3, cols), y = s.matrix(3, cols), z = s.matrix(3, cols);
      Tensor sums = s.matrix(1, 3), most = s.matrix(1, 3);
      sums.shape = most.shape = Shape{3};
      NormArgs norm;
      norm.x = x;
      norm.y = y;
      LOOM_TRY(s.ops().norm(norm));
      LOOM_TRY(s.ops().softmax({x, z, 3.0f}));
      LOOM_TRY(s.ops().reduce({x, sums, ReduceKind::sum_squares}));
      LOOM_TRY(s.ops().reduce({y, most, ReduceKind::max}));
      const Tensor w = s.packed(40, cols), small = s.matrix(3, 40);
      for (int64_t i = 0; i < 48 * cols; ++i) {
        reinterpret_cast<float*>(w.data)[i] = 0.01f * static_cast<float>(i % 23 - 11);
      }
      return s.ops().matmul({x, w, {}, small});
    };
    const auto room = static_cast<size_t>(70 * cols + 1000);
    Sheet with(gpu()->ops(), room), without(plain->ops(), room);
    ASSERT_TRUE(list(with).ok());
    ASSERT_TRUE(list(without).ok());
    EXPECT_EQ(with.run(), without.run()) << cols << " columns";
  }
}

}  // namespace
}  // namespace loom::core::test

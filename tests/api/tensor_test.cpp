// Tensors of the public interface: types, steps, and the shapes that they may have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "loom/tensor.hpp"

namespace loom::tensor_api_test {
namespace {

std::vector<float> floats(const Tensor& t) {
  const auto values = t.values<float>().or_exit();
  return {values.begin(), values.end()};
}

TEST(TensorApi, ConvertsBetweenPlainTypes) {
  const std::vector<float> x = {0.5f, 1.5f, -2.5f, 300.0f, -1.0f};
  const Tensor t = Tensor::view(x.data(), {5});
  const Tensor i = t.to(DType::uint8).or_exit();
  const auto bytes = i.values<uint8_t>().or_exit();
  EXPECT_THAT(std::vector<int>(bytes.begin(), bytes.end()), testing::ElementsAre(0, 2, 0, 255, 0));
  const Tensor half = t.to(DType::float16).or_exit().to(DType::float32).or_exit();
  EXPECT_EQ(floats(half), x);
  const std::vector<int64_t> wide = {INT64_MAX, INT64_MIN, 7};
  const Tensor narrow = Tensor::view(wide.data(), {3}).to(DType::int32).or_exit();
  const auto ints = narrow.values<int32_t>().or_exit();
  EXPECT_THAT(std::vector<int32_t>(ints.begin(), ints.end()),
              testing::ElementsAre(INT32_MAX, INT32_MIN, 7));
  EXPECT_FALSE(t.to(DType::q4_0).ok());
  EXPECT_FALSE(t.values<double>().ok());
}

TEST(TensorApi, BorrowsWithStridesAndOwnsWhatItCopies) {
  std::vector<float> x = {0, 1, 2, 3, 4, 5};
  const Tensor columns = Tensor::borrow(x.data(), DType::float32, {3, 2}, {1, 3});
  EXPECT_FALSE(columns.contiguous());
  EXPECT_FALSE(columns.values<float>().ok());
  const Tensor copy = columns.copied().or_exit();
  EXPECT_TRUE(copy.owned());
  x[0] = 9;
  EXPECT_EQ(floats(copy), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(floats(copy.reshape({2, 3}).or_exit().slice(1, 1).or_exit()),
            (std::vector<float>{4, 2, 5}));
  EXPECT_FALSE(copy.slice(2, 2).ok());
  EXPECT_FALSE(Tensor::copy(std::vector<float>{1, 2}, {3}).ok());
  EXPECT_FALSE(Tensor::zeros({INT64_MAX, 2}).ok());
  Tensor borrowed = Tensor::view(x.data(), {6});
  EXPECT_FALSE(borrowed.mutable_values<float>().ok());
}

// Found by a fuzzer: the product of the other extents of an empty tensor may be beyond an integer,
// at any position of the 0.
TEST(TensorApi, AnEmptyTensorMayHaveAnyOtherExtents) {
  std::mt19937 random(7);
  const std::vector<int64_t> extents = {1, 2, 3, 1 << 20, int64_t{1} << 40, INT64_MAX};
  for (int round = 0; round < 300; ++round) {
    Shape shape(1 + random() % 6);
    for (int64_t& extent : shape) extent = extents[random() % extents.size()];
    shape[random() % shape.size()] = 0;
    SCOPED_TRACE(shape_text(shape));
    EXPECT_EQ(element_count(shape), 0);
    const Tensor t = Tensor::zeros(shape).or_exit();
    EXPECT_TRUE(t.contiguous());
    EXPECT_EQ(t.copied().or_exit().shape(), shape);
    EXPECT_EQ(t.to(DType::int8).or_exit().shape(), shape);
    EXPECT_EQ(t.reshape({4, 0}).or_exit().size(), 0);
    const Shape steps(shape.size(), 5);
    const Tensor gaps =
        Tensor::borrow(t.values<float>().or_exit().data(), DType::float32, shape, steps);
    EXPECT_EQ(gaps.to(DType::float64).or_exit().size(), 0);
  }
}

}  // namespace
}  // namespace loom::tensor_api_test

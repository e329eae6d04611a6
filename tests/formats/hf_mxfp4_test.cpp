// MXFP4 matrices of Hugging Face checkpoints against the levels of the OCP specification.
#include "formats/hf/mxfp4.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "dtype/r16/r16.hpp"

namespace loom::core {
namespace {

constexpr int64_t kExperts = 2, kRows = 3, kCols = 64;
constexpr float kLevels[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};

struct Files {
  std::vector<std::byte> codes, exponents;
  SafeTensor blocks, scales;
  Files() {
    for (int64_t i = 0; i < kExperts * kRows * kCols / 2; ++i)
      codes.push_back(static_cast<std::byte>(i * 37 + 11));
    for (int64_t i = 0; i < kExperts * kRows * kCols / 32; ++i)
      exponents.push_back(static_cast<std::byte>(120 + i % 9));
    blocks.name = "w_blocks";
    blocks.dtype = scales.dtype = SafeDType::u8;
    blocks.shape = {kExperts, kRows, kCols / 32, 16};
    scales.shape = {kExperts, kRows, kCols / 32};
    blocks.data = codes;
    scales.data = exponents;
  }
  Result<Mxfp4Matrix> open(const Shape& shape = Shape{kExperts, kRows, kCols}) const {
    return Mxfp4Matrix::open(blocks, scales, shape, "folder");
  }
  float value(int64_t row, int64_t col) const {
    const int64_t i = row * kCols + col;
    const int byte = std::to_integer<int>(codes[static_cast<size_t>(i / 2)]);
    const int code = i % 2 == 0 ? byte & 15 : byte >> 4;
    const int e = std::to_integer<int>(exponents[static_cast<size_t>(i / 32)]);
    const float level = std::ldexp(kLevels[code & 7], e - 127);
    return code < 8 ? level : -level;
  }
};

TEST(HfMxfp4, GivesTheValuesOfItsCodesAndScales) {
  const Files files;
  const auto matrix = files.open();
  ASSERT_TRUE(matrix.ok()) << matrix.error().str();
  for (int64_t row = 0; row < kExperts * kRows; ++row) {
    std::vector<float> got(kCols);
    matrix->row(row, got.data());
    for (int64_t col = 0; col < kCols; ++col)
      EXPECT_EQ(got[static_cast<size_t>(col)], files.value(row, col)) << row << " " << col;
  }
}

TEST(HfMxfp4, IsPackedWithTheSameValues) {
  const Files files;
  const auto matrix = files.open();
  ASSERT_TRUE(matrix.ok()) << matrix.error().str();
  const R16 geometry = r16_geometry(DType::mxfp4, kExperts * kRows, kCols);
  std::vector<std::byte> packed(static_cast<size_t>(geometry.bytes()));
  for (int64_t row = 0; row < kExperts * kRows; ++row)
    ASSERT_TRUE(matrix->pack(row, geometry, row, packed.data()).ok());
  for (int64_t row = 0; row < kExperts * kRows; ++row) {
    std::vector<float> got(kCols);
    r16_decode(geometry, packed.data(), row, 0, kCols, got.data());
    for (int64_t col = 0; col < kCols; ++col)
      EXPECT_EQ(got[static_cast<size_t>(col)], files.value(row, col)) << row << " " << col;
  }
}

TEST(HfMxfp4, OfOtherShapesAndNanScalesIsRefused) {
  Files files;
  const auto other = files.open(Shape{kExperts, kRows, kCols + 32});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().message,
            "w_blocks and its scales are not [2, 3, 96] values of MXFP4 in blocks of 32");
  files.exponents[0] = std::byte{255};
  const auto matrix = files.open();
  ASSERT_TRUE(matrix.ok());
  const R16 geometry = r16_geometry(DType::mxfp4, kExperts * kRows, kCols);
  std::vector<std::byte> packed(static_cast<size_t>(geometry.bytes()));
  const Status status = matrix->pack(0, geometry, 0, packed.data());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "tensor w_blocks has a block whose scale is NaN");
}

}  // namespace
}  // namespace loom::core

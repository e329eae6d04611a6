// One row of a packed matrix as bytes: the bytes that r16_copy_row() copies and leaves, and the
// matrices that r16_valid() allows kernels to read.
#include "samples.hpp"

namespace loom::core {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::pair<int64_t, int64_t> kSizes[] = {{1, 1},   {5, 33},   {15, 31}, {16, 64},
                                                  {17, 65}, {37, 100}, {33, 7}};

class R16Rows : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(EveryType, R16Rows, testing::ValuesIn(test::all_dtypes()),
                         test::dtype_test_name);

Bytes packed(const R16& g, uint64_t seed) {
  const auto count = g.rows * g.cols;
  const std::vector<float> x = test::normal_samples(static_cast<size_t>(count), seed);
  Bytes data(static_cast<size_t>(g.bytes()));
  r16_pack(g, x.data(), 0, g.rows, ScaleScope::per_row, tensor_range(x.data(), count), data.data());
  return data;
}

std::vector<double> row_values(const R16& g, const Bytes& data, int64_t row) {
  std::vector<double> out(static_cast<size_t>(g.cols));
  r16_decode_f64(g, data.data(), row, 0, g.cols, out.data());
  return out;
}

TEST_P(R16Rows, CopyTakesOneRowAndLeavesTheOthers) {
  for (const auto& [rows, cols] : kSizes) {
    const R16 g = r16_geometry(GetParam(), rows, cols);
    const Bytes from = packed(g, 1), before = packed(g, 2);
    for (int64_t row = 0; row < rows; ++row) {
      Bytes to = before;
      r16_copy_row(g, from.data(), row, to.data());
      for (int64_t r = 0; r < rows; ++r)
        EXPECT_EQ(row_values(g, to, r), row_values(g, r == row ? from : before, r));
    }
  }
}

// Every byte of a matrix belongs to one row, or to padding that packing fills alike.
TEST_P(R16Rows, CopyOfEveryRowIsACopyOfTheMatrix) {
  for (const auto& [rows, cols] : kSizes) {
    const R16 g = r16_geometry(GetParam(), rows, cols);
    const Bytes from = packed(g, 1);
    Bytes to = packed(g, 2);
    for (int64_t row = rows; row-- > 0;) r16_copy_row(g, from.data(), row, to.data());
    EXPECT_EQ(to, from) << rows << " x " << cols;
  }
}

TEST_P(R16Rows, CopiesOfTwoRowsTouchDifferentBytes) {
  const R16 g = r16_geometry(GetParam(), 20, 70);
  Bytes ones(static_cast<size_t>(g.bytes()), std::byte{0xFF});
  std::vector<int> writers(ones.size());
  for (int64_t row = 0; row < g.rows; ++row) {
    Bytes to(ones.size());
    r16_copy_row(g, ones.data(), row, to.data());
    for (size_t i = 0; i < to.size(); ++i) writers[i] += to[i] == std::byte{0xFF} ? 1 : 0;
  }
  EXPECT_LE(*std::max_element(writers.begin(), writers.end()), 1);
}

TEST_P(R16Rows, WhatPackingMakesIsValid) {
  for (const auto& [rows, cols] : kSizes) {
    const R16 g = r16_geometry(GetParam(), rows, cols);
    EXPECT_TRUE(r16_valid(g, packed(g, 1).data()));
  }
  EXPECT_TRUE(r16_valid(r16_geometry(GetParam(), 0, 5), nullptr));
}

TEST_P(R16Rows, AZeroPointThatIsNoCodeIsNotValid) {
  const DTypeInfo& info = dtype_info(GetParam());
  const R16 g = r16_geometry(GetParam(), 33, 5);
  const bool codes = info.affine() && info.compute == ComputeType::f32;
  for (int64_t lane = 0; lane < 48; ++lane) {
    for (const int32_t zero : {-1, INT32_MIN, INT32_MAX, 1 << std::min(info.bits, 30)}) {
      Bytes data = packed(g, 1);
      if (codes) {
        const int64_t at = lane / 16 * g.group_bytes + g.zeros + lane % 16 * 4;
        std::memcpy(data.data() + at, &zero, 4);
      }
      EXPECT_EQ(r16_valid(g, data.data()), !codes) << lane << " " << zero;
    }
  }
}

TEST(R16BlockZeros, AZeroPointOfABlockThatIsNoCodeIsNotValid) {
  const R16 g = r16_geometry(DType::u4g128, 33, 200);
  for (const int64_t at : {int64_t{0}, g.scale_block_bytes + 15, 2 * g.group_bytes + 3}) {
    Bytes data = packed(g, 1);
    data[static_cast<size_t>(g.block_scales + at + g.block_zeros)] = std::byte{16};
    EXPECT_FALSE(r16_valid(g, data.data())) << at;
  }
}

}  // namespace
}  // namespace loom::core

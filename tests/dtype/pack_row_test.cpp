// Packing one row of a packed matrix: the bytes equal those of packing the whole matrix, and no
// byte of another row is touched.
#include "samples.hpp"

namespace loom::core {
namespace {

using Bytes = std::vector<std::byte>;

class PackRow : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(EveryType, PackRow, testing::ValuesIn(test::all_dtypes()),
                         test::dtype_test_name);

TEST_P(PackRow, IsThereForAllTypesButThoseWithAScaleOfTheTensor) {
  EXPECT_EQ(r16_packs_rows(GetParam()), GetParam() != DType::nvfp4);
}

TEST_P(PackRow, GivesTheBytesOfPackingAll) {
  if (!r16_packs_rows(GetParam())) return;
  const bool dither = r16_can_dither(GetParam());
  for (const auto& [rows, cols] : {std::pair{1, 1}, {5, 33}, {16, 64}, {37, 100}, {33, 7}}) {
    const R16 g = r16_geometry(GetParam(), rows, cols);
    std::vector<float> x = test::normal_samples(static_cast<size_t>(rows * cols));
    Bytes data(static_cast<size_t>(g.bytes()));
    r16_pack(g, x.data(), 0, rows, ScaleScope::per_row, {}, data.data());
    for (int64_t row = 0; row < rows; row += 4) {
      for (int64_t k = 0; k < cols; ++k) x[static_cast<size_t>(row * cols + k)] *= 1.5f;
      r16_pack_row(g, x.data() + row * cols, row, nullptr, data.data());
    }
    Bytes expected(data.size());
    r16_pack(g, x.data(), 0, rows, ScaleScope::per_row, {}, expected.data());
    EXPECT_EQ(data, expected) << rows << " x " << cols;
    if (!dither) continue;
    const R16Dither by{1, 2, 3};
    for (int64_t row = 0; row < rows; ++row) {
      r16_pack_row(g, x.data() + row * cols, row, &by, data.data());
    }
    r16_pack_stochastic(g, x.data(), 0, rows, by, expected.data());
    EXPECT_EQ(data, expected) << rows << " x " << cols << ", stochastic";
  }
}

TEST_P(PackRow, HoldsTheRangeOfThatRowAlone) {
  const int held = r16_frozen_values(GetParam());
  if (held == 0) return;
  const R16 g = r16_geometry(GetParam(), 20, 8);
  const std::vector<float> x = test::normal_samples(8);
  std::vector<float> values(static_cast<size_t>(20 * held), 77.0f);
  const auto mine = static_cast<size_t>(17 * held);
  std::fill_n(values.begin() + 17 * held, held, 0.0f);
  Bytes data(static_cast<size_t>(g.bytes()));
  r16_pack_row(g, x.data(), 17, nullptr, data.data(), {values.data(), 0.125f});
  for (size_t i = 0; i < values.size(); ++i) {
    const bool ours = i >= mine && i < mine + static_cast<size_t>(held);
    EXPECT_EQ(values[i] == 77.0f, !ours) << i;
  }
  EXPECT_NE(values[mine], 0.0f);
}

}  // namespace
}  // namespace loom::core

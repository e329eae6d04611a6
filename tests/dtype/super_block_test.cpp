// Types whose blocks have offsets, zero points or small integer scales. Tests the precision for
// normal weights, and that the search beats plain rounding to the ends of a block. Values must
// equal the formats' formulas in f64, from bytes decoded by hand. Also covers values at the edges.
#include <random>

#include "dtype/r16/r16_blocks.hpp"
#include "samples.hpp"

namespace loom::core {
namespace {

using test::normal_samples;
using test::snr_db;
using test::through;

TEST(BlockTypes, KeepAsMuchOfNormalWeightsAsTheirBitsSay) {
  const struct {
    DType dtype;
    double floor;  // dB
  } rows[] = {{DType::q2_k, 9.5},   {DType::q3_k, 14.5},  {DType::q4_k, 21}, {DType::q5_k, 27},
              {DType::q6_k, 32.5},  {DType::q4_1, 20.5},  {DType::q5_0, 25}, {DType::q5_1, 26.5},
              {DType::u4g64, 19.5}, {DType::u4g128, 18.5}};
  const std::vector<float> x = normal_samples(1 << 16, 3);
  for (const auto& row : rows)
    EXPECT_GE(snr_db(x, through(row.dtype, x)), row.floor) << dtype_name(row.dtype);
}

// The smallest step of a block that reaches both of its ends, with rounded codes.
std::vector<double> rounded_to_ends(const std::vector<float>& x, int block, double levels) {
  std::vector<double> out;
  for (size_t b = 0; b < x.size(); b += static_cast<size_t>(block)) {
    const auto [low, high] = std::minmax_element(x.begin() + static_cast<int64_t>(b),
                                                 x.begin() + static_cast<int64_t>(b) + block);
    const double min = std::min(static_cast<double>(*low), 0.0);
    const double step = (static_cast<double>(*high) - min) / levels;
    for (size_t i = b; i < b + static_cast<size_t>(block); ++i)
      out.push_back(std::nearbyint((static_cast<double>(x[i]) - min) / step) * step + min);
  }
  return out;
}

TEST(SuperBlocks, LoseLessThanRoundingToTheEndsOfEachBlockWithExactScales) {
  const std::vector<float> x = normal_samples(1 << 14, 4);
  EXPECT_GT(snr_db(x, through(DType::q4_k, x)), snr_db(x, rounded_to_ends(x, 32, 15)));
  EXPECT_GT(snr_db(x, through(DType::q2_k, x)), snr_db(x, rounded_to_ends(x, 16, 3)));
}

double half_at(const std::vector<std::byte>& block, size_t at) {
  return static_cast<double>(f32_from_f16(load_le<uint16_t>(block.data() + at)));
}
int byte_at(const std::vector<std::byte>& block, size_t at) {
  return std::to_integer<int>(block[at]);
}

// One value of a GGUF block by the formula of the format, in f64, byte by byte.
double q4_k_value(const std::vector<std::byte>& b, size_t i) {
  const size_t k = i / 32;
  const auto at = [&](size_t flat_index) { return byte_at(b, 4 + flat_index); };
  const int scale = k < 4 ? at(k) & 63 : (at(k + 4) & 15) | (at(k - 4) >> 6) << 4;
  const int least = k < 4 ? at(k + 4) & 63 : (at(k + 4) >> 4) | (at(k) >> 6) << 4;
  const int code = byte_at(b, 16 + i / 64 * 32 + i % 32) >> (i % 64 / 32 * 4) & 15;
  return half_at(b, 0) * scale * code - half_at(b, 2) * least;
}
double q6_k_value(const std::vector<std::byte>& b, size_t i) {
  const size_t half = i / 128, r = i % 128;
  const int low = byte_at(b, half * 64 + r % 64) >> (r / 64 * 4) & 15;
  const int high = byte_at(b, 128 + half * 32 + r % 32) >> (r / 32 * 2) & 3;
  const int scale = static_cast<int8_t>(byte_at(b, 192 + i / 16));
  return half_at(b, 208) * scale * ((low | high << 4) - 32);
}

TEST(SuperBlocks, AreWorthWhatTheirFormulasSayInFloat64RoundedOnce) {
  std::mt19937 random(11);
  for (const DType dtype : {DType::q4_k, DType::q6_k}) {
    const R16 g = r16_geometry(dtype, 1, 256);
    std::vector<std::byte> matrix(static_cast<size_t>(g.bytes()));
    std::vector<std::byte> block(static_cast<size_t>(gguf_block_bytes(dtype)));
    for (int round = 0; round < 200; ++round) {
      for (std::byte& b : block) b = static_cast<std::byte>(random());
      for (const size_t high : {size_t{1}, size_t{3}, size_t{209}})
        if (high < block.size()) block[high] &= std::byte{0xBF};  // finite
      ASSERT_TRUE(r16_put_blocks(g, block.data(), 0, matrix.data()));
      float row[256];
      r16_decode(g, matrix.data(), 0, 0, 256, row);
      for (size_t i = 0; i < 256; ++i) {
        const double want = dtype == DType::q4_k ? q4_k_value(block, i) : q6_k_value(block, i);
        ASSERT_EQ(row[i], static_cast<float>(want)) << dtype_name(dtype) << " " << i;
      }
    }
  }
}

// To the precision of an f16; that of a tiny value would be subnormal.
TEST(SuperBlocks, OfOneValueEverywhereKeepIt) {
  for (const DType dtype : {DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k}) {
    for (const float value : {0.0f, 1.0f, -1.0f, 0.5f, -300.0f}) {
      for (const double got : through(dtype, std::vector<float>(300, value)))
        ASSERT_NEAR(got, static_cast<double>(value), std::fabs(value) * 2e-3) << dtype_name(dtype);
    }
  }
}

TEST(SuperBlocks, OfHugeAndTinyValuesStayFinite) {
  for (const DTypeInfo& info : dtype_table()) {
    if (info.super_block == 0 && !info.shifted()) continue;
    for (const float scale : {1e-45f, 1e-30f, 1e30f, 3e38f}) {
      std::vector<float> x = normal_samples(300, 5);
      for (float& v : x) v = std::max(-1.0f, std::min(1.0f, v)) * scale;
      for (const double got : through(info.dtype, x)) ASSERT_TRUE(std::isfinite(got)) << info.name;
    }
  }
}

}  // namespace
}  // namespace loom::core

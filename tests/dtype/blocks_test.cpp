// GGUF q4_0 and q8_0 blocks: bytes computed by hand from the format's definition, an independent
// encoder over random blocks, round trips, and equality with R16 packing. The oracle is the
// definition with libm, in f32 without fused operations.
#include <array>

#include "samples.hpp"

namespace loom::core {
namespace {

using Values = std::array<float, 32>;
using BlockQ4 = std::array<uint8_t, 18>;
using BlockQ8 = std::array<uint8_t, 34>;

Values with(std::initializer_list<std::pair<int, float>> entries) {
  Values x{};
  for (const auto& [index, value] : entries) x[static_cast<size_t>(index)] = value;
  return x;
}

BlockQ4 q4(const Values& x) {
  BlockQ4 block;
  encode_block_q4_0(x.data(), reinterpret_cast<std::byte*>(block.data()));
  return block;
}

BlockQ8 q8(const Values& x) {
  BlockQ8 block;
  encode_block_q8_0(x.data(), reinterpret_cast<std::byte*>(block.data()));
  return block;
}

TEST(BlockQ4_0, OfZerosHasScaleMinusZeroAndTheCodeEight) {
  BlockQ4 want;  // d = 0 / -8
  want.fill(0x88);
  want[0] = 0x00;
  want[1] = 0x80;
  EXPECT_EQ(q4(Values{}), want);
}

TEST(BlockQ4_0, PairsValueJWithJPlus16AndMapsTheExtremeToMinusEight) {
  // d = -8 / -8 = 1; code = floor(x + 8.5) up to 15.
  const BlockQ4 block = q4(with({{0, -8.0f},
                                 {1, 7.0f},
                                 {2, 7.6f},
                                 {3, 0.5f},
                                 {4, -0.5f},
                                 {5, 0.49f},
                                 {16, 1.0f},
                                 {17, -7.0f},
                                 {31, 3.0f}}));
  const BlockQ4 want = {0x00, 0x3c, 0x90, 0x1f, 0x8f, 0x89, 0x88, 0x88, 0x88,
                        0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0xb8};
  EXPECT_EQ(block, want);
}

TEST(BlockQ4_0, HasANegativeScaleWhenTheExtremeIsPositiveAndTheFirstExtremeWins) {
  // d = 8 / -8 = -1: 8 gets code 0; -8 would be 16 and is cut to 15, that is 7 * -1.
  const Values x = with({{0, 8.0f}, {1, -8.0f}, {16, 2.0f}});
  const BlockQ4 block = q4(x);
  EXPECT_EQ(block[0] | block[1] << 8, 0xbc00);
  EXPECT_EQ(block[2], 0x60);
  EXPECT_EQ(block[3], 0x8f);
  Values y;
  decode_block_q4_0(reinterpret_cast<const std::byte*>(block.data()), y.data());
  EXPECT_EQ(y[0], 8.0f);
  EXPECT_EQ(y[1], -7.0f);
  EXPECT_EQ(y[16], 2.0f);
}

TEST(BlockQ4_0, StoresItsScaleAsF16ButDividesByTheUnroundedOne) {
  // d = 0.1f is 0x2e66 (0.09998) in f16. 0.05 / 0.1f is 0.5 and rounds up; over 0.09998 it would
  // too, so the decisive value is one between: 0.0499950 / 0.1f = 0.49995 stays 8, over the f16 it
  // would be 0.50004.
  const BlockQ4 block = q4(with({{0, -0.8f}, {1, 0.0499950f}}));
  EXPECT_EQ(block[0] | block[1] << 8, 0x2e66);
  EXPECT_EQ(block[3] & 15, 8);
}

TEST(BlockQ8_0, OfZerosIsZero) {
  BlockQ8 want{};
  EXPECT_EQ(q8(Values{}), want);
}

TEST(BlockQ8_0, RoundsHalvesAwayFromZero) {
  // d = 127 / 127 = 1.
  const BlockQ8 block = q8(with({{0, 127.0f},
                                 {1, 0.5f},
                                 {2, -0.5f},
                                 {3, 2.5f},
                                 {4, -2.5f},
                                 {5, 0.49999997f},
                                 {6, -126.6f},
                                 {31, -1.0f}}));
  BlockQ8 want{};
  const uint8_t head[] = {0x00, 0x3c, 127, 1, 0xff, 3, 0xfd, 0, 0x81};
  std::memcpy(want.data(), head, sizeof(head));
  want[33] = 0xff;
  EXPECT_EQ(block, want);
}

// The definition once more, with libm.
BlockQ4 oracle_q4(const Values& x) {
  size_t at = 0;
  for (size_t i = 0; i < 32; ++i) {
    if (std::fabs(x[i]) > std::fabs(x[at])) at = i;
  }
  const float d = x[at] / -8.0f;
  const float id = d != 0 ? 1.0f / d : 0.0f;
  const uint16_t h = f16_from_f32(d);
  BlockQ4 block{static_cast<uint8_t>(h & 255), static_cast<uint8_t>(h >> 8)};
  for (size_t i = 0; i < 32; ++i) {
    const float t = x[i] * id + 8.5f;
    const int code = std::min(15, static_cast<int>(std::trunc(t)));
    block[2 + i % 16] = static_cast<uint8_t>(block[2 + i % 16] | code << (i < 16 ? 0 : 4));
  }
  return block;
}

BlockQ8 oracle_q8(const Values& x) {
  float amax = 0;
  for (const float v : x) amax = std::max(amax, std::fabs(v));
  const float d = amax / 127.0f;
  const float id = d != 0 ? 1.0f / d : 0.0f;
  const uint16_t h = f16_from_f32(d);
  BlockQ8 block{static_cast<uint8_t>(h & 255), static_cast<uint8_t>(h >> 8)};
  for (size_t i = 0; i < 32; ++i) {
    block[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(std::round(x[i] * id)));
  }
  return block;
}

Values random_block(uint64_t seed) {
  const auto v = test::normal_samples(32, seed);
  Values x;
  for (size_t i = 0; i < 32; ++i) x[i] = v[i] * std::ldexp(1.0f, static_cast<int>(seed % 24) - 12);
  return x;
}

TEST(GgufBlocks, EqualAnIndependentEncoderOnRandomValues) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const Values x = random_block(seed);
    ASSERT_EQ(q4(x), oracle_q4(x)) << seed;
    ASSERT_EQ(q8(x), oracle_q8(x)) << seed;
  }
}

TEST(GgufBlocks, DecodeToCodeTimesScale) {
  BlockQ4 b4{0x66, 0x2e};
  BlockQ8 b8{0x66, 0x2e};
  for (size_t j = 0; j < 16; ++j) b4[2 + j] = static_cast<uint8_t>(j | (15 - j) << 4);
  for (size_t j = 0; j < 32; ++j) b8[2 + j] = static_cast<uint8_t>(j * 8 + 3);
  Values x4, x8;
  decode_block_q4_0(reinterpret_cast<const std::byte*>(b4.data()), x4.data());
  decode_block_q8_0(reinterpret_cast<const std::byte*>(b8.data()), x8.data());
  const float d = f32_from_f16(0x2e66);
  for (int j = 0; j < 32; ++j) {
    const auto i = static_cast<size_t>(j);
    EXPECT_EQ(x4[i], static_cast<float>(j < 16 ? j - 8 : 23 - j) * d) << j;
    EXPECT_EQ(x8[i], static_cast<float>(static_cast<int8_t>(j * 8 + 3)) * d) << j;
  }
}

TEST(GgufBlocks, KeepTheirValuesOnASecondRoundTrip) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Values once, twice;
    BlockQ8 b8 = q8(random_block(seed));
    decode_block_q8_0(reinterpret_cast<const std::byte*>(b8.data()), once.data());
    const BlockQ8 again = q8(once);
    decode_block_q8_0(reinterpret_cast<const std::byte*>(again.data()), twice.data());
    for (size_t i = 0; i < 32; ++i) ASSERT_NEAR(once[i], twice[i], 1e-3 * std::fabs(once[i]));
  }
}

TEST(GgufBlocks, ClampInfinitiesAndReadNanAsZero) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Values x = with({{0, -2.0f}, {1, inf}, {2, -inf}, {3, nan}, {4, 1.0f}});
  Values y4, y8;
  const BlockQ4 b4 = q4(x);
  const BlockQ8 b8 = q8(x);
  decode_block_q4_0(reinterpret_cast<const std::byte*>(b4.data()), y4.data());
  decode_block_q8_0(reinterpret_cast<const std::byte*>(b8.data()), y8.data());
  EXPECT_EQ(y4[1], 1.75f);
  EXPECT_EQ(y4[2], -2.0f);
  EXPECT_EQ(y4[3], 0.0f);
  EXPECT_EQ(y4[4], 1.0f);
  EXPECT_NEAR(y8[1], 2.0f, 0.02f);
  EXPECT_NEAR(y8[2], -2.0f, 0.02f);
  EXPECT_EQ(y8[3], 0.0f);
}

TEST(GgufBlocks, SaturateAScaleBeyondF16) {
  const BlockQ4 block = q4(with({{0, -3e38f}, {1, 1e38f}}));
  EXPECT_EQ(block[0] | block[1] << 8, 0x7bff);
}

TEST(GgufBlocks, HaveTheScaleAndTheCodesOfR16) {
  const int64_t cols = 96;
  const auto x = test::normal_samples(3 * 96, 11);
  for (const DType dtype : {DType::q4_0, DType::q8_0}) {
    const R16 g = r16_geometry(dtype, 3, cols);
    std::vector<std::byte> data(static_cast<size_t>(g.bytes()));
    r16_pack(g, x.data(), 0, 3, ScaleScope::per_row, {}, data.data());
    for (int64_t row = 0; row < 3; ++row) {
      for (int64_t b = 0; b < 3; ++b) {
        Values values, decoded;
        std::memcpy(values.data(), x.data() + row * cols + b * 32, sizeof(values));
        std::array<std::byte, 34> block;
        if (dtype == DType::q4_0) {
          encode_block_q4_0(values.data(), block.data());
          decode_block_q4_0(block.data(), decoded.data());
        } else {
          encode_block_q8_0(values.data(), block.data());
          decode_block_q8_0(block.data(), decoded.data());
        }
        EXPECT_EQ(r16_step(g, data.data(), row, b), f32_from_f16(load_le<uint16_t>(block.data())));
        Values unpacked;
        r16_decode(g, data.data(), row, b * 32, 32, unpacked.data());
        EXPECT_EQ(unpacked, decoded);
      }
    }
  }
}

}  // namespace
}  // namespace loom::core

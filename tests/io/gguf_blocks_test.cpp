// GGUF blocks to R16 and back: the bytes that went in come out, and both say the same values. It
// stands here and not with the number types because the decoder it is compared with is io's.
#include "dtype/r16_blocks.hpp"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "io/gguf_quants.hpp"

namespace loom {
namespace {

constexpr DType kBlockTypes[] = {DType::q4_0, DType::q8_0, DType::mxfp4};

std::string_view ggml_name(DType dtype) {
  if (dtype == DType::q4_0) return "Q4_0";
  return dtype == DType::q8_0 ? "Q8_0" : "MXFP4";
}

// Random blocks whose scales are finite, every code and many scales among them.
std::vector<std::byte> random_blocks(DType dtype, int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  const int64_t size = gguf_block_bytes(dtype);
  std::vector<std::byte> blocks(static_cast<size_t>(size * count));
  for (std::byte& b : blocks) b = static_cast<std::byte>(random());
  for (int64_t i = 0; i < count; ++i) {
    std::byte* block = blocks.data() + i * size;
    if (dtype == DType::mxfp4) {
      block[0] &= std::byte{0xFE};
    } else {
      block[1] &= std::byte{0xBF};
    }
  }
  return blocks;
}

TEST(GgufBlocks, AreSizedAsGgmlSizesThem) {
  for (const DType dtype : kBlockTypes)
    EXPECT_EQ(gguf_block_bytes(dtype), find_ggml_type(ggml_name(dtype))->bytes);
  for (const DTypeInfo& info : dtype_table()) {
    const bool known = std::find(std::begin(kBlockTypes), std::end(kBlockTypes), info.dtype) !=
                       std::end(kBlockTypes);
    EXPECT_EQ(gguf_block_bytes(info.dtype) > 0, known) << info.name;
  }
}

TEST(GgufBlocks, GoToR16AndBackUnchangedAndMeanTheSame) {
  for (const DType dtype : kBlockTypes) {
    for (const int64_t rows : {1, 15, 16, 37}) {
      for (const int64_t cols : {32, 64, 160}) {
        const R16 g = r16_geometry(dtype, rows, cols);
        const int64_t row_bytes = cols / 32 * gguf_block_bytes(dtype);
        const auto blocks = random_blocks(dtype, rows * cols / 32, static_cast<uint32_t>(rows));
        std::vector<std::byte> matrix(static_cast<size_t>(g.bytes()), std::byte{0xA5});
        for (int64_t row = 0; row < rows; ++row)
          ASSERT_TRUE(r16_put_blocks(g, blocks.data() + row * row_bytes, row, matrix.data()));
        std::vector<std::byte> back(blocks.size());
        std::vector<float> ours(static_cast<size_t>(cols)), theirs(ours);
        for (int64_t row = 0; row < rows; ++row) {
          r16_get_blocks(g, matrix.data(), row, back.data() + row * row_bytes);
          r16_decode(g, matrix.data(), row, 0, cols, ours.data());
          find_ggml_type(ggml_name(dtype))
              ->decode(blocks.data() + row * row_bytes, cols / 32, theirs.data());
          ASSERT_EQ(ours, theirs) << dtype_name(dtype) << " row " << row;
        }
        ASSERT_EQ(back, blocks) << dtype_name(dtype);
      }
    }
  }
}

TEST(GgufBlocks, GiveTheBytesThatPackingTheSameValuesGives) {
  // Values that a packing made are packed again into the very same codes and scales.
  for (const DType dtype : kBlockTypes) {
    const int64_t rows = 21, cols = 96;
    const R16 g = r16_geometry(dtype, rows, cols);
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<size_t>(rows * cols));
    for (float& v : values) v = normal(random);
    std::vector<std::byte> packed(static_cast<size_t>(g.bytes())), placed(packed);
    r16_pack(g, values.data(), 0, rows, ScaleScope::per_row, {}, packed.data());
    std::vector<std::byte> row_blocks(static_cast<size_t>(cols / 32 * gguf_block_bytes(dtype)));
    for (int64_t row = 0; row < rows; ++row) {
      r16_get_blocks(g, packed.data(), row, row_blocks.data());
      ASSERT_TRUE(r16_put_blocks(g, row_blocks.data(), row, placed.data()));
    }
    EXPECT_EQ(packed, placed) << dtype_name(dtype);
  }
}

TEST(GgufBlocks, OfMxfp4WithTheScaleNaNAreRefused) {
  auto blocks = random_blocks(DType::mxfp4, 2, 1);
  blocks[17] = std::byte{255};
  const R16 g = r16_geometry(DType::mxfp4, 1, 64);
  std::vector<std::byte> matrix(static_cast<size_t>(g.bytes()));
  EXPECT_FALSE(r16_put_blocks(g, blocks.data(), 0, matrix.data()));
}

}  // namespace
}  // namespace loom

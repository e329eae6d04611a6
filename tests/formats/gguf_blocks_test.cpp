// GGUF blocks to R16 and back: the same bytes come out, and both have the same values. The test is
// here and not with the number types because it uses io's decoder.
#include "dtype/r16/r16_blocks.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/numbers/bits.hpp"
#include "formats/gguf/quants.hpp"
#include "io/files/file.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

// The offset of a block's f16 numbers, or -1; for mxfp4 the byte of its scale.
struct BlockType {
  DType dtype;
  std::string_view ggml;
  int scale, least;
};
constexpr BlockType kBlockTypes[] = {
    {DType::q4_0, "Q4_0", 0, -1},   {DType::q8_0, "Q8_0", 0, -1},  {DType::mxfp4, "MXFP4", 0, -1},
    {DType::q4_1, "Q4_1", 0, 2},    {DType::q5_0, "Q5_0", 0, -1},  {DType::q5_1, "Q5_1", 0, 2},
    {DType::q2_k, "Q2_K", 80, 82},  {DType::q4_k, "Q4_K", 0, 2},   {DType::q5_k, "Q5_K", 0, 2},
    {DType::q3_k, "Q3_K", 108, -1}, {DType::q6_k, "Q6_K", 208, -1}};

const BlockType& type_of(DType dtype) {
  return *std::find_if(std::begin(kBlockTypes), std::end(kBlockTypes),
                       [&](const BlockType& t) { return t.dtype == dtype; });
}

// Random blocks whose scales are finite, every code and many scales among them.
std::vector<std::byte> random_blocks(DType dtype, int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  const BlockType& type = type_of(dtype);
  const int64_t size = gguf_block_bytes(dtype);
  std::vector<std::byte> blocks(static_cast<size_t>(size * count));
  for (std::byte& b : blocks) b = static_cast<std::byte>(random());
  for (int64_t i = 0; i < count; ++i) {
    std::byte* block = blocks.data() + i * size;
    if (dtype == DType::mxfp4) {
      block[0] &= std::byte{0xFE};
    } else {
      for (const int at : {type.scale, type.least})
        if (at >= 0) block[at + 1] &= std::byte{0xBF};
    }
  }
  return blocks;
}

TEST(GgufBlocks, AreSizedAsGgmlSizesThem) {
  for (const BlockType& type : kBlockTypes) {
    EXPECT_EQ(gguf_block_bytes(type.dtype), find_ggml_type(type.ggml)->bytes);
    EXPECT_EQ(gguf_block_values(type.dtype), find_ggml_type(type.ggml)->values);
  }
  for (const DTypeInfo& info : dtype_table()) {
    const bool known = std::any_of(std::begin(kBlockTypes), std::end(kBlockTypes),
                                   [&](const BlockType& t) { return t.dtype == info.dtype; });
    EXPECT_EQ(gguf_block_bytes(info.dtype) > 0, known) << info.name;
  }
}

TEST(GgufBlocks, GoToR16AndBackUnchangedAndMeanTheSame) {
  for (const auto& [dtype, ggml, scale, least] : kBlockTypes) {
    for (const int64_t rows : {1, 15, 16, 37}) {
      for (const int64_t count : {1, 2, 5}) {
        const int64_t cols = count * gguf_block_values(dtype);
        const R16 g = r16_geometry(dtype, rows, cols);
        const int64_t row_bytes = count * gguf_block_bytes(dtype);
        const auto blocks = random_blocks(dtype, rows * count, static_cast<uint32_t>(rows));
        std::vector<std::byte> matrix(static_cast<size_t>(g.bytes()), std::byte{0xA5});
        for (int64_t row = 0; row < rows; ++row)
          ASSERT_TRUE(r16_put_blocks(g, blocks.data() + row * row_bytes, row, matrix.data()));
        std::vector<std::byte> back(blocks.size());
        std::vector<float> ours(static_cast<size_t>(cols)), theirs(ours);
        for (int64_t row = 0; row < rows; ++row) {
          ASSERT_TRUE(r16_get_blocks(g, matrix.data(), row, back.data() + row * row_bytes));
          r16_decode(g, matrix.data(), row, 0, cols, ours.data());
          find_ggml_type(ggml)->decode(blocks.data() + row * row_bytes, count, theirs.data());
          ASSERT_EQ(ours, theirs) << dtype_name(dtype) << " row " << row;
        }
        ASSERT_EQ(back, blocks) << dtype_name(dtype);
      }
    }
  }
}

TEST(GgufBlocks, GiveTheBytesThatPackingTheSameValuesGives) {
  // Values that a packing made are packed again into the very same codes and scales.
  for (const auto& [dtype, ggml, scale, least] : kBlockTypes) {
    const int64_t rows = 21, cols = 3 * gguf_block_values(dtype);
    const R16 g = r16_geometry(dtype, rows, cols);
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<size_t>(rows * cols));
    for (float& v : values) v = normal(random);
    std::vector<std::byte> packed(static_cast<size_t>(g.bytes())), placed(packed);
    r16_pack(g, values.data(), 0, rows, ScaleScope::per_row, {}, packed.data());
    std::vector<std::byte> row_blocks(static_cast<size_t>(3 * gguf_block_bytes(dtype)));
    for (int64_t row = 0; row < rows; ++row) {
      ASSERT_TRUE(r16_get_blocks(g, packed.data(), row, row_blocks.data()));
      ASSERT_TRUE(r16_put_blocks(g, row_blocks.data(), row, placed.data()));
    }
    EXPECT_EQ(packed, placed) << dtype_name(dtype);
  }
}

// Blocks and their values from the `gguf` package for Python (tools/goldens), including infinite
// and NaN scales.
TEST(GgufBlocks, DecodeInR16ToTheBitsOfTheGgufPackage) {
  const auto file = read_file(loom_test::source_path("tests/io/golden/gguf_quants.bin"));
  ASSERT_TRUE(file.ok());
  const auto* bytes = reinterpret_cast<const std::byte*>(file->data());
  size_t seen = 0;
  for (size_t at = 0; at < file->size();) {
    const std::string name(file->c_str() + at);
    const auto count = load_le<uint32_t>(bytes + at + 8), size = load_le<uint32_t>(bytes + at + 12);
    const std::byte* blocks = bytes + at + 16;
    const int64_t cols = int64_t{count} * find_ggml_type(name)->values;
    at += 16 + size + static_cast<size_t>(cols) * 4;
    for (const BlockType& type : kBlockTypes) {
      if (type.ggml != name) continue;
      ++seen;
      const R16 g = r16_geometry(type.dtype, 1, cols);
      std::vector<std::byte> matrix(static_cast<size_t>(g.bytes()));
      if (!r16_put_blocks(g, blocks, 0, matrix.data())) continue;  // mxfp4 with the scale 255
      std::vector<float> ours(static_cast<size_t>(cols));
      r16_decode(g, matrix.data(), 0, 0, cols, ours.data());
      for (int64_t k = 0; k < cols; ++k) {
        const auto theirs = load_le<float>(blocks + size + k * 4);
        const float got = ours[static_cast<size_t>(k)];
        ASSERT_TRUE(f32_bits(got) == f32_bits(theirs) || (got != got && theirs != theirs))
            << name << " value " << k;
      }
    }
  }
  EXPECT_EQ(seen, std::size(kBlockTypes));
}

// A Loom file may have any byte as a small scale; GGUF has 6 bits.
TEST(GgufBlocks, AreNotMadeOfSmallScalesThatDoNotFit) {
  const R16 g = r16_geometry(DType::q4_k, 1, 256);
  std::vector<std::byte> matrix(static_cast<size_t>(g.bytes())), block(144);
  ASSERT_TRUE(r16_get_blocks(g, matrix.data(), 0, block.data()));
  for (const int64_t at : {g.block_scales, g.block_scales + g.block_zeros}) {
    auto bad = matrix;
    bad[static_cast<size_t>(at)] = std::byte{64};
    EXPECT_FALSE(r16_get_blocks(g, bad.data(), 0, block.data()));
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
}  // namespace loom::core

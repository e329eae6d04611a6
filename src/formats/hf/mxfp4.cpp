// See mxfp4.hpp.
#include "formats/hf/mxfp4.hpp"

#include <vector>

#include "base/text.hpp"
#include "dtype/r16/r16_blocks.hpp"

namespace loom::core {
namespace {

constexpr int64_t kValues = 32, kBytes = 16;

bool has_shape(const SafeTensor& tensor, std::initializer_list<int64_t> shape) {
  return tensor.dtype == SafeDType::u8 &&
         std::equal(tensor.shape.begin(), tensor.shape.end(), shape.begin(), shape.end());
}

int code_at(const std::byte* block, int64_t i) {
  return std::to_integer<int>(block[i / 2]) >> (i % 2 * 4) & 15;
}

}  // namespace

Result<Mxfp4Matrix> Mxfp4Matrix::open(const SafeTensor& blocks, const SafeTensor& scales,
                                      const Shape& shape, const std::string& where) {
  Mxfp4Matrix out;
  out.blocks_per_row_ = shape[2] / kValues;
  const bool fits = shape[2] % kValues == 0 &&
                    has_shape(blocks, {shape[0], shape[1], out.blocks_per_row_, kBytes}) &&
                    has_shape(scales, {shape[0], shape[1], out.blocks_per_row_});
  if (!fits) {
    return bad_file(cat(blocks.name, " and its scales are not ", shape.str(),
                        " values of MXFP4 in blocks of ", kValues),
                    where, static_cast<int64_t>(blocks.file_offset));
  }
  out.name_ = blocks.name;
  out.where_ = where;
  out.blocks_ = blocks.data;
  out.scales_ = scales.data;
  return out;
}

void Mxfp4Matrix::row(int64_t row, float* out) const {
  static constexpr float kLevels[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                        -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
  for (int64_t b = row * blocks_per_row_; b < (row + 1) * blocks_per_row_; ++b) {
    const auto e = std::to_integer<int>(scales_[static_cast<size_t>(b)]);
    const float scale = __builtin_ldexpf(1.0f, e - 127);
    const std::byte* block = blocks_.data() + b * kBytes;
    for (int64_t i = 0; i < kValues; ++i) *out++ = scale * kLevels[code_at(block, i)];
  }
}

Status Mxfp4Matrix::pack(int64_t row, const R16& matrix, int64_t to, std::byte* out) const {
  // Blocks of GGUF: the scale, then the first and the second half of the values side by side.
  std::vector<std::byte> blocks;
  blocks.reserve(static_cast<size_t>(blocks_per_row_ * (1 + kBytes)));
  for (int64_t b = row * blocks_per_row_; b < (row + 1) * blocks_per_row_; ++b) {
    blocks.push_back(scales_[static_cast<size_t>(b)]);
    const std::byte* block = blocks_.data() + b * kBytes;
    for (int64_t j = 0; j < kBytes; ++j) {
      const int codes = code_at(block, j) | code_at(block, j + kBytes) << 4;
      blocks.push_back(static_cast<std::byte>(codes));
    }
  }
  if (r16_put_blocks(matrix, blocks.data(), to, out)) return {};
  return bad_file(cat("tensor ", name_, " has a block whose scale is NaN"), where_);
}

}  // namespace loom::core

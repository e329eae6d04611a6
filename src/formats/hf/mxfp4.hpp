// Matrices of experts as MXFP4 in Hugging Face checkpoints (gpt-oss): NAME_blocks U8
// [experts, rows, cols / 32, 16] and NAME_scales U8 [experts, rows, cols / 32]. Value 2j of a block
// is the low half of byte j, value 2j + 1 the high half; a scale e is 2^(e - 127). Source: the OCP
// Microscaling Formats specification 1.0, and transformers/integrations/mxfp4.py.
#pragma once

#include <string>

#include "dtype/r16/r16.hpp"
#include "io/weights/safetensors.hpp"
#include "tensor/tensor.hpp"

namespace loom::core {

inline constexpr std::string_view kMxfp4Blocks = "_blocks", kMxfp4Scales = "_scales";

class Mxfp4Matrix {
 public:
  // shape: [experts, rows, cols]. Errors: bad_file (other shapes or types).
  static Result<Mxfp4Matrix> open(const SafeTensor& blocks, const SafeTensor& scales,
                                  const Shape& shape, const std::string& where);
  // Row `row` of all experts as f32.
  void row(int64_t row, float* out) const;
  // Packs that row as row `to` of a matrix of type mxfp4. Errors: bad_file (scale 255, which is
  // NaN).
  Status pack(int64_t row, const R16& matrix, int64_t to, std::byte* out) const;

 private:
  std::string name_, where_;
  std::span<const std::byte> blocks_, scales_;
  int64_t blocks_per_row_ = 0;
};

}  // namespace loom::core

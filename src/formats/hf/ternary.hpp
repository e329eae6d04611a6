// Matrices of 1.58 bits in Hugging Face checkpoints (BitNet b1.58): values are -1, 0 or 1 times one
// scale. They are packed, four codes per byte, or are full weights that the model makes ternary at
// run time. Source: transformers/integrations/bitnet.py.
#pragma once

#include <string>

#include "grid/network.hpp"
#include "io/weights/safetensors.hpp"
#include "llm/decoder_config.hpp"

namespace loom::core {

// The tensor with the scale of packed matrix `name`.
std::string ternary_scale_name(const std::string& name);

// A packed matrix [rows, cols] as U8 [rows / 4, cols]. Bits 2l and 2l + 1 of byte (p, k) hold the
// code of row l * (rows / 4) + p; codes 0, 1, 2 are -1, 0, 1.
class TernaryMatrix {
 public:
  // `scale` is one value, by which codes are multiplied or divided. Errors: bad_file (another shape
  // or type, a scale that is not a positive number).
  static Result<TernaryMatrix> open(const SafeTensor& codes, const SafeTensor& scale,
                                    const Shape& shape, TernaryWeights kind,
                                    const std::string& where);
  // Rows [first, first + count) as f32. Errors: bad_file (code 3).
  Status rows(int64_t first, int64_t count, float* out) const;

 private:
  std::string name_, where_;
  std::span<const std::byte> codes_;
  int64_t rows_ = 0, cols_ = 0;
  float value_ = 0;  // of code 2
};

// mean |w| of a matrix, summed in f64 in the order of its values; at least 1e-5, as in the model.
Result<float> mean_magnitude(const Network::RowSource& rows, const Shape& shape);
// Each value becomes the nearest of -mean, 0 and mean; halves go to the even code.
void to_ternary(float mean, int64_t count, float* values);

}  // namespace loom::core

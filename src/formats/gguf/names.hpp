// GGUF names of the parts of a decoder: metadata keys and tensors. Reading and writing share these
// tables and the rules of families (families/family.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "dtype/dtype.hpp"
#include "families/family.hpp"
#include "formats/gguf/quants.hpp"
#include "llm/decoder_parts.hpp"

namespace loom::core {

// The family as which a decoder is written and read; null if GGUF has none.
const DecoderFamily* find_family_in_gguf(const DecoderConfig& config);

// A size in config.json and its key after "<architecture>.".
struct GgufSize {
  std::string_view key, hf_key;
  int64_t DecoderConfig::*field;
  bool required;
};
std::span<const GgufSize> gguf_sizes();

// The tensor with a parameter of decoder_grid(config).
TensorPart gguf_tensor(const Param& param, const DecoderConfig& config, const GgufRules& rules);

// The shape of that tensor; gates of shared experts are vectors.
Shape gguf_shape(const Param& param, const TensorPart& part);

// The file row with row `row` of a matrix of q or k, and back, for heads of `head_dim` rows: value
// j of half s of a head is its row 2 j + s.
inline int64_t paired_row(int64_t row, int64_t head_dim) {
  const int64_t in_head = row % head_dim, half = head_dim / 2;
  return row - in_head + in_head % half * 2 + in_head / half;
}
inline int64_t unpaired_row(int64_t row, int64_t head_dim) {
  const int64_t in_head = row % head_dim, half = head_dim / 2;
  return row - in_head + in_head % 2 * half + in_head / 2;
}
// Whether a file has the rows of this parameter, a matrix or bias of q or k, in that order.
bool has_paired_rows(const Param& param, const GgufRules& rules);

// The number type that packs a ggml type exactly, if there is one; else f16, which holds the values
// of the quantized types to 11 bits.
DType dtype_of_ggml(const GgmlType& type);
// The ggml type of a number type; null if GGUF has none.
const GgmlType* ggml_of_dtype(DType dtype);

}  // namespace loom::core

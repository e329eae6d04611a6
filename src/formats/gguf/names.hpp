// GGUF names of the parts of a decoder: architectures, metadata keys and tensors. Reading and
// writing share these tables.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "dtype/dtype.hpp"
#include "formats/gguf/quants.hpp"
#include "llm/decoder_parts.hpp"

namespace loom::core {

struct GgufArchitecture {
  std::string_view name;        // general.architecture
  std::string_view hf_class;    // "LlamaForCausalLM"
  std::string_view model_type;  // "llama"
  // Rows of q and k have the two halves of each rotary pair side by side.
  bool pairs_rows = false;
  bool qkv_bias = false;  // the class always has biases of q, k and v
  bool bias = true;       // biases are possible
  bool window = false;    // has attention.sliding_window
  bool caps = false;      // has attn_logit_softcapping and final_logit_softcapping
  // Scores are scaled by 1 / sqrt(head_dim). Models with this many blocks use embedding_length /
  // head_count instead of head_dim. 0 means the class's rule.
  int64_t wide_blocks = 0;
  bool fused = false;         // q, k, v in one tensor, gate and up in another
  bool layer_norms = false;   // its eps has another key
  std::string_view act = {};  // the activation of the graph, if it differs from the class's
  // Requirements of llama.cpp's graph (graph_limits.hpp).
  bool square = false;          // head_dim * heads must be the width
  bool tied = false;            // the head is always the embedding
  bool optional_parts = false;  // allows biases everywhere, and rope_freqs.weight
  bool ignores_window = false;  // reads attention.sliding_window and ignores it
};
std::span<const GgufArchitecture> gguf_architectures();
// May return null.
const GgufArchitecture* find_gguf_architecture(std::string_view name);
const GgufArchitecture* find_gguf_architecture(const DecoderConfig& config);

// A size in config.json and its key after "<architecture>.".
struct GgufSize {
  std::string_view key, hf_key;
  int64_t DecoderConfig::*field;
  bool required;
};
std::span<const GgufSize> gguf_sizes();

// The tensor with a parameter of decoder_grid(config).
TensorPart gguf_tensor(const Param& param, const DecoderConfig& config,
                       const GgufArchitecture& architecture);

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
bool has_paired_rows(const Param& param, const GgufArchitecture& architecture);

// The number type that packs a ggml type exactly, if there is one; else f16, which holds the values
// of the quantized types to 11 bits.
DType dtype_of_ggml(const GgmlType& type);
// The ggml type of a number type; null if GGUF has none.
const GgmlType* ggml_of_dtype(DType dtype);

}  // namespace loom::core

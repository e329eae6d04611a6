// What GGUF files call the pieces of a decoder: architectures, metadata keys and tensors. Tables;
// reading and writing share them.
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
  // The rows of q and k have the two halves of each rotary pair side by side.
  bool pairs_rows = false;
  bool qkv_bias = false;  // the class has biases of q, k and v, whatever the configuration says
  bool bias = true;       // biases may be there at all
  bool window = false;    // has attention.sliding_window
  bool caps = false;      // has attn_logit_softcapping and final_logit_softcapping
  // Scores are scaled by 1 / sqrt(head_dim), but for models of so many blocks, which take
  // embedding_length / head_count in its place. 0: what the class says.
  int64_t wide_blocks = 0;
  bool fused = false;         // q, k, v in one tensor, gate and up in another
  bool layer_norms = false;   // its eps goes by another key
  std::string_view act = {};  // the activation of the graph, where it is not that of the class
  // What llama.cpp's graph asks of a file (graph_limits.hpp).
  bool square = false;          // head_dim * heads is the width
  bool tied = false;            // the head is always the embedding
  bool optional_parts = false;  // may have biases everywhere, and rope_freqs.weight
  bool ignores_window = false;  // reads attention.sliding_window and computes without it
};
std::span<const GgufArchitecture> gguf_architectures();
// Null: none of that name.
const GgufArchitecture* find_gguf_architecture(std::string_view name);
const GgufArchitecture* find_gguf_architecture(const DecoderConfig& config);

// A size of config.json and the key, behind "<architecture>.", that has it.
struct GgufSize {
  std::string_view key, hf_key;
  int64_t DecoderConfig::*field;
  bool required;
};
std::span<const GgufSize> gguf_sizes();

// Where a parameter of decoder_grid(config) lies.
TensorPart gguf_tensor(const Param& param, const DecoderConfig& config,
                       const GgufArchitecture& architecture);

// The row of a file that has row `row` of a matrix of q or k, and back, for heads of `head_dim`
// rows: value j of half s of a head is row 2 j + s of it.
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
// The ggml type of a number type; null: GGUF has none.
const GgmlType* ggml_of_dtype(DType dtype);

}  // namespace loom::core

// EncoderConfig: the structure of a text encoder (such as BERT), as plain validated data. Readers
// in formats/ create it; encoder_grid() makes a network of it. EmbeddingSettings: how its hidden
// states become one vector.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace loom::core {

// How hidden states [T, width] become one vector: the mean, the first position, the last one, the
// maximum of each value, the mean weighted by position (1, 2, ...), the sum over sqrt(T). none:
// all.
enum class EncoderPooling : uint8_t { mean, cls, last, max, weighted_mean, mean_sqrt_len, none };

struct EncoderLayer {
  int64_t window = 0;     // sees positions nearer than this; 0 means all
  double rope_theta = 0;  // of rotary positions; 0 means none
  bool operator==(const EncoderLayer&) const = default;
};

struct EncoderConfig {
  std::string architecture;  // "BertModel"
  std::string model_type;    // "bert"; selects the tensor names of a checkpoint
  int64_t hidden_size = 0, intermediate_size = 0;
  int64_t num_layers = 0, num_heads = 0, head_dim = 0;
  int64_t vocab_size = 0;
  int64_t position_rows = 0;    // of the table of learned positions; 0 means no table
  int64_t position_offset = 0;  // row of the first position (RoBERTa: 2)
  int64_t types = 0;            // rows of the table of types; 0 means no table
  int64_t max_positions = 512;  // tokens of a text
  double norm_eps = 1e-12;
  std::string hidden_act = "gelu";
  // ModernBERT: norms before attention and the gated unit, none in the first block's attention, one
  // after the last block. false: norms after both, and a plain unit of two projections with biases.
  bool pre_norm = false;
  bool attention_bias = true, mlp_bias = true;
  std::vector<EncoderLayer> layers;  // num_layers
  // A classifier head over `head_pooling`; 0 labels mean no head.
  int64_t labels = 0;
  std::string head_act = "tanh";
  bool head_bias = true, head_norm = false;
  EncoderPooling head_pooling = EncoderPooling::cls;
};

struct EmbeddingSettings {
  EncoderPooling pooling = EncoderPooling::mean;
  bool normalize = true;
  int64_t max_tokens = 0;  // 0 means the model's
  std::vector<std::pair<std::string, std::string>> prompts;
  std::string default_prompt;  // by name; empty means none
  bool operator==(const EmbeddingSettings&) const = default;
};

}  // namespace loom::core

// EncoderConfig: what an encoder of texts is (BERT and its kin), as plain validated data. Readers
// in formats/ make it; encoder_grid() makes a network of it. EmbeddingSettings: how a vector is
// made of its hidden states.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace loom::core {

// Whose names a checkpoint uses; the network is told by the other members alone.
enum class EncoderFamily : uint8_t { bert, roberta, distilbert, modernbert };

// How hidden states [T, width] become one vector: the mean, the first position, the last one, the
// largest of each value, the mean weighted by place (1, 2, ...), the sum over sqrt(T). none: all.
enum class Pooling : uint8_t { mean, cls, last, max, weighted_mean, mean_sqrt_len, none };

struct EncoderLayer {
  int64_t window = 0;     // positions nearer than this are seen; 0: all
  double rope_theta = 0;  // of rotary positions; 0: none
  bool operator==(const EncoderLayer&) const = default;
};

struct EncoderConfig {
  EncoderFamily family = EncoderFamily::bert;
  std::string architecture;  // "BertModel"
  std::string model_type;    // "bert"
  int64_t hidden_size = 0, intermediate_size = 0;
  int64_t num_layers = 0, num_heads = 0, head_dim = 0;
  int64_t vocab_size = 0;
  int64_t position_rows = 0;    // of the table of learned positions; 0: there is none
  int64_t position_offset = 0;  // row of the first position (RoBERTa: 2)
  int64_t types = 0;            // rows of the table of types; 0: there is none
  int64_t max_positions = 512;  // tokens of a text
  double norm_eps = 1e-12;
  std::string hidden_act = "gelu";
  // ModernBERT: norms before attention and the gated unit, none in the first block's attention, one
  // behind the last block. Else norms after both, and a plain unit of two projections with biases.
  bool pre_norm = false;
  bool attention_bias = true, mlp_bias = true;
  std::vector<EncoderLayer> layers;  // num_layers
  // A head that classifies what `head_pooling` gives; labels 0: none.
  int64_t labels = 0;
  std::string head_act = "tanh";
  bool head_bias = true, head_norm = false;
  Pooling head_pooling = Pooling::cls;
};

struct EmbeddingSettings {
  Pooling pooling = Pooling::mean;
  bool normalize = true;
  int64_t max_tokens = 0;  // 0: those of the model
  std::vector<std::pair<std::string, std::string>> prompts;
  std::string default_prompt;  // by name; "": none
  bool operator==(const EmbeddingSettings&) const = default;
};

}  // namespace loom::core

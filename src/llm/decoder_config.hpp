// DecoderConfig: the structure of a decoder, independent of the file format, as plain validated
// data. Readers in formats/ create it; decoder_grid() makes a network of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace loom::core {

// none: models with learned positions, and networks built in code.
enum class RopeKind : uint8_t { none, standard, linear, llama3 };

// The experts in place of an MLP: the layer Experts (docs/decisions/0116).
struct DecoderExperts {
  int64_t count = 0;  // 0 means an MLP
  int64_t chosen = 0;
  int64_t inner = 0;
  bool sigmoid = false;      // scores of the router are sigmoids, else a softmax
  bool choice_bias = false;  // is added to the scores for the choice alone
  bool normalize = true;     // weights of the chosen experts sum up to 1
  double scale = 1.0;        // of the weights
  int64_t groups = 1, chosen_groups = 1;
  int64_t shared_inner = 0;  // of an expert that always runs; 0 means none
  bool shared_gate = false;  // a gate scales that expert
  bool operator==(const DecoderExperts&) const = default;
};

// How checkpoints of 1.58 bits store the matrices of their blocks. none: not ternary. online: full
// weights; each matrix uses their sign and mean magnitude. multiplied, divided: packed codes and
// one weight_scale that multiplies or divides them.
enum class TernaryWeights : uint8_t { none, online, multiplied, divided };

// Settings that may differ between layers.
struct DecoderLayer {
  int64_t window = 0;     // positions that attention sees; 0 means all
  bool rope = true;       // has rotary positions
  double rope_theta = 0;  // > 0: standard positions with this base instead of the model's
  bool dense = false;     // has an MLP although other layers have experts
  bool operator==(const DecoderLayer&) const = default;
};

// How attention and MLP add to the stream. serial: x + attention, then that + MLP, each after its
// norm. parallel: x + attention + MLP, both of x, each after its norm. shared_norm: parallel after
// one norm.
enum class ResidualKind : uint8_t { serial, parallel, shared_norm };

struct DecoderConfig {
  std::string architecture;  // "LlamaForCausalLM"
  std::string model_type;    // "llama"
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;  // Llama: defaults to num_heads
  int64_t head_dim = 0;      // defaults to hidden_size / num_heads; even for rotary positions
  int64_t vocab_size = 0;
  int64_t max_positions = 2048;
  double rms_norm_eps = 1e-6;     // of all norms, whatever their kind
  bool layer_norms = false;       // norms subtract the mean and have a bias (not those of heads)
  bool gated_mlp = true;          // down(act(gate x) * up x); else down(act(up x))
  int64_t learned_positions = 0;  // rows of a table added to the embedding; 0 means none
  ResidualKind residual = ResidualKind::serial;
  std::string hidden_act = "silu";  // silu, gelu, gelu_new, gelu_pytorch_tanh, relu, relu2
  bool tie_word_embeddings = false;
  bool attention_bias = false;  // q, k, v biases
  bool attention_out_bias = false;
  bool mlp_bias = false;
  bool head_bias = false;
  bool qk_norm = false;     // per-head RMS norm of q and k (Qwen3)
  bool sub_norms = false;   // RMS norm before the last projections of attention and MLP (BitNet)
  bool post_norms = false;  // RMS norm of what attention and MLP add to the stream (Gemma 2)
  double embedding_scale = 1.0;     // as in f32; a Gemma cast to bf16 as a whole rounds it to bf16
  double attention_scale = 0.0;     // of the scores; 0 means 1 / sqrt(head_dim)
  double attention_soft_cap = 0.0;  // c: scores s become c tanh(s / c); 0 disables it
  double final_soft_cap = 0.0;      // the same for logits
  DecoderExperts experts;
  std::vector<DecoderLayer> layers;  // num_layers entries, or empty if all are plain
  double rope_theta = 10000.0;
  RopeKind rope = RopeKind::standard;
  double rope_factor = 1.0;                    // linear, llama3
  double rope_low_freq_factor = 1.0;           // llama3
  double rope_high_freq_factor = 4.0;          // llama3
  int64_t rope_original_max_positions = 8192;  // llama3
  int64_t rope_width = 0;                      // rotated values per head; 0 means head_dim
  double rope_local_theta = 10000.0;           // of sliding layers, if they have their own
  // How a Hugging Face folder holds the weights; other files set none of these.
  bool unit_offset_norms = false;  // norms are stored as w of (1 + w) (Gemma)
  TernaryWeights ternary_weights = TernaryWeights::none;
  int64_t bos_token_id = -1;  // -1 means none
  // config and generation_config merged, in order, without repeats
  std::vector<int64_t> eos_token_ids;

  DecoderLayer layer(int64_t i) const {
    return layers.empty() ? DecoderLayer() : layers[static_cast<size_t>(i)];
  }
  bool has_experts(int64_t i) const { return experts.count > 0 && !layer(i).dense; }
};

}  // namespace loom::core

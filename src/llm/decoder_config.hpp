// DecoderConfig: the structure of a decoder, independent of the file format, as plain validated
// data. Readers in formats/ create it; decoder_grid() makes a network of it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loom::core {

// none: models with learned positions, and networks built in code.
enum class RopeKind : uint8_t { none, standard, linear, llama3, yarn, dynamic, longrope };
inline constexpr std::string_view kRopeKinds[] = {"default", "default", "linear",  "llama3",
                                                  "yarn",    "dynamic", "longrope"};

// The scores of experts from the logits of the router (Experts in include/loom/layers.hpp).
enum class RouterScore : uint8_t { softmax, sigmoid, sparsemixer };
inline constexpr std::string_view kRouterScores[] = {"softmax", "sigmoid", "sparsemixer"};

// The experts in place of an MLP: the layer Experts (docs/decisions/0116).
struct DecoderExperts {
  int64_t count = 0;  // 0 means an MLP
  int64_t chosen = 0;
  int64_t inner = 0;
  RouterScore score = RouterScore::softmax;
  bool choice_bias = false;  // is added to the scores for the choice alone
  bool normalize = true;     // weights of the chosen experts sum up to 1
  double scale = 1.0;        // of the weights
  int64_t groups = 1, chosen_groups = 1;
  int64_t group_best = 2;    // best scores of a group whose sum ranks it
  int64_t shared_inner = 0;  // of an expert that always runs; 0 means none
  bool shared_gate = false;  // a gate scales that expert
  bool bias = false;         // of the three products of each expert
  bool router_bias = false;
  bool scale_inputs = false;                        // the weight of an expert multiplies its input
  double limit = 0, gate_scale = 1, up_offset = 0;  // of gates and ups, as in the layer
  double jitter = 0.01;                             // of sparsemixer
  bool operator==(const DecoderExperts&) const = default;
};

// The scans in place of attention: the layer SelectiveScan (docs/decisions/0120).
struct DecoderScan {
  int64_t inner = 0;  // 0 means that no block has one
  int64_t state = 16, heads = 0, groups = 1, rank = 0, kernel = 4;
  bool bias = false, conv_bias = true;
  std::string norm = "none", step_norm = "none";
  double step_norm_eps = 1e-6;
  // Factors of the input, the gate, x, B, C, the steps and the output.
  std::array<double, 7> scales = {1, 1, 1, 1, 1, 1, 1};
  bool operator==(const DecoderScan&) const = default;
};

// The gated convolutions in place of attention: the layer ShortConv.
struct DecoderConv {
  int64_t kernel = 3;
  bool bias = false;
  bool operator==(const DecoderConv&) const = default;
};

// The part of a block that mixes positions.
enum class BlockMixer : uint8_t { attention, scan, conv, none };

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
  BlockMixer mixer = BlockMixer::attention;
  bool mlp = true;  // an MLP or experts follow it
  bool operator==(const DecoderLayer&) const = default;
};

// How attention and MLP add to the stream. serial: x + attention, then that + MLP, each after its
// norm. parallel: x + attention + MLP, both of x, each after its norm. shared_norm: parallel after
// one norm.
enum class ResidualKind : uint8_t { serial, parallel, shared_norm };

// The norm of queries and keys (QkNorm in include/loom/layers.hpp has the formulas).
enum class QkNormForm : uint8_t { rms, rms_wide, layer, layer_shared, l2 };
inline constexpr std::string_view kQkNormForms[] = {"rms", "rms_wide", "layer", "layer_shared",
                                                    "l2"};

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
  bool layer_norms = false;       // norms subtract the mean (not those of heads)
  bool norm_weights = true;       // of those norms; RMS norms always have one
  bool norm_biases = true;        // of those norms; RMS norms have none
  bool gated_mlp = true;          // down(act(gate x) * up x); else down(act(up x))
  int64_t learned_positions = 0;  // rows of a table added to the embedding; 0 means none
  ResidualKind residual = ResidualKind::serial;
  std::string hidden_act = "silu";  // silu, gelu, gelu_new, gelu_pytorch_tanh, relu, relu2
  bool tie_word_embeddings = false;
  bool attention_bias = false;  // q, k, v biases
  bool attention_out_bias = false;
  bool mlp_bias = false;
  bool head_bias = false;
  bool qk_norm = false;     // norm of q and k, per-head RMS (Qwen3) unless qk_norm_form says more
  bool sub_norms = false;   // RMS norm before the last projections of attention and MLP (BitNet)
  bool pre_norms = true;    // before attention and MLP
  bool post_norms = false;  // RMS norm of what attention and MLP add to the stream (Gemma 2)
  double residual_scale = 1.0;      // of what attention and MLP add to the stream (Granite)
  double embedding_scale = 1.0;     // as in f32; a Gemma cast to bf16 as a whole rounds it to bf16
  double attention_scale = 0.0;     // of the scores; 0 means 1 / sqrt(head_dim)
  double attention_soft_cap = 0.0;  // c: scores s become c tanh(s / c); 0 disables it
  double final_soft_cap = 0.0;      // the same for logits
  double logit_scale = 1.0;         // factor of the logits, before their cap
  DecoderExperts experts;
  DecoderScan scan;
  DecoderConv conv;
  std::vector<DecoderLayer> layers;  // num_layers entries, or empty if all are plain
  double rope_theta = 10000.0;
  RopeKind rope = RopeKind::standard;
  double rope_factor = 1.0;                    // of all but standard; longrope does not use it
  double rope_low_freq_factor = 1.0;           // llama3
  double rope_high_freq_factor = 4.0;          // llama3
  int64_t rope_original_max_positions = 8192;  // llama3, yarn, dynamic, longrope
  double rope_attention = 1.0;                 // factor of cosines and sines: yarn, longrope
  double rope_beta_fast = 32.0;                // yarn
  double rope_beta_slow = 1.0;                 // yarn
  bool rope_truncate = true;                   // yarn
  std::vector<double> rope_short, rope_long;   // longrope: half the rotated values of a head
  int64_t rope_width = 0;                      // rotated values per head; 0 means head_dim
  double rope_local_theta = 10000.0;           // of sliding layers, if they have their own
  // Attention.
  QkNormForm qk_norm_form = QkNormForm::rms;  // of qk_norm
  bool qk_norm_after_rope = false;            // that norm comes after the rotary positions
  double clip_qkv = 0.0;                      // c: q, k, v are limited to [-c, c]; 0 disables it
  double alibi = 0.0;        // exponent of the smallest ALiBi slope, 8 in the paper; 0 means none
  double alibi_scale = 1.0;  // factor of the slopes
  bool sinks = false;        // a learned score per head, without a value
  // The latent form (latent_attention.hpp): widths of the latents of keys with values, and of
  // queries, and the values per head. Heads have rope_width rotated values after the others.
  int64_t latent = 0, latent_q = 0, value_dim = 0;
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

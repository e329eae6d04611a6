// The supported decoders, one row per class of `transformers` (5.x): the settings that the class
// fixes, and its defaults for config.json. All other settings are read from the file.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "formats/config/fields.hpp"
#include "llm/decoder_config.hpp"

namespace loom::core {

// The names of sizes in a class.
struct HfKeys {
  std::string_view hidden = "hidden_size", inner = "intermediate_size";
  std::string_view layers = "num_hidden_layers", heads = "num_attention_heads";
  std::string_view positions = "max_position_embeddings", eps = "rms_norm_eps";
  std::string_view rope_theta = "rope_theta", rotary_part = "partial_rotary_factor";
  std::string_view table_width = {};  // of the embedding, if it may differ from the hidden one
};

// A setting of which only one value is supported; an absent setting has that value.
struct HfSwitch {
  std::string_view key;
  bool value;
};

struct HfArchitecture {
  // of attention; read: attention_bias decides for q, k, v and o; always: all products of blocks
  enum class Bias : uint8_t { read, never, qkv, always };
  // Which layers have a sliding window without layer_types. never: not supported by the class;
  // every: all, or none; late: from max_window_layers on; nope: those without rotary positions;
  // odd: the first, the third, ...; pattern: all except each sliding_window_pattern-th.
  enum class Sliding : uint8_t { never, every, late, nope, odd, pattern };

  std::string_view name;
  std::string_view model_type;
  Bias bias = Bias::read;
  bool reads_mlp_bias = false;
  bool qk_norm = false;
  bool sub_norms = false;          // before the last projections of attention and MLP
  bool post_norms = false;         // after attention and MLP too
  bool scaled_embedding = false;   // by sqrt(hidden_size)
  bool unit_offset_norms = false;  // norms store w of (1 + w)
  bool fused_projections = false;  // qkv_proj and gate_up_proj
  bool partial_rotary = false;     // partial_rotary_factor is used
  bool local_rope = false;         // sliding layers have their own rotary positions
  bool nope_layers = false;        // no_rope_layers is used
  HfKeys keys = {};
  std::span<const HfSwitch> switches = {};
  bool layer_norms = false;  // LayerNorm with a bias instead of RMSNorm
  bool gated = true;         // the MLP has a gate
  bool learned_positions = false;
  bool plain_heads = false;    // num_key_value_heads and head_dim are ignored
  bool inner_default = false;  // the inner size may be absent: 4 * hidden
  bool head_bias = false;      // the head has a bias
  ResidualKind residual = ResidualKind::serial;
  std::string_view parallel_key = {};  // setting; false makes the residual serial
  double rotary_part = 1;              // rotated part of a head, when absent
  bool kv_heads_default = true;        // num_key_value_heads may be absent
  bool tied = false;                   // tie_word_embeddings when absent
  int64_t head_dim = 0;                // when absent (not null): 0 = hidden_size / num_heads
  int64_t max_positions = 2048;        // when absent
  double rms_norm_eps = 1e-6;          // when absent
  double rope_theta = 10000;           // when absent
  Sliding sliding = Sliding::never;
  bool window_switch = false;  // the window needs use_sliding_window
  int64_t window = 0;          // when absent (not null): 0 = none
  std::string_view act_key = "hidden_act";
  std::string_view act = "silu";  // when absent
  // query_pre_attn_scalar when absent; 0 means that scores are always divided by sqrt(head_dim)
  double query_scalar = 0;
  bool attention_cap = false;        // attn_logit_softcapping is used
  bool final_cap = false;            // final_logit_softcapping is used
  double attention_cap_default = 0;  // when absent (not null): 0 = none
  double final_cap_default = 0;      // the same
  int64_t bos_token_id = -1;         // when no file has one: -1 = none
  int64_t eos_token_id = -1;
};

// The row called `name`, or null.
const HfArchitecture* find_hf_architecture(std::string_view name);
// The row that "architectures" names.
Result<const HfArchitecture*> read_hf_architecture(const ConfigFields& fields);

}  // namespace loom::core

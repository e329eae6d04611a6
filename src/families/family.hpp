// A family of decoders is one row of data in its own file, src/families/decoder/NAME.cpp. The row
// has the values that differ from the defaults here: the rules of config.json, the tensor names of
// Hugging Face folders, and the form of GGUF files. Readers and writers use rows; none names a
// family. A rule that no row can express yet becomes a new field, whose default is the behaviour of
// the other rows. cmake/families.cmake makes the list of rows from the file names.
// docs/decisions/0095 has the reasons.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "families/experts.hpp"
#include "families/mixers.hpp"
#include "llm/decoder_config.hpp"
#include "llm/roles.hpp"

namespace loom::core {

// The names of sizes in config.json. An empty name: the class has no such setting.
struct ConfigKeys {
  std::string_view hidden = "hidden_size", inner = "intermediate_size";
  std::string_view layers = "num_hidden_layers", heads = "num_attention_heads";
  std::string_view kv_heads = "num_key_value_heads";
  std::string_view positions = "max_position_embeddings", eps = "rms_norm_eps";
  std::string_view rope_theta = "rope_theta", rotary_part = "partial_rotary_factor";
  std::string_view window = "sliding_window";
  std::string_view rotary_width = {};  // rotated values per head, instead of all `rope` settings
  std::string_view table_width = {};   // of the embedding, if it may differ from the hidden one
};

inline constexpr ConfigKeys kUsualKeys;

// A setting of which only one value is supported; an absent setting has that value.
struct FixedSetting {
  std::string_view key;
  bool value;
};

// A setting and its value if it is absent. An empty key: the class fixes the value.
template <class T>
struct Setting {
  std::string_view key = {};
  T value = {};
};

// Which products of blocks have biases.
struct BiasRules {
  Setting<bool> qkv = {"attention_bias"}, out = {"attention_bias"}, mlp = {};
  constexpr bool all() const {  // in every file
    return qkv.key.empty() && out.key.empty() && mlp.key.empty() && qkv.value && out.value &&
           mlp.value;
  }
};
inline constexpr BiasRules kNoBiases = {{}, {}, {}};
inline constexpr BiasRules kQkvBiases = {{"", true}, {}, {}};
inline constexpr BiasRules kMlpBiases = {{}, {}, {"", true}};
inline constexpr BiasRules kAllBiases = {{"", true}, {"", true}, {"", true}};
// attention_bias for q, k, v and o; mlp_bias for the MLP.
inline constexpr BiasRules kBothBiases = {.mlp = {"mlp_bias"}};

// Defaults of the settings of latent attention.
struct LatentRules {
  int32_t latent = 512, latent_q = 1536;        // kv_lora_rank, q_lora_rank
  int32_t plain = 128, rope = 64, value = 128;  // qk_nope_head_dim, qk_rope_head_dim, v_head_dim
};

// config.json: the settings that a class of `transformers` fixes, and its defaults. All other
// settings are read from the file.
struct ConfigRules {
  // Which layers have a sliding window without layer_types. never: not supported by the class;
  // every: all, or none; listed: all without layer_types; late: from max_window_layers on; nope:
  // those without rotary positions; odd: the first, the third, ...; early: the same, before
  // max_window_layers; pattern: all except each sliding_window_pattern-th; first: all except the
  // first of each `pattern`; runs: those that attention_types calls local;
  // typed: those of layer_types, none without it.
  enum class Sliding : uint8_t {
    never,
    every,
    listed,
    late,
    nope,
    odd,
    early,
    pattern,
    first,
    runs,
    typed
  };
  // Which layers have no rotary positions. listed: those of no_rope_layers; full: those without a
  // window; full_if_windows: the same if sliding_window is set.
  enum class Nope : uint8_t { never, listed, full, full_if_windows };

  // The structure of a block.
  BiasRules bias = {};
  bool head_bias = false;               // the head has a bias
  std::string_view head_bias_key = {};  // setting of that
  bool layer_norms = false;             // LayerNorm instead of RMSNorm
  bool norm_weights = true;             // of LayerNorm
  bool norm_biases = true;              // of LayerNorm
  bool unit_offset_norms = false;       // norms store w of (1 + w)
  bool qk_norm = false;
  std::string_view qk_norm_key = {};  // setting of that
  QkNormForm qk_norm_form = QkNormForm::rms;
  bool qk_norm_after_rope = false;
  bool sinks = false;                    // attention has a learned score per head
  bool sub_norms = false;                // before the last projections of attention and MLP
  bool pre_norms = true;                 // before attention and MLP
  bool post_norms = false;               // after attention and MLP
  std::string_view post_norms_key = {};  // setting of that
  bool gated = true;                     // the MLP has a gate
  ResidualKind residual = ResidualKind::serial;
  std::string_view parallel_key = {};  // setting; false makes the residual serial
  bool parallel = true;                // when that is absent
  // A setting of two forms (Falcon). true: parallel blocks whose count of norms is `norms_key`, and
  // keys->kv_heads is read; false: the other rules.
  std::string_view grouped_key = {}, norms_key = {};

  // Sizes.
  const ConfigKeys* keys = &kUsualKeys;
  std::span<const FixedSetting> fixed = {};
  std::span<const std::string_view> refused = {};  // settings that must be null or absent
  const LatentRules* latent = nullptr;             // null: no latent attention
  bool plain_heads = false;                        // num_key_value_heads and head_dim are ignored
  bool square = false;                             // num_heads * head_dim must be hidden_size
  std::string_view multi_query_key = {};  // setting, true if absent: one head of keys and values
  bool kv_heads_default = true;           // num_key_value_heads may be absent
  bool inner_default = false;             // the inner size may be absent: 4 * hidden
  bool inner_rounded = false;             // the inner size is rounded by the rule of LFM2
  int32_t head_dim = 0;                   // when absent (not null): 0 = hidden_size / num_heads
  int32_t max_positions = 2048;           // when absent
  double rms_norm_eps = 1e-6;             // when absent
  bool tied = false;                      // tie_word_embeddings when absent
  bool scaled_embedding = false;          // by sqrt(hidden_size)
  std::string_view scaled_embedding_key = {};  // setting of that

  // Positions.
  bool learned_positions = false;
  bool partial_rotary = false;         // partial_rotary_factor is used
  double rotary_part = 1;              // rotated part of a head, when absent
  bool local_rope = false;             // sliding layers have their own rotary positions
  std::string_view layer_thetas = {};  // list: the base of each layer; null or 0: no positions
  Nope nope = Nope::never;
  double rope_theta = 10000;   // when absent
  bool rope_required = false;  // without rope_parameters the class has a scaling of its own
  bool alpha_rope = false;     // "dynamic" positions with `alpha` are plain ones of another theta
  double local_theta = 10000;  // of sliding layers with their own positions, when absent
  // original_max_position_embeddings when absent, of a class that has it outside of rope_scaling.
  // "su" and "yarn" are then older names of longrope. 0 means that the class has none.
  int32_t original_positions = 0;

  // Windows.
  Sliding sliding = Sliding::never;
  bool window_switch = false;  // the window needs use_sliding_window
  int32_t window = 0;          // when absent (not null): 0 = none
  int32_t pattern = 6;         // sliding_window_pattern when absent

  // Activations and their limits.
  std::string_view act_key = "hidden_act";
  std::string_view act = "silu";     // when absent
  std::string_view gelu_means = {};  // the activation that the class uses if a file says gelu
  // Factors of the embedding, of scores, of what a block adds, and of logits; a divisor of logits.
  // The value 0 disables one. Scores without a factor are divided by sqrt(head_dim).
  Setting<double> embedding_factor = {}, score_factor = {}, residual_factor = {};
  Setting<double> logit_factor = {}, logit_divisor = {};
  // query_pre_attn_scalar when absent; 0 means that scores are always divided by sqrt(head_dim)
  double query_scalar = 0;
  std::string_view clip_key = {};    // setting: the limit of q, k and v
  bool attention_cap = false;        // attn_logit_softcapping is used
  bool final_cap = false;            // final_logit_softcapping is used
  double attention_cap_default = 0;  // when absent (not null): 0 = none
  double final_cap_default = 0;      // the same

  // Tokens, if no file has them: -1 = none.
  int32_t bos_token_id = -1;
  int32_t eos_token_id = -1;
  int32_t pad_token_id = -1;  // Loom has none; the writer disables one beyond the vocabulary
};

// The name of a part in folders, without ".weight" or ".bias". bare: the tensor has no such ending.
struct PartName {
  DecoderRole role;
  std::string_view name;
  bool bare = false;
};

// Hugging Face folders: the tensors of a class. Names that are absent here are those of Llama
// (formats/hf/names.cpp).
struct FolderNames {
  std::span<const PartName> names = {};
  std::string_view block = "model.layers.";
  // Tensors of the class without a head lack the first word of `block`.
  bool optional_prefix = false;
  std::string_view other_head = {};  // a second name of the head
  // q, k and v of one name are concatenated; gate and up too. by_group: q, k and v are concatenated
  // for each head of keys and values. shards > 0: q, v, k in each of so many parts of their rows.
  bool by_group = false;
  int32_t shards = 0;
  std::span<const PartName> parallel_names = {};  // of parallel blocks with two norms
  // Rows of q and k have the two halves of each rotary pair side by side.
  bool pairs_rows = false;
  bool split_qk_norms = false;      // weights of norms of q and k are [heads, head_dim]
  bool transposed = false;          // matrices of blocks are [in, out]
  bool transposed_experts = false;  // tensors of all experts are [experts, in, out]
  bool paired_gates = false;        // their rows of gate and up alternate
  bool choice_bias_row = false;     // the choice bias is [1, experts]
  int32_t unused_positions = 0;     // rows before that of the first position
};

// GGUF files: the graph of llama.cpp.
struct GgufRules {
  std::string_view name = {};  // general.architecture; empty: GGUF has no such family
  // Files of this name are read as another family, which has the name alone; this family is
  // written as that one. Families with experts and without are apart.
  bool shared_name = false;
  // Rows of q and k have the two halves of each rotary pair side by side.
  bool pairs_rows = false;
  bool qkv_bias = false;  // the class always has biases of q, k and v
  bool bias = true;       // biases are possible
  bool window = false;    // has attention.sliding_window
  bool caps = false;      // has attn_logit_softcapping and final_logit_softcapping
  // Scores are scaled by 1 / sqrt(head_dim). Models with this many blocks use embedding_length /
  // head_count instead of head_dim. 0 means the class's rule.
  int32_t wide_blocks = 0;
  bool fused = false;              // q, k, v in one tensor, gate and up in another
  bool layer_norms = false;        // its eps has another key
  bool normalized_experts = true;  // the graph's norm_topk_prob
  std::string_view act = {};       // the activation of the graph, if it differs from the class's
  // Requirements of llama.cpp's graph (formats/gguf/graph_limits.hpp).
  bool square = false;          // head_dim * heads must be the width
  bool tied = false;            // the head is always the embedding
  bool untied = false;          // the head is never the embedding
  bool optional_parts = false;  // allows biases everywhere, and rope_freqs.weight
  bool ignores_window = false;  // reads attention.sliding_window and ignores it
  // Special tokens of SentencePiece absorb the white space after them, except these. It also
  // applies to files of another family whose general.name contains one of `strip_marks`.
  std::span<const std::string_view> strip_marks = {}, strip_except = {};
};

struct DecoderFamily {
  std::string_view hf_class;    // "LlamaForCausalLM"
  std::string_view model_type;  // "llama"
  // Networks without a class are tried as the families with a rank, lowest first: the simplest one
  // that describes the same network is chosen. 0 excludes a family.
  int network_rank = 0;
  ConfigRules config = {};
  FolderNames folder = {};
  GgufRules gguf = {};
  const ExpertRules* experts = nullptr;  // null: the class has no experts
  const MixerRules* mixers = nullptr;    // null: every block has attention
};

// All rows, by the name of their file.
std::span<const DecoderFamily* const> decoder_families();
// The rows with a network_rank, in its order.
std::vector<const DecoderFamily*> network_families();

// The row of a class, of a model_type, or of the general.architecture of a GGUF file, with experts
// or without; null if there is none.
const DecoderFamily* find_family_of_class(std::string_view hf_class);
const DecoderFamily* find_family_of_type(std::string_view model_type);
const DecoderFamily* find_family_of_gguf(std::string_view name, bool experts = false);

}  // namespace loom::core

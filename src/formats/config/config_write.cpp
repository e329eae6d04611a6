// The writer of config.json: see config.hpp. It omits values that the class fixes, and writes
// values that differ from the class's defaults in the reader's form.
#include <algorithm>
#include <bit>

#include "families/family.hpp"
#include "formats/config/config.hpp"
#include "formats/config/experts.hpp"
#include "formats/config/mixers.hpp"
#include "io/json/json.hpp"
#include "llm/positions.hpp"

namespace loom::core {
namespace {

using Sliding = ConfigRules::Sliding;
using Nope = ConfigRules::Nope;

// The factor from which the reader computes `width` again.
double rotary_factor(int64_t width, int64_t head_dim) {
  const double exact = static_cast<double>(width) / static_cast<double>(head_dim);
  const bool same = static_cast<int64_t>(static_cast<double>(head_dim) * exact) == width;
  return same ? exact : (static_cast<double>(width) + 0.5) / static_cast<double>(head_dim);
}

JsonValue reals(const std::vector<double>& values) {
  JsonValue list = JsonValue::array();
  for (const double value : values) list.push(JsonValue::real(value));
  return list;
}

// The setting of yarn from which the reader computes the factor of the scores again.
double score_mscale(const DecoderConfig& c) {
  const double factor = c.attention_scale * __builtin_sqrt(static_cast<double>(c.head_dim));
  return (__builtin_sqrt(factor) - 1) / (yarn_attention(c.rope_factor) - 1);
}

JsonValue rope_json(const DecoderConfig& c, const ConfigRules& row = {}) {
  JsonValue rope = JsonValue::object();
  rope.add("rope_type", JsonValue::string(std::string(kRopeKinds[static_cast<size_t>(c.rope)])));
  rope.add("rope_theta", JsonValue::real(c.rope_theta));
  const bool part = c.rope_width > 0 && row.latent == nullptr;
  if (part || row.rotary_part != 1) {
    rope.add(
        "partial_rotary_factor",
        JsonValue::real(rotary_factor(c.rope_width > 0 ? c.rope_width : c.head_dim, c.head_dim)));
  }
  const auto real = [&](const char* key, double value) { rope.add(key, JsonValue::real(value)); };
  const bool long_factors = c.rope == RopeKind::longrope;
  if (c.rope != RopeKind::standard && !long_factors) real("factor", c.rope_factor);
  if (c.rope == RopeKind::llama3) {
    real("low_freq_factor", c.rope_low_freq_factor);
    real("high_freq_factor", c.rope_high_freq_factor);
  }
  if (long_factors || c.rope == RopeKind::yarn || c.rope == RopeKind::llama3)
    rope.add("original_max_position_embeddings", JsonValue::integer(c.rope_original_max_positions));
  if (long_factors || c.rope == RopeKind::yarn) real("attention_factor", c.rope_attention);
  if (c.rope == RopeKind::yarn) {
    real("beta_fast", c.rope_beta_fast);
    real("beta_slow", c.rope_beta_slow);
    rope.add("truncate", JsonValue::boolean(c.rope_truncate));
    if (row.latent != nullptr && c.attention_scale > 0) real("mscale_all_dim", score_mscale(c));
  }
  if (long_factors) {
    rope.add("short_factor", reals(c.rope_short));
    rope.add("long_factor", reals(c.rope_long));
  }
  return rope;
}

// Separate positions of sliding layers are next to the others.
JsonValue rope_by_kind(const DecoderConfig& c) {
  JsonValue sliding = JsonValue::object();
  sliding.add("rope_type", JsonValue::string("default"));
  sliding.add("rope_theta", JsonValue::real(c.rope_local_theta));
  JsonValue out = JsonValue::object();
  out.add("full_attention", rope_json(c));
  out.add("sliding_attention", std::move(sliding));
  return out;
}

// The number from which the reader computes `value` again by `read`: `about`, its nearest integer,
// or one of a few neighbours, because inverses and roots round.
double number_for(double value, double about, double (*read)(double)) {
  const auto whole = static_cast<double>(static_cast<int64_t>(about + 0.5));
  if (about - whole < 1e-6 && whole - about < 1e-6) return whole;
  constexpr uint64_t kNeighbours = 8;
  const auto bits = std::bit_cast<uint64_t>(about);
  for (uint64_t k = 0; k <= kNeighbours; ++k) {
    for (const uint64_t near : {bits + k, bits - k}) {
      const auto number = std::bit_cast<double>(near);
      if (read(number) == value) return number;
    }
  }
  return about;
}

double inverse(double x) {
  return 1.0 / x;
}
double inverse_root(double x) {
  return 1.0 / __builtin_sqrt(x);
}

void add_number_or_null(JsonValue& out, std::string_view key, double value) {
  out.add(std::string(key), value > 0 ? JsonValue::real(value) : JsonValue());
}

void add_scales(const DecoderConfig& c, const ConfigRules& row, JsonValue& out) {
  const auto add = [&](const Setting<double>& setting, double value) {
    if (!setting.key.empty()) out.add(std::string(setting.key), JsonValue::real(value));
  };
  const auto add_flag = [&](std::string_view key, bool value) {
    if (!key.empty()) out.add(std::string(key), JsonValue::boolean(value));
  };
  add_flag(row.scaled_embedding_key, c.embedding_scale != 1);
  add_flag(row.post_norms_key, c.post_norms);
  add_flag(row.qk_norm_key, c.qk_norm);
  add_flag(row.head_bias_key, c.head_bias);
  if (!row.clip_key.empty()) add_number_or_null(out, row.clip_key, c.clip_qkv);
  add(row.embedding_factor, c.embedding_scale);
  add(row.score_factor,
      c.attention_scale > 0 ? c.attention_scale : inverse_root(static_cast<double>(c.head_dim)));
  add(row.residual_factor, c.residual_scale);
  add(row.logit_factor, c.logit_scale);
  add(row.logit_divisor, number_for(c.logit_scale, 1.0 / c.logit_scale, inverse));
  if (row.query_scalar > 0) {
    const double about = 1.0 / (c.attention_scale * c.attention_scale);
    const double scalar = number_for(c.attention_scale, about, inverse_root);
    const auto whole = static_cast<int64_t>(scalar);  // the classes accept no other numbers
    out.add("query_pre_attn_scalar", static_cast<double>(whole) == scalar
                                         ? JsonValue::integer(whole)
                                         : JsonValue::real(scalar));
  }
  if (row.attention_cap) add_number_or_null(out, "attn_logit_softcapping", c.attention_soft_cap);
  if (row.final_cap) add_number_or_null(out, "final_logit_softcapping", c.final_soft_cap);
}

// The settings that decide biases; several may be one. That of the MLP is written if it differs.
void add_biases(const DecoderConfig& c, const BiasRules& rules, JsonValue& out) {
  const auto add = [&](std::string_view key, bool value) {
    if (!key.empty() && out.find(key) == nullptr)
      out.add(std::string(key), JsonValue::boolean(value));
  };
  add(rules.qkv.key, c.attention_bias);
  add(rules.out.key, c.attention_out_bias);
  if (c.mlp_bias != rules.mlp.value) add(rules.mlp.key, c.mlp_bias);
}

void add_residual(const DecoderConfig& c, const ConfigRules& row, JsonValue& out) {
  const auto add = [&](std::string_view key, JsonValue value) {
    if (!key.empty()) out.add(std::string(key), std::move(value));
  };
  add(row.parallel_key, JsonValue::boolean(c.residual != ResidualKind::serial));
  const bool two = c.residual == ResidualKind::parallel;
  const bool grouped = two || (c.num_kv_heads != 1 && c.num_kv_heads != c.num_heads);
  add(row.multi_query_key, JsonValue::boolean(c.num_kv_heads == 1));
  if (row.grouped_key.empty()) return;
  add(row.grouped_key, JsonValue::boolean(grouped));
  add(row.keys->kv_heads, JsonValue::integer(c.num_kv_heads));
  if (grouped) add(row.norms_key, JsonValue::integer(two ? 2 : 1));
}

// The layers that layer_types calls sliding.
class SlidingLayers {
 public:
  SlidingLayers(const DecoderConfig& c, const ConfigRules& row) : c_(c), row_(row) {
    for (int64_t i = 0; i < c.num_layers; ++i) {
      window_ = std::max(window_, c.layer(i).window);
      nope_ = nope_ || !c.layer(i).rope;
    }
    for (int64_t i = 0; i < c.num_layers; ++i) any_ = any_ || slides(i);
  }
  bool slides(int64_t i) const {
    const DecoderLayer layer = c_.layer(i);
    const bool by_rope = row_.nope == Nope::full || (row_.nope == Nope::full_if_windows && nope_);
    return layer.window > 0 || (row_.local_rope && layer.rope_theta > 0) || (by_rope && layer.rope);
  }
  bool any() const { return any_; }
  // sliding_window: 0 disables it. If no layer has a window, it is one without effect.
  int64_t window() const {
    const bool switched = row_.nope == Nope::full_if_windows;
    const bool optional = switched || row_.sliding == Sliding::every || row_.window_switch;
    const bool needed = any_ || !optional || (switched && nope_);
    return needed && window_ == 0 ? c_.max_positions : window_;
  }

 private:
  const DecoderConfig& c_;
  const ConfigRules& row_;
  int64_t window_ = 0;
  bool any_ = false, nope_ = false;
};

void add_thetas(const DecoderConfig& c, std::string_view key, JsonValue& out) {
  JsonValue list = JsonValue::array();
  for (int64_t i = 0; i < c.num_layers; ++i) {
    const DecoderLayer layer = c.layer(i);
    const double theta = layer.rope_theta > 0 ? layer.rope_theta : c.rope_theta;
    list.push(JsonValue::real(layer.rope ? theta : 0));
  }
  out.add(std::string(key), std::move(list));
}

void add_layers(const DecoderConfig& c, const ConfigRules& row, JsonValue& out) {
  if (!row.layer_thetas.empty()) add_thetas(c, row.layer_thetas, out);
  if (row.sliding == Sliding::never) return;
  const SlidingLayers layers(c, row);
  const int64_t window = layers.window();
  if (row.window_switch) out.add("use_sliding_window", JsonValue::boolean(layers.any()));
  out.add(std::string(row.keys->window), window > 0 ? JsonValue::integer(window) : JsonValue());
  if (row.nope == Nope::listed) {
    JsonValue list = JsonValue::array();
    for (int64_t i = 0; i < c.num_layers; ++i)
      list.push(JsonValue::integer(c.layer(i).rope ? 1 : 0));
    out.add("no_rope_layers", std::move(list));
  }
  if (row.sliding == Sliding::every) return;
  const bool runs = row.sliding == Sliding::runs;
  JsonValue types = JsonValue::array();
  for (int64_t i = 0; i < c.num_layers; ++i)
    types.push(JsonValue::string(layers.slides(i) ? (runs ? "local" : "sliding_attention")
                                                  : (runs ? "global" : "full_attention")));
  if (!runs) return out.add("layer_types", std::move(types));
  JsonValue once = JsonValue::array({std::move(types), JsonValue::integer(1)});
  out.add("attention_types", JsonValue::array({std::move(once)}));
}

// Loom has no padding token. Classes of transformers have a default one, and do not open if it is
// beyond the vocabulary.
void add_padding(const DecoderConfig& c, const ConfigRules& row, JsonValue& out) {
  if (row.pad_token_id >= c.vocab_size) out.add("pad_token_id", JsonValue());
}

void add_tokens(const DecoderConfig& c, JsonValue& out) {
  out.add("bos_token_id", c.bos_token_id >= 0 ? JsonValue::integer(c.bos_token_id) : JsonValue());
  JsonValue eos = JsonValue::array();
  for (const int64_t id : c.eos_token_ids) eos.push(JsonValue::integer(id));
  out.add("eos_token_id", c.eos_token_ids.empty() ? JsonValue() : std::move(eos));
}

void add_sizes(const DecoderConfig& c, const ConfigRules& row, JsonValue& out) {
  const ConfigKeys& keys = *row.keys;
  const auto add = [&](std::string_view key, int64_t value) {
    if (!key.empty()) out.add(std::string(key), JsonValue::integer(value));
  };
  add(keys.hidden, c.hidden_size);
  add(keys.inner, c.intermediate_size);
  add(keys.layers, c.num_layers);
  add(keys.heads, c.num_heads);
  if (!row.plain_heads && row.grouped_key.empty() && row.latent == nullptr && !keys.heads.empty()) {
    add(keys.kv_heads, c.num_kv_heads);
    add("head_dim", c.head_dim);
  }
  if (row.latent != nullptr) {
    add(keys.kv_heads, c.num_heads);
    add("kv_lora_rank", c.latent);
    out.add("q_lora_rank", c.latent_q > 0 ? JsonValue::integer(c.latent_q) : JsonValue());
    add("qk_nope_head_dim", c.head_dim - c.rope_width);
    add("qk_rope_head_dim", c.rope_width);
    add("v_head_dim", c.value_dim);
  }
  add("vocab_size", c.vocab_size);
  add(keys.positions, c.max_positions);
  if (!keys.eps.empty()) out.add(std::string(keys.eps), JsonValue::real(c.rms_norm_eps));
}

}  // namespace

std::string hf_config_json(const DecoderConfig& c) {
  const DecoderFamily* found = find_family_of_class(c.architecture);
  const ConfigRules row = found == nullptr ? ConfigRules{} : found->config;
  JsonValue out = JsonValue::object();
  JsonValue names = JsonValue::array();
  names.push(JsonValue::string(c.architecture));
  out.add("architectures", std::move(names));
  out.add("model_type", JsonValue::string(c.model_type));
  add_sizes(c, row, out);
  out.add(std::string(row.act_key), JsonValue::string(c.hidden_act));
  out.add("tie_word_embeddings", JsonValue::boolean(c.tie_word_embeddings));
  add_biases(c, row.bias, out);
  add_residual(c, row, out);
  add_scales(c, row, out);
  if (row.original_positions > 0 && c.rope == RopeKind::longrope) {
    out.add("original_max_position_embeddings", JsonValue::integer(c.rope_original_max_positions));
  }
  if (!row.keys->rotary_width.empty()) {
    out.add(std::string(row.keys->rotary_width),
            JsonValue::integer(c.rope_width > 0 ? c.rope_width : c.head_dim));
  } else if (!row.learned_positions && !row.keys->heads.empty()) {
    out.add("rope_parameters", row.local_rope ? rope_by_kind(c) : rope_json(c, row));
  }
  add_layers(c, row, out);
  if (found != nullptr) {
    add_hf_experts(c, *found, out);
    add_hf_mixers(c, *found, out);
  }
  add_tokens(c, out);
  add_padding(c, row, out);
  return dump_json(out, 2) + "\n";
}

}  // namespace loom::core

// The writer of config.json: see config.hpp. It omits values that the class fixes, and writes
// values that differ from the class's defaults in the reader's form.
#include <algorithm>
#include <bit>

#include "families/family.hpp"
#include "formats/config/config.hpp"
#include "formats/config/experts.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

using Sliding = ConfigRules::Sliding;

// The factor from which the reader computes `width` again.
double rotary_factor(int64_t width, int64_t head_dim) {
  const double exact = static_cast<double>(width) / static_cast<double>(head_dim);
  const bool same = static_cast<int64_t>(static_cast<double>(head_dim) * exact) == width;
  return same ? exact : (static_cast<double>(width) + 0.5) / static_cast<double>(head_dim);
}

JsonValue rope_json(const DecoderConfig& c, const ConfigRules& row = {}) {
  JsonValue rope = JsonValue::object();
  const char* type = c.rope == RopeKind::linear   ? "linear"
                     : c.rope == RopeKind::llama3 ? "llama3"
                                                  : "default";
  rope.add("rope_type", JsonValue::string(type));
  rope.add("rope_theta", JsonValue::real(c.rope_theta));
  if (c.rope_width > 0 || row.rotary_part != 1) {
    rope.add(
        "partial_rotary_factor",
        JsonValue::real(rotary_factor(c.rope_width > 0 ? c.rope_width : c.head_dim, c.head_dim)));
  }
  if (c.rope != RopeKind::standard) rope.add("factor", JsonValue::real(c.rope_factor));
  if (c.rope != RopeKind::llama3) return rope;
  rope.add("low_freq_factor", JsonValue::real(c.rope_low_freq_factor));
  rope.add("high_freq_factor", JsonValue::real(c.rope_high_freq_factor));
  rope.add("original_max_position_embeddings", JsonValue::integer(c.rope_original_max_positions));
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

// The number from which the reader computes `scale` again: an integer, or the nearest of a few
// neighbours, because squares and roots round.
double query_scalar(double scale) {
  const double scalar = 1.0 / (scale * scale);
  const auto whole = static_cast<double>(static_cast<int64_t>(scalar + 0.5));
  if (scalar - whole < 1e-6 && whole - scalar < 1e-6) return whole;
  constexpr uint64_t kNeighbours = 8;
  const auto bits = std::bit_cast<uint64_t>(scalar);
  for (uint64_t k = 0; k <= kNeighbours; ++k) {
    for (const uint64_t near : {bits + k, bits - k}) {
      const auto value = std::bit_cast<double>(near);
      if (1.0 / __builtin_sqrt(value) == scale) return value;
    }
  }
  return scalar;
}

void add_number_or_null(JsonValue& out, const char* key, double value) {
  out.add(key, value > 0 ? JsonValue::real(value) : JsonValue());
}

void add_scales(const DecoderConfig& c, const ConfigRules& row, JsonValue& out) {
  if (row.query_scalar > 0)
    out.add("query_pre_attn_scalar", JsonValue::real(query_scalar(c.attention_scale)));
  if (row.attention_cap) add_number_or_null(out, "attn_logit_softcapping", c.attention_soft_cap);
  if (row.final_cap) add_number_or_null(out, "final_logit_softcapping", c.final_soft_cap);
}

bool slides(const DecoderLayer& layer) {
  return layer.window > 0 || layer.rope_theta > 0;
}

void add_layers(const DecoderConfig& c, const ConfigRules& row, JsonValue& out) {
  if (row.sliding == Sliding::never) return;
  int64_t window = 0;
  bool any = false;
  for (const DecoderLayer& layer : c.layers) {
    window = std::max(window, layer.window);
    any = any || slides(layer);
  }
  if (any && window == 0) window = c.max_positions;  // a window without effect
  if (row.window_switch) out.add("use_sliding_window", JsonValue::boolean(any));
  out.add("sliding_window", any ? JsonValue::integer(window) : JsonValue());
  if (row.nope_layers) {
    JsonValue list = JsonValue::array();
    for (int64_t i = 0; i < c.num_layers; ++i)
      list.push(JsonValue::integer(c.layer(i).rope ? 1 : 0));
    out.add("no_rope_layers", std::move(list));
  }
  if (row.sliding == Sliding::every) return;
  JsonValue types = JsonValue::array();
  for (int64_t i = 0; i < c.num_layers; ++i) {
    types.push(JsonValue::string(slides(c.layer(i)) ? "sliding_attention" : "full_attention"));
  }
  out.add("layer_types", std::move(types));
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
    out.add(std::string(key), JsonValue::integer(value));
  };
  add(keys.hidden, c.hidden_size);
  add(keys.inner, c.intermediate_size);
  add(keys.layers, c.num_layers);
  add(keys.heads, c.num_heads);
  if (!row.plain_heads) {
    add("num_key_value_heads", c.num_kv_heads);
    add("head_dim", c.head_dim);
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
  if (row.bias == ConfigRules::Bias::read)
    out.add("attention_bias", JsonValue::boolean(c.attention_bias));
  if (c.mlp_bias && row.reads_mlp_bias) out.add("mlp_bias", JsonValue::boolean(true));
  if (!row.parallel_key.empty()) {
    out.add(std::string(row.parallel_key), JsonValue::boolean(c.residual != ResidualKind::serial));
  }
  add_scales(c, row, out);
  if (!row.learned_positions)
    out.add("rope_parameters", row.local_rope ? rope_by_kind(c) : rope_json(c, row));
  add_layers(c, row, out);
  if (found != nullptr) add_hf_experts(c, *found, out);
  add_tokens(c, out);
  add_padding(c, row, out);
  return dump_json(out, 2) + "\n";
}

}  // namespace loom::core

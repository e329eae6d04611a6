// The writer of config.json: see hf_config.hpp. What the class of an architecture fixes is left
// out, as the reader wants it.
#include "io/hf_config.hpp"
#include "io/json.hpp"

namespace loom {
namespace {

JsonValue rope_json(const HfConfig& c) {
  JsonValue rope = JsonValue::object();
  const char* type = c.rope == RopeKind::linear   ? "linear"
                     : c.rope == RopeKind::llama3 ? "llama3"
                                                  : "default";
  rope.add("rope_type", JsonValue::string(type));
  rope.add("rope_theta", JsonValue::real(c.rope_theta));
  if (c.rope != RopeKind::standard) rope.add("factor", JsonValue::real(c.rope_factor));
  if (c.rope != RopeKind::llama3) return rope;
  rope.add("low_freq_factor", JsonValue::real(c.rope_low_freq_factor));
  rope.add("high_freq_factor", JsonValue::real(c.rope_high_freq_factor));
  rope.add("original_max_position_embeddings", JsonValue::integer(c.rope_original_max_positions));
  return rope;
}

}  // namespace

std::string hf_config_json(const HfConfig& c) {
  JsonValue out = JsonValue::object();
  JsonValue names = JsonValue::array();
  names.push(JsonValue::string(c.architecture));
  out.add("architectures", std::move(names));
  out.add("model_type", JsonValue::string(c.model_type));
  const std::pair<const char*, int64_t> sizes[] = {{"hidden_size", c.hidden_size},
                                                   {"intermediate_size", c.intermediate_size},
                                                   {"num_hidden_layers", c.num_layers},
                                                   {"num_attention_heads", c.num_heads},
                                                   {"num_key_value_heads", c.num_kv_heads},
                                                   {"head_dim", c.head_dim},
                                                   {"vocab_size", c.vocab_size},
                                                   {"max_position_embeddings", c.max_positions}};
  for (const auto& [key, value] : sizes) out.add(key, JsonValue::integer(value));
  out.add("rms_norm_eps", JsonValue::real(c.rms_norm_eps));
  out.add("hidden_act", JsonValue::string(c.hidden_act));
  out.add("tie_word_embeddings", JsonValue::boolean(c.tie_word_embeddings));
  if (c.attention_bias) out.add("attention_bias", JsonValue::boolean(true));
  if (c.mlp_bias) out.add("mlp_bias", JsonValue::boolean(true));
  out.add("rope_parameters", rope_json(c));
  if (c.bos_token_id >= 0) out.add("bos_token_id", JsonValue::integer(c.bos_token_id));
  JsonValue eos = JsonValue::array();
  for (const int64_t id : c.eos_token_ids) eos.push(JsonValue::integer(id));
  if (!c.eos_token_ids.empty()) out.add("eos_token_id", std::move(eos));
  return dump_json(out, 2) + "\n";
}

}  // namespace loom

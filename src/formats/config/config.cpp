// config.json of decoders. The fixed values and defaults of a class of `transformers` are a row of
// rules.cpp; the rest is read from the file. Positions (rope_scaling, rope_parameters)
// are in rope.cpp, per-layer settings in layers.cpp. Invariants of an accepted config: every
// size is in 1..2^24, the heads divide it, and there are at most 2^48 weights. So no product of
// sizes overflows.
#include "formats/config/config.hpp"

#include <algorithm>
#include <array>

#include "base/numbers/checked.hpp"
#include "base/numbers/dmath.hpp"
#include "base/text.hpp"
#include "families/family.hpp"
#include "formats/config/experts.hpp"
#include "formats/config/layers.hpp"
#include "formats/config/mixers.hpp"
#include "formats/config/rope.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr uint64_t kMaxWeights = uint64_t{1} << 48;
constexpr size_t kMaxEosTokens = 256;
constexpr int64_t kRotaryWidth = 64;  // when absent

// The family that "architectures" names.
Result<const DecoderFamily*> read_family(const ConfigFields& fields) {
  LOOM_TRY(fields.require("architectures"));
  const JsonValue& list = *fields.find("architectures");
  if (list.elements().size() != 1 || !list.elements()[0].is_string()) {
    return fields.bad("architectures", "expected a list of one name");
  }
  const DecoderFamily* family = find_family_of_class(list.elements()[0].text());
  if (family != nullptr) return family;
  std::vector<std::string> known;
  for (const DecoderFamily* row : decoder_families()) known.emplace_back(row->hf_class);
  return fields.refuse("architectures", cat(list.elements()[0].describe(),
                                            " is not supported; these are: ", join(known, ", ")));
}

Status read_names(const ConfigFields& fields, const DecoderFamily& family, DecoderConfig& config) {
  const ConfigRules& rules = family.config;
  config.architecture = family.hf_class;
  config.model_type = family.model_type;
  LOOM_TRY(fields.read("model_type", config.model_type));
  if (config.model_type != family.model_type) {
    return fields.bad("model_type",
                      cat("expected \"", family.model_type, "\" for ", family.hf_class, ", found ",
                          fields.find("model_type")->describe()));
  }
  const std::string_view key = rules.act_key;
  config.hidden_act = rules.act;
  LOOM_TRY(fields.read(key, config.hidden_act));
  constexpr std::array<std::string_view, 6> kKnown = {
      "silu", "gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "relu2"};
  if (std::find(kKnown.begin(), kKnown.end(), config.hidden_act) == kKnown.end()) {
    return fields.refuse(key, cat(fields.find(key)->describe(),
                                  " is not supported; these are: silu, gelu, gelu_new, "
                                  "gelu_pytorch_tanh, relu, relu2"));
  }
  if (!rules.gelu_means.empty() && config.hidden_act == "gelu")
    config.hidden_act = rules.gelu_means;
  return {};
}

Status read_size(const ConfigFields& fields, std::string_view key, int64_t& out) {
  LOOM_TRY(fields.require(key));
  return fields.read(key, out, 1, kMaxSize);
}

Status read_sizes(const ConfigFields& fields, const ConfigRules& rules, DecoderConfig& config) {
  const ConfigKeys& keys = *rules.keys;
  LOOM_TRY(read_size(fields, keys.hidden, config.hidden_size));
  config.intermediate_size = config.num_heads = 1;  // of classes without MLP or attention
  if (rules.inner_default && fields.find(keys.inner) == nullptr) {
    config.intermediate_size = 4 * config.hidden_size;
  } else if (!keys.inner.empty()) {
    LOOM_TRY(read_size(fields, keys.inner, config.intermediate_size));
  }
  LOOM_TRY(read_size(fields, keys.layers, config.num_layers));
  if (!keys.heads.empty()) LOOM_TRY(read_size(fields, keys.heads, config.num_heads));
  LOOM_TRY(read_size(fields, "vocab_size", config.vocab_size));
  if (!keys.table_width.empty()) {
    int64_t width = config.hidden_size;
    LOOM_TRY(fields.read(keys.table_width, width, 1, kMaxSize));
    if (width != config.hidden_size) {
      return fields.refuse(keys.table_width,
                           cat(width, " is not supported; only ", keys.hidden, " is"));
    }
  }
  config.max_positions = rules.max_positions;
  if (!keys.positions.empty())
    LOOM_TRY(fields.read(keys.positions, config.max_positions, 1, kMaxSize));
  config.rms_norm_eps = rules.rms_norm_eps;
  if (keys.eps.empty()) return {};
  return fields.read(keys.eps, config.rms_norm_eps, 1e-30, 1.0);
}

Status read_kv_heads(const ConfigFields& fields, const ConfigRules& rules, DecoderConfig& config) {
  const std::string_view key = rules.keys->kv_heads;
  config.num_kv_heads = config.num_heads;
  bool grouped = false, one = true;
  if (!rules.grouped_key.empty()) LOOM_TRY(fields.read(rules.grouped_key, grouped));
  if (!rules.multi_query_key.empty() && !grouped) {
    LOOM_TRY(fields.read(rules.multi_query_key, one));
    if (one) config.num_kv_heads = 1;
    return {};
  }
  if (rules.plain_heads && !grouped) return {};
  if (!rules.kv_heads_default && !fields.has_key(key)) return fields.require(key);
  LOOM_TRY(fields.read(key, config.num_kv_heads, 1, kMaxSize));
  if (config.num_heads % config.num_kv_heads == 0) return {};
  return fields.bad(
      key, cat(config.num_kv_heads, " does not divide ", rules.keys->heads, " ", config.num_heads));
}

// All heads have keys and values, from one latent.
Status read_latent(const ConfigFields& fields, const LatentRules& rules, DecoderConfig& config) {
  int64_t plain = rules.plain;
  config.num_kv_heads = config.num_heads;
  config.latent = rules.latent;
  config.latent_q = fields.has_key("q_lora_rank") ? 0 : rules.latent_q;
  config.rope_width = rules.rope;
  config.value_dim = rules.value;
  constexpr int64_t kMax = 65536;
  LOOM_TRY(fields.read("kv_lora_rank", config.latent, 1, kMax));
  LOOM_TRY(fields.read("q_lora_rank", config.latent_q, 1, kMax));
  LOOM_TRY(fields.read("qk_nope_head_dim", plain, 1, kMax));
  LOOM_TRY(fields.read("qk_rope_head_dim", config.rope_width, 2, kMax));
  LOOM_TRY(fields.read("v_head_dim", config.value_dim, 1, kMax));
  config.head_dim = plain + config.rope_width;
  const int64_t widest =
      std::max({config.head_dim, config.value_dim, config.latent + config.rope_width});
  if (config.num_heads * widest > kMaxSize) {
    return fields.bad("kv_lora_rank", cat(config.num_heads, " heads of ", widest, " are more than ",
                                          kMaxSize, " columns"));
  }
  if (config.rope_width % 2 == 0) return {};
  return fields.bad("qk_rope_head_dim",
                    cat(config.rope_width, " is odd; rotary positions need pairs"));
}

Status read_heads(const ConfigFields& fields, const ConfigRules& rules, DecoderConfig& config) {
  if (rules.latent != nullptr) return read_latent(fields, *rules.latent, config);
  if (rules.keys->heads.empty()) {  // the class has no attention
    config.num_kv_heads = config.num_heads;
    config.head_dim = config.hidden_size;
    config.rope = RopeKind::none;
    return {};
  }
  LOOM_TRY(read_kv_heads(fields, rules, config));
  if (!rules.plain_heads) {
    config.head_dim = fields.has_key("head_dim") ? 0 : rules.head_dim;
    LOOM_TRY(fields.read("head_dim", config.head_dim, 2, kMaxSize));
  }
  if (config.head_dim == 0) {
    const ConfigKeys& keys = *rules.keys;
    if (config.hidden_size % config.num_heads != 0) {
      return fields.bad(keys.hidden, cat(config.hidden_size, " is not a multiple of ", keys.heads,
                                         " ", config.num_heads, ", and there is no head_dim"));
    }
    config.head_dim = config.hidden_size / config.num_heads;
  }
  if (config.head_dim % 2 != 0 && !rules.learned_positions) {
    return fields.bad("head_dim", cat(config.head_dim, " is odd; rotary positions need pairs"));
  }
  if (config.num_heads * config.head_dim > kMaxSize) {
    return fields.bad("head_dim", cat(config.num_heads, " heads of ", config.head_dim,
                                      " are more than ", kMaxSize, " columns"));
  }
  return {};
}

// A tensor in shards has as many rows in each.
Status check_shards(const ConfigFields& fields, const DecoderFamily& family,
                    const DecoderConfig& config) {
  const int64_t shards = family.folder.shards;
  if (shards == 0 || config.hidden_size % shards == 0) return {};
  return fields.bad(family.config.keys->hidden,
                    cat(config.hidden_size, " is not a multiple of ", shards));
}

Status read_residual(const ConfigFields& fields, const ConfigRules& rules, DecoderConfig& config) {
  bool parallel = rules.residual != ResidualKind::serial && rules.parallel;
  if (!rules.parallel_key.empty()) LOOM_TRY(fields.read(rules.parallel_key, parallel));
  config.residual = parallel ? rules.residual : ResidualKind::serial;
  if (rules.grouped_key.empty()) return {};
  bool grouped = false;
  LOOM_TRY(fields.read(rules.grouped_key, grouped));
  if (!grouped) return {};
  if (!parallel)
    return fields.refuse(rules.parallel_key,
                         cat("false is not supported with ", rules.grouped_key));
  int64_t norms = 2;
  LOOM_TRY(fields.read(rules.norms_key, norms, 1, 2));
  config.residual = norms == 2 ? ResidualKind::parallel : ResidualKind::shared_norm;
  return {};
}

// Sets the values that the class fixes, independent of the file.
Status take_structure(const ConfigFields& fields, const ConfigRules& rules, DecoderConfig& config) {
  config.layer_norms = rules.layer_norms;
  config.norm_weights = rules.norm_weights;
  config.norm_biases = rules.norm_biases;
  config.gated_mlp = rules.gated;
  config.learned_positions = rules.learned_positions ? config.max_positions : 0;
  if (rules.learned_positions) config.rope = RopeKind::none;
  LOOM_TRY(read_residual(fields, rules, config));
  config.qk_norm = rules.qk_norm;
  if (!rules.qk_norm_key.empty()) LOOM_TRY(fields.read(rules.qk_norm_key, config.qk_norm));
  if (config.qk_norm) {
    config.qk_norm_form = rules.qk_norm_form;
    config.qk_norm_after_rope = rules.qk_norm_after_rope;
  }
  config.sinks = rules.sinks;
  config.sub_norms = rules.sub_norms;
  config.pre_norms = rules.pre_norms;
  config.post_norms = rules.post_norms;
  if (!rules.post_norms_key.empty()) LOOM_TRY(fields.read(rules.post_norms_key, config.post_norms));
  config.unit_offset_norms = rules.unit_offset_norms;
  const bool square = config.num_heads * config.head_dim == config.hidden_size;
  if (square || (!rules.square && !config.sub_norms)) return {};
  return fields.bad(
      rules.keys->hidden,
      cat(config.num_heads, " heads of ", config.head_dim, " do not make ", config.hidden_size,
          ", which the ", config.sub_norms ? "norm after attention" : "class", " needs"));
}

Status read_bias(const ConfigFields& fields, const Setting<bool>& rule, bool& out) {
  out = rule.value;
  return rule.key.empty() ? Status() : fields.read(rule.key, out);
}

// The file may not contradict biases that the class hard-codes. Classes that always have all of
// them have no such settings.
Status check_fixed_bias(const ConfigFields& fields, const DecoderFamily& family,
                        std::string_view key, bool fixed) {
  const BiasRules& rules = family.config.bias;
  bool value = fixed;
  if (rules.all() || rules.qkv.key == key || rules.out.key == key || rules.mlp.key == key)
    return {};
  LOOM_TRY(fields.read(key, value));
  if (value == fixed) return {};
  return fields.refuse(key, cat(family.hf_class, " always has ", fixed ? "true" : "false"));
}

Status read_biases(const ConfigFields& fields, const DecoderFamily& family, DecoderConfig& config) {
  const ConfigRules& rules = family.config;
  config.tie_word_embeddings = rules.tied;
  LOOM_TRY(fields.read("tie_word_embeddings", config.tie_word_embeddings));
  config.head_bias = rules.head_bias;
  if (!rules.head_bias_key.empty()) LOOM_TRY(fields.read(rules.head_bias_key, config.head_bias));
  if (config.head_bias && config.tie_word_embeddings) {
    return fields.refuse("tie_word_embeddings", cat("true is not supported for ", family.hf_class,
                                                    ", whose head has a bias"));
  }
  LOOM_TRY(read_bias(fields, rules.bias.qkv, config.attention_bias));
  LOOM_TRY(read_bias(fields, rules.bias.out, config.attention_out_bias));
  LOOM_TRY(read_bias(fields, rules.bias.mlp, config.mlp_bias));
  LOOM_TRY(check_fixed_bias(fields, family, "attention_bias", rules.bias.qkv.value));
  return check_fixed_bias(fields, family, "mlp_bias", rules.bias.mlp.value);
}

// A number that null disables: 0.
Status read_cap(const ConfigFields& fields, std::string_view key, double absent, double& out) {
  out = fields.has_key(key) ? 0 : absent;
  return fields.read(key, out, 1e-3, 1e6);
}

Status read_factor(const ConfigFields& fields, const Setting<double>& rule, double& out) {
  if (rule.value != 0) out = rule.value;
  return rule.key.empty() ? Status() : fields.read(rule.key, out, 1e-6, 1e6);
}

// Reads the factors of a class that has them as settings.
Status read_factors(const ConfigFields& fields, const ConfigRules& rules, DecoderConfig& config) {
  LOOM_TRY(read_factor(fields, rules.embedding_factor, config.embedding_scale));
  LOOM_TRY(read_factor(fields, rules.score_factor, config.attention_scale));
  LOOM_TRY(read_factor(fields, rules.residual_factor, config.residual_scale));
  LOOM_TRY(read_factor(fields, rules.logit_factor, config.logit_scale));
  if (rules.logit_divisor.key.empty()) return {};
  double divisor = 1;
  LOOM_TRY(read_factor(fields, rules.logit_divisor, divisor));
  config.logit_scale = 1 / divisor;
  return {};
}

// Reads scales and caps of activations.
Status read_scales(const ConfigFields& fields, const DecoderFamily& family, DecoderConfig& config) {
  const ConfigRules& rules = family.config;
  LOOM_TRY(read_factors(fields, rules, config));
  bool scaled = rules.scaled_embedding;
  if (!rules.scaled_embedding_key.empty())
    LOOM_TRY(fields.read(rules.scaled_embedding_key, scaled));
  if (scaled) {
    config.embedding_scale = __builtin_sqrt(static_cast<double>(config.hidden_size));
  }
  if (!rules.clip_key.empty()) LOOM_TRY(fields.read(rules.clip_key, config.clip_qkv, 1e-6, 1e6));
  if (rules.query_scalar > 0) {
    double scalar = rules.query_scalar;
    LOOM_TRY(fields.read("query_pre_attn_scalar", scalar, 1e-3, 1e6));
    config.attention_scale = 1.0 / __builtin_sqrt(scalar);
  }
  if (rules.attention_cap) {
    LOOM_TRY(read_cap(fields, "attn_logit_softcapping", rules.attention_cap_default,
                      config.attention_soft_cap));
  } else if (rules.final_cap && fields.find("attn_logit_softcapping") != nullptr) {
    return fields.refuse("attn_logit_softcapping", cat(family.hf_class, " has none"));
  }
  if (!rules.final_cap) return {};
  return read_cap(fields, "final_logit_softcapping", rules.final_cap_default,
                  config.final_soft_cap);
}

// Settings that have no effect at one value, and are unsupported at all others.
Status check_switches(const ConfigFields& fields, const ConfigRules& rules) {
  if (fields.find("compression_config") != nullptr) {
    return fields.refuse("compression_config",
                         "quantized checkpoints are not supported; load the original one");
  }
  for (const char* key :
       {"is_encoder_decoder", "add_cross_attention", "use_bidirectional_attention"}) {
    bool on = false;
    LOOM_TRY(fields.read(key, on));
    if (on) return fields.refuse(key, "true is not supported");
  }
  for (const FixedSetting& one : rules.fixed) {
    bool value = one.value;
    LOOM_TRY(fields.read(one.key, value));
    if (value != one.value)
      return fields.refuse(one.key, cat(value ? "true" : "false", " is not supported"));
  }
  for (const std::string_view key : rules.refused) {
    if (fields.find(key) != nullptr)
      return fields.refuse(key,
                           cat(fields.find(key)->describe(), " is not supported; only null is"));
  }
  const bool own = !rules.keys->rotary_width.empty();
  if (rules.partial_rotary || rules.learned_positions || own) return {};
  double factor = 1.0;
  LOOM_TRY(fields.read("partial_rotary_factor", factor, 0.0, 1e6));
  if (factor == 1.0) return {};
  return fields.refuse(
      "partial_rotary_factor",
      cat(fields.find("partial_rotary_factor")->describe(), " is not supported; only 1 is"));
}

// quantization_config: only BitNet's, with the matrices of the blocks converted.
Status read_quantization(const ConfigFields& outer, const std::string& where,
                         DecoderConfig& config) {
  const JsonValue* object = outer.find("quantization_config");
  if (object == nullptr) return {};
  if (!object->is_object()) {
    return outer.bad("quantization_config", cat("expected an object, found ", object->describe()));
  }
  const ConfigFields fields(*object, where, "quantization_config.");
  std::string method, kind = "bitlinear", mode = "offline";
  LOOM_TRY(fields.read("quant_method", method));
  // The names of tensors say which are packed.
  if (method == "mxfp4" && config.architecture == "GptOssForCausalLM") return {};
  if (method != "bitnet") {
    return outer.refuse("quantization_config",
                        "quantized checkpoints other than those of bitnet are not supported; load "
                        "the original one");
  }
  LOOM_TRY(fields.read("linear_class", kind));
  LOOM_TRY(fields.read("quantization_mode", mode));
  if (kind != "bitlinear" && kind != "autobitlinear") {
    return fields.bad("linear_class", "expected \"bitlinear\" or \"autobitlinear\"");
  }
  if (mode != "online" && mode != "offline") {
    return fields.bad("quantization_mode", "expected \"online\" or \"offline\"");
  }
  bool norm = false;
  LOOM_TRY(fields.read("use_rms_norm", norm));
  if (norm) return fields.refuse("use_rms_norm", "true is not supported");
  if (const JsonValue* kept = fields.find("modules_to_not_convert")) {
    const bool head = kept->elements().size() == 1 && kept->elements()[0].text() == "lm_head";
    if (!head) return fields.refuse("modules_to_not_convert", "only [\"lm_head\"] is supported");
  }
  config.ternary_weights = TernaryWeights::divided;
  if (kind == "autobitlinear") {
    config.ternary_weights = mode == "online" ? TernaryWeights::online : TernaryWeights::multiplied;
  }
  return {};
}

Status check_weight_count(const ConfigFields& fields, const DecoderConfig& config) {
  const auto u = [](int64_t v) { return static_cast<uint64_t>(v); };
  const uint64_t heads = u(2 * (config.num_heads + config.num_kv_heads)) * u(config.head_dim);
  const uint64_t columns = heads + 3 * u(config.intermediate_size);
  uint64_t layers = 0;
  uint64_t total = 0;
  if (checked_mul(u(config.hidden_size) * columns, u(config.num_layers), layers) &&
      checked_add(layers, 2 * u(config.hidden_size) * u(config.vocab_size), total) &&
      total <= kMaxWeights) {
    return {};
  }
  return fields.bad("num_hidden_layers", "these sizes make more than 2^48 weights");
}

Status add_eos(const ConfigFields& fields, const JsonValue& id, DecoderConfig& config) {
  const auto number = id.as_int("eos_token_id");
  if (!number.ok() || *number < 0 || *number >= config.vocab_size) {
    return fields.bad("eos_token_id", cat("expected an id from 0 to ", config.vocab_size - 1,
                                          ", found ", id.describe()));
  }
  std::vector<int64_t>& ids = config.eos_token_ids;
  if (std::find(ids.begin(), ids.end(), *number) == ids.end()) ids.push_back(*number);
  return {};
}

Status read_special_tokens(const ConfigFields& fields, DecoderConfig& config) {
  LOOM_TRY(fields.read("bos_token_id", config.bos_token_id, 0, config.vocab_size - 1));
  const JsonValue* eos = fields.find("eos_token_id");
  if (eos == nullptr) return {};
  if (!eos->is_array()) return add_eos(fields, *eos, config);
  if (eos->elements().size() > kMaxEosTokens) {
    return fields.bad("eos_token_id", cat("more than ", kMaxEosTokens, " ids"));
  }
  for (const JsonValue& id : eos->elements()) LOOM_TRY(add_eos(fields, id, config));
  return {};
}

// The class's ids, if no file has any and the vocabulary is large enough.
void take_default_tokens(const ConfigFields& fields, const ConfigRules& rules,
                         DecoderConfig& config) {
  if (!fields.has_key("bos_token_id") && config.bos_token_id < 0 &&
      rules.bos_token_id < config.vocab_size) {
    config.bos_token_id = rules.bos_token_id;
  }
  const int64_t eos = rules.eos_token_id;
  if (!fields.has_key("eos_token_id") && config.eos_token_ids.empty() && eos >= 0 &&
      eos < config.vocab_size) {
    config.eos_token_ids.push_back(eos);
  }
}

// Positions with `alpha` scale theta by alpha^(d / (d - 2)) for heads of d values, and nothing
// else.
JsonValue without_alpha(const JsonValue& json, int64_t head_dim) {
  JsonValue out = JsonValue::object();
  for (const auto& [key, value] : json.members()) {
    const bool rope = key == "rope_scaling" || key == "rope_parameters";
    const JsonValue* alpha = rope ? value.find("alpha") : nullptr;
    const JsonValue* type = value.find("rope_type");
    if (type == nullptr) type = value.find("type");
    const double factor = alpha != nullptr && alpha->is_number() ? *alpha->as_double("") : 0;
    const bool scaled = factor > 0 && type != nullptr && type->text() == "dynamic" && head_dim > 2;
    if (!scaled) {
      if (key != "rope_theta") out.add(key, value);
      continue;
    }
    const JsonValue* theta = value.find("rope_theta");
    if (theta == nullptr) theta = json.find("rope_theta");
    const double base = theta != nullptr && theta->is_number() ? *theta->as_double("") : 10000.0;
    const auto d = static_cast<double>(head_dim);
    const double scaled_theta = base * dmath::exp(dmath::log(factor) * d / (d - 2));
    out.add("rope_parameters", JsonValue::object({{"rope_theta", JsonValue::real(scaled_theta)}}));
  }
  if (out.find("rope_parameters") == nullptr && json.find("rope_theta") != nullptr)
    out.add("rope_theta", *json.find("rope_theta"));
  return out;
}

// Rotary positions: of all settings, or of one width.
Status read_positions(const JsonValue& json, const std::string& where, const ConfigRules& rules,
                      DecoderConfig& config) {
  if (rules.learned_positions || rules.keys->heads.empty()) return {};
  const std::string_view key = rules.keys->rotary_width;
  if (key.empty() && rules.alpha_rope)
    return read_hf_rope(without_alpha(json, config.head_dim), where, rules, config);
  if (key.empty()) return read_hf_rope(json, where, rules, config);
  const ConfigFields fields(json, where);
  config.rope_width = kRotaryWidth;
  if (fields.has_key(key)) LOOM_TRY(fields.require(key));
  LOOM_TRY(fields.read(key, config.rope_width, 2, kMaxSize));
  const bool even = config.rope_width % 2 == 0 && config.rope_width <= config.head_dim;
  if (!even) {
    return fields.bad(key, cat(config.rope_width, " is not an even number up to the ",
                               config.head_dim, " values of a head"));
  }
  if (config.rope_width == config.head_dim) config.rope_width = 0;
  return {};
}

Result<JsonValue> parse_object(std::string_view text, const std::string& where) {
  auto json = parse_json(text, where);
  if (!json.ok() || json->is_object()) return json;
  return bad_file(cat("expected an object, found ", json->describe()), where, json->offset());
}

// generation_config.json is in the folder of config.json.
std::string generation_name(const std::string& where) {
  const size_t slash = where.rfind('/');
  return (slash == std::string::npos ? "" : where.substr(0, slash + 1)) + "generation_config.json";
}

}  // namespace

Result<DecoderConfig> read_hf_config(const JsonValue& json, const JsonValue* generation,
                                     const std::string& where) {
  const ConfigFields fields(json, where);
  DecoderConfig config;
  LOOM_ASSIGN(const DecoderFamily* family, read_family(fields));
  const ConfigRules& rules = family->config;
  LOOM_TRY(read_names(fields, *family, config));
  LOOM_TRY(check_switches(fields, rules));
  LOOM_TRY(read_quantization(fields, where, config));
  LOOM_TRY(read_sizes(fields, rules, config));
  LOOM_TRY(read_heads(fields, rules, config));
  LOOM_TRY(check_shards(fields, *family, config));
  LOOM_TRY(read_biases(fields, *family, config));
  LOOM_TRY(take_structure(fields, rules, config));
  LOOM_TRY(check_weight_count(fields, config));
  LOOM_TRY(read_scales(fields, *family, config));
  LOOM_TRY(read_positions(json, where, rules, config));
  if (rules.inner_rounded) LOOM_TRY(read_rounded_inner(fields, config));
  if (family->mixers == nullptr) LOOM_TRY(read_hf_layers(fields, rules, config));
  LOOM_TRY(read_hf_mixers(fields, *family, config));
  LOOM_TRY(read_hf_experts(fields, *family, config));
  LOOM_TRY(read_special_tokens(fields, config));
  if (generation != nullptr)
    LOOM_TRY(read_special_tokens(ConfigFields(*generation, generation_name(where)), config));
  take_default_tokens(fields, rules, config);
  return config;
}

Result<DecoderConfig> parse_hf_config(std::string_view text, std::string_view generation_text,
                                      const std::string& where) {
  LOOM_ASSIGN(const JsonValue json, parse_object(text, where));
  if (generation_text.empty()) return read_hf_config(json, nullptr, where);
  LOOM_ASSIGN(const JsonValue generation, parse_object(generation_text, generation_name(where)));
  return read_hf_config(json, &generation, where);
}

}  // namespace loom::core

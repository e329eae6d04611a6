// See rope.hpp. Source of the meaning: transformers/modeling_rope_utils.py. Unknown fields are
// refused here, because an ignored rope field would silently change every output.
#include "formats/config/rope.hpp"

#include <algorithm>
#include <iterator>

#include "base/numbers/dmath.hpp"
#include "base/text.hpp"
#include "formats/config/fields.hpp"
#include "llm/positions.hpp"

namespace loom::core {
namespace {

constexpr double kMinTheta = 1.0, kMaxTheta = 1e15;
constexpr double kMaxFactor = 1e6;

constexpr int64_t kMaxOriginal = int64_t{1} << 24;

// mrope_section and mrope_interleaved: axes of images. In texts all axes have the same position.
constexpr std::string_view kKnownFields[] = {"rope_type",        "type",
                                             "rope_theta",       "partial_rotary_factor",
                                             "factor",           "low_freq_factor",
                                             "high_freq_factor", "original_max_position_embeddings",
                                             "attention_factor", "beta_fast",
                                             "beta_slow",        "mscale",
                                             "mscale_all_dim",   "truncate",
                                             "short_factor",     "long_factor",
                                             "mrope_section",    "mrope_interleaved"};

// "type" is the older spelling of "rope_type"; if both are present they must agree.
Status read_kind(const ConfigFields& fields, bool required, const ConfigRules& rules,
                 RopeKind& kind) {
  std::string type;
  std::string old_type;
  LOOM_TRY(fields.read("rope_type", type));
  LOOM_TRY(fields.read("type", old_type));
  const std::string_view key = type.empty() ? "type" : "rope_type";
  if (!type.empty() && !old_type.empty() && type != old_type) {
    return fields.bad("type", cat("\"", printable(old_type), "\" contradicts rope_type \"",
                                  printable(type), "\""));
  }
  if (type.empty()) type = old_type;
  if (type.empty() && required) return fields.require("rope_type");
  kind = RopeKind::standard;
  if (type.empty() || type == "mrope") return {};
  if (rules.original_positions > 0 && (type == "su" || type == "yarn")) type = "longrope";
  for (size_t i = 1; i < std::size(kRopeKinds); ++i) {
    if (type != kRopeKinds[i]) continue;
    kind = static_cast<RopeKind>(i);
    return {};
  }
  return fields.refuse(key,
                       cat("\"", printable(type), "\" is not supported; default, linear, llama3, ",
                           "yarn, dynamic and longrope are"));
}

Status read_llama3(const ConfigFields& fields, DecoderConfig& config) {
  for (const char* key :
       {"low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    LOOM_TRY(fields.require(key));
  }
  LOOM_TRY(fields.read("low_freq_factor", config.rope_low_freq_factor, 1e-6, kMaxFactor));
  LOOM_TRY(fields.read("high_freq_factor", config.rope_high_freq_factor, 1e-6, kMaxFactor));
  LOOM_TRY(fields.read("original_max_position_embeddings", config.rope_original_max_positions, 1,
                       kMaxOriginal));
  if (config.rope_high_freq_factor <= config.rope_low_freq_factor) {
    return fields.bad("high_freq_factor", "must be larger than low_freq_factor");
  }
  return {};
}

// The positions of the base model: the setting of the whole file, of the class, or inside.
Status read_original(const ConfigFields& outer, const ConfigFields& fields,
                     const ConfigRules& rules, DecoderConfig& config) {
  constexpr std::string_view kKey = "original_max_position_embeddings";
  int64_t& original = config.rope_original_max_positions;
  original = config.max_positions;
  if (rules.original_positions > 0) {
    original = rules.original_positions;
  } else {
    LOOM_TRY(fields.read(kKey, original, 1, kMaxOriginal));
  }
  return outer.read(kKey, original, 1, kMaxOriginal);
}

// The factor, if it is absent: from the positions before and after.
Status read_stretch(const ConfigFields& fields, DecoderConfig& config) {
  config.rope_factor = static_cast<double>(config.max_positions) /
                       static_cast<double>(config.rope_original_max_positions);
  return fields.read("factor", config.rope_factor, 1e-6, kMaxFactor);
}

Status read_yarn(const ConfigFields& fields, const ConfigRules& rules, DecoderConfig& config) {
  LOOM_TRY(read_stretch(fields, config));
  double scale = 0, scale_all = 0;
  LOOM_TRY(fields.read("mscale", scale, 0, kMaxFactor));
  LOOM_TRY(fields.read("mscale_all_dim", scale_all, 0, kMaxFactor));
  // Latent attention scales its scores too.
  if (rules.latent != nullptr && scale_all > 0) {
    const double factor = yarn_attention(config.rope_factor, scale_all);
    const double plain = 1.0 / __builtin_sqrt(static_cast<double>(config.head_dim));
    config.attention_scale = plain * factor * factor;
  }
  config.rope_attention = yarn_attention(config.rope_factor);
  if (scale > 0 && scale_all > 0) {
    config.rope_attention =
        yarn_attention(config.rope_factor, scale) / yarn_attention(config.rope_factor, scale_all);
  }
  LOOM_TRY(fields.read("attention_factor", config.rope_attention, 1e-3, 1e3));
  LOOM_TRY(fields.read("beta_fast", config.rope_beta_fast, 0, kMaxFactor));
  LOOM_TRY(fields.read("beta_slow", config.rope_beta_slow, 0, kMaxFactor));
  if (config.rope_beta_fast == 0) config.rope_beta_fast = 32;
  if (config.rope_beta_slow == 0) config.rope_beta_slow = 1;
  return fields.read("truncate", config.rope_truncate);
}

// One positive number for each rotated pair.
Status read_factors(const ConfigFields& fields, std::string_view key, const DecoderConfig& config,
                    std::vector<double>& factors) {
  LOOM_TRY(fields.require(key));
  const JsonValue* list = fields.find(key);
  const int64_t count = (config.rope_width > 0 ? config.rope_width : config.head_dim) / 2;
  if (!list->is_array() || list->elements().size() != static_cast<size_t>(count))
    return fields.bad(key, cat("expected a list of ", count, " numbers"));
  factors.clear();
  for (const JsonValue& element : list->elements()) {
    const auto value = element.as_double(key);
    if (!value.ok() || !(*value >= 1e-6) || *value > kMaxFactor)
      return fields.bad(key, cat("expected positive numbers, found ", element.describe()));
    factors.push_back(*value);
  }
  return {};
}

// LongRoPE (Ding et al., 2024).
Status read_longrope(const ConfigFields& fields, DecoderConfig& config) {
  LOOM_TRY(read_stretch(fields, config));
  const auto original = static_cast<double>(config.rope_original_max_positions);
  config.rope_attention = 1.0;
  if (config.rope_factor > 1 && original > 1) {
    config.rope_attention =
        __builtin_sqrt(1 + dmath::log(config.rope_factor) / dmath::log(original));
  }
  LOOM_TRY(fields.read("attention_factor", config.rope_attention, 1e-3, 1e3));
  config.rope_factor = 1.0;
  LOOM_TRY(read_factors(fields, "short_factor", config, config.rope_short));
  return read_factors(fields, "long_factor", config, config.rope_long);
}

// The number of rotated values of a head: `key`, or `part` if it is absent. The class rounds
// fractions down.
Status read_part(const ConfigFields& fields, std::string_view key, double part,
                 const ConfigRules& rules, DecoderConfig& config) {
  LOOM_TRY(fields.read(key, part, 0.0, kMaxFactor));
  if (rules.latent != nullptr && part == 1.0) return {};
  config.rope_width = 0;
  if (part == 1.0) return {};
  if (!rules.partial_rotary) {
    return fields.refuse(key,
                         cat(JsonValue::real(part).describe(), " is not supported; only 1 is"));
  }
  config.rope_width = static_cast<int64_t>(static_cast<double>(config.head_dim) * part);
  if (part > 1.0 || config.rope_width < 2 || config.rope_width % 2 != 0) {
    return fields.bad(key, cat(JsonValue::real(part).describe(), " of head_dim ", config.head_dim,
                               " is not an even number from 2 to all of it"));
  }
  return {};
}

// The inner object; `kind_required`: rope_scaling must name its kind, rope_parameters need not.
Status read_inner(const ConfigFields& outer, const ConfigFields& fields, const JsonValue& object,
                  bool kind_required, const ConfigRules& rules, DecoderConfig& config) {
  LOOM_TRY(read_kind(fields, kind_required, rules, config.rope));
  for (const auto& [key, value] : object.members()) {
    if (std::ranges::find(kKnownFields, key) == std::end(kKnownFields)) {
      return fields.refuse(printable(key), "unknown field");
    }
  }
  constexpr std::string_view kPart = "partial_rotary_factor";
  if (fields.find(kPart) != nullptr) LOOM_TRY(read_part(fields, kPart, 1.0, rules, config));
  if (config.rope == RopeKind::standard) return {};
  const bool yarn = config.rope == RopeKind::yarn;
  if (yarn || config.rope == RopeKind::longrope) {
    LOOM_TRY(read_original(outer, fields, rules, config));
    return yarn ? read_yarn(fields, rules, config) : read_longrope(fields, config);
  }
  LOOM_TRY(fields.require("factor"));
  LOOM_TRY(fields.read("factor", config.rope_factor, 1.0, kMaxFactor));
  if (config.rope == RopeKind::dynamic) config.rope_original_max_positions = config.max_positions;
  return config.rope == RopeKind::llama3 ? read_llama3(fields, config) : Status();
}

// One object and the theta outside it, which must agree.
Status read_object(const ConfigFields& outer, const JsonValue& object, const ConfigFields& inner,
                   bool kind_required, const ConfigRules& rules, DecoderConfig& config) {
  LOOM_TRY(read_inner(outer, inner, object, kind_required, rules, config));
  double theta = config.rope_theta;
  LOOM_TRY(inner.read("rope_theta", theta, kMinTheta, kMaxTheta));
  if (outer.find(rules.keys->rope_theta) != nullptr && theta != config.rope_theta) {
    return inner.bad("rope_theta", "contradicts the rope_theta outside");
  }
  config.rope_theta = theta;
  return {};
}

// rope_parameters with an object for each kind of layer. Sliding layers rotate as many values as
// plain ones.
Status read_by_kind(const ConfigFields& outer, const JsonValue& parameters,
                    const std::string& where, const ConfigRules& rules, DecoderConfig& config) {
  const ConfigFields kinds(parameters, where, "rope_parameters.");
  for (const auto& [key, value] : parameters.members()) {
    if (key != "full_attention" && key != "sliding_attention")
      return kinds.refuse(printable(key), "unknown field");
    if (!value.is_null() && !value.is_object())
      return kinds.bad(key, cat("expected an object, found ", value.describe()));
  }
  if (const JsonValue* full = kinds.find("full_attention")) {
    const ConfigFields inner(*full, where, "rope_parameters.full_attention.");
    LOOM_TRY(read_object(outer, *full, inner, false, rules, config));
  }
  const JsonValue* sliding = kinds.find("sliding_attention");
  if (sliding == nullptr) return {};
  const ConfigFields inner(*sliding, where, "rope_parameters.sliding_attention.");
  DecoderConfig local;
  LOOM_TRY(read_inner(outer, inner, *sliding, false, rules, local));
  if (local.rope != RopeKind::standard) {
    return inner.refuse("rope_type", "only default is supported for sliding layers");
  }
  return inner.read("rope_theta", config.rope_local_theta, kMinTheta, kMaxTheta);
}

}  // namespace

Status read_hf_rope(const JsonValue& json, const std::string& where, const ConfigRules& rules,
                    DecoderConfig& config) {
  const ConfigFields outer(json, where);
  const JsonValue* scaling = outer.find("rope_scaling");
  const JsonValue* parameters = outer.find("rope_parameters");
  config.rope_theta = rules.rope_theta;
  config.rope_local_theta = rules.local_theta;
  const ConfigKeys& keys = *rules.keys;
  LOOM_TRY(outer.read(keys.rope_theta, config.rope_theta, kMinTheta, kMaxTheta));
  if (rules.local_rope)
    LOOM_TRY(outer.read("rope_local_base_freq", config.rope_local_theta, kMinTheta, kMaxTheta));
  if (scaling != nullptr && parameters != nullptr) {
    return outer.bad("rope_parameters", "written together with rope_scaling; keep one of them");
  }
  const JsonValue* object = scaling != nullptr ? scaling : parameters;
  // A setting inside overrides the default of the class.
  const JsonValue* part = object != nullptr ? object->find("partial_rotary_factor") : nullptr;
  const bool inside = part != nullptr && !part->is_null();
  if (rules.partial_rotary && !inside) {
    LOOM_TRY(read_part(outer, keys.rotary_part, rules.rotary_part, rules, config));
  }
  if (object == nullptr) return rules.rope_required ? outer.require("rope_parameters") : Status();
  const std::string name = scaling != nullptr ? "rope_scaling" : "rope_parameters";
  if (!object->is_object()) {
    return outer.bad(name, cat("expected an object, found ", object->describe()));
  }
  if (parameters != nullptr && rules.local_rope)
    return read_by_kind(outer, *parameters, where, rules, config);
  const ConfigFields inner(*object, where, name + ".");
  return read_object(outer, *object, inner, scaling != nullptr, rules, config);
}

}  // namespace loom::core

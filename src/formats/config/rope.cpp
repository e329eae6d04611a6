// See rope.hpp. Source of the meaning: transformers/modeling_rope_utils.py. Unknown fields are
// refused here, because an ignored rope field would silently change every output.
#include "formats/config/rope.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "formats/config/fields.hpp"

namespace loom::core {
namespace {

constexpr double kMinTheta = 1.0, kMaxTheta = 1e15;
constexpr double kMaxFactor = 1e6;

constexpr std::array<std::string_view, 8> kKnownFields = {
    "rope_type",        "type",
    "rope_theta",       "partial_rotary_factor",
    "factor",           "low_freq_factor",
    "high_freq_factor", "original_max_position_embeddings"};

// "type" is the older spelling of "rope_type"; if both are present they must agree.
Status read_kind(const ConfigFields& fields, bool required, RopeKind& kind) {
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
  if (type.empty() || type == "default") {
    kind = RopeKind::standard;
  } else if (type == "linear") {
    kind = RopeKind::linear;
  } else if (type == "llama3") {
    kind = RopeKind::llama3;
  } else {
    return fields.refuse(
        key, cat("\"", printable(type), "\" is not supported; default, linear and llama3 are"));
  }
  return {};
}

Status read_llama3(const ConfigFields& fields, DecoderConfig& config) {
  for (const char* key :
       {"low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    LOOM_TRY(fields.require(key));
  }
  LOOM_TRY(fields.read("low_freq_factor", config.rope_low_freq_factor, 1e-6, kMaxFactor));
  LOOM_TRY(fields.read("high_freq_factor", config.rope_high_freq_factor, 1e-6, kMaxFactor));
  LOOM_TRY(fields.read("original_max_position_embeddings", config.rope_original_max_positions, 1,
                       int64_t{1} << 24));
  if (config.rope_high_freq_factor <= config.rope_low_freq_factor) {
    return fields.bad("high_freq_factor", "must be larger than low_freq_factor");
  }
  return {};
}

// The number of rotated values of a head: `key`, or `part` if it is absent. The class rounds
// fractions down.
Status read_part(const ConfigFields& fields, std::string_view key, double part,
                 const ConfigRules& rules, DecoderConfig& config) {
  LOOM_TRY(fields.read(key, part, 0.0, kMaxFactor));
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
Status read_inner(const ConfigFields& fields, const JsonValue& object, bool kind_required,
                  const ConfigRules& rules, DecoderConfig& config) {
  LOOM_TRY(read_kind(fields, kind_required, config.rope));
  for (const auto& [key, value] : object.members()) {
    if (std::find(kKnownFields.begin(), kKnownFields.end(), key) == kKnownFields.end()) {
      return fields.refuse(printable(key), "unknown field");
    }
  }
  constexpr std::string_view kPart = "partial_rotary_factor";
  if (fields.find(kPart) != nullptr) LOOM_TRY(read_part(fields, kPart, 1.0, rules, config));
  if (config.rope == RopeKind::standard) return {};
  LOOM_TRY(fields.require("factor"));
  LOOM_TRY(fields.read("factor", config.rope_factor, 1.0, kMaxFactor));
  return config.rope == RopeKind::llama3 ? read_llama3(fields, config) : Status();
}

// One object and the theta outside it, which must agree.
Status read_object(const ConfigFields& outer, const JsonValue& object, const ConfigFields& inner,
                   bool kind_required, const ConfigRules& rules, DecoderConfig& config) {
  LOOM_TRY(read_inner(inner, object, kind_required, rules, config));
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
  LOOM_TRY(read_inner(inner, *sliding, false, rules, local));
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

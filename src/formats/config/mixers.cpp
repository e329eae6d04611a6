// See mixers.hpp. For time_step_limit, transformers limits steps of several tokens and not those of
// one, so only limits without effect are supported.
#include "formats/config/mixers.hpp"

#include <algorithm>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMaxMixerSize = int64_t{1} << 24, kMaxMixerLayers = 4096;
constexpr int64_t kMaxMixerState = 256, kMaxMixerKernel = 64, kMaxMixerHeads = 65536;
constexpr uint64_t kMaxMixerWeights = uint64_t{1} << 48;

Status read_count(const ConfigFields& fields, std::string_view key, int64_t absent, int64_t max,
                  int64_t& out) {
  out = absent;
  return key.empty() ? Status() : fields.read(key, out, 1, max);
}

// "auto", or a number.
bool is_automatic(const ConfigFields& fields, std::string_view key) {
  const JsonValue* value = fields.find(key);
  return value == nullptr || value->text() == "auto";
}

Status check_step_limit(const ConfigFields& fields) {
  constexpr std::string_view kKey = "time_step_limit";
  const JsonValue* list = fields.find(kKey);
  if (list == nullptr) return {};
  const auto& limits = list->elements();
  if (limits.size() != 2) return fields.bad(kKey, "expected two numbers");
  const auto low = limits[0].as_double(kKey), high = limits[1].as_double(kKey);
  // JSON has no infinity; transformers writes an object.
  const JsonValue* tagged = limits[1].is_object() ? limits[1].find("__float__") : nullptr;
  const JsonValue& last = tagged == nullptr ? limits[1] : *tagged;
  const bool open = last.text() == "Infinity" || (high.ok() && *high > 1e30);
  if (low.ok() && *low <= 0 && open) return {};
  return fields.refuse(kKey, "limits are not supported; only [0, Infinity] is");
}

Status read_scan_heads(const ConfigFields& fields, const MixerRules& rules, DecoderScan& s) {
  if (rules.heads.empty()) return {};
  LOOM_TRY(read_count(fields, rules.heads, rules.heads_default, kMaxMixerHeads, s.heads));
  LOOM_TRY(read_count(fields, rules.groups, rules.groups_default, kMaxMixerHeads, s.groups));
  int64_t width = rules.head_dim_default;
  if (rules.head_dim_default == 0 && is_automatic(fields, rules.head_dim)) {
    width = s.inner / s.heads;
  } else {
    LOOM_TRY(read_count(fields, rules.head_dim, width, kMaxMixerSize, width));
  }
  if (s.heads % s.groups != 0 || s.inner % s.groups != 0) {
    return fields.bad(rules.groups, cat(s.groups, " groups do not divide ", s.heads, " heads and ",
                                        s.inner, " channels"));
  }
  if (s.heads * width == s.inner) return {};
  return fields.bad(rules.heads,
                    cat(s.heads, " heads of ", width, " do not make ", s.inner, " channels"));
}

Status read_scan_scales(const ConfigFields& fields, const MixerRules& rules, DecoderScan& s) {
  if (rules.scales.empty()) return {};
  LOOM_TRY(fields.read(rules.scale_in, s.scales.front(), -1e6, 1e6));
  LOOM_TRY(fields.read(rules.scale_out, s.scales.back(), -1e6, 1e6));
  const JsonValue* list = fields.find(rules.scales);
  if (list == nullptr) return {};
  if (list->elements().size() != 5) return fields.bad(rules.scales, "expected five numbers");
  for (size_t i = 0; i < 5; ++i) {
    const auto number = list->elements()[i].as_double(rules.scales);
    if (!number.ok() || !(*number >= -1e6 && *number <= 1e6))
      return fields.bad(rules.scales, "expected five numbers up to 1000000");
    s.scales[i + 1] = *number;
  }
  return {};
}

Status read_scan(const ConfigFields& fields, const MixerRules& rules, DecoderConfig& config) {
  DecoderScan& s = config.scan;
  int64_t expand = rules.expand_default;
  LOOM_TRY(read_count(fields, rules.expand, expand, 1024, expand));
  LOOM_TRY(read_count(fields, rules.inner, std::min(expand * config.hidden_size, kMaxMixerSize),
                      kMaxMixerSize, s.inner));
  LOOM_TRY(read_count(fields, rules.state, rules.state_default, kMaxMixerState, s.state));
  LOOM_TRY(read_count(fields, rules.kernel, rules.kernel_default, kMaxMixerKernel, s.kernel));
  if (rules.heads.empty() && !is_automatic(fields, rules.rank))
    LOOM_TRY(read_count(fields, rules.rank, 0, kMaxMixerSize, s.rank));
  LOOM_TRY(read_scan_heads(fields, rules, s));
  if (!rules.bias.empty()) LOOM_TRY(fields.read(rules.bias, s.bias));
  if (!rules.conv_bias.empty()) LOOM_TRY(fields.read(rules.conv_bias, s.conv_bias));
  s.norm = rules.norm;
  s.step_norm = rules.step_norm;
  if (!rules.step_norm_eps.empty())
    LOOM_TRY(fields.read(rules.step_norm_eps, s.step_norm_eps, 1e-30, 1.0));
  else
    s.step_norm_eps = config.rms_norm_eps;
  LOOM_TRY(read_scan_scales(fields, rules, s));
  LOOM_TRY(check_step_limit(fields));
  const auto u = [](int64_t v) { return static_cast<uint64_t>(v); };
  uint64_t total = 0;
  const int64_t mixed = s.groups * s.state;
  if (mixed <= kMaxMixerSize &&
      checked_mul(u(3 * s.inner + 2 * mixed + s.heads), u(config.hidden_size), total) &&
      checked_mul(total, u(config.num_layers), total) && total <= kMaxMixerWeights) {
    return {};
  }
  return fields.bad(rules.state, "these sizes make more than 2^48 weights");
}

Status read_convs(const ConfigFields& fields, const MixerRules& rules, DecoderConv& conv) {
  LOOM_TRY(read_count(fields, rules.kernel, rules.kernel_default, kMaxMixerKernel, conv.kernel));
  return fields.read(rules.conv_bias, conv.bias);
}

// The names of the mixers of all blocks.
Status read_types(const ConfigFields& fields, const MixerRules& rules, BlockMixer other,
                  DecoderConfig& config) {
  const JsonValue& list = *fields.find(rules.types);
  if (!list.is_array() || std::ssize(list.elements()) != config.num_layers) {
    return fields.bad(rules.types, cat("expected a list of ", config.num_layers, " names"));
  }
  for (size_t i = 0; i < list.elements().size(); ++i) {
    const JsonValue& name = list.elements()[i];
    const bool attention = name.text() == "full_attention";
    if (!attention && name.text() != rules.type)
      return fields.refuse(rules.types, cat(name.describe(), " is not supported"));
    config.layers[i].mixer = attention ? BlockMixer::attention : other;
  }
  return {};
}

// Indices of blocks with attention.
Status read_attention_list(const ConfigFields& fields, const MixerRules& rules, BlockMixer other,
                           DecoderConfig& config) {
  const JsonValue* list = fields.find(rules.attention);
  const bool all = list == nullptr && rules.conv;  // LFM2 then has attention everywhere
  for (DecoderLayer& layer : config.layers) layer.mixer = all ? BlockMixer::attention : other;
  if (list == nullptr) return {};
  if (!list->is_array()) return fields.bad(rules.attention, "expected a list of numbers of layers");
  for (const JsonValue& item : list->elements()) {
    const auto number = item.as_int(rules.attention);
    if (!number.ok() || *number < 0 || *number >= config.num_layers) {
      return fields.bad(rules.attention, cat("expected numbers below ", config.num_layers,
                                             ", found ", item.describe()));
    }
    config.layers[static_cast<size_t>(*number)].mixer = BlockMixer::attention;
  }
  return {};
}

Status read_blocks(const ConfigFields& fields, const MixerRules& rules, DecoderConfig& config) {
  if (config.num_layers > kMaxMixerLayers) {
    return fields.bad("num_hidden_layers", cat(config.num_layers, " layers of different kinds; ",
                                               kMaxMixerLayers, " are supported"));
  }
  const BlockMixer other = rules.conv ? BlockMixer::conv : BlockMixer::scan;
  config.layers.assign(static_cast<size_t>(config.num_layers), DecoderLayer{});
  for (DecoderLayer& layer : config.layers) layer.mlp = rules.mlp;
  if (!rules.types.empty() && fields.find(rules.types) != nullptr)
    return read_types(fields, rules, other, config);
  return read_attention_list(fields, rules, other, config);
}

}  // namespace

Status read_hf_mixers(const ConfigFields& fields, const DecoderFamily& family,
                      DecoderConfig& config) {
  if (family.mixers == nullptr) return {};
  const MixerRules& rules = *family.mixers;
  LOOM_TRY(rules.conv ? read_convs(fields, rules, config.conv) : read_scan(fields, rules, config));
  return read_blocks(fields, rules, config);
}

Status read_rounded_inner(const ConfigFields& fields, DecoderConfig& config) {
  int64_t& inner = config.intermediate_size;
  bool adjust = true;
  double factor = 1;
  int64_t multiple = 256;
  LOOM_TRY(fields.read("block_ff_dim", inner, 1, kMaxMixerSize));
  LOOM_TRY(fields.read("tie_embedding", config.tie_word_embeddings));
  LOOM_TRY(fields.read("block_auto_adjust_ff_dim", adjust));
  LOOM_TRY(fields.read("block_ffn_dim_multiplier", factor, 1e-3, 1e3));
  LOOM_TRY(fields.read("block_multiple_of", multiple, 1, kMaxMixerSize));
  if (!adjust) return {};
  const auto scaled = static_cast<int64_t>(factor * static_cast<double>(2 * inner / 3));
  inner = (scaled + multiple - 1) / multiple * multiple;
  if (inner >= 1 && inner <= kMaxMixerSize) return {};
  return fields.bad("block_ffn_dim_multiplier", cat(inner, " is not a size"));
}

void add_hf_mixers(const DecoderConfig& config, const DecoderFamily& family, JsonValue& out) {
  if (family.mixers == nullptr) return;
  const MixerRules& rules = *family.mixers;
  const auto add = [&](std::string_view key, JsonValue value) {
    if (!key.empty()) out.add(std::string(key), std::move(value));
  };
  JsonValue types = JsonValue::array(), attention = JsonValue::array();
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const bool attends = config.layer(i).mixer == BlockMixer::attention;
    types.push(JsonValue::string(attends ? "full_attention" : std::string(rules.type)));
    if (attends) attention.push(JsonValue::integer(i));
  }
  if (family.config.inner_rounded) add("block_auto_adjust_ff_dim", JsonValue::boolean(false));
  add(rules.types, std::move(types));
  add(rules.attention, std::move(attention));
  if (rules.conv) {
    add(rules.kernel, JsonValue::integer(config.conv.kernel));
    add(rules.conv_bias, JsonValue::boolean(config.conv.bias));
    return;
  }
  const DecoderScan& s = config.scan;
  add(rules.inner, JsonValue::integer(s.inner));
  add(rules.expand, JsonValue::integer(s.inner / config.hidden_size));
  add(rules.state, JsonValue::integer(s.state));
  add(rules.kernel, JsonValue::integer(s.kernel));
  if (rules.heads.empty()) {
    add(rules.rank, s.rank > 0 ? JsonValue::integer(s.rank) : JsonValue::string("auto"));
  } else {
    add(rules.heads, JsonValue::integer(s.heads));
    add(rules.head_dim, JsonValue::integer(s.inner / s.heads));
    add(rules.groups, JsonValue::integer(s.groups));
  }
  add(rules.bias, JsonValue::boolean(s.bias));
  add(rules.conv_bias, JsonValue::boolean(s.conv_bias));
  add(rules.step_norm_eps, JsonValue::real(s.step_norm_eps));
  add(rules.scale_in, JsonValue::real(s.scales.front()));
  add(rules.scale_out, JsonValue::real(s.scales.back()));
  JsonValue scales = JsonValue::array();
  for (size_t i = 1; i < 6; ++i) scales.push(JsonValue::real(s.scales[i]));
  add(rules.scales, std::move(scales));
}

}  // namespace loom::core

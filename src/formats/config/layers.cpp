// See layers.hpp. A window at least as long as the context has no effect. Lists are limited to
// kMaxLayers layers, so a large number in a small file allocates nothing.
#include "formats/config/layers.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom::core {
namespace {

using Sliding = ConfigRules::Sliding;

constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxWindow = int64_t{1} << 40;

Status check_count(const ConfigFields& fields, std::string_view key, const JsonValue& list,
                   int64_t layers, std::string_view what) {
  if (list.is_array() && list.elements().size() == static_cast<size_t>(layers)) return {};
  return fields.bad(key, cat("expected a list of ", layers, " ", what));
}

// The window of the file or the class; 0 means none.
Status read_window(const ConfigFields& fields, const ConfigRules& rules, int64_t& window) {
  window = 0;
  if (rules.sliding == Sliding::never) return {};
  bool counts = !rules.window_switch;
  if (rules.window_switch) LOOM_TRY(fields.read("use_sliding_window", counts));
  if (!counts) return {};
  if (!fields.has_key("sliding_window")) window = rules.window;
  return fields.read("sliding_window", window, 1, kMaxWindow);
}

// Layers without rotary positions: a list of 0 and 1, or each n-th layer.
Status read_nope(const ConfigFields& fields, DecoderConfig& config) {
  const JsonValue* list = fields.find("no_rope_layers");
  if (list == nullptr) {
    int64_t interval = 4;
    LOOM_TRY(fields.read("no_rope_layer_interval", interval, 1, int64_t{1} << 24));
    for (int64_t i = 0; i < config.num_layers; ++i)
      config.layers[static_cast<size_t>(i)].rope = (i + 1) % interval != 0;
    return {};
  }
  LOOM_TRY(check_count(fields, "no_rope_layers", *list, config.num_layers, "numbers"));
  for (size_t i = 0; i < list->elements().size(); ++i) {
    const auto value = list->elements()[i].as_int("no_rope_layers");
    if (!value.ok() || *value < 0 || *value > 1) {
      return fields.bad("no_rope_layers", cat("expected 0 or 1 for each layer, found ",
                                              list->elements()[i].describe()));
    }
    config.layers[i].rope = *value == 1;
  }
  return {};
}

// Whether layer `i` has a window by the rule of the class.
struct SlidingRule {
  Sliding kind;
  int64_t number;  // max_window_layers or sliding_window_pattern
  bool slides(int64_t i, const DecoderLayer& layer) const {
    switch (kind) {
      case Sliding::never: return false;
      case Sliding::every: return true;
      case Sliding::late: return i >= number;
      case Sliding::nope: return !layer.rope;
      case Sliding::odd: return i % 2 == 0;
      case Sliding::early: return i % 2 == 0 && i < number;
      case Sliding::pattern: return (i + 1) % number != 0;
    }
    return false;
  }
};

Result<SlidingRule> read_rule(const ConfigFields& fields, Sliding kind) {
  const bool counted = kind == Sliding::late || kind == Sliding::early;
  SlidingRule rule{kind, counted ? 28 : 6};
  if (counted) LOOM_TRY(fields.read("max_window_layers", rule.number, 0, kMaxWindow));
  if (kind == Sliding::pattern)
    LOOM_TRY(fields.read("sliding_window_pattern", rule.number, 1, kMaxWindow));
  return rule;
}

// layer_types, one name per layer.
Status read_types(const ConfigFields& fields, const JsonValue& list, Sliding kind, int64_t window,
                  DecoderConfig& config) {
  LOOM_TRY(check_count(fields, "layer_types", list, config.num_layers, "names"));
  const bool listed = kind != Sliding::never && kind != Sliding::every;
  for (size_t i = 0; i < list.elements().size(); ++i) {
    const JsonValue& name = list.elements()[i];
    const bool slides = listed && name.text() == "sliding_attention";
    if (!slides && name.text() != "full_attention") {
      return fields.refuse("layer_types", cat(name.describe(), " is not supported"));
    }
    // A class with windows everywhere ignores the list, as in transformers' masks.
    if (kind == Sliding::every && window > 0) {
      return fields.bad("layer_types", "\"full_attention\", but there is a sliding_window");
    }
    if (slides && window == 0) {
      return fields.bad("layer_types", "\"sliding_attention\", but there is no sliding_window");
    }
    if (listed && !config.layers.empty()) config.layers[i].window = slides ? window : 0;
  }
  return {};
}

}  // namespace

Status read_hf_layers(const ConfigFields& fields, const ConfigRules& rules, DecoderConfig& config) {
  int64_t window = 0;
  LOOM_TRY(read_window(fields, rules, window));
  const JsonValue* types = fields.find("layer_types");
  const bool always = rules.sliding == Sliding::odd || rules.sliding == Sliding::pattern;
  if (always && window == 0 && types == nullptr) return fields.require("sliding_window");
  const bool differs = window > 0 || rules.nope_layers || rules.local_rope;
  if (!differs) {
    if (types == nullptr) return {};
    return read_types(fields, *types, rules.sliding, 0, config);
  }
  if (config.num_layers > kMaxLayers) {
    return fields.bad("num_hidden_layers", cat(config.num_layers, " layers of different kinds; ",
                                               kMaxLayers, " are supported"));
  }
  config.layers.assign(static_cast<size_t>(config.num_layers), DecoderLayer{});
  if (rules.nope_layers) LOOM_TRY(read_nope(fields, config));
  LOOM_ASSIGN(const SlidingRule rule, read_rule(fields, rules.sliding));
  for (size_t i = 0; i < config.layers.size(); ++i) {
    DecoderLayer& layer = config.layers[i];
    if (rule.slides(static_cast<int64_t>(i), layer)) layer.window = window;
  }
  if (types != nullptr) LOOM_TRY(read_types(fields, *types, rules.sliding, window, config));
  for (DecoderLayer& layer : config.layers) {
    // Sliding layers have their own positions even if the window has no effect.
    if (rules.local_rope && layer.window > 0) layer.rope_theta = config.rope_local_theta;
    if (layer.window >= config.max_positions) layer.window = 0;
  }
  // If all layers are plain, the list is empty.
  const auto plain = [](const DecoderLayer& layer) { return layer == DecoderLayer{}; };
  if (std::all_of(config.layers.begin(), config.layers.end(), plain)) config.layers.clear();
  return {};
}

}  // namespace loom::core

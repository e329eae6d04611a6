// See layers.hpp. A window at least as long as the context has no effect. Lists are limited to
// kMaxLayers layers, so a large number in a small file allocates nothing.
#include "formats/config/layers.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom::core {
namespace {

using Sliding = ConfigRules::Sliding;
using Nope = ConfigRules::Nope;

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
  const std::string_view key = rules.keys->window;
  if (!fields.has_key(key)) window = rules.window;
  return fields.read(key, window, 1, kMaxWindow);
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

// The base of the rotary positions of each layer; null or 0 disables them.
Status read_thetas(const ConfigFields& fields, std::string_view key, DecoderConfig& config) {
  const JsonValue& list = *fields.find(key);
  LOOM_TRY(check_count(fields, key, list, config.num_layers, "numbers"));
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const JsonValue& item = list.elements()[i];
    const auto theta = item.is_null() ? Result<double>(0.0) : item.as_double(key);
    if (!theta.ok() || (*theta != 0 && !(*theta >= 1.0 && *theta <= 1e15)))
      return fields.bad(key, cat("expected bases of positions, found ", item.describe()));
    DecoderLayer& layer = config.layers[i];
    layer.rope = *theta != 0;
    if (!layer.rope || *theta == config.rope_theta) continue;
    if (config.rope != RopeKind::standard)
      return fields.refuse(key, "several bases are not supported with rope_scaling");
    layer.rope_theta = *theta;
  }
  return {};
}

// attention_types: runs of [names, count], each name "global" or "local".
Status read_runs(const ConfigFields& fields, int64_t window, DecoderConfig& config) {
  constexpr std::string_view kKey = "attention_types";
  LOOM_TRY(fields.require(kKey));
  size_t layer = 0;
  for (const JsonValue& run : fields.find(kKey)->elements()) {
    const auto& pair = run.elements();
    const auto count = pair.size() == 2 ? pair[1].as_int(kKey) : Result<int64_t>(-1);
    if (!count.ok() || *count < 0 || *count > config.num_layers)
      return fields.bad(kKey, "expected runs of names and a count");
    for (int64_t i = 0; i < *count; ++i) {
      for (const JsonValue& name : pair[0].elements()) {
        const bool local = name.text() == "local";
        if (layer == config.layers.size() || (!local && name.text() != "global"))
          return fields.bad(
              kKey, cat("expected global or local for each of ", config.num_layers, " layers"));
        config.layers[layer++].window = local ? window : 0;
      }
    }
  }
  if (layer == config.layers.size()) return {};
  return fields.bad(kKey, cat("has ", layer, " names for ", config.num_layers, " layers"));
}

// Whether layer `i` has a window by the rule of the class.
struct SlidingRule {
  Sliding kind;
  int64_t number;  // max_window_layers or sliding_window_pattern
  bool slides(int64_t i, const DecoderLayer& layer) const {
    switch (kind) {
      case Sliding::never:
      case Sliding::typed:
      case Sliding::runs: return false;
      case Sliding::every:
      case Sliding::listed: return true;
      case Sliding::late: return i >= number;
      case Sliding::nope: return !layer.rope;
      case Sliding::odd: return i % 2 == 0;
      case Sliding::early: return i % 2 == 0 && i < number;
      case Sliding::pattern: return (i + 1) % number != 0;
      case Sliding::first: return i % number != 0;
    }
    return false;
  }
};

Result<SlidingRule> read_rule(const ConfigFields& fields, const ConfigRules& rules) {
  const Sliding kind = rules.sliding;
  const bool counted = kind == Sliding::late || kind == Sliding::early;
  SlidingRule rule{kind, counted ? 28 : rules.pattern};
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
  const bool always = rules.sliding == Sliding::odd || rules.sliding == Sliding::pattern ||
                      rules.sliding == Sliding::first || rules.sliding == Sliding::runs;
  if (always && window == 0 && types == nullptr) return fields.require(rules.keys->window);
  const bool full = rules.nope == Nope::full || (rules.nope == Nope::full_if_windows && window > 0);
  const bool thetas = !rules.layer_thetas.empty() && fields.find(rules.layer_thetas) != nullptr;
  const bool differs =
      window > 0 || full || thetas || rules.nope == Nope::listed || rules.local_rope;
  if (!differs) {
    if (types == nullptr) return {};
    return read_types(fields, *types, rules.sliding, 0, config);
  }
  if (config.num_layers > kMaxLayers) {
    return fields.bad("num_hidden_layers", cat(config.num_layers, " layers of different kinds; ",
                                               kMaxLayers, " are supported"));
  }
  config.layers.assign(static_cast<size_t>(config.num_layers), DecoderLayer{});
  if (rules.nope == Nope::listed) LOOM_TRY(read_nope(fields, config));
  if (thetas) LOOM_TRY(read_thetas(fields, rules.layer_thetas, config));
  LOOM_ASSIGN(const SlidingRule rule, read_rule(fields, rules));
  for (size_t i = 0; i < config.layers.size(); ++i) {
    DecoderLayer& layer = config.layers[i];
    if (rule.slides(static_cast<int64_t>(i), layer)) layer.window = window;
  }
  if (rules.sliding == Sliding::runs) LOOM_TRY(read_runs(fields, window, config));
  if (types != nullptr) LOOM_TRY(read_types(fields, *types, rules.sliding, window, config));
  for (DecoderLayer& layer : config.layers) {
    if (full && layer.window == 0) layer.rope = false;
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

// See experts.hpp.
#include "formats/config/experts.hpp"

#include <algorithm>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMaxExperts = 4096, kMaxMixedLayers = 4096;
constexpr int64_t kMaxExpertSize = int64_t{1} << 24;
constexpr uint64_t kMaxExpertWeights = uint64_t{1} << 48;

// An integer from 1 on; `absent` is its default, and 0 requires it.
Status read_expert_count(const ConfigFields& fields, std::string_view key, int64_t absent,
                         int64_t max, int64_t& out) {
  if (absent == 0) LOOM_TRY(fields.require(key));
  out = absent;
  return fields.read(key, out, 1, max);
}

Status read_expert_groups(const ConfigFields& fields, const ExpertRules& rules, DecoderExperts& e) {
  std::string method = "group_limited_greedy";
  if (!rules.group_method.empty()) {
    method = "greedy";
    LOOM_TRY(fields.read(rules.group_method, method));
    if (method != "greedy" && method != "group_limited_greedy")
      return fields.refuse(
          rules.group_method,
          cat("\"", printable(method), "\" is not supported; greedy and group_limited_greedy are"));
  }
  e.group_best = rules.group_best;
  if (!rules.groups.empty() && method != "greedy") {
    LOOM_TRY(fields.read(rules.groups, e.groups, 1, kMaxExperts));
    LOOM_TRY(fields.read(rules.chosen_groups, e.chosen_groups, 1, kMaxExperts));
    const bool pairs = e.groups == 1 || e.count / e.groups >= e.group_best;
    if (e.count % e.groups != 0 || e.chosen_groups > e.groups || !pairs) {
      return fields.bad(rules.groups, cat(e.chosen_groups, " of ", e.groups, " groups of ", e.count,
                                          " experts; groups are equal and have ",
                                          e.group_best == 2 ? "two experts" : "an expert"));
    }
  }
  const int64_t eligible = e.count / e.groups * e.chosen_groups;
  if (e.chosen <= eligible) return {};
  return fields.bad(rules.chosen, cat(e.chosen, " experts are chosen from ", eligible));
}

Status read_shared_expert(const ConfigFields& fields, const ExpertRules& rules, DecoderExperts& e) {
  e.shared_gate = rules.shared_gate;
  if (!rules.shared_inner.empty()) {
    e.shared_inner = rules.shared_default;
    const int64_t min = rules.shared_default == 0 ? 0 : 1;
    return fields.read(rules.shared_inner, e.shared_inner, min, kMaxExpertSize);
  }
  int64_t count = rules.shared_default;
  if (!rules.shared_count.empty()) LOOM_TRY(fields.read(rules.shared_count, count, 0, kMaxExperts));
  e.shared_inner = count * e.inner;
  return {};
}

// The form of the gates, and of sparsemixer.
Status read_expert_form(const ConfigFields& fields, const ExpertRules& rules, DecoderExperts& e) {
  e.bias = e.router_bias = rules.bias;
  e.up_offset = rules.up_offset;
  e.limit = rules.limit_default;
  e.gate_scale = rules.gate_scale_default;
  if (!rules.limit.empty()) LOOM_TRY(fields.read(rules.limit, e.limit, 1e-3, 1e6));
  if (!rules.gate_scale.empty()) LOOM_TRY(fields.read(rules.gate_scale, e.gate_scale, 1e-3, 1e3));
  if (!rules.jitter.empty()) LOOM_TRY(fields.read(rules.jitter, e.jitter, 0.0, 1.0));
  if (e.score != RouterScore::sparsemixer || e.chosen == 2) return {};
  return fields.refuse(rules.chosen, cat(e.chosen, " is not supported; only 2 is"));
}

Status read_expert_sizes(const ConfigFields& fields, const ExpertRules& rules,
                         DecoderConfig& config) {
  DecoderExperts& e = config.experts;
  const bool other = fields.find(rules.count) == nullptr && !rules.other_count.empty() &&
                     fields.find(rules.other_count) != nullptr;
  const std::string_view count = other ? rules.other_count : rules.count;
  LOOM_TRY(read_expert_count(fields, count, rules.count_default, kMaxExperts, e.count));
  LOOM_TRY(read_expert_count(fields, rules.chosen, rules.chosen_default, kMaxExperts, e.chosen));
  e.inner = config.intermediate_size;
  if (!rules.inner.empty())
    LOOM_TRY(read_expert_count(fields, rules.inner, rules.inner_default, kMaxExpertSize, e.inner));
  e.score = rules.score;
  e.choice_bias = rules.choice_bias;
  e.normalize = rules.normalize;
  if (!rules.normalize_key.empty()) LOOM_TRY(fields.read(rules.normalize_key, e.normalize));
  e.scale = rules.scale_default;
  if (!rules.scale.empty()) LOOM_TRY(fields.read(rules.scale, e.scale, 0.0, 1000.0));
  LOOM_TRY(read_expert_form(fields, rules, e));
  LOOM_TRY(read_expert_groups(fields, rules, e));
  LOOM_TRY(read_shared_expert(fields, rules, e));
  const auto u = [](int64_t v) { return static_cast<uint64_t>(v); };
  uint64_t total = 0;
  if (checked_mul(u(e.count * 3 * e.inner), u(config.hidden_size), total) &&
      checked_mul(total, u(config.num_layers), total) && total <= kMaxExpertWeights) {
    return {};
  }
  return fields.bad(count, "these sizes make more than 2^48 weights");
}

// Layer numbers beyond the last have no effect, as in transformers.
Status read_dense_list(const ConfigFields& fields, std::string_view key, std::vector<bool>& dense) {
  const JsonValue* list = fields.find(key);
  if (list == nullptr) return {};
  if (!list->is_array()) return fields.bad(key, "expected a list of numbers of layers");
  for (const JsonValue& item : list->elements()) {
    const auto number = item.as_int(key);
    if (!number.ok())
      return fields.bad(key, cat("expected numbers of layers, found ", item.describe()));
    if (*number >= 0 && *number < std::ssize(dense)) dense[static_cast<size_t>(*number)] = true;
  }
  return {};
}

// A list of "dense" and "sparse".
Status read_kinds(const ConfigFields& fields, std::string_view key, const JsonValue& list,
                  std::vector<bool>& dense) {
  if (!list.is_array() || list.elements().size() != dense.size())
    return fields.bad(key, cat("expected a list of ", dense.size(), " names"));
  for (size_t i = 0; i < dense.size(); ++i) {
    const JsonValue& name = list.elements()[i];
    dense[i] = name.text() == "dense";
    if (!dense[i] && name.text() != "sparse")
      return fields.refuse(key, cat(name.describe(), " is not supported; dense and sparse are"));
  }
  return {};
}

Status read_dense(const ConfigFields& fields, const ExpertRules& rules, DecoderConfig& config) {
  if (rules.first_dense.empty() && rules.dense_layers.empty() && rules.step.empty() &&
      rules.layer_kinds.empty()) {
    return {};
  }
  if (config.num_layers > kMaxMixedLayers) {
    return fields.bad("num_hidden_layers", cat(config.num_layers, " layers of different kinds; ",
                                               kMaxMixedLayers, " are supported"));
  }
  int64_t first = rules.first_dense_default, last = -1, step = 1;
  if (!rules.first_dense.empty())
    LOOM_TRY(fields.read(rules.first_dense, first, 0, kMaxExpertSize));
  if (!rules.last.empty()) LOOM_TRY(fields.read(rules.last, last, -1, kMaxExpertSize));
  if (!rules.step.empty()) LOOM_TRY(fields.read(rules.step, step, 1, kMaxExpertSize));
  std::vector<bool> dense(static_cast<size_t>(config.num_layers));
  if (!rules.dense_layers.empty()) LOOM_TRY(read_dense_list(fields, rules.dense_layers, dense));
  const JsonValue* kinds = rules.layer_kinds.empty() ? nullptr : fields.find(rules.layer_kinds);
  if (kinds != nullptr) LOOM_TRY(read_kinds(fields, rules.layer_kinds, *kinds, dense));
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const auto at = static_cast<size_t>(i);
    const bool outside = i < first || (last >= 0 && i > last) || (i + 1) % step != 0;
    if (kinds == nullptr && outside) dense[at] = true;
    if (!dense[at]) continue;
    if (config.layers.empty()) config.layers.resize(static_cast<size_t>(config.num_layers));
    config.layers[at].dense = true;
  }
  return {};
}

}  // namespace

Status read_hf_experts(const ConfigFields& fields, const DecoderFamily& family,
                       DecoderConfig& config) {
  if (family.experts == nullptr) return {};
  LOOM_TRY(read_expert_sizes(fields, *family.experts, config));
  return read_dense(fields, *family.experts, config);
}

void add_hf_experts(const DecoderConfig& config, const DecoderFamily& family, JsonValue& out) {
  if (family.experts == nullptr) return;
  const ExpertRules& rules = *family.experts;
  const DecoderExperts& e = config.experts;
  const auto add = [&](std::string_view key, JsonValue value) {
    if (!key.empty()) out.add(std::string(key), std::move(value));
  };
  add(rules.count, JsonValue::integer(e.count));
  add(rules.chosen, JsonValue::integer(e.chosen));
  add(rules.inner, JsonValue::integer(e.inner));
  add(rules.normalize_key, JsonValue::boolean(e.normalize));
  add(rules.scale, JsonValue::real(e.scale));
  add(rules.limit, JsonValue::real(e.limit));
  add(rules.gate_scale, JsonValue::real(e.gate_scale));
  add(rules.jitter, JsonValue::real(e.jitter));
  if (!rules.group_method.empty())
    out.add(std::string(rules.group_method),
            JsonValue::string(e.groups > 1 ? "group_limited_greedy" : "greedy"));
  add(rules.groups, JsonValue::integer(e.groups));
  add(rules.chosen_groups, JsonValue::integer(e.chosen_groups));
  add(rules.shared_inner, JsonValue::integer(e.shared_inner));
  add(rules.shared_count, JsonValue::integer(e.inner == 0 ? 0 : e.shared_inner / e.inner));
  // The layers without experts: as a list, as a first part, or as a step.
  JsonValue dense = JsonValue::array(), kinds = JsonValue::array();
  int64_t first = 0, last = -1;
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const bool experts = config.has_experts(i);
    kinds.push(JsonValue::string(experts ? "sparse" : "dense"));
    if (experts) last = i;
    if (experts) continue;
    dense.push(JsonValue::integer(i));
    first += first == i ? 1 : 0;
  }
  add(rules.dense_layers, std::move(dense));
  add(rules.layer_kinds, std::move(kinds));
  add(rules.first_dense, JsonValue::integer(first));
  add(rules.last, JsonValue::integer(last));
  add(rules.step, JsonValue::integer(1));
}

}  // namespace loom::core

// See experts.hpp. llama.cpp derives absent inner sizes from feed_forward_length.
#include "formats/gguf/experts.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kExpertCount = "expert_count", kExpertChosen = "expert_used_count";
constexpr std::string_view kExpertInner = "expert_feed_forward_length";
constexpr std::string_view kExpertShared = "expert_shared_feed_forward_length";
constexpr std::array<std::string_view, 4> kExpertKeys = {kExpertCount, kExpertChosen, kExpertInner,
                                                         kExpertShared};

}  // namespace

bool has_gguf_experts(const Gguf& gguf, std::string_view architecture) {
  const GgufValue* count = gguf.find_value(cat(architecture, ".", kExpertCount));
  return count != nullptr && count->count() == 1 && count->type != GgufType::string &&
         count->number(0) > 0;
}

bool is_gguf_expert_key(std::string_view key) {
  return std::ranges::find(kExpertKeys, key) != kExpertKeys.end();
}

Status read_gguf_experts(const Gguf& gguf, const DecoderFamily& family, JsonValue& json) {
  if (family.experts == nullptr) return {};
  const ExpertRules& rules = *family.experts;
  const auto size = [&](std::string_view key, int64_t absent) -> Result<int64_t> {
    const std::string full = cat(family.gguf.name, ".", key);
    if (absent > 0 && !gguf.has(full)) return absent;
    LOOM_ASSIGN(const uint32_t value, gguf.u32(full));
    return int64_t{value};
  };
  const auto add = [&](std::string_view key, int64_t value) {
    if (!key.empty()) json.add(std::string(key), JsonValue::integer(value));
  };
  LOOM_ASSIGN(const int64_t count, size(kExpertCount, 0));
  LOOM_ASSIGN(const int64_t chosen, size(kExpertChosen, 0));
  const int64_t mlp = *json.find("intermediate_size")->as_int("");
  add(rules.count, count);
  add(rules.chosen, chosen);
  if (!rules.inner.empty()) {
    LOOM_ASSIGN(const int64_t inner,
                size(kExpertInner, std::max<int64_t>(mlp / std::max<int64_t>(chosen, 1), 1)));
    add(rules.inner, inner);
  }
  if (!rules.shared_inner.empty()) {
    LOOM_ASSIGN(const int64_t shared, size(kExpertShared, mlp));
    add(rules.shared_inner, shared);
  }
  if (!rules.normalize_key.empty())
    json.add(std::string(rules.normalize_key), JsonValue::boolean(family.gguf.normalized_experts));
  return {};
}

void write_gguf_experts(const DecoderConfig& config, const DecoderFamily& family,
                        GgufMetadata& metadata) {
  if (family.experts == nullptr) return;
  const ExpertRules& rules = *family.experts;
  const auto add = [&](std::string_view key, int64_t value) {
    metadata.u32(cat(family.gguf.name, ".", key), static_cast<uint32_t>(value));
  };
  add(kExpertCount, config.experts.count);
  add(kExpertChosen, config.experts.chosen);
  if (!rules.inner.empty()) add(kExpertInner, config.experts.inner);
  if (!rules.shared_inner.empty()) add(kExpertShared, config.experts.shared_inner);
}

}  // namespace loom::core

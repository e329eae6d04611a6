// Model::suggested_sampling(): the sampling options in generation_config.json, with the defaults of
// GenerationConfig of `transformers`.
#include "api/engine/impl.hpp"
#include "base/text.hpp"
#include "io/json/json.hpp"

namespace loom {
namespace {

constexpr const char* kGenerationConfig = "generation_config.json";
constexpr int64_t kDefaultTopK = 50;

// A number of the file within bounds; `otherwise`: it is absent or null.
Result<double> sampling_number(const core::JsonValue& json, std::string_view name, double otherwise,
                               double low, double high) {
  const core::JsonValue* member = json.find(name);
  if (member == nullptr || member->is_null()) return otherwise;
  LOOM_ASSIGN(const double value, member->as_double(core::cat(kGenerationConfig, ": ", name)));
  if (value >= low && value <= high) return value;
  return core::make_error(
      Code::bad_file,
      core::cat("'", name, "' is ", member->describe(), "; it can be ", low, " to ", high),
      kGenerationConfig);
}

}  // namespace

Result<std::optional<SamplerOptions>> Model::suggested_sampling() const {
  const std::string& text = impl_->model.generation_json();
  if (text.empty()) return std::optional<SamplerOptions>();
  LOOM_ASSIGN(const core::JsonValue json, core::parse_json(text, kGenerationConfig));
  SamplerOptions sampler;
  bool draws = false;
  if (const core::JsonValue* member = json.find("do_sample"); member && !member->is_null()) {
    LOOM_ASSIGN(draws, member->as_bool(core::cat(kGenerationConfig, ": do_sample")));
  }
  constexpr double kMany = 1e6;
  LOOM_ASSIGN(const double penalty, sampling_number(json, "repetition_penalty", 1, 1e-3, kMany));
  sampler.repetition_penalty = static_cast<float>(penalty);
  sampler.repetition_window = 0;
  if (!draws) return std::optional(sampler);
  LOOM_ASSIGN(const double temperature, sampling_number(json, "temperature", 1, 0, kMany));
  LOOM_ASSIGN(const double top_k, sampling_number(json, "top_k", kDefaultTopK, 0, INT32_MAX));
  LOOM_ASSIGN(const double top_p, sampling_number(json, "top_p", 1, 1e-6, 1));
  LOOM_ASSIGN(const double min_p, sampling_number(json, "min_p", 0, 0, 1));
  sampler.temperature = static_cast<float>(temperature);
  sampler.top_k = static_cast<int64_t>(top_k);
  sampler.top_p = static_cast<float>(top_p);
  sampler.min_p = static_cast<float>(min_p);
  return std::optional(sampler);
}

}  // namespace loom

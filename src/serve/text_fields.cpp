#include "serve/text_fields.hpp"

#include <cfloat>

namespace loom::core {

Status take_max_tokens(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_int(value, name, -1, INT32_MAX, to.max_tokens);
}

Status take_temperature(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_real(value, name, 0, 1e6, to.options.sampler.temperature);
}

Status take_top_p(const JsonValue& value, std::string_view name, TextRequest& to) {
  float& p = to.options.sampler.top_p;
  LOOM_TRY(take_real(value, name, 0, 1, p));
  p = std::max(p, FLT_MIN);
  return {};
}

Status take_top_k(const JsonValue& value, std::string_view name, TextRequest& to) {
  int64_t& k = to.options.sampler.top_k;
  LOOM_TRY(take_int(value, name, -1, INT32_MAX, k));
  k = std::max<int64_t>(k, 0);
  return {};
}

Status take_min_p(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_real(value, name, 0, 1, to.options.sampler.min_p);
}

Status take_repetition(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_real(value, name, 0.01, 100, to.options.sampler.repetition_penalty);
}

Status take_window(const JsonValue& value, std::string_view name, TextRequest& to) {
  int64_t window = 0;
  LOOM_TRY(take_int(value, name, -1, INT32_MAX, window));
  to.no_repetition_penalty = window == 0;
  to.options.sampler.repetition_window = std::max<int64_t>(window, 0);
  return {};
}

Status take_seed(const JsonValue& value, std::string_view name, TextRequest& to) {
  int64_t seed = 0;
  LOOM_TRY(take_int(value, name, -1, INT64_MAX, seed));
  to.has_seed = seed >= 0;
  if (to.has_seed) to.options.sampler.seed = static_cast<uint64_t>(seed);
  return {};
}

Status take_stop(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_texts(value, name, 16, to.options.stop);
}

Status take_stream(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_bool(value, name, to.stream);
}

Status take_ignore_eos(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_bool(value, name, to.options.ignore_eos);
}

}  // namespace loom::core

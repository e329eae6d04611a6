// Validation of sampler options.
#include <limits>

#include "base/text.hpp"
#include "llm/sampling/sampler.hpp"

namespace loom::core {
namespace {

constexpr float kMaxFloat = std::numeric_limits<float>::max();

struct RealLimit {
  const char* name;
  float value, low, high;
  bool above;  // low itself is invalid
  const char* what;
};

Status check_reals(const SamplerOptions& o) {
  const RealLimit limits[] = {
      {"temperature", o.temperature, 0, kMaxFloat, false, "0 (greedy) or more"},
      {"top_p", o.top_p, 0, 1, true, "above 0 and at most 1"},
      {"min_p", o.min_p, 0, 1, false, "from 0 to 1"},
      {"repetition_penalty", o.repetition_penalty, 0, kMaxFloat, true, "above 0"},
      {"frequency_penalty", o.frequency_penalty, -1e6f, 1e6f, false, "from -1e6 to 1e6"},
      {"presence_penalty", o.presence_penalty, -1e6f, 1e6f, false, "from -1e6 to 1e6"},
      {"dry.multiplier", o.dry.multiplier, 0, 1e6f, false, "from 0 (off) to 1e6"},
      {"dry.base", o.dry.base, 1, 1e6f, false, "from 1 to 1e6"},
      {"typical_p", o.typical_p, 0, 1, true, "above 0 and at most 1"},
      {"top_n_sigma", o.top_n_sigma, 0, 1e6f, false, "0 (off) or more"},
      {"xtc_probability", o.xtc_probability, 0, 1, false, "from 0 to 1"},
      {"xtc_threshold", o.xtc_threshold, 0, 1, false, "from 0 to 1"},
      {"dynamic_range", o.dynamic_range, 0, 1e6f, false, "0 (off) or more"},
      {"dynamic_exponent", o.dynamic_exponent, 0, 1e3f, true, "above 0 and at most 1000"},
      {"mirostat_tau", o.mirostat_tau, 0, 1e6f, false, "0 or more"},
      {"mirostat_eta", o.mirostat_eta, 0, 1e6f, false, "0 or more"},
  };
  for (const RealLimit& l : limits) {
    const bool fits = (l.above ? l.value > l.low : l.value >= l.low) && l.value <= l.high;
    if (!fits) return invalid(cat(l.name, " must be ", l.what, "; got ", l.value));
  }
  return {};
}

struct WholeLimit {
  const char* name;
  int64_t value, high;
  const char* what;
};

Status check_wholes(const SamplerOptions& o) {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  const WholeLimit limits[] = {
      {"top_k", o.top_k, kAny, "0 (all) or more"},
      {"repetition_window", o.repetition_window, kAny, "0 (all) or more"},
      {"no_repeat_ngram", o.no_repeat_ngram, 1 << 20, "from 0 (off) to 1048576"},
      {"dry.allowed_length", o.dry.allowed_length, kAny, "0 or more"},
      {"dry.window", o.dry.window, kAny, "0 (all) or more"},
      {"mirostat", o.mirostat, 2, "0 (off), 1 or 2"},
  };
  for (const WholeLimit& l : limits) {
    if (l.value < 0 || l.value > l.high)
      return invalid(cat(l.name, " must be ", l.what, "; got ", l.value));
  }
  return {};
}

}  // namespace

Status check_sampler_options(const SamplerOptions& o) {
  LOOM_TRY(check_reals(o));
  LOOM_TRY(check_wholes(o));
  for (const TokenBias& bias : o.logit_bias) {
    if (!(bias.bias >= -1e6f && bias.bias <= 1e6f)) {
      return invalid(cat("logit_bias of token ", bias.id, " must be from -1e6 to 1e6; got ",
                         bias.bias, "; to rule a token out, ban it"));
    }
  }
  for (const std::string& text : o.banned_strings) {
    if (text.empty()) return invalid("a banned string must not be empty");
  }
  return {};
}

}  // namespace loom::core

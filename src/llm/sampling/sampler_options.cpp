// Validation of sampler options.
#include "base/text.hpp"
#include "llm/sampling/sampler.hpp"

namespace loom::core {
Status check_sampler_options(const SamplerOptions& o) {
  LOOM_TRY(check_options(o));
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

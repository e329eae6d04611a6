#include "llm/positions.hpp"

#include <algorithm>
#include <charconv>

#include "base/numbers/dmath.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMaxPositions = int64_t{1} << 24;

struct Choice {
  std::string_view name;
  RopeKind kind;
};
constexpr Choice kChoices[] = {
    {"linear", RopeKind::linear}, {"dynamic", RopeKind::dynamic}, {"yarn", RopeKind::yarn}};

Error bad_choice(std::string_view choice) {
  return invalid(cat("rope scaling '", printable(choice),
                     "' is not known; use none, linear:F, dynamic:F or yarn:F with F above 1"));
}

}  // namespace

double yarn_attention(double factor, double m) {
  return factor <= 1 ? 1.0 : 0.1 * m * dmath::log(factor) + 1.0;
}

Status choose_rope_scaling(std::string_view choice, DecoderConfig& config) {
  if (config.rope == RopeKind::none)
    return unsupported("this model has no rotary positions, so they cannot be scaled");
  const bool has_original = config.rope == RopeKind::yarn || config.rope == RopeKind::longrope;
  const int64_t original = has_original ? config.rope_original_max_positions : config.max_positions;
  config.rope = RopeKind::standard;
  config.rope_attention = 1.0;
  config.rope_short.clear();
  config.rope_long.clear();
  if (choice == "none") return {};
  const size_t colon = std::min(choice.find(':'), choice.size());
  for (const Choice& known : kChoices)
    if (known.name == choice.substr(0, colon)) config.rope = known.kind;
  double factor = 0;
  const char* const end = choice.data() + choice.size();
  const char* const begin = choice.data() + std::min(colon + 1, choice.size());
  const auto [last, error] = std::from_chars(begin, end, factor);
  if (config.rope == RopeKind::standard || error != std::errc() || last != end || !(factor > 1) ||
      factor > 1e6)
    return bad_choice(choice);
  config.rope_factor = factor;
  config.rope_original_max_positions = original;
  const double positions = static_cast<double>(original) * factor;
  config.max_positions = static_cast<int64_t>(std::min<double>(positions, kMaxPositions));
  if (config.rope != RopeKind::yarn) return {};
  config.rope_attention = yarn_attention(factor);
  config.rope_beta_fast = 32;
  config.rope_beta_slow = 1;
  config.rope_truncate = true;
  return {};
}

}  // namespace loom::core

#include "llm/sampling/token_chances.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/numbers/dmath.hpp"
#include "ops/fmath.hpp"

namespace loom::core {

void TokenChances::look(std::span<const float> logits, TokenId drawn, int64_t most) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  float largest = kNone;
  for (const float v : logits) largest = v > largest ? v : largest;
  double sum = 0;
  for (const float v : logits) {
    if (v == v) sum += static_cast<double>(fmath::exp<float>(v - largest));
  }
  const double whole = static_cast<double>(largest) + dmath::log(sum);
  const auto chance = [&](TokenId id) {
    const float v = logits[static_cast<size_t>(id)];
    return v == v ? static_cast<float>(static_cast<double>(v) - whole) : kNone;
  };
  logprob = chance(drawn);
  order_.resize(most > 0 ? logits.size() : 0);
  std::iota(order_.begin(), order_.end(), 0);
  const auto kept =
      static_cast<std::ptrdiff_t>(std::min<size_t>(order_.size(), static_cast<size_t>(most)));
  std::partial_sort(order_.begin(), order_.begin() + kept, order_.end(), [&](TokenId a, TokenId b) {
    const float la = chance(a), lb = chance(b);
    return la > lb || (la == lb && a < b);
  });
  top.clear();
  for (std::ptrdiff_t i = 0; i < kept; ++i)
    top.push_back({order_[static_cast<size_t>(i)], chance(order_[static_cast<size_t>(i)])});
}

}  // namespace loom::core

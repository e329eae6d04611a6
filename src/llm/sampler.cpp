#include "llm/sampler.hpp"

#include <algorithm>
#include <limits>

#include "base/rng.hpp"
#include "base/text.hpp"
#include "ops/fmath.hpp"

namespace loom::core {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr size_t kFirstSorted = 64;

// Uniform in [0, 1) with 53 bits.
double uniform53(uint64_t seed, uint64_t index) {
  const PhiloxBlock block = philox(seed, 0, index);
  const uint64_t high = block[0] >> 5, low = block[1] >> 6;
  return static_cast<double>((high << 26) | low) * 0x1p-53;
}

}  // namespace

Status check_sampler_options(const SamplerOptions& o) {
  constexpr float kMax = std::numeric_limits<float>::max();
  if (!(o.temperature >= 0.0f && o.temperature <= kMax))
    return invalid(cat("temperature must be 0 (greedy) or more; got ", o.temperature));
  if (o.top_k < 0) return invalid(cat("top_k must be 0 (all) or more; got ", o.top_k));
  if (!(o.top_p > 0.0f && o.top_p <= 1.0f))
    return invalid(cat("top_p must be above 0 and at most 1; got ", o.top_p));
  if (!(o.min_p >= 0.0f && o.min_p <= 1.0f))
    return invalid(cat("min_p must be from 0 to 1; got ", o.min_p));
  if (!(o.repetition_penalty > 0.0f && o.repetition_penalty <= kMax))
    return invalid(cat("repetition_penalty must be above 0; got ", o.repetition_penalty));
  if (o.repetition_window < 0)
    return invalid(cat("repetition_window must be 0 (all) or more; got ", o.repetition_window));
  return {};
}

Sampler::Sampler(const SamplerOptions& options, int64_t vocab)
    : options_(options), candidates_(static_cast<size_t>(vocab)) {
  if (options.repetition_penalty != 1.0f) seen_.resize(candidates_.size());
}

Result<Sampler> Sampler::create(const SamplerOptions& options, int64_t vocab) {
  LOOM_TRY(check_sampler_options(options));
  if (vocab < 1) return invalid(cat("a sampler needs at least one token; got ", vocab));
  return Sampler(options, vocab);
}

void Sampler::load(std::span<const float> logits) {
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const float logit = i < logits.size() && logits[i] == logits[i] ? logits[i] : kLowest;
    candidates_[i] = {logit, static_cast<TokenId>(i)};
  }
}

void Sampler::penalize(std::span<const TokenId> history) {
  const float penalty = options_.repetition_penalty;
  if (penalty == 1.0f) return;
  const auto window = static_cast<size_t>(options_.repetition_window);
  if (window > 0 && history.size() > window) history = history.last(window);
  for (const TokenId id : history) {
    const auto i = static_cast<size_t>(id);
    if (id < 0 || i >= candidates_.size() || seen_[i] == draws_) continue;
    seen_[i] = draws_;
    float& logit = candidates_[i].logit;
    logit = logit < 0.0f ? logit * penalty : logit / penalty;
  }
}

TokenId Sampler::greedy() const {
  const Candidate* best = candidates_.data();
  for (const Candidate& c : candidates_)
    if (c.logit > best->logit) best = &c;
  return best->id;
}

// Brings the first `count` candidates into their final order. Sorting all of a large vocabulary
// would cost more than a small model; a draw rarely looks far.
void Sampler::sort_until(size_t count) {
  count = std::min(count, candidates_.size());
  if (count <= sorted_) return;
  const auto begin = candidates_.begin() + static_cast<std::ptrdiff_t>(sorted_);
  const auto middle = candidates_.begin() + static_cast<std::ptrdiff_t>(count);
  if (middle != candidates_.end()) std::nth_element(begin, middle - 1, candidates_.end(), before);
  std::sort(begin, middle, before);
  sorted_ = count;
}

// Proportional to the probability; 1 for the best. Infinite logits are compared, never subtracted.
double Sampler::weight(size_t i) const {
  const float logit = candidates_[i].logit;
  if (logit == best_) return 1.0;
  return static_cast<double>(fmath::exp<float>((logit - best_) / options_.temperature));
}

double Sampler::total_weight(size_t count) const {
  double total = 0.0;
  for (size_t i = 0; i < count; ++i) total += weight(i);
  return total;
}

TokenId Sampler::draw(double uniform) {
  sorted_ = 0;
  best_ = kLowest;
  for (const Candidate& c : candidates_) best_ = std::max(best_, c.logit);
  const bool cut = options_.top_k > 0 && options_.top_k < static_cast<int64_t>(candidates_.size());
  size_t count = cut ? static_cast<size_t>(options_.top_k) : candidates_.size();
  if (cut) sort_until(count);
  const double total = total_weight(count);  // by id, or in final order if cut
  // Top-p and min-p keep a prefix of the order.
  double mass = total;
  if (options_.top_p < 1.0f || options_.min_p > 0.0f) {
    const double enough = static_cast<double>(options_.top_p) * total;
    mass = 0.0;
    size_t kept = 0;
    while (kept < count && (kept == 0 || options_.top_p >= 1.0f || mass < enough)) {
      if (kept >= sorted_) sort_until(std::max(kFirstSorted, sorted_ * 4));
      const double w = weight(kept);
      if (w < static_cast<double>(options_.min_p)) break;
      mass += w;
      ++kept;
    }
    count = std::max<size_t>(kept, 1);
  }
  const double target = uniform * mass;
  double sum = 0.0;
  TokenId last = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i >= sorted_) sort_until(std::max(kFirstSorted, sorted_ * 4));
    const double w = weight(i);
    if (i > 0 && w == 0.0) break;  // rounding must not choose what has no probability
    last = candidates_[i].id;
    sum += w;
    if (sum > target) break;
  }
  return last;
}

std::optional<DeviceSampling> Sampler::on_device() const {
  if (options_.repetition_penalty != 1.0f) return std::nullopt;
  if (options_.temperature <= 0.0f) return DeviceSampling{};
  const bool few = options_.top_k >= 1 && options_.top_k <= DeviceSampling::kMostTopK;
  const bool subnormal = options_.temperature < std::numeric_limits<float>::min();
  if (!few || subnormal) return std::nullopt;
  return DeviceSampling{options_.temperature, options_.top_k, options_.top_p,
                        options_.min_p,       options_.seed,  draws_};
}

TokenId Sampler::next(std::span<const float> logits, std::span<const TokenId> history) {
  const uint64_t index = draws_++;
  load(logits);
  penalize(history);
  if (options_.temperature <= 0.0f) return greedy();
  return draw(uniform53(options_.seed, index));
}

}  // namespace loom::core

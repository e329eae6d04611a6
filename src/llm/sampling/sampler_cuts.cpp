// The rules that need the whole distribution: top-n-sigma, dynamic temperature, typical, XTC,
// mirostat. Weights are those of Sampler::weight(); sums are in double in the final order of the
// candidates (top-n-sigma and dynamic temperature: in the order of ids).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/numbers/dmath.hpp"
#include "llm/sampling/sampler.hpp"
#include "ops/fmath.hpp"

namespace loom::core {
namespace {

constexpr double kLog2 = 0.6931471805599453;

double power(double base, double exponent) {
  return base > 0.0 ? dmath::exp(exponent * dmath::log(base)) : 0.0;
}

}  // namespace

bool Sampler::needs_cuts() const {
  const SamplerOptions& o = options_;
  return o.mirostat > 0 || o.typical_p < 1.0f || o.top_n_sigma > 0.0f || o.xtc_probability > 0.0f ||
         o.dynamic_range > 0.0f;
}

// Keeps logits >= largest - n * deviation (Tang et al., "Top-nsigma: not all logits are you need",
// 2024); the deviation is that of all finite logits, by their number.
void Sampler::cut_sigma() {
  double sum = 0.0, squares = 0.0, count = 0.0;
  const auto finite = [](float v) { return v - v == 0.0f; };
  for (const Candidate& c : candidates_) {
    if (!finite(c.logit)) continue;
    sum += static_cast<double>(c.logit);
    count += 1.0;
  }
  if (count == 0.0 || !finite(best_)) return;
  const double mean = sum / count;
  for (const Candidate& c : candidates_) {
    if (!finite(c.logit)) continue;
    const double off = static_cast<double>(c.logit) - mean;
    squares += off * off;
  }
  const double lowest = static_cast<double>(best_) -
                        static_cast<double>(options_.top_n_sigma) * std::sqrt(squares / count);
  std::erase_if(candidates_,
                [&](const Candidate& c) { return static_cast<double>(c.logit) < lowest; });
}

// low + (high - low) * (entropy / log n)^exponent, n candidates with a probability (llama.cpp).
float Sampler::dynamic_temperature() const {
  double total = 0.0, moment = 0.0, count = 0.0;
  for (const Candidate& c : candidates_) {
    const double off = c.logit == best_ ? 0.0 : static_cast<double>(c.logit - best_);
    const double w = off == 0.0 ? 1.0 : static_cast<double>(fmath::exp<float>(c.logit - best_));
    if (w == 0.0) continue;
    total += w;
    moment += w * off;
    count += 1.0;
  }
  const float low = std::max(0.0f, options_.temperature - options_.dynamic_range);
  const float high = options_.temperature + options_.dynamic_range;
  if (count < 2.0) return options_.temperature;
  const double entropy = std::max(0.0, dmath::log(total) - moment / total);
  const double part = std::min(1.0, entropy / dmath::log(count));
  const double share = power(part, static_cast<double>(options_.dynamic_exponent));
  return static_cast<float>(static_cast<double>(low) + static_cast<double>(high - low) * share);
}

// Moves the candidates marked in kept_ to the front, in their order.
void Sampler::keep(size_t& count) {
  size_t to = 0;
  for (size_t i = 0; i < count; ++i) {
    if (kept_[i] == 0) continue;
    candidates_[to] = candidates_[i];
    weights_[to++] = weights_[i];
  }
  count = to;
}

// Locally typical (Meister et al., 2022): those whose surprise -log p is nearest to the entropy, as
// few as hold the share.
size_t Sampler::cut_typical(size_t count) {
  double total = 0.0, entropy = 0.0;
  while (count > 1 && weights_[count - 1] == 0.0) --count;
  for (size_t i = 0; i < count; ++i) total += weights_[i];
  for (size_t i = 0; i < count; ++i) {
    const double p = weights_[i] / total;
    entropy -= p * dmath::log(p);
  }
  const auto distance = [&](size_t i) {
    return std::fabs(-dmath::log(weights_[i] / total) - entropy);
  };
  std::iota(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(count), 0u);
  std::sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(count),
            [&](uint32_t a, uint32_t b) {
              const double da = distance(a), db = distance(b);
              return da < db || (da == db && a < b);
            });
  std::fill(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(count), uint8_t{0});
  const double enough = static_cast<double>(options_.typical_p) * total;
  double mass = 0.0;
  for (size_t i = 0; i < count && (i == 0 || mass < enough); ++i) {
    kept_[order_[i]] = 1;
    mass += weights_[order_[i]];
  }
  keep(count);
  return count;
}

// Top-p and min-p: the number of first candidates to keep.
size_t Sampler::cut_mass(size_t count) const {
  double total = 0.0, mass = 0.0;
  for (size_t i = 0; i < count; ++i) total += weights_[i];
  const double enough = static_cast<double>(options_.top_p) * total;
  const double least = static_cast<double>(options_.min_p) * weights_[0];
  size_t kept = 0;
  while (kept < count && (kept == 0 || options_.top_p >= 1.0f || mass < enough)) {
    if (weights_[kept] < least) break;
    mass += weights_[kept++];
  }
  return std::max<size_t>(kept, 1);
}

// XTC (p-e-w, 2024, text-generation-webui #6335): the tokens at or above the threshold are the
// first ones; only the last of them is kept.
void Sampler::cut_likely(size_t& count, uint64_t index) {
  if (options_.xtc_probability <= 0.0f) return;
  const double uniform = uniform53(options_.seed, 1, index);
  if (!(uniform < static_cast<double>(options_.xtc_probability))) return;
  double total = 0.0;
  for (size_t i = 0; i < count; ++i) total += weights_[i];
  const double least = static_cast<double>(options_.xtc_threshold) * total;
  size_t above = 0;
  while (above < count && weights_[above] >= least) ++above;
  if (above < 2) return;
  for (size_t i = 0; i < count; ++i) kept_[i] = i + 1 >= above;
  keep(count);
}

TokenId Sampler::draw_cut(uint64_t index) {
  begin_draw();
  if (options_.mirostat == 0 && options_.top_n_sigma > 0.0f) cut_sigma();
  if (options_.dynamic_range > 0.0f) temperature_ = dynamic_temperature();
  if (temperature_ <= 0.0f) return greedy();
  const double uniform = uniform53(options_.seed, 0, index);
  if (options_.mirostat > 0) return draw_mirostat(uniform);
  size_t count = candidates_.size();
  if (options_.top_k > 0) count = std::min(count, static_cast<size_t>(options_.top_k));
  sort_until(count);
  for (size_t i = 0; i < count; ++i) weights_[i] = weight(i);
  if (options_.typical_p < 1.0f) count = cut_typical(count);
  count = cut_mass(count);
  cut_likely(count, index);
  double mass = 0.0, sum = 0.0;
  for (size_t i = 0; i < count; ++i) mass += weights_[i];
  left_ = count;
  mass_ = mass;
  listed_ = true;
  for (size_t i = 0; i < count; ++i) {
    sum += weights_[i];
    const bool rest = i + 1 == count || weights_[i + 1] == 0.0;
    if (rest || sum > uniform * mass) return candidates_[i].id;
  }
  return candidates_[0].id;
}

// Mirostat 2: how many of the first have no more surprise than the target.
size_t Sampler::surprise_limit(double total) {
  size_t count = 1;
  for (; count < candidates_.size(); ++count) {
    if (count >= sorted_) sort_until(std::max<size_t>(64, sorted_ * 4));
    const double p = weight(count) / total;
    if (p == 0.0 || -dmath::log(p) / kLog2 > target_) break;
  }
  return count;
}

// Mirostat 1: top-k for the target, from the exponent of Zipf's law that the first 100 follow
// (Basu et al., 2021, algorithm 1).
size_t Sampler::mirostat_count(double total) {
  const size_t n = candidates_.size();
  const size_t m = std::min<size_t>(n, 100);
  sort_until(m);
  double products = 0.0, squares = 0.0;
  for (size_t i = 0; i + 1 < m; ++i) {
    const double p = weight(i) / total, q = weight(i + 1) / total;
    if (q == 0.0) break;
    const double t = dmath::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    products += t * dmath::log(p / q);
    squares += t * t;
  }
  if (squares == 0.0) return 1;
  const double s = products / squares;
  if (!(s > 0.0)) return n;  // all alike
  const double eps = s - 1.0, logn = dmath::log(static_cast<double>(n));
  const double scale = eps == 0.0 ? 1.0 / logn : eps / -dmath::expm1(-eps * logn);
  const double k = power(scale * dmath::exp(target_ * kLog2), 1.0 / s);
  if (!(k < static_cast<double>(n))) return n;
  return std::max<size_t>(1, static_cast<size_t>(k));
}

TokenId Sampler::draw_mirostat(double uniform) {
  const double all = total_weight(candidates_.size());
  size_t count = options_.mirostat == 1 ? mirostat_count(all) : surprise_limit(all);
  sort_until(count);
  const double total = total_weight(count);
  left_ = count;
  mass_ = total;
  const TokenId id = walk(count, uniform * total);
  size_t at = 0;
  while (candidates_[at].id != id) ++at;
  const double surprise = -dmath::log(weight(at) / total) / kLog2;
  target_ -= static_cast<double>(options_.mirostat_eta) *
             (surprise - static_cast<double>(options_.mirostat_tau));
  return id;
}

}  // namespace loom::core

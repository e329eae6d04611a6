#include "llm/sampling/sampler.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/numbers/dmath.hpp"
#include "base/numbers/rng.hpp"
#include "base/text.hpp"
#include "ops/fmath.hpp"

namespace loom::core {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr size_t kFirstSorted = 64;
// The maximum penalty of DRY, so that a logit stays a number.
constexpr double kMaxPenalty = 1e30;

}  // namespace

double uniform53(uint64_t seed, uint64_t stream, uint64_t index) {
  const PhiloxBlock block = philox(seed, stream, index);
  const uint64_t high = block[0] >> 5, low = block[1] >> 6;
  return static_cast<double>((high << 26) | low) * 0x1p-53;
}

Sampler::Sampler(const SamplerOptions& options, int64_t vocab)
    : options_(options),
      vocab_(static_cast<size_t>(vocab)),
      candidates_(vocab_),
      counts_(vocab_),
      target_(2.0 * static_cast<double>(options.mirostat_tau)) {
  if (!options.banned_tokens.empty() || options.no_repeat_ngram > 0) banned_.resize(vocab_);
  if (options.dry.multiplier > 0.0f) longest_.resize(vocab_);
  if (!needs_cuts()) return;
  weights_.resize(vocab_);
  order_.resize(vocab_);
  kept_.resize(vocab_);
}

Result<Sampler> Sampler::create(const SamplerOptions& options, int64_t vocab,
                                const Tokenizer* tokenizer) {
  LOOM_TRY(check_sampler_options(options));
  if (vocab < 1) return invalid(cat("a sampler needs at least one token; got ", vocab));
  const auto inside = [&](const char* name, TokenId id) {
    if (id >= 0 && id < vocab) return Status();
    return Status(invalid(cat(name, ": token ", id, " is outside the vocabulary of ", vocab)));
  };
  for (const TokenBias& bias : options.logit_bias) LOOM_TRY(inside("logit_bias", bias.id));
  for (const TokenId id : options.banned_tokens) LOOM_TRY(inside("banned_tokens", id));
  Sampler made(options, vocab);
  if (options.dry.multiplier > 0.0f && tokenizer != nullptr) made.find_breakers(*tokenizer);
  return made;
}

void Sampler::find_breakers(const Tokenizer& tokenizer) {
  static constexpr std::string_view kUsual[] = {"\n", ":", "\"", "*"};
  std::vector<std::string> breakers = options_.dry.breakers;
  if (breakers.empty()) breakers.assign(std::begin(kUsual), std::end(kUsual));
  breaker_.resize(vocab_);
  for (size_t i = 0; i < vocab_; ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string bytes = tokenizer.has_token(id) ? tokenizer.token_bytes(id) : std::string();
    const auto inside = [&](const std::string& text) {
      return !text.empty() && bytes.find(text) != std::string::npos;
    };
    breaker_[i] = std::ranges::any_of(breakers, inside);
  }
}

void Sampler::load(std::span<const float> logits) {
  candidates_.resize(vocab_);
  for (size_t i = 0; i < vocab_; ++i) {
    const float logit = i < logits.size() && logits[i] == logits[i] ? logits[i] : kLowest;
    candidates_[i] = {logit, static_cast<TokenId>(i)};
  }
  for (const TokenBias& bias : options_.logit_bias)
    candidates_[static_cast<size_t>(bias.id)].logit += bias.bias;
}

void Sampler::penalize(std::span<const TokenId> history) {
  const float penalty = options_.repetition_penalty;
  const float often = options_.frequency_penalty, once = options_.presence_penalty;
  if (penalty == 1.0f && often == 0.0f && once == 0.0f) return;
  const auto window = static_cast<size_t>(options_.repetition_window);
  if (window > 0 && history.size() > window) history = history.last(window);
  for (const TokenId id : history) {
    if (id >= 0 && static_cast<size_t>(id) < vocab_) ++counts_[static_cast<size_t>(id)];
  }
  for (const TokenId id : history) {
    const auto i = static_cast<size_t>(id);
    if (id < 0 || i >= vocab_ || counts_[i] == 0) continue;
    float& logit = candidates_[i].logit;
    if (penalty != 1.0f) logit = logit < 0.0f ? logit * penalty : logit / penalty;
    logit -= static_cast<float>(counts_[i]) * often + once;
    counts_[i] = 0;
  }
}

// repeat_[i]: how many tokens up to i equal the last tokens of the text (the Z function of the
// reversed text), up to the last breaker.
void Sampler::penalize_repetition(std::span<const TokenId> history) {
  const DryOptions& dry = options_.dry;
  if (dry.multiplier <= 0.0f) return;
  const auto window = static_cast<size_t>(dry.window);
  if (window > 0 && history.size() > window) history = history.last(window);
  const size_t n = history.size();
  const auto inside = [&](TokenId id) { return id >= 0 && static_cast<size_t>(id) < vocab_; };
  const auto breaks = [&](TokenId id) {
    return !inside(id) || (!breaker_.empty() && breaker_[static_cast<size_t>(id)]);
  };
  size_t reach = 0;
  while (reach < n && !breaks(history[n - 1 - reach])) ++reach;
  if (reach == 0 || n < 2) return;
  const auto back = [&](size_t i) { return history[n - 1 - i]; };
  repeat_.assign(n, 0);
  for (size_t i = 1, left = 0, right = 0; i < n; ++i) {
    size_t length = i < right ? std::min<size_t>(right - i, repeat_[i - left]) : 0;
    while (i + length < n && back(length) == back(i + length)) ++length;
    repeat_[i] = static_cast<uint32_t>(length);
    if (i + length > right) left = i, right = i + length;
  }
  for (size_t i = 1; i < n; ++i) {
    const TokenId next = back(i - 1);
    if (!inside(next)) continue;
    int64_t& longest = longest_[static_cast<size_t>(next)];
    longest = std::max(longest, static_cast<int64_t>(std::min<size_t>(repeat_[i], reach)));
  }
  for (const TokenId id : history) {
    if (!inside(id)) continue;
    const auto i = static_cast<size_t>(id);
    const int64_t length = std::exchange(longest_[i], 0);
    if (length == 0 || length < dry.allowed_length) continue;
    double penalty = static_cast<double>(dry.multiplier);
    for (int64_t k = dry.allowed_length; k < length && penalty < kMaxPenalty; ++k)
      penalty *= static_cast<double>(dry.base);
    candidates_[i].logit -= static_cast<float>(std::min(penalty, kMaxPenalty));
  }
}

void Sampler::ban(TokenId id) {
  if (id < 0 || static_cast<size_t>(id) >= vocab_) return;
  banned_[static_cast<size_t>(id)] = 1;
  any_banned_ = true;
}

// Bans the tokens that followed earlier occurrences of the last n - 1 tokens.
void Sampler::ban_ngrams(std::span<const TokenId> history) {
  const auto n = static_cast<size_t>(options_.no_repeat_ngram);
  if (n == 0 || history.size() < n) return;
  const std::span<const TokenId> end = history.last(n - 1);
  for (size_t at = 0; at + n <= history.size(); ++at) {
    if (std::ranges::equal(history.subspan(at, n - 1), end)) ban(history[at + n - 1]);
  }
}

void Sampler::take_out(std::span<const uint64_t> allowed) {
  if (!any_banned_ && allowed.empty()) return;
  size_t kept = 0;
  for (size_t word = 0; word * 64 < vocab_; ++word) {
    uint64_t left = allowed.empty() ? ~uint64_t{0} : allowed[word];
    for (; left != 0; left &= left - 1) {
      const size_t i = word * 64 + static_cast<size_t>(std::countr_zero(left));
      if (i >= vocab_) break;
      if (!any_banned_ || banned_[i] == 0) candidates_[kept++] = candidates_[i];
    }
  }
  candidates_.resize(kept);
  if (std::exchange(any_banned_, false)) std::ranges::fill(banned_, 0);
}

void Sampler::adjust(std::span<const float> logits, std::span<const TokenId> history,
                     std::span<const uint64_t> allowed) {
  load(logits);
  penalize(history);
  penalize_repetition(history);
  for (const TokenId id : options_.banned_tokens) ban(id);
  ban_ngrams(history);
  take_out(allowed);
}

TokenId Sampler::greedy() const {
  const Candidate* best = candidates_.data();
  for (const Candidate& c : candidates_)
    if (c.logit > best->logit) best = &c;
  return best->id;
}

namespace {

// The first largest logit: the largest of each of eight lanes, then the first that equals it, which
// compilers make faster than a search for both at once. NaN is never larger.
TokenId first_largest(std::span<const float> logits) {
  constexpr size_t kLanes = 8;
  float lanes[kLanes];
  std::ranges::fill(lanes, kLowest);
  const size_t whole = logits.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j)
      lanes[j] = logits[i + j] > lanes[j] ? logits[i + j] : lanes[j];
  }
  float best = kLowest;
  for (const float v : lanes) best = v > best ? v : best;
  for (size_t i = whole; i < logits.size(); ++i) best = logits[i] > best ? logits[i] : best;
  if (best == kLowest) return 0;
  return static_cast<TokenId>(std::ranges::find(logits, best) - logits.begin());
}

}  // namespace

// Sorts the first `count` candidates. Sorting all of a large vocabulary would cost more than a
// small model; a draw rarely looks far.
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
  return static_cast<double>(fmath::exp<float>((logit - best_) / temperature_));
}

double Sampler::total_weight(size_t count) const {
  double total = 0.0;
  for (size_t i = 0; i < count; ++i) total += weight(i);
  return total;
}

void Sampler::begin_draw() {
  sorted_ = 0;
  temperature_ = options_.temperature;
  best_ = kLowest;
  for (const Candidate& c : candidates_) best_ = std::max(best_, c.logit);
}

// The candidate at which the sum of weights passes `target`.
TokenId Sampler::walk(size_t count, double target) {
  double sum = 0.0;
  TokenId last = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i >= sorted_) sort_until(std::max(kFirstSorted, sorted_ * 4));
    const double w = weight(i);
    if (i > 0 && w == 0.0) break;  // rounding must not choose a token without probability
    last = candidates_[i].id;
    sum += w;
    if (sum > target) break;
  }
  return last;
}

TokenId Sampler::draw(double uniform) {
  begin_draw();
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
  left_ = count;
  mass_ = mass;
  return walk(count, uniform * mass);
}

float Sampler::chances(TokenId drawn, int64_t most, std::vector<TokenChoice>& top) {
  top.clear();
  if (left_ == 0) {
    if (most > 0) top.push_back({drawn, 0.0f});
    return 0.0f;
  }
  const size_t shown = std::min(left_, static_cast<size_t>(most));
  if (!listed_) sort_until(shown);
  const auto chance = [&](size_t i) {
    return static_cast<float>(dmath::log((listed_ ? weights_[i] : weight(i)) / mass_));
  };
  for (size_t i = 0; i < shown; ++i) {
    if ((listed_ ? weights_[i] : weight(i)) > 0.0) top.push_back({candidates_[i].id, chance(i)});
  }
  for (size_t i = 0; i < left_; ++i) {
    if (candidates_[i].id == drawn) return chance(i);
  }
  return 0.0f;
}

// Whether a logit may change before the draw.
bool Sampler::adjusts() const {
  const SamplerOptions& o = options_;
  return o.repetition_penalty != 1.0f || o.frequency_penalty != 0.0f ||
         o.presence_penalty != 0.0f || o.no_repeat_ngram > 0 || o.dry.multiplier > 0.0f ||
         !o.logit_bias.empty() || !o.banned_tokens.empty() || !o.banned_strings.empty();
}

std::optional<DeviceSampling> Sampler::on_device() const {
  const SamplerOptions& o = options_;
  if (adjusts() || (o.temperature > 0.0f && needs_cuts())) return std::nullopt;
  if (o.temperature <= 0.0f) return DeviceSampling{};
  const bool is_small = o.top_k >= 1 && o.top_k <= DeviceSampling::kMaxTopK;
  const bool subnormal = o.temperature < std::numeric_limits<float>::min();
  if (!is_small || subnormal) return std::nullopt;
  return DeviceSampling{o.temperature, o.top_k, o.top_p, o.min_p, o.seed, draws_};
}

TokenId Sampler::next(std::span<const float> logits, std::span<const TokenId> history,
                      std::span<const uint64_t> allowed) {
  const uint64_t index = draws_++;
  left_ = 0;
  listed_ = false;
  const bool plain = options_.temperature <= 0.0f && allowed.empty() && !adjusts();
  if (plain && logits.size() == vocab_) return first_largest(logits);
  adjust(logits, history, allowed);
  if (candidates_.empty()) return kNoToken;
  if (options_.temperature <= 0.0f) return greedy();
  if (needs_cuts()) return draw_cut(index);
  return draw(uniform53(options_.seed, 0, index));
}

}  // namespace loom::core

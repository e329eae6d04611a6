// The sampler compared with a reference that shares no code with it: in double, with the standard
// library, sorting everything, by the formulas of docs/sampling.md. Random logits, histories and
// options; LOOM_SAMPLER_CASES for more of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <random>

#include "base/numbers/rng.hpp"
#include "llm/sampling/sampler.hpp"

namespace loom::core {
namespace {

double philox_uniform(uint64_t seed, uint64_t stream, uint64_t index) {
  const PhiloxBlock b = philox(seed, stream, index);
  return (static_cast<double>(b[0] >> 5) * 67108864.0 + static_cast<double>(b[1] >> 6)) /
         9007199254740992.0;
}

struct Chance {
  int id;
  double logit, p;
};

class SamplerOracle {
 public:
  SamplerOracle(SamplerOptions options, std::vector<int> breakers)
      : o_(std::move(options)), breakers_(std::move(breakers)), mu_(2.0 * o_.mirostat_tau) {}

  int next(const std::vector<float>& logits, const std::vector<TokenId>& history) {
    const uint64_t index = draws_++;
    drawn_by_.clear();
    std::vector<double> v(logits.begin(), logits.end());
    for (const TokenBias& b : o_.logit_bias) v[static_cast<size_t>(b.id)] += b.bias;
    penalties(v, history);
    dry(v, history);
    std::vector<Chance> left;
    for (size_t i = 0; i < v.size(); ++i) {
      if (!banned(static_cast<int>(i), history)) left.push_back({static_cast<int>(i), v[i], 0});
    }
    if (left.empty()) return -1;
    std::stable_sort(left.begin(), left.end(),
                     [](const Chance& a, const Chance& b) { return a.logit > b.logit; });
    if (o_.temperature == 0) return left[0].id;
    if (o_.mirostat == 0) sigma(left);
    const double t = temperature(left);
    if (t == 0) return left[0].id;
    softmax(left, t);
    const double u = philox_uniform(o_.seed, 0, index);
    if (o_.mirostat > 0) return mirostat(left, u);
    if (o_.top_k > 0 && left.size() > static_cast<size_t>(o_.top_k))
      left.resize(static_cast<size_t>(o_.top_k));
    normalize(left);
    typical(left);
    top_p(left);
    xtc(left, philox_uniform(o_.seed, 1, index));
    // Without cuts the sampler walks in its final order as well.
    drawn_by_ = left;
    return draw(left, u);
  }
  // The distribution of next()'s draw, the likeliest first; empty if it took the best without a
  // draw.
  const std::vector<Chance>& drawn_by() const { return drawn_by_; }

 private:
  void penalties(std::vector<double>& v, const std::vector<TokenId>& history) const {
    std::map<int, int> counts;
    const size_t w =
        o_.repetition_window == 0 ? history.size() : static_cast<size_t>(o_.repetition_window);
    for (size_t i = history.size() > w ? history.size() - w : 0; i < history.size(); ++i)
      ++counts[history[i]];
    for (const auto& [id, n] : counts) {
      if (id < 0 || static_cast<size_t>(id) >= v.size()) continue;
      double& l = v[static_cast<size_t>(id)];
      l = l > 0 ? l / static_cast<double>(o_.repetition_penalty)
                : l * static_cast<double>(o_.repetition_penalty);
      l -= n * static_cast<double>(o_.frequency_penalty) + static_cast<double>(o_.presence_penalty);
    }
  }
  // Tries every position and counts, as in the text of the rule.
  void dry(std::vector<double>& v, const std::vector<TokenId>& all) const {
    if (o_.dry.multiplier == 0) return;
    std::vector<TokenId> h = all;
    if (o_.dry.window > 0 && h.size() > static_cast<size_t>(o_.dry.window))
      h.erase(h.begin(), h.end() - static_cast<std::ptrdiff_t>(o_.dry.window));
    const auto n = static_cast<int>(h.size());
    const auto breaks = [&](TokenId id) {
      return id < 0 || static_cast<size_t>(id) >= v.size() ||
             std::count(breakers_.begin(), breakers_.end(), id) > 0;
    };
    std::map<int, int> longest;
    for (int j = 0; j + 1 < n; ++j) {
      int m = 0;
      while (m <= j && h[static_cast<size_t>(j - m)] == h[static_cast<size_t>(n - 1 - m)] &&
             !breaks(h[static_cast<size_t>(j - m)]))
        ++m;
      int& best = longest[h[static_cast<size_t>(j + 1)]];
      best = std::max(best, m);
    }
    for (const auto& [id, m] : longest) {
      if (id < 0 || static_cast<size_t>(id) >= v.size() || m == 0) continue;
      if (m < o_.dry.allowed_length) continue;
      v[static_cast<size_t>(id)] -= static_cast<double>(o_.dry.multiplier) *
                                    std::pow(static_cast<double>(o_.dry.base),
                                             static_cast<double>(m - o_.dry.allowed_length));
    }
  }
  bool banned(int id, const std::vector<TokenId>& h) const {
    if (std::count(o_.banned_tokens.begin(), o_.banned_tokens.end(), id) > 0) return true;
    const auto n = static_cast<size_t>(o_.no_repeat_ngram);
    if (n == 0) return false;
    std::vector<TokenId> gram(h.end() - static_cast<std::ptrdiff_t>(std::min(n - 1, h.size())),
                              h.end());
    gram.push_back(id);
    if (gram.size() < n) return false;
    return std::search(h.begin(), h.end(), gram.begin(), gram.end()) != h.end();
  }
  void sigma(std::vector<Chance>& c) const {
    if (o_.top_n_sigma == 0) return;
    double mean = 0, var = 0;
    for (const Chance& x : c) mean += x.logit / static_cast<double>(c.size());
    for (const Chance& x : c) var += (x.logit - mean) * (x.logit - mean);
    var /= static_cast<double>(c.size());
    const double low = c[0].logit - static_cast<double>(o_.top_n_sigma) * std::sqrt(var);
    while (c.back().logit < low) c.pop_back();
  }
  double temperature(const std::vector<Chance>& c) const {
    const double t = static_cast<double>(o_.temperature), r = static_cast<double>(o_.dynamic_range);
    if (r == 0 || c.size() < 2) return t;
    double z = 0, h = 0;
    for (const Chance& x : c) z += std::exp(x.logit - c[0].logit);
    for (const Chance& x : c) {
      const double p = std::exp(x.logit - c[0].logit) / z;
      if (p > 0) h -= p * std::log(p);
    }
    const double low = std::max(0.0, t - r), high = t + r;
    return low + (high - low) * std::pow(h / std::log(static_cast<double>(c.size())),
                                         static_cast<double>(o_.dynamic_exponent));
  }
  static void normalize(std::vector<Chance>& c) {
    double z = 0;
    for (const Chance& x : c) z += x.p;
    for (Chance& x : c) x.p /= z;
  }
  static void softmax(std::vector<Chance>& c, double t) {
    const double best = c[0].logit;
    for (Chance& x : c) x.p = std::exp((x.logit - best) / t);
    normalize(c);
  }
  void typical(std::vector<Chance>& c) const {
    if (o_.typical_p == 1) return;
    double h = 0;
    for (const Chance& x : c) h -= x.p * std::log(x.p);
    std::vector<Chance> by = c;
    std::stable_sort(by.begin(), by.end(), [&](const Chance& a, const Chance& b) {
      return std::fabs(-std::log(a.p) - h) < std::fabs(-std::log(b.p) - h);
    });
    double mass = 0;
    size_t kept = 0;
    while (kept < by.size() && mass < static_cast<double>(o_.typical_p)) mass += by[kept++].p;
    by.resize(kept);
    std::erase_if(c, [&](const Chance& x) {
      return std::none_of(by.begin(), by.end(), [&](const Chance& y) { return y.id == x.id; });
    });
    normalize(c);
  }
  void top_p(std::vector<Chance>& c) const {
    double mass = 0;
    size_t kept = 0;
    while (kept < c.size() &&
           (kept == 0 || o_.top_p >= 1 || mass < static_cast<double>(o_.top_p)) &&
           c[kept].p >= static_cast<double>(o_.min_p) * c[0].p)
      mass += c[kept++].p;
    c.resize(std::max<size_t>(kept, 1));
    normalize(c);
  }
  void xtc(std::vector<Chance>& c, double u) const {
    if (u >= static_cast<double>(o_.xtc_probability)) return;
    size_t above = 0;
    while (above < c.size() && c[above].p >= static_cast<double>(o_.xtc_threshold)) ++above;
    if (above >= 2) c.erase(c.begin(), c.begin() + static_cast<std::ptrdiff_t>(above - 1));
    normalize(c);
  }
  static int draw(const std::vector<Chance>& c, double u) {
    double sum = 0;
    for (const Chance& x : c) {
      sum += x.p;
      if (sum > u) return x.id;
    }
    return c.back().id;
  }
  int mirostat(std::vector<Chance>& c, double u) {
    size_t keep = 1;
    if (o_.mirostat == 2) {
      while (keep < c.size() && -std::log2(c[keep].p) <= mu_) ++keep;
    } else {
      const size_t m = std::min<size_t>(c.size(), 100);
      double tb = 0, tt = 0;
      for (size_t i = 0; i + 1 < m; ++i) {
        const double t = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
        tb += t * std::log(c[i].p / c[i + 1].p);
        tt += t * t;
      }
      if (tt > 0) {
        const double s = tb / tt, eps = s - 1, n = static_cast<double>(c.size());
        const double k = std::pow(eps * std::pow(2.0, mu_) / (1 - std::pow(n, -eps)), 1 / s);
        keep = k < n ? std::max<size_t>(1, static_cast<size_t>(k)) : c.size();
      }
    }
    c.resize(keep);
    normalize(c);
    drawn_by_ = c;
    const int id = draw(c, u);
    for (const Chance& x : c) {
      if (x.id == id)
        mu_ -= static_cast<double>(o_.mirostat_eta) *
               (-std::log2(x.p) - static_cast<double>(o_.mirostat_tau));
    }
    return id;
  }

  SamplerOptions o_;
  std::vector<int> breakers_;
  double mu_;
  std::vector<Chance> drawn_by_;
  uint64_t draws_ = 0;
};

// The distribution that the sampler reports, compared with the oracle.
void expect_chances(Sampler& sampler, TokenId drawn, const SamplerOracle& oracle, int64_t most) {
  constexpr double kClose = 1e-4;  // the sampler's logits and exponentials are floats
  std::vector<TokenChoice> top;
  const float own = sampler.chances(drawn, most, top);
  const std::vector<Chance>& expected = oracle.drawn_by();
  if (expected.empty()) {
    EXPECT_EQ(own, 0.0f);
    ASSERT_EQ(top.size(), static_cast<size_t>(most > 0));
    if (most > 0) {
      EXPECT_EQ(top[0].id, drawn);
    }
    return;
  }
  const auto same = [&](const Chance& c) { return c.id == drawn; };
  const auto found = std::find_if(expected.begin(), expected.end(), same);
  ASSERT_NE(found, expected.end());
  EXPECT_NEAR(std::exp(own), found->p, kClose);
  EXPECT_LE(top.size(), std::min(expected.size(), static_cast<size_t>(most)));
  for (size_t i = 0; i < std::min(expected.size(), static_cast<size_t>(most)); ++i) {
    if (i >= top.size()) {  // tokens without probability are not listed
      EXPECT_LT(expected[i].p, kClose);
      continue;
    }
    EXPECT_EQ(top[i].id, expected[i].id);
    EXPECT_NEAR(std::exp(top[i].logprob), expected[i].p, kClose);
  }
}

class RandomSampling {
 public:
  explicit RandomSampling(uint64_t seed) : engine_(seed) {}
  double real(double low, double high) {
    return low + (high - low) * (static_cast<double>(engine_() >> 11) / 9007199254740992.0);
  }
  int64_t random_integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(double p) { return real(0, 1) < p; }

  std::vector<float> logits(int64_t vocab) {
    std::vector<float> out;
    const double width = real(0.5, 6);
    for (int64_t i = 0; i < vocab; ++i) out.push_back(static_cast<float>(real(-width, width)));
    return out;
  }
  std::vector<TokenId> history(int64_t vocab) {
    std::vector<TokenId> out;
    const int64_t small = std::max<int64_t>(1, std::min<int64_t>(vocab, random_integer(2, 8)));
    for (int64_t i = random_integer(0, 60); i > 0; --i)
      out.push_back(static_cast<TokenId>(random_integer(chance(0.02) ? -2 : 0, small)));
    return out;
  }
  SamplerOptions options(int64_t vocab) {
    SamplerOptions o;
    const auto f = [&](double low, double high) { return static_cast<float>(real(low, high)); };
    o.seed = engine_();
    if (chance(0.9)) o.temperature = f(0.3, 2);
    if (chance(0.4)) o.top_k = random_integer(1, vocab + 3);
    if (chance(0.4)) o.top_p = f(0.2, 1);
    if (chance(0.3)) o.min_p = f(0, 0.5);
    if (chance(0.3)) o.repetition_penalty = f(0.7, 2);
    if (chance(0.3)) o.frequency_penalty = f(-0.5, 1);
    if (chance(0.3)) o.presence_penalty = f(-0.5, 1);
    if (chance(0.5)) o.repetition_window = random_integer(0, 70);
    if (chance(0.2)) o.no_repeat_ngram = random_integer(1, 5);
    if (chance(0.3)) {
      o.dry.multiplier = f(0.1, 2);
      o.dry.base = f(1, 2.5);
      o.dry.allowed_length = random_integer(0, 5);
      o.dry.window = random_integer(0, 1) * random_integer(1, 70);
    }
    if (chance(0.3)) o.typical_p = f(0.1, 0.99);
    if (chance(0.3)) o.top_n_sigma = f(0.3, 3);
    if (chance(0.3)) {
      o.xtc_probability = chance(0.5) ? 1.0f : f(0, 1);
      o.xtc_threshold = f(0.01, 0.4);
    }
    if (chance(0.3)) {
      o.dynamic_range = f(0, 1.5);
      o.dynamic_exponent = f(0.5, 2);
    }
    if (chance(0.2)) {
      o.mirostat = random_integer(1, 2);
      o.mirostat_tau = f(1, 6);
      o.mirostat_eta = f(0.05, 0.5);
    }
    for (int64_t i = chance(0.3) ? random_integer(1, 4) : 0; i > 0; --i)
      o.logit_bias.push_back({static_cast<TokenId>(random_integer(0, vocab - 1)), f(-4, 4)});
    for (int64_t i = chance(0.3) ? random_integer(1, 4) : 0; i > 0; --i)
      o.banned_tokens.push_back(static_cast<TokenId>(random_integer(0, vocab - 1)));
    return o;
  }

 private:
  std::mt19937_64 engine_;
};

TEST(SamplerOracle, AgreesOnRandomOptionsLogitsAndHistories) {
  const char* expected = std::getenv("LOOM_SAMPLER_CASES");
  const int cases = expected != nullptr ? std::atoi(expected) : 600;
  int draws = 0, none = 0;
  for (int i = 0; i < cases; ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    RandomSampling random(static_cast<uint64_t>(i) + 1);
    const int64_t vocab = random.random_integer(2, 200);
    const SamplerOptions options = random.options(vocab);
    Result<Sampler> sampler = Sampler::create(options, vocab);
    ASSERT_TRUE(sampler.ok()) << sampler.error().str();
    SamplerOracle oracle(options, {});
    std::vector<TokenId> history = random.history(vocab);
    for (int n = 0; n < 12; ++n) {
      const std::vector<float> logits = random.logits(vocab);
      const TokenId id = sampler->next(logits, history);
      ASSERT_EQ(id, oracle.next(logits, history)) << "draw " << n;
      if (id >= 0) expect_chances(*sampler, id, oracle, random.random_integer(0, 12));
      ++draws;
      none += id < 0 ? 1 : 0;
      if (id >= 0) history.push_back(id);
    }
  }
  RecordProperty("draws", draws);
  EXPECT_LT(none * 20, draws) << "most draws have a token left";
}

TEST(SamplerOracle, ATokenThatIsNotAllowedIsNeverDrawn) {
  for (uint64_t i = 0; i < 200; ++i) {
    RandomSampling random(i + 5000);
    const int64_t vocab = random.random_integer(2, 150);
    Result<Sampler> sampler = Sampler::create(random.options(vocab), vocab);
    ASSERT_TRUE(sampler.ok());
    std::vector<uint64_t> allowed(static_cast<size_t>(vocab + 63) / 64);
    for (int64_t t = 0; t < vocab; ++t) {
      if (random.chance(0.2)) allowed[static_cast<size_t>(t) / 64] |= uint64_t{1} << (t % 64);
    }
    for (int n = 0; n < 20; ++n) {
      const TokenId id = sampler->next(random.logits(vocab), random.history(vocab), allowed);
      if (id < 0) continue;
      EXPECT_TRUE((allowed[static_cast<size_t>(id) / 64] >> (id % 64) & 1) != 0);
    }
  }
}

TEST(SamplerOracle, WhatIsMinusInfinityIsDrawnOnlyWhereNothingElseIsAllowed) {
  Result<Sampler> sampler = Sampler::create({}, 3);
  const uint64_t last[] = {4};
  EXPECT_EQ(sampler->next(std::vector<float>{1, 2, -INFINITY}, {}, last), 2);
  const uint64_t nothing[] = {0};
  EXPECT_EQ(sampler->next(std::vector<float>{1, 2, 3}, {}, nothing), Sampler::kNoToken);
}

TEST(SamplerOracle, MirostatKeepsTheSurpriseNearItsTarget) {
  for (const int64_t version : {1, 2}) {
    SamplerOptions options;
    options.temperature = 1;
    options.mirostat = version;
    options.mirostat_tau = 3;
    options.mirostat_eta = 0.1f;
    std::vector<float> logits;  // Zipf's law, which both versions handle
    double z = 0;
    for (int i = 0; i < 2000; ++i) {
      logits.push_back(-std::log(static_cast<float>(i + 1)));
      z += 1.0 / (i + 1);
    }
    Result<Sampler> sampler = Sampler::create(options, 2000);
    double surprise = 0;
    for (int i = 0; i < 3000; ++i) {
      const TokenId id = sampler->next(logits, {});
      surprise += std::log2(z * (id + 1)) / 3000;
    }
    // It controls the surprise among the remaining tokens, which is less.
    EXPECT_NEAR(surprise, 3.9, 1.0) << version;
  }
}

}  // namespace
}  // namespace loom::core

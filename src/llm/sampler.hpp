// Sampler: chooses the next token from logits [vocab]. The same options, logits and history give
// the same token on every machine: exp is that of ops/fmath.hpp, candidates are ordered by (logit
// descending, id ascending), sums are in double in a fixed order, and the draw is Philox(seed,
// stream 0, index = tokens drawn so far; XTC: stream 1). A NaN counts as the smallest logit. Only
// mirostat keeps anything between two draws, its target. docs/sampling.md has the formulas.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "llm/device_sampling.hpp"
#include "loom/generation.hpp"
#include "text/tokenizer.hpp"

namespace loom::core {

Status check_sampler_options(const SamplerOptions& options);

class Sampler {
 public:
  // Takes all memory it will need; next() allocates nothing, but for DRY, whose table has a number
  // for each token of the history. The tokenizer says which tokens hold a breaker of DRY; null:
  // none does.
  static Result<Sampler> create(const SamplerOptions& options, int64_t vocab,
                                const Tokenizer* tokenizer = nullptr);

  // How a device draws what next() would; none where it needs the history, or more candidates than
  // the op sample takes. That counts weights in parts of 2^22 of the best one's: where the draw, or
  // top_p or min_p, falls within some parts of the edge between two tokens, it may take the other.
  std::optional<DeviceSampling> on_device() const;
  // So many tokens were drawn elsewhere; negative: of those drawn, the last ones were for nothing.
  void advance(int64_t tokens) { draws_ += static_cast<uint32_t>(tokens); }

  // Draws from now on as `other` would: its number of draws, its target.
  void follow(const Sampler& other) {
    draws_ = other.draws_;
    target_ = other.target_;
  }

  // `history`: the tokens so far, prompt included, oldest first; ids outside the vocabulary are
  // ignored. allowed: a bit per token, in words of 64; empty: all. kNoToken: none is left.
  static constexpr TokenId kNoToken = -1;
  TokenId next(std::span<const float> logits, std::span<const TokenId> history,
               std::span<const uint64_t> allowed = {});
  // How next() came to the token that it gave: natural logarithms of the probabilities that the
  // draw was made by, of that token and, in `top`, of the likeliest `most` of those that were left.
  float chances(TokenId drawn, int64_t most, std::vector<TokenChoice>& top);

 private:
  struct Candidate {
    float logit;
    TokenId id;
  };
  static bool before(const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  }

  Sampler(const SamplerOptions& options, int64_t vocab);
  void find_breakers(const Tokenizer& tokenizer);

  // What is done to single tokens, while candidates_ is in the order of the ids (sampler.cpp).
  void adjust(std::span<const float> logits, std::span<const TokenId> history,
              std::span<const uint64_t> allowed);
  void load(std::span<const float> logits);
  void penalize(std::span<const TokenId> history);
  void penalize_repetition(std::span<const TokenId> history);  // DRY
  void ban(TokenId id);
  void ban_ngrams(std::span<const TokenId> history);
  void take_out(std::span<const uint64_t> allowed);

  bool adjusts() const;
  TokenId greedy() const;
  TokenId draw(double uniform);
  void begin_draw();
  void sort_until(size_t count);
  double weight(size_t i) const;
  double total_weight(size_t count) const;
  TokenId walk(size_t count, double target);

  // What looks at all of the distribution (sampler_cuts.cpp).
  bool needs_cuts() const;
  TokenId draw_cut(uint64_t index);
  TokenId draw_mirostat(double uniform);
  size_t surprise_limit(double total);
  size_t mirostat_count(double total);
  void cut_sigma();
  float dynamic_temperature() const;
  size_t cut_typical(size_t count);
  size_t cut_mass(size_t count) const;
  void cut_likely(size_t& count, uint64_t index);
  void keep(size_t& count);

  SamplerOptions options_;
  size_t vocab_;
  std::vector<Candidate> candidates_;  // by id until sorting starts
  size_t sorted_ = 0;                  // candidates in their final order
  float best_ = 0.0f;                  // the largest logit
  float temperature_ = 0.0f;           // of this draw
  // Of the draw: the first candidates, among which it was, and the sum of their weights. 0: it was
  // none, the best one was taken. listed_: the weights are in weights_.
  size_t left_ = 0;
  double mass_ = 0.0;
  bool listed_ = false;
  std::vector<uint32_t> counts_;  // per token: how often it is in the window; all 0 between
  std::vector<uint8_t> banned_;   // per token, in this draw
  bool any_banned_ = false;
  std::vector<bool> breaker_;     // per token
  std::vector<uint32_t> repeat_;  // DRY: per token of the history
  std::vector<int64_t> longest_;  // DRY: per token, the longest repetition that it goes on with
  std::vector<double> weights_;   // of the candidates kept
  std::vector<uint32_t> order_;
  std::vector<uint8_t> kept_;
  double target_ = 0.0;  // of mirostat, in bits
  uint32_t draws_ = 0;
};

// Uniform in [0, 1) with 53 bits.
double uniform53(uint64_t seed, uint64_t stream, uint64_t index);

}  // namespace loom::core

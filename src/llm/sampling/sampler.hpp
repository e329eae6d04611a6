// Sampler: chooses the next token from logits [vocab]. The same options, logits and history give
// the same token on every machine. For that, exp is that of ops/fmath.hpp, candidates are ordered
// by (logit descending, id ascending), and sums are in double in a fixed order. The draw is
// Philox(seed, stream 0, index = tokens drawn so far; XTC: stream 1). A NaN counts as the smallest
// logit. Only mirostat has state between draws, its target. docs/sampling.md has the formulas.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "llm/sampling/device_sampling.hpp"
#include "loom/generation.hpp"
#include "text/tokenizer.hpp"

namespace loom::core {

Status check_sampler_options(const SamplerOptions& options);

class Sampler {
 public:
  // Takes all memory it needs. next() does not allocate, except for DRY, whose table has a number
  // for each token of the history. The tokenizer finds the tokens with a breaker of DRY; if null,
  // there are none.
  static Result<Sampler> create(const SamplerOptions& options, int64_t vocab,
                                const Tokenizer* tokenizer = nullptr);

  // Settings for sampling on a device; unset if it needs the history, or more candidates than the
  // op sample takes. That op counts weights in units of 2^-22 of the best one's. If the draw, top_p
  // or min_p is within some units of the edge between two tokens, it may take the other one.
  std::optional<DeviceSampling> on_device() const;
  // `tokens` were sampled elsewhere; negative: the last ones are taken back.
  void advance(int64_t tokens) { draws_ += static_cast<uint32_t>(tokens); }

  // Continues in the state of `other`: its number of draws, its target.
  void follow(const Sampler& other) {
    draws_ = other.draws_;
    target_ = other.target_;
  }

  // `history`: the tokens so far, prompt included, oldest first; ids outside the vocabulary are
  // ignored. allowed: a bit per token, in words of 64; empty means all. Returns kNoToken if none is
  // left.
  static constexpr TokenId kNoToken = -1;
  TokenId next(std::span<const float> logits, std::span<const TokenId> history,
               std::span<const uint64_t> allowed = {});
  // Natural logarithms of the probabilities of the last draw: of its token and, in `top`, of the
  // `most` likeliest remaining ones.
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

  // Changes of single logits, while candidates_ is in the order of the ids (sampler.cpp).
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

  // Cuts that need the whole distribution (sampler_cuts.cpp).
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
  // State of the draw: the number of candidates in it, and the sum of their weights. left_ is 0 if
  // the best one was taken without a draw. listed_: the weights are in weights_.
  size_t left_ = 0;
  double mass_ = 0.0;
  bool listed_ = false;
  std::vector<uint32_t> counts_;  // per token: occurrences in the window; all 0 between calls
  std::vector<uint8_t> banned_;   // per token, in this draw
  bool any_banned_ = false;
  std::vector<bool> breaker_;     // per token
  std::vector<uint32_t> repeat_;  // DRY: per token of the history
  std::vector<int64_t> longest_;  // DRY: per token, the longest repetition that it continues
  std::vector<double> weights_;   // of the candidates kept
  std::vector<uint32_t> order_;
  std::vector<uint8_t> kept_;
  double target_ = 0.0;  // of mirostat, in bits
  uint32_t draws_ = 0;
};

// Uniform in [0, 1) with 53 bits.
double uniform53(uint64_t seed, uint64_t stream, uint64_t index);

}  // namespace loom::core

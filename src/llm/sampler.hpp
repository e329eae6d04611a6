// Sampler: chooses the next token from logits [vocab]. The same options, logits and history give
// the same token on every machine: exp is that of ops/fmath.hpp, candidates are ordered by (logit
// descending, id ascending), sums are in double in a fixed order, and the draw is Philox(seed,
// stream 0, index = tokens drawn so far). A NaN counts as the smallest logit.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "llm/device_sampling.hpp"
#include "loom/generation.hpp"

namespace loom::core {

Status check_sampler_options(const SamplerOptions& options);

class Sampler {
 public:
  // Takes all memory it will need; next() allocates nothing.
  static Result<Sampler> create(const SamplerOptions& options, int64_t vocab);

  // How a device draws what next() would; none where it needs the history, or more candidates than
  // the op sample takes. That counts weights in parts of 2^22 of the best one's: where the draw, or
  // top_p or min_p, falls within some parts of the edge between two tokens, it may take the other.
  std::optional<DeviceSampling> on_device() const;
  // So many tokens were drawn elsewhere; negative: of those drawn, the last ones were for nothing.
  void advance(int64_t tokens) { draws_ += static_cast<uint32_t>(tokens); }

  // `history`: the tokens so far, prompt included, oldest first; ids outside the vocabulary are
  // ignored.
  TokenId next(std::span<const float> logits, std::span<const TokenId> history);

 private:
  struct Candidate {
    float logit;
    TokenId id;
  };
  static bool before(const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  }

  Sampler(const SamplerOptions& options, int64_t vocab);
  void load(std::span<const float> logits);
  void penalize(std::span<const TokenId> history);
  TokenId greedy() const;
  TokenId draw(double uniform);
  void sort_until(size_t count);
  double weight(size_t i) const;
  double total_weight(size_t count) const;

  SamplerOptions options_;
  std::vector<Candidate> candidates_;  // by id until sorting starts
  size_t sorted_ = 0;                  // candidates in their final order
  float best_ = 0.0f;                  // the largest logit
  std::vector<uint32_t> seen_;         // per token: the draw in which it was last penalized
  uint32_t draws_ = 0;
};

}  // namespace loom::core

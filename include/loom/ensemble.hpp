// Ensembles of several models: complementary pairs, voting, and stacking (a small model over their
// answers).
//
//   Votes winners = majority_vote({{0, 1, 1}, {0, 1, 2}, {2, 1, 2}}).or_exit();   // 0, 1, 2
//   Tensor shares = soft_vote({pa, pb}, {0.6, 0.4}).or_exit();                 // [n, classes]
//   Network judge = stack({pa, pb}, labels).or_exit();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "loom/ensemble_options.hpp"
#include "loom/export.hpp"
#include "loom/network.hpp"
#include "loom/result.hpp"
#include "loom/tensor.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

// Which samples a model got right, one entry per sample.
using Mask = std::vector<bool>;

struct ComplementaryPair {
  int64_t a = 0, b = 0;  // models, a < b
  double coverage = 0;   // share of samples that at least one model gets right
  double overlap = 0;    // share that both get right
};

// All pairs that cover at least `least`. Order: best coverage, then least overlap, then index.
// Errors: invalid_argument (masks of different lengths, or empty).
LOOM_API Result<std::vector<ComplementaryPair>> complementary_pairs(const std::vector<Mask>& masks,
                                                                    double least = 0);

struct Cover {
  std::vector<int64_t> models;   // in order of selection
  std::vector<double> coverage;  // share of the samples, after each
};
// A small set of models with the coverage of all. Each step takes the model that adds most, the
// first of equal ones (Chvatal, 1979), up to `most` models; 0 means no limit. Errors: as above.
LOOM_API Result<Cover> greedy_cover(const std::vector<Mask>& masks, int64_t most = 0);

// Cosine of two masks as vectors of 0 and 1; 0 if one of them has no true entry. Errors:
// invalid_argument (lengths that differ).
LOOM_API Result<double> mask_similarity(const Mask& a, const Mask& b);

// The index in `other` of each of `names`, to bring the answers of two models into one class order.
// Empty if the order is the same, or if one of them has no names. Errors: invalid_argument (other
// classes).
LOOM_API Result<std::vector<int64_t>> match_classes(const std::vector<std::string>& names,
                                                    const std::vector<std::string>& other);

// votes[model][sample] is a class, from 0. Returns for each sample the class with the largest sum
// of weights, the lowest of equal ones. Empty weights mean 1 each. Errors: invalid_argument (no
// models, lengths that differ, a class below 0, a weight that is negative or not finite).
LOOM_API Result<std::vector<int64_t>> majority_vote(const std::vector<std::vector<int64_t>>& votes,
                                                    const std::vector<double>& weights = {});

// The weighted mean of probabilities (or of other numbers), all float32 of one shape. Sums are in
// double, in the order of the models. Errors: invalid_argument.
LOOM_API Result<Tensor> soft_vote(const std::vector<Tensor>& shares,
                                  const std::vector<double>& weights = {});

// Rows of `scores` [n, classes]: the class with the largest score, the lowest of equal ones.
LOOM_API Result<std::vector<int64_t>> best_classes(const Tensor& scores);

// Stacking (Wolpert, 1992): a Dense layer over the answers [n, classes] of all models side by side,
// trained with cross entropy on `labels`. Its input is the output of stack_inputs(). Use samples
// that none of the models was trained with. Errors: invalid_argument.
LOOM_API Result<Network> stack(const std::vector<Tensor>& shares,
                               const std::vector<int64_t>& labels,
                               const StackOptions& options = {});
// [n, models * classes]: the models' answers side by side, as input of stack().
LOOM_API Result<Tensor> stack_inputs(const std::vector<Tensor>& shares);

}  // namespace loom
#endif

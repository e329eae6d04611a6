// Ensembles: several models that answer together: which of them complement each other, votes, and
// stacking, a small model over their answers.
//
//   Votes said = majority_vote({{0, 1, 1}, {0, 1, 2}, {2, 1, 2}}).or_exit();   // 0, 1, 2
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

// Which samples a model got right, one entry each.
using Mask = std::vector<bool>;

struct ComplementaryPair {
  int64_t a = 0, b = 0;  // models, a < b
  double coverage = 0;   // share of samples that at least one of them has right
  double overlap = 0;    // share that both have right
};

// All pairs that cover at least `least`: best coverage first, then least overlap, then by number.
// Errors: invalid_argument (masks of different lengths, or empty).
LOOM_API Result<std::vector<ComplementaryPair>> complementary_pairs(const std::vector<Mask>& masks,
                                                                    double least = 0);

struct Cover {
  std::vector<int64_t> models;   // in the order taken
  std::vector<double> coverage;  // of the samples, after each
};
// Few models that together cover what all of them do: always the one that adds most (Chvatal,
// 1979), of equal ones the first; at most `most`, 0: no limit. Errors as above.
LOOM_API Result<Cover> greedy_cover(const std::vector<Mask>& masks, int64_t most = 0);

// Cosine of two masks as vectors of 0 and 1; 0 where one of them is empty or has nothing right.
// Errors: invalid_argument (lengths that differ).
LOOM_API Result<double> mask_similarity(const Mask& a, const Mask& b);

// The place in `other` of each of `names`, so that answers of two models are of one order of
// classes. Empty: the order is the same, or one of them has no names. Errors: invalid_argument
// (other classes).
LOOM_API Result<std::vector<int64_t>> match_classes(const std::vector<std::string>& names,
                                                    const std::vector<std::string>& other);

// said[model][sample]: classes, from 0. The class with the largest sum of weights (empty: 1 each)
// of each sample; of equal ones the lowest. Errors: invalid_argument (no models, lengths that
// differ, a class below 0, a weight that is negative or not finite).
LOOM_API Result<std::vector<int64_t>> majority_vote(const std::vector<std::vector<int64_t>>& said,
                                                    const std::vector<double>& weights = {});

// The weighted mean of probabilities (or of other numbers), all of one shape, float32; sums in
// double in the order of the models. Errors: invalid_argument.
LOOM_API Result<Tensor> soft_vote(const std::vector<Tensor>& shares,
                                  const std::vector<double>& weights = {});

// Rows of `scores` [n, classes]: the class with the largest, of equal ones the lowest.
LOOM_API Result<std::vector<int64_t>> best_classes(const Tensor& scores);

// Stacking (Wolpert, 1992): a Dense layer over the answers [n, classes] of all models side by side,
// trained with cross entropy for `labels`. It takes what stack_inputs() makes. The samples should
// be none that the models were trained with. Errors: invalid_argument.
LOOM_API Result<Network> stack(const std::vector<Tensor>& shares,
                               const std::vector<int64_t>& labels,
                               const StackOptions& options = {});
// [n, models * classes]: the models' answers side by side, as stack() wants them.
LOOM_API Result<Tensor> stack_inputs(const std::vector<Tensor>& shares);

}  // namespace loom
#endif

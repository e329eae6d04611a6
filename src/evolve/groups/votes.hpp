// Voting of several models: loom/ensemble.hpp.
#pragma once

#include <span>
#include <vector>

#include "base/result.hpp"
#include "loom/ensemble.hpp"

namespace loom::core {

Result<std::vector<ComplementaryPair>> find_pairs(const std::vector<Mask>& masks, double least);
Result<Cover> cover_greedily(const std::vector<Mask>& masks, int64_t most);
Result<double> cosine_of_masks(const Mask& a, const Mask& b);
Result<std::vector<int64_t>> vote(const std::vector<std::vector<int64_t>>& votes,
                                  const std::vector<double>& weights);
// The weighted mean of rows of equal length.
Result<std::vector<float>> weighted_mean(const std::vector<std::span<const float>>& values,
                                         const std::vector<double>& weights);

}  // namespace loom::core

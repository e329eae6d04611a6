#include "evolve/groups/votes.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.hpp"

namespace loom::core {
namespace {

Status check_masks(const std::vector<Mask>& masks) {
  if (masks.empty()) return invalid("there are no masks: give one for each model");
  for (size_t m = 0; m < masks.size(); ++m) {
    if (masks[m].size() != masks[0].size())
      return invalid(cat("the mask of model ", m, " has ", masks[m].size(),
                         " samples, that of the ", "first ", masks[0].size()));
  }
  if (masks[0].empty()) return invalid("the masks are empty: an entry for each sample");
  return {};
}

// 1 each if none are given.
Result<std::vector<double>> vote_weights(const std::vector<double>& given, size_t models) {
  if (models == 0) return invalid("there are no models to ask");
  if (given.empty()) return std::vector<double>(models, 1.0);
  if (given.size() != models) return invalid(cat(given.size(), " weights for ", models, " models"));
  double sum = 0;
  for (const double w : given) {
    if (!(w >= 0 && std::isfinite(w)))
      return invalid(cat("weight ", w, ": must be 0 or more, and finite"));
    sum += w;
  }
  if (sum <= 0) return invalid("all weights are 0");
  return given;
}

double share_of_samples(int64_t part, size_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

Result<std::vector<ComplementaryPair>> find_pairs(const std::vector<Mask>& masks, double least) {
  LOOM_TRY(check_masks(masks));
  if (!(least <= 1)) return invalid("the least coverage is a share: at most 1");
  std::vector<ComplementaryPair> pairs;
  for (size_t i = 0; i < masks.size(); ++i) {
    for (size_t j = i + 1; j < masks.size(); ++j) {
      int64_t any = 0, both = 0;
      for (size_t s = 0; s < masks[i].size(); ++s) {
        any += masks[i][s] || masks[j][s] ? 1 : 0;
        both += masks[i][s] && masks[j][s] ? 1 : 0;
      }
      const ComplementaryPair pair{static_cast<int64_t>(i), static_cast<int64_t>(j),
                                   share_of_samples(any, masks[i].size()),
                                   share_of_samples(both, masks[i].size())};
      if (pair.coverage >= least) pairs.push_back(pair);
    }
  }
  std::ranges::stable_sort(pairs, [](const ComplementaryPair& x, const ComplementaryPair& y) {
    return x.coverage != y.coverage ? x.coverage > y.coverage : x.overlap < y.overlap;
  });
  return pairs;
}

Result<Cover> cover_greedily(const std::vector<Mask>& masks, int64_t most) {
  LOOM_TRY(check_masks(masks));
  Cover out;
  Mask covered(masks[0].size(), false);
  int64_t total = 0;
  while (most <= 0 || static_cast<int64_t>(out.models.size()) < most) {
    int64_t best = -1, best_new = 0;
    for (size_t m = 0; m < masks.size(); ++m) {
      int64_t fresh = 0;
      for (size_t s = 0; s < covered.size(); ++s) fresh += masks[m][s] && !covered[s] ? 1 : 0;
      if (fresh > best_new) best = static_cast<int64_t>(m), best_new = fresh;
    }
    if (best < 0) break;
    for (size_t s = 0; s < covered.size(); ++s) {
      if (masks[static_cast<size_t>(best)][s]) covered[s] = true;
    }
    total += best_new;
    out.models.push_back(best);
    out.coverage.push_back(share_of_samples(total, covered.size()));
  }
  return out;
}

Result<double> cosine_of_masks(const Mask& a, const Mask& b) {
  if (a.size() != b.size())
    return invalid(cat("masks of ", a.size(), " and ", b.size(), " samples have no similarity"));
  int64_t both = 0, of_a = 0, of_b = 0;
  for (size_t s = 0; s < a.size(); ++s) {
    both += a[s] && b[s] ? 1 : 0;
    of_a += a[s] ? 1 : 0;
    of_b += b[s] ? 1 : 0;
  }
  if (of_a == 0 || of_b == 0) return 0.0;
  return static_cast<double>(both) /
         std::sqrt(static_cast<double>(of_a) * static_cast<double>(of_b));
}

Result<std::vector<int64_t>> vote(const std::vector<std::vector<int64_t>>& votes,
                                  const std::vector<double>& weights) {
  LOOM_ASSIGN(const std::vector<double> weight, vote_weights(weights, votes.size()));
  for (size_t m = 0; m < votes.size(); ++m) {
    if (votes[m].size() != votes[0].size())
      return invalid(
          cat("model ", m, " says ", votes[m].size(), " classes, the first ", votes[0].size()));
    if (std::ranges::any_of(votes[m], [](int64_t c) { return c < 0; }))
      return invalid(cat("model ", m, " says a class below 0"));
  }
  std::vector<int64_t> out;
  for (size_t s = 0; s < votes[0].size(); ++s) {
    std::map<int64_t, double> sums;  // by class, ascending: of equal sums the first is the lowest
    for (size_t m = 0; m < votes.size(); ++m) sums[votes[m][s]] += weight[m];
    const auto best = std::ranges::max_element(
        sums, [](const auto& x, const auto& y) { return x.second < y.second; });
    out.push_back(best->first);
  }
  return out;
}

Result<std::vector<float>> weighted_mean(const std::vector<std::span<const float>>& values,
                                         const std::vector<double>& weights) {
  LOOM_ASSIGN(const std::vector<double> weight, vote_weights(weights, values.size()));
  double sum = 0;
  for (const double w : weight) sum += w;
  std::vector<float> out(values[0].size());
  for (size_t i = 0; i < out.size(); ++i) {
    double total = 0;
    for (size_t m = 0; m < values.size(); ++m)
      total += weight[m] * static_cast<double>(values[m][i]);
    out[i] = static_cast<float>(total / sum);
  }
  return out;
}

}  // namespace loom::core

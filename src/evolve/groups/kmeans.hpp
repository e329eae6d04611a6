// k-means and the silhouette over points in memory: loom/cluster.hpp.
#pragma once

#include "evolve/dna/distances.hpp"

namespace loom::core {

struct KMeansSpec {
  int64_t clusters = 8;
  uint64_t seed = 1;
  bool plus_plus = true;
  std::vector<double> start;  // [clusters][d]; empty: drawn
  int64_t most_rounds = 300;
  double tolerance = 1e-4;
  int64_t restarts = 1;
  std::function<bool(int64_t done, int64_t total)> progress;
};
struct KMeansGroups {
  std::vector<int64_t> labels;
  std::vector<double> centers;  // [clusters][d]
  double inertia = 0;
  int64_t rounds = 0;
  bool converged = false;
};
// Errors: invalid_argument, cancelled.
Result<KMeansGroups> group_by_means(const Points& points, const KMeansSpec& spec, ThreadPool& pool);

// Errors: invalid_argument (labels that do not fit).
Result<double> silhouette_of(const Points& points, const std::vector<int64_t>& labels,
                             Distance kind, ThreadPool& pool);

// Labels as 0, 1, 2, ... in the order in which they first appear.
std::vector<int64_t> renumbered(const std::vector<int64_t>& labels);

}  // namespace loom::core

#include "evolve/groups/kmeans.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "base/numbers/rng.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

// CentreDraws of one restart, in order.
class CentreDraws {
 public:
  CentreDraws(uint64_t seed, int64_t restart) : rng_(seed, static_cast<uint64_t>(restart)) {}
  // In [0, 1), 53 bits.
  double uniform() {
    const uint64_t high = rng_.bits(next_++) >> 5, low = rng_.bits(next_++) >> 6;
    return (static_cast<double>(high) * 0x1p26 + static_cast<double>(low)) * 0x1p-53;
  }
  int64_t below(int64_t n) {
    return std::min(static_cast<int64_t>(uniform() * static_cast<double>(n)), n - 1);
  }

 private:
  Rng rng_;
  uint64_t next_ = 0;
};

// The index at which the running sum first exceeds `at`; after rounding, the last one with a share.
int64_t place_in(const std::vector<double>& shares, double at) {
  double sum = 0;
  int64_t last = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] <= 0) continue;
    sum += shares[i];
    last = static_cast<int64_t>(i);
    if (sum > at) break;
  }
  return last;
}

class Lloyd {
 public:
  Lloyd(const Points& points, const KMeansSpec& spec, int64_t k, double tolerance, ThreadPool& pool)
      : points_(points),
        spec_(spec),
        k_(k),
        tolerance_(tolerance),
        pool_(pool),
        squares_(static_cast<size_t>(points.n)) {
    out_.labels.assign(static_cast<size_t>(points.n), -1);
  }

  KMeansGroups run(int64_t restart) {
    CentreDraws draws(spec_.seed, restart);
    if (!spec_.start.empty()) {
      out_.centers = spec_.start;
    } else if (spec_.plus_plus) {
      start_far_apart(draws);
    } else {
      start_anywhere(draws);
    }
    while (out_.rounds < spec_.most_rounds && !out_.converged) {
      ++out_.rounds;
      const bool changed = assign();
      if (!changed) {
        out_.converged = true;
        break;
      }
      out_.converged = move() <= tolerance_;
    }
    assign();  // labels are those of the centres that are handed out
    out_.inertia = std::accumulate(squares_.begin(), squares_.end(), 0.0);
    return std::move(out_);
  }

 private:
  std::span<const double> center(int64_t c) const {
    return std::span(out_.centers)
        .subspan(static_cast<size_t>(c * points_.d), static_cast<size_t>(points_.d));
  }
  void add_center(int64_t point) {
    const auto row = points_.row(point);
    out_.centers.insert(out_.centers.end(), row.begin(), row.end());
  }
  // k-means++: squares_ holds the least squared distance to the centres so far.
  void start_far_apart(CentreDraws& draws) {
    add_center(draws.below(points_.n));
    for (int64_t i = 0; i < points_.n; ++i)
      squares_[static_cast<size_t>(i)] = squared_distance(points_.row(i), center(0));
    for (int64_t c = 1; c < k_; ++c) {
      const double sum = std::accumulate(squares_.begin(), squares_.end(), 0.0);
      // All points are centres already: any will do.
      add_center(sum > 0 ? place_in(squares_, draws.uniform() * sum) : draws.below(points_.n));
      for (int64_t i = 0; i < points_.n; ++i) {
        double& least = squares_[static_cast<size_t>(i)];
        least = std::min(least, squared_distance(points_.row(i), center(c)));
      }
    }
  }
  // The first k of a shuffle (Fisher and Yates).
  void start_anywhere(CentreDraws& draws) {
    std::vector<int64_t> order(static_cast<size_t>(points_.n));
    std::iota(order.begin(), order.end(), 0);
    for (int64_t c = 0; c < k_; ++c) {
      const int64_t other = c + draws.below(points_.n - c);
      std::swap(order[static_cast<size_t>(c)], order[static_cast<size_t>(other)]);
      add_center(order[static_cast<size_t>(c)]);
    }
  }
  // Points to their nearest centres; the first of equal ones. Did any change?
  bool assign() {
    std::vector<uint8_t> changed(static_cast<size_t>(points_.n), 0);
    pool_.run([&](int lane, int lanes) {
      const LaneRange mine = lane_range(points_.n, 16, lane, lanes);
      for (int64_t i = mine.begin; i < mine.end; ++i) {
        int64_t best = 0;
        double least = squared_distance(points_.row(i), center(0));
        for (int64_t c = 1; c < k_; ++c) {
          const double square = squared_distance(points_.row(i), center(c));
          if (square < least) least = square, best = c;
        }
        const auto at = static_cast<size_t>(i);
        changed[at] = out_.labels[at] != best;
        out_.labels[at] = best;
        squares_[at] = least;
      }
    });
    return std::find(changed.begin(), changed.end(), 1) != changed.end();
  }
  // Moves centres to the means of their points; returns the summed squared movement.
  double move() {
    std::vector<double> sums(out_.centers.size(), 0.0);
    std::vector<int64_t> counts(static_cast<size_t>(k_), 0);
    for (int64_t i = 0; i < points_.n; ++i) {
      const int64_t c = out_.labels[static_cast<size_t>(i)];
      ++counts[static_cast<size_t>(c)];
      const auto row = points_.row(i);
      double* sum = sums.data() + c * points_.d;
      for (size_t j = 0; j < row.size(); ++j) sum[j] += row[j];
    }
    for (int64_t c = 0; c < k_; ++c) {
      double* mean = sums.data() + c * points_.d;
      const int64_t count = counts[static_cast<size_t>(c)];
      for (int64_t j = 0; j < points_.d && count > 0; ++j) mean[j] /= static_cast<double>(count);
      if (count == 0) std::ranges::copy(points_.row(take_farthest()), mean);
    }
    const double moved = squared_distance(out_.centers, sums);
    out_.centers = std::move(sums);
    return moved;
  }
  // The point that is farthest from its centre; it is not taken twice in a round.
  int64_t take_farthest() {
    const auto far = std::max_element(squares_.begin(), squares_.end());
    *far = -1;
    return far - squares_.begin();
  }

  const Points& points_;
  const KMeansSpec& spec_;
  int64_t k_;
  double tolerance_;
  ThreadPool& pool_;
  std::vector<double> squares_;  // to the nearest centre
  KMeansGroups out_;
};

double mean_variance(const Points& points) {
  double sum = 0;
  for (int64_t j = 0; j < points.d; ++j) {
    double mean = 0, square = 0;
    for (int64_t i = 0; i < points.n; ++i) mean += points.row(i)[static_cast<size_t>(j)];
    mean /= static_cast<double>(points.n);
    for (int64_t i = 0; i < points.n; ++i) {
      const double away = points.row(i)[static_cast<size_t>(j)] - mean;
      square += away * away;
    }
    sum += square / static_cast<double>(points.n);
  }
  return sum / static_cast<double>(points.d);
}

}  // namespace

Result<KMeansGroups> group_by_means(const Points& points, const KMeansSpec& spec,
                                    ThreadPool& pool) {
  if (spec.clusters < 1) return invalid(cat("clusters ", spec.clusters, ": must be at least 1"));
  if (spec.most_rounds < 1) return invalid("most_rounds must be at least 1");
  if (spec.restarts < 1) return invalid("restarts must be at least 1");
  if (!(spec.tolerance >= 0)) return invalid("tolerance must be 0 or more");
  const int64_t k = std::min(spec.clusters, points.n);
  if (!spec.start.empty() && static_cast<int64_t>(spec.start.size()) != spec.clusters * points.d)
    return invalid(cat("start must be [", spec.clusters, ", ", points.d, "], a centre a row"));
  if (!spec.start.empty() && k < spec.clusters)
    return invalid(cat("start has ", spec.clusters, " centres for ", points.n, " points"));
  for (const double v : spec.start) {
    if (!std::isfinite(v)) return invalid("start holds a value that is not finite");
  }
  const double tolerance = spec.tolerance * mean_variance(points);
  const int64_t restarts = spec.start.empty() ? spec.restarts : 1;
  KMeansGroups best;
  for (int64_t r = 0; r < restarts; ++r) {
    KMeansGroups groups = Lloyd(points, spec, k, tolerance, pool).run(r);
    if (r == 0 || groups.inertia < best.inertia) best = std::move(groups);
    if (spec.progress && !spec.progress(r + 1, restarts))
      return make_error(Code::cancelled, "stopped");
  }
  return best;
}

std::vector<int64_t> renumbered(const std::vector<int64_t>& labels) {
  std::unordered_map<int64_t, int64_t> numbers;
  std::vector<int64_t> out;
  for (const int64_t label : labels) {
    const auto next = static_cast<int64_t>(numbers.size());
    out.push_back(numbers.emplace(label, next).first->second);
  }
  return out;
}

Result<double> silhouette_of(const Points& points, const std::vector<int64_t>& labels,
                             Distance kind, ThreadPool& pool) {
  if (static_cast<int64_t>(labels.size()) != points.n)
    return invalid(cat(labels.size(), " labels for ", points.n, " points"));
  if (std::ranges::any_of(labels, [](int64_t label) { return label < 0; }))
    return invalid("a label is negative: clusters count from 0");
  const std::vector<int64_t> own = renumbered(labels);
  const auto clusters = static_cast<size_t>(1 + *std::ranges::max_element(own));
  std::vector<int64_t> sizes(clusters, 0);
  for (const int64_t c : own) ++sizes[static_cast<size_t>(c)];
  if (clusters < 2) return 0.0;
  std::vector<double> widths(labels.size(), 0.0);
  pool.run([&](int lane, int lanes) {
    std::vector<double> sums(clusters);
    for (int64_t i = lane; i < points.n; i += lanes) {
      const auto mine = static_cast<size_t>(own[static_cast<size_t>(i)]);
      if (sizes[mine] < 2) continue;
      std::ranges::fill(sums, 0.0);
      for (int64_t j = 0; j < points.n; ++j) {
        if (j != i)
          sums[static_cast<size_t>(own[static_cast<size_t>(j)])] +=
              distance_of(kind, points.row(i), points.row(j));
      }
      const double a = sums[mine] / static_cast<double>(sizes[mine] - 1);
      double b = INFINITY;
      for (size_t c = 0; c < clusters; ++c) {
        if (c != mine) b = std::min(b, sums[c] / static_cast<double>(sizes[c]));
      }
      const double most = std::max(a, b);
      widths[static_cast<size_t>(i)] = most > 0 ? (b - a) / most : 0.0;
    }
  });
  return std::accumulate(widths.begin(), widths.end(), 0.0) / static_cast<double>(points.n);
}

}  // namespace loom::core

#include "evolve/groups/linkage.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "evolve/groups/kmeans.hpp"

namespace loom::core {
namespace {

// A merge of two groups, each named by one of its points, in the order in which chains found it.
struct ChainMerge {
  int64_t a = 0, b = 0;
  double distance = 0;
};

double joined_distance(LinkageMethod method, double to_a, double to_b, int64_t size_a,
                       int64_t size_b) {
  if (method == LinkageMethod::single) return std::min(to_a, to_b);
  if (method == LinkageMethod::complete) return std::max(to_a, to_b);
  const auto a = static_cast<double>(size_a), b = static_cast<double>(size_b);
  return (a * to_a + b * to_b) / (a + b);
}

// Nearest-neighbour chains (Benzecri, 1982; Murtagh, 1983): O(n^2) for these three methods, whose
// merges never make groups nearer.
class Chains {
 public:
  Chains(std::vector<double> distances, int64_t n, LinkageMethod method)
      : distances_(std::move(distances)),
        n_(n),
        method_(method),
        sizes_(static_cast<size_t>(n), 1) {}

  std::vector<ChainMerge> run() {
    std::vector<ChainMerge> merges;
    std::vector<int64_t> chain;
    while (static_cast<int64_t>(merges.size()) < n_ - 1) {
      if (chain.empty()) chain.push_back(first_alive());
      for (;;) {
        const int64_t before = chain.size() > 1 ? chain[chain.size() - 2] : -1;
        const int64_t next = nearest(chain.back(), before);
        if (next == before) break;
        chain.push_back(next);
      }
      const int64_t x = chain.back();
      chain.pop_back();
      const int64_t y = chain.back();
      chain.pop_back();
      merges.push_back({std::min(x, y), std::max(x, y), distance(x, y)});
      join(std::min(x, y), std::max(x, y));
    }
    return merges;
  }

 private:
  double& distance(int64_t i, int64_t j) {
    return distances_[pair_index(n_, std::min(i, j), std::max(i, j))];
  }
  int64_t first_alive() const {
    return std::ranges::find_if(sizes_, [](int64_t size) { return size > 0; }) - sizes_.begin();
  }
  // Prefers the previous one in the chain if it is as near as any: so chains end.
  int64_t nearest(int64_t from, int64_t before) {
    int64_t best = before;
    double least = before >= 0 ? distance(from, before) : INFINITY;
    for (int64_t j = 0; j < n_; ++j) {
      if (j == from || sizes_[static_cast<size_t>(j)] == 0) continue;
      if (best < 0 || distance(from, j) < least) best = j, least = distance(from, j);
    }
    return best;
  }
  // b becomes the merged group.
  void join(int64_t a, int64_t b) {
    int64_t &size_a = sizes_[static_cast<size_t>(a)], &size_b = sizes_[static_cast<size_t>(b)];
    for (int64_t j = 0; j < n_; ++j) {
      if (j == a || j == b || sizes_[static_cast<size_t>(j)] == 0) continue;
      distance(b, j) = joined_distance(method_, distance(a, j), distance(b, j), size_a, size_b);
    }
    size_b += size_a;
    size_a = 0;
  }

  std::vector<double> distances_;
  int64_t n_;
  LinkageMethod method_;
  std::vector<int64_t> sizes_;  // 0 means merged into another
};

// The group of each point, while merges are replayed.
class Forest {
 public:
  explicit Forest(int64_t n) : above_(static_cast<size_t>(n)) {
    std::iota(above_.begin(), above_.end(), 0);
  }
  int64_t root(int64_t i) {
    while (above_[static_cast<size_t>(i)] != i) {
      int64_t& above = above_[static_cast<size_t>(i)];
      above = above_[static_cast<size_t>(above)];
      i = above;
    }
    return i;
  }
  int64_t join(int64_t a, int64_t b) {
    above_.push_back(static_cast<int64_t>(above_.size()));
    const int64_t made = above_.back();
    above_[static_cast<size_t>(a)] = above_[static_cast<size_t>(b)] = made;
    return made;
  }

 private:
  std::vector<int64_t> above_;
};

}  // namespace

Linkage link_groups(std::vector<double> distances, int64_t n, LinkageMethod method) {
  std::vector<ChainMerge> found = Chains(std::move(distances), n, method).run();
  std::ranges::stable_sort(found, {}, &ChainMerge::distance);
  Linkage out;
  out.points = n;
  Forest forest(n);
  std::vector<int64_t> sizes(static_cast<size_t>(n), 1);
  for (const ChainMerge& merge : found) {
    const int64_t x = forest.root(merge.a), y = forest.root(merge.b);
    const int64_t size = sizes[static_cast<size_t>(x)] + sizes[static_cast<size_t>(y)];
    out.merges.push_back({std::min(x, y), std::max(x, y), merge.distance, size});
    forest.join(x, y);
    sizes.push_back(size);
  }
  return out;
}

std::vector<int64_t> groups_after(const Linkage& tree, int64_t merges) {
  Forest forest(tree.points);
  for (int64_t m = 0; m < merges; ++m)
    forest.join(tree.merges[static_cast<size_t>(m)].a, tree.merges[static_cast<size_t>(m)].b);
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < tree.points; ++i) labels.push_back(forest.root(i));
  return renumbered(labels);
}

}  // namespace loom::core

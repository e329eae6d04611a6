#include "evolve/networks/pareto.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace loom::core {
namespace {

constexpr double kWorst = std::numeric_limits<double>::infinity();

double aim(double v) {
  return std::isnan(v) ? kWorst : v;
}

}  // namespace

bool dominates(const Aims& a, const Aims& b) {
  bool better = false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (aim(a[i]) > aim(b[i])) return false;
    better = better || aim(a[i]) < aim(b[i]);
  }
  return better;
}

std::vector<int> front_ranks(const std::vector<Aims>& all) {
  constexpr int kOpen = -1;
  std::vector<int> ranks(all.size(), kOpen);
  size_t left = all.size();
  for (int rank = 0; left > 0; ++rank) {
    std::vector<size_t> front;
    for (size_t i = 0; i < all.size(); ++i) {
      if (ranks[i] != kOpen) continue;
      bool beaten = false;
      for (size_t j = 0; j < all.size() && !beaten; ++j)
        beaten = ranks[j] == kOpen && dominates(all[j], all[i]);
      if (!beaten) front.push_back(i);
    }
    for (const size_t i : front) ranks[i] = rank;
    left -= front.size();
  }
  return ranks;
}

std::vector<double> crowding(const std::vector<Aims>& all, const std::vector<int>& ranks) {
  std::vector<double> out(all.size(), 0.0);
  const int most = all.empty() ? -1 : *std::ranges::max_element(ranks);
  for (int rank = 0; rank <= most; ++rank) {
    std::vector<size_t> front;
    for (size_t i = 0; i < all.size(); ++i) {
      if (ranks[i] == rank) front.push_back(i);
    }
    for (size_t k = 0; k < all[front[0]].size(); ++k) {
      std::ranges::stable_sort(front, {}, [&](size_t i) { return aim(all[i][k]); });
      const double low = aim(all[front.front()][k]), high = aim(all[front.back()][k]);
      out[front.front()] = out[front.back()] = kWorst;
      if (!(high > low) || !std::isfinite(high - low)) continue;
      for (size_t i = 1; i + 1 < front.size(); ++i)
        out[front[i]] += (aim(all[front[i + 1]][k]) - aim(all[front[i - 1]][k])) / (high - low);
    }
  }
  return out;
}

std::vector<size_t> select_best(const std::vector<Aims>& all, size_t count) {
  const std::vector<int> ranks = front_ranks(all);
  const std::vector<double> space = crowding(all, ranks);
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    return ranks[a] != ranks[b] ? ranks[a] < ranks[b] : space[a] > space[b];
  });
  order.resize(std::min(count, order.size()));
  return order;
}

}  // namespace loom::core

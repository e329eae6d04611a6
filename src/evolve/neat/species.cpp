#include "evolve/neat/species.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace loom::core {
namespace {

// Children of each species in proportion to its share; the rest after rounding goes to the largest
// remainders, the first of equals.
std::vector<int64_t> divide(int64_t total, const std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<int64_t> out(shares.size(), 0);
  std::vector<std::pair<double, size_t>> rest;
  int64_t given = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    const double exact = static_cast<double>(total) * (shares[i] / sum);
    out[i] = static_cast<int64_t>(exact);
    given += out[i];
    if (shares[i] > 0) rest.emplace_back(exact - std::floor(exact), i);
  }
  std::ranges::stable_sort(rest, std::greater<>(), [](const auto& r) { return r.first; });
  for (size_t i = 0; given < total; ++i, ++given) ++out[rest[i % rest.size()].second];
  return out;
}

class Planner {
 public:
  Planner(std::vector<Species>& species, std::span<const double> fitness,
          std::span<const int64_t> sizes, const Selection& selection, Draws& draws)
      : species_(species), fitness_(fitness), sizes_(sizes), s_(selection), draws_(draws) {
    for (const Species& one : species_) {
      parents_.push_back(one.members);
      std::ranges::stable_sort(parents_.back(), [&](size_t a, size_t b) { return better(a, b); });
    }
  }

  std::vector<Birth> plan(int64_t stagnant) {
    std::vector<int64_t> children = divide(s_.population, shares(stagnant));
    const size_t home = best_species();
    if (children[home] == 0) {
      --*std::ranges::max_element(children);
      children[home] = 1;
    }
    for (size_t i = 0; i < species_.size(); ++i) {
      const bool keeps =
          i == home || static_cast<int64_t>(species_[i].members.size()) > s_.champion_from;
      for (int64_t k = 0; k < children[i]; ++k)
        births_.push_back(k == 0 && keeps ? Birth{parents_[i].front(), {}, false} : child(i));
    }
    return std::move(births_);
  }

 private:
  bool better(size_t a, size_t b) const {
    const double x = ranked(fitness_[a]), y = ranked(fitness_[b]);
    return x != y ? x > y : sizes_[a] < sizes_[b];
  }

  size_t best_species() const {
    size_t best = 0;
    for (size_t i = 1; i < species_.size(); ++i) {
      if (better(parents_[i].front(), parents_[best].front())) best = i;
    }
    return best;
  }

  // Mean fitness, relative to the lowest if that is negative. Failed members count as the lowest of
  // the others.
  std::vector<double> shares(int64_t stagnant) {
    double lowest = std::numeric_limits<double>::infinity();
    double highest = -lowest;
    for (const double f : fitness_) {
      if (!std::isfinite(f)) continue;
      lowest = std::min(lowest, f);
      highest = std::max(highest, f);
    }
    if (lowest > highest) lowest = highest = 0;  // all failed: all are equal
    // Avoids overflow of sums of the largest numbers.
    const double most = std::max(std::fabs(lowest), std::fabs(highest));
    const double unit = most > 0 ? most : 1.0;
    // Members as good as the lowest have a chance as well.
    const double least = highest > lowest ? (highest / unit - lowest / unit) * 1e-3 : 1.0;
    const double zero = std::min(lowest, 0.0) / unit;
    std::vector<double> out;
    for (const Species& one : species_) {
      double sum = 0;
      for (const size_t m : one.members)
        sum += (std::isfinite(fitness_[m]) ? fitness_[m] : lowest) / unit - zero + least;
      out.push_back(sum / static_cast<double>(one.members.size()));
    }
    forget_stagnant(out, stagnant);
    return out;
  }

  void forget_stagnant(std::vector<double>& shares, int64_t stagnant) {
    std::vector<size_t> order(species_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, [&](size_t a, size_t b) {
      return better(parents_[a].front(), parents_[b].front());
    });
    const bool crisis = stagnant > 0 && stagnant % s_.crisis == 0;
    for (size_t rank = 0; rank < order.size(); ++rank) {
      Species& one = species_[order[rank]];
      if (crisis && rank < 2) one.stagnant = 0;
      const bool ends = crisis ? rank >= 2 : rank > 0 && one.stagnant >= s_.patience;
      if (ends) shares[order[rank]] = 0;
    }
  }

  size_t parent(size_t species) {
    const auto& all = parents_[species];
    const auto some =
        static_cast<size_t>(std::ceil(s_.survivors * static_cast<double>(all.size())));
    return all[draws_.below(std::clamp<size_t>(some, 1, all.size()))];
  }

  Birth child(size_t species) {
    const size_t first = parent(species);
    if (draws_.chance(s_.alone)) return {first, {}, true};
    size_t from = species;
    if (draws_.chance(s_.between)) from = draws_.below(species_.size());
    const size_t second = parent(from);
    if (first == second) return {first, {}, true};
    const bool changed = !draws_.chance(s_.crossed_only);
    return better(second, first) ? Birth{second, first, changed} : Birth{first, second, changed};
  }

  std::vector<Species>& species_;
  std::span<const double> fitness_;
  std::span<const int64_t> sizes_;
  const Selection& s_;
  Draws& draws_;
  std::vector<std::vector<size_t>> parents_;  // of each species, best first
  std::vector<Birth> births_;
};

}  // namespace

double ranked(double fitness) {
  return std::isfinite(fitness) ? fitness : -std::numeric_limits<double>::infinity();
}

size_t rank_species(std::vector<Species>& species, std::span<const double> fitness) {
  size_t best = 0;
  for (size_t i = 1; i < fitness.size(); ++i) {
    if (ranked(fitness[i]) > ranked(fitness[best])) best = i;
  }
  for (Species& one : species) {
    double top = -std::numeric_limits<double>::infinity();
    for (const size_t m : one.members) top = std::max(top, ranked(fitness[m]));
    one.stagnant = top > one.best ? 0 : one.stagnant + 1;
    one.best = std::max(one.best, top);
    ++one.age;
  }
  return best;
}

std::vector<Birth> plan_births(std::vector<Species>& species, std::span<const double> fitness,
                               std::span<const int64_t> sizes, const Selection& selection,
                               int64_t stagnant, Draws& draws) {
  return Planner(species, fitness, sizes, selection, draws).plan(stagnant);
}

}  // namespace loom::core

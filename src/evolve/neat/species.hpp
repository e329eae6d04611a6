// Species and selection: the part of a population that uses fitness and groups, but not the
// contents of its members.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "evolve/draws.hpp"

namespace loom::core {

struct Species {
  int64_t id = 0;
  int64_t age = 0;       // generations
  int64_t stagnant = 0;  // generations since its best improved
  double best = -std::numeric_limits<double>::infinity();
  std::vector<size_t> members;
};

struct Selection {
  int64_t population = 150;
  double survivors = 0.2;  // share of a species that reproduces; at least one
  int64_t patience = 15;   // a species without improvement for that long has none
  int64_t crisis = 20;     // generations without improvement; then only the two best species stay
  int64_t champion_from = 5;  // larger species keep their best unchanged
  double alone = 0.25;        // children of one parent
  double between = 0.001;     // of those of two: parents from two species
  double crossed_only = 0.2;  // of those of two: without mutation
};

// A member of the next generation.
struct Birth {
  size_t parent = 0;  // the better one of two
  std::optional<size_t> other{};
  bool mutated = true;  // false without `other`: a copy
};

// Fitness, with non-finite values below all others.
double ranked(double fitness);

// Updates the species by the fitness of all members: best, age, stagnation. Returns the member with
// the highest, the first of equal ones.
size_t rank_species(std::vector<Species>& species, std::span<const double> fitness);

// The next generation of `population` members. Each species has children by the mean fitness of its
// members (fitness sharing), relative to the lowest of all if that is negative. The best member of
// all is always kept. stagnant: generations since the overall best improved. In a crisis the
// stagnation of the two remaining species restarts; otherwise the next generation would end the
// second. size: of a member; of equal fitness the smaller is better.
std::vector<Birth> plan_births(std::vector<Species>& species, std::span<const double> fitness,
                               std::span<const int64_t> sizes, const Selection& selection,
                               int64_t stagnant, Draws& draws);

}  // namespace loom::core

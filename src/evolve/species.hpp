// Species, and who has children: the part of a population that knows fitness and groups but not
// what its members are made of.
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
  int64_t stagnant = 0;  // generations since its best rose
  double best = -std::numeric_limits<double>::infinity();
  std::vector<size_t> members;
};

struct Selection {
  int64_t population = 150;
  double survivors = 0.2;  // share of a species that has children; at least one
  int64_t patience = 15;   // a species that rose for so long no more has none
  int64_t crisis = 20;     // every so many generations without a rise: the two best species alone
  int64_t champion_from = 5;  // species of more members keep their best as it is
  double alone = 0.25;        // children of one parent
  double between = 0.001;     // of those of two: the second is of another species
  double crossed_only = 0.2;  // of those of two: are not changed besides
};

// A member of the next generation.
struct Birth {
  size_t parent = 0;  // the better one of two
  std::optional<size_t> other{};
  bool mutated = true;  // false without `other`: a copy
};

// Fitness with what is no finite number below all others.
double ranked(double fitness);

// Takes the fitness of all members into the species: best, age, stagnation. Returns the member with
// the highest, the first of equals.
size_t rank_species(std::vector<Species>& species, std::span<const double> fitness);

// The next generation, `population` of them: each species has children by the mean fitness of its
// members (fitness sharing), counted from the lowest of all where that is negative. The best member
// of all is always kept.
// stagnant: generations since the best of all rose; in a crisis the stagnation of the two species
// that go on begins anew, or the next generation would end the second. size: of a member; of equal
// fitness the smaller is better.
std::vector<Birth> plan_births(std::vector<Species>& species, std::span<const double> fitness,
                               std::span<const int64_t> sizes, const Selection& selection,
                               int64_t stagnant, Draws& draws);

}  // namespace loom::core

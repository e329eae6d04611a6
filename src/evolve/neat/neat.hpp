// A population of NEAT: genomes, their species and the generations. It does not run networks: the
// caller reports the fitness of each genome.
#pragma once

#include "evolve/neat/genome_mutation.hpp"
#include "evolve/neat/species.hpp"
#include "loom/evolve.hpp"

namespace loom::core {

struct NeatSpec {
  NeatShape shape;
  NeatRates rates;
  Selection selection;
  double threshold = 2.0;  // genomes of a species are nearer to its representative
  float slope = 4.9f;      // of the nodes: genome_network.hpp
  uint64_t seed = 1;
};
// Errors: invalid_argument, naming the option.
Status check_neat(const NeatSpec& spec);

// Statistics of a generation.
struct NeatGeneration {
  int64_t generation = 0;                            // the first is 0
  int64_t evaluations = 0;                           // including this one
  double best = 0, mean = 0, worst = 0;              // of members with a fitness
  int64_t failed = 0;                                // members without one
  int64_t hidden = 0, connections = 0;               // of its best
  std::vector<std::pair<int64_t, int64_t>> species;  // id and members
  bool operator==(const NeatGeneration&) const = default;
};

class NeatPopulation {
 public:
  static Result<NeatPopulation> create(const NeatSpec& spec);

  const NeatSpec& spec() const { return spec_; }
  const std::vector<NeatGenome>& genomes() const { return genomes_; }
  const std::vector<Species>& species() const { return species_; }
  const std::vector<NeatGeneration>& history() const { return history_; }
  // The best of all generations after the first tell(); the earlier of equal ones.
  const NeatGenome& best() const { return best_; }
  double best_fitness() const { return best_fitness_; }

  std::optional<FitnessRecord> fitness_record;  // saved by text()

  // Takes the fitness of each genome, higher is better, and replaces them by the next generation.
  // Non-finite fitness ranks last. Errors: invalid_argument (not one number per genome).
  Status tell(std::span<const double> fitness);

  // The whole state as JSON text, and back: a population continues from it with the same bits.
  // Errors: bad_file, in which `where` names the text.
  std::string text() const;
  static Result<NeatPopulation> from_text(std::string_view text, std::string_view where);

 private:
  friend class NeatReader;

  void breed(const std::vector<Birth>& births, Draws& draws);
  void group(const std::vector<NeatGenome>& representatives);
  NeatGeneration report(std::span<const double> fitness, size_t top) const;

  NeatSpec spec_;
  std::vector<NeatGenome> genomes_;
  std::vector<Species> species_;
  Innovations innovations_;
  int64_t next_species_ = 0;
  int64_t stagnant_ = 0;  // generations since the overall best improved
  NeatGenome best_;
  double best_fitness_ = -std::numeric_limits<double>::infinity();
  std::vector<NeatGeneration> history_;
};

}  // namespace loom::core

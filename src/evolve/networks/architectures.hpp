// A population of whole networks under several objectives. It has no data: the caller trains and
// scores networks and reports their scores. A generation depends on the seed, its number and those
// scores, never on threads. The whole state can be saved as text.
#pragma once

#include <functional>

#include "evolve/networks/grid_genome.hpp"
#include "evolve/networks/pareto.hpp"

namespace loom::core {

enum class ArchitectureAim : uint8_t { accuracy, loss, parameters, bytes, time };
Result<ArchitectureAim> parse_aim(std::string_view name);
const char* aim_name(ArchitectureAim aim);

struct ArchitectureScore {
  double accuracy = 0, loss = 0;                  // on the held-out samples
  double parameters = 0, bytes = 0, seconds = 0;  // seconds to answer one sample
  double of(ArchitectureAim aim) const;           // lower is better
};

// How the caller trains networks; saved with the population, so that a resumed search trains alike.
struct ArchitectureTraining {
  int64_t epochs = 3, batch = 32;
  double rate = 2e-3;
  double validation = 0.25;  // share of the samples that is held out for scoring
  int64_t normalize = 1;     // Normalize
  bool fresh = false;        // from new weights, not from inherited ones
};

struct ArchitectureSpec {
  int64_t population = 12;
  uint64_t seed = 1;
  std::vector<ArchitectureAim> aims = {ArchitectureAim::accuracy, ArchitectureAim::parameters};
  GridRates rates;
  double cross = 0.3;  // share of children with two parents
  ArchitectureTraining training;
};

struct ArchitectureMember {
  int64_t id = 0, parent = -1, other = -1, born = 0;  // ids; the generation
  std::string birth;                                  // "widen cell 0: 32 to 41 units"
  GridGenome genome;
  ArchitectureScore score;
};

struct ArchitectureGeneration {
  int64_t generation = 0, evaluated = 0, rejected = 0;
  double best_accuracy = 0, best_loss = 0, least_parameters = 0;
  int64_t front = 0;  // members that no other dominates
};

class Architectures {
 public:
  // All members start from the weights of `seed`.
  static Result<Architectures> create(GridGenome seed, const ArchitectureSpec& spec);

  // The children to score next. In the first generation: the seed itself, and mutations of it.
  std::vector<ArchitectureMember> breed() const;
  // Takes scored children and keeps the best of them and of their parents. Errors:
  // invalid_argument.
  Status advance(std::vector<ArchitectureMember> children);

  const ArchitectureSpec& spec() const { return spec_; }
  const std::vector<ArchitectureMember>& members() const { return members_; }
  const std::vector<ArchitectureGeneration>& history() const { return history_; }
  const GridGenome& seed() const { return seed_; }
  const ArchitectureScore& seed_score() const { return seed_score_; }
  std::string data_hash;  // hash_dataset() of the scoring samples; empty if unknown
  // Members that no other dominates, by the first objective, best first.
  std::vector<size_t> front() const;

  // Errors: bad_file.
  std::string text() const;
  static Result<Architectures> from_text(std::string_view text, const std::string& where);

 private:
  ArchitectureMember child(Draws& draws, int64_t& rejected) const;
  Aims aims_of(const ArchitectureMember& member) const;

  ArchitectureSpec spec_;
  GridGenome seed_;
  ArchitectureScore seed_score_;
  std::vector<ArchitectureMember> members_;  // scored
  std::vector<ArchitectureGeneration> history_;
  int64_t next_id_ = 0;
  mutable int64_t rejected_ = 0;  // of the children bred last
};

}  // namespace loom::core

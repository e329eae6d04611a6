// A population of whole networks under several aims. It knows no data: whoever trains and scores
// tells it what came out. A generation depends on the seed, its number and what was told, never on
// threads; the whole state is a text.
#pragma once

#include <functional>

#include "evolve/grid_genome.hpp"
#include "evolve/pareto.hpp"

namespace loom::core {

enum class ArchitectureAim : uint8_t { accuracy, loss, parameters, bytes, time };
Result<ArchitectureAim> parse_aim(std::string_view name);
const char* aim_name(ArchitectureAim aim);

struct ArchitectureScore {
  double accuracy = 0, loss = 0;                  // of the samples that are held out
  double parameters = 0, bytes = 0, seconds = 0;  // seconds: to answer one sample
  double of(ArchitectureAim aim) const;           // the lower, the better
};

// How whoever scores trains them; kept with the population, so that it goes on as it began.
struct ArchitectureTraining {
  int64_t epochs = 3, batch = 32;
  double rate = 2e-3;
  double validation = 0.25;  // share of the samples that is held out and scored
  int64_t normalize = 1;     // Normalize
  bool fresh = false;        // from new weights instead of those at birth
};

struct ArchitectureSpec {
  int64_t population = 12;
  uint64_t seed = 1;
  std::vector<ArchitectureAim> aims = {ArchitectureAim::accuracy, ArchitectureAim::parameters};
  GridRates rates;
  double cross = 0.3;  // of children: of two parents
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
  int64_t front = 0;  // members that nobody dominates
};

class Architectures {
 public:
  // `seed` holds the weights that all begin with.
  static Result<Architectures> create(GridGenome seed, const ArchitectureSpec& spec);

  // The children to score next. The first generation: the seed itself, and changes of it.
  std::vector<ArchitectureMember> breed() const;
  // They were scored: the best of them and of their parents go on. Errors: invalid_argument.
  Status tell(std::vector<ArchitectureMember> children);

  const ArchitectureSpec& spec() const { return spec_; }
  const std::vector<ArchitectureMember>& members() const { return members_; }
  const std::vector<ArchitectureGeneration>& history() const { return history_; }
  const GridGenome& seed() const { return seed_; }
  const ArchitectureScore& seed_score() const { return seed_score_; }
  std::string data_hash;  // of the samples that score: hash_dataset(); "": not known
  // Those that nobody dominates, by the first aim, best first.
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

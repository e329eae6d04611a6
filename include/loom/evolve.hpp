// Evolution of networks by NEAT, which evolves topologies and weights together (Stanley and
// Miikkulainen, "Evolving neural networks through augmenting topologies", 2002). A population needs
// only the fitness of each genome.
//
//   NeatOptions options{.inputs = 2, .outputs = 1, .seed = 7};
//   Population population = Population::create(options).or_exit();
//   Evolution found = evolve(population, [](Genome& g) { return score(g); },
//                            {.generations = 100, .goal = 0.95}).or_exit();
//   population.best().network().or_exit().save("best.json").or_exit();
//
// Equal options and fitness give equal bits, with any number of threads, and after a save and a
// load. docs/evolution.md has the rules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/dataset.hpp"
#include "loom/engine.hpp"
#include "loom/evolve_options.hpp"
#include "loom/export.hpp"
#include "loom/layers.hpp"
#include "loom/network.hpp"
#include "loom/result.hpp"
#include "loom/trainer.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

// One individual, with the state of its own run.
class LOOM_API Genome {
 public:
  int64_t inputs() const;
  int64_t outputs() const;
  int64_t hidden() const;
  int64_t connections() const;  // enabled ones
  bool recurrent() const;

  // Runs one step on inputs() numbers. A recurrent network continues from its previous step. The
  // returned view is valid until the next call. Errors: invalid_argument.
  Result<std::span<const float>> step(std::span<const float> x);
  void reset();  // resets a recurrent network

  // The same function as a network of Dense layers, with the same bits. Errors: unsupported (a
  // recurrent genome).
  Result<Network> network(const std::optional<Engine>& engine = {}) const;
  // Nodes, connections, slope and the recurrent flag, as JSON. This suffices to run the genome
  // elsewhere (docs/evolution.md has the formula).
  std::string json() const;

  struct LOOM_LOCAL Impl;
  explicit Genome(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

// How fitness is computed. It is saved with the population, so a resumed run computes it in the
// same way.
struct FitnessRecord {
  bool samples = true;  // true: from samples; false: by a program
  Normalize normalize = Normalize::none;
  double validation = 0;         // share of the samples that is held out, 0 to 1
  std::string data_hash{};       // Dataset::hash() of all samples; empty means unknown
  double timeout = 0;            // of a program, in seconds; 0 means none
  std::optional<double> goal{};  // fitness that ends the search
  bool operator==(const FitnessRecord&) const = default;
};

struct SpeciesReport {
  int64_t id = 0, members = 0;
};
struct GenerationReport {
  int64_t generation = 0;   // the first is 0
  int64_t evaluations = 0;  // including this generation's
  double best = 0, mean = 0, worst = 0;
  int64_t failed = 0;                   // members with a fitness that is not finite
  int64_t hidden = 0, connections = 0;  // of its best member
  std::vector<SpeciesReport> species{};
};

// A handle: copies share the population.
class LOOM_API Population {
 public:
  // Errors: invalid_argument, naming the option.
  static Result<Population> create(const NeatOptions& options);
  // Errors: not_found, bad_file.
  static Result<Population> load(const std::string& path);
  // Saves the whole state as JSON. An existing file is replaced as a whole or not at all.
  Status save(const std::string& path) const;

  int64_t size() const;
  int64_t inputs() const;
  int64_t outputs() const;
  bool recurrent() const;
  uint64_t seed() const;
  // A genome of this generation, with its own run state. Errors: invalid_argument.
  Result<Genome> genome(int64_t index) const;
  // Takes the fitness of every genome, higher is better, and makes the next generation. Non-finite
  // fitness ranks last. Errors: invalid_argument.
  Status tell(std::span<const double> fitness);

  int64_t generation() const;  // number of calls of tell() so far
  std::vector<GenerationReport> history() const;
  // The best genome of all generations. Errors: invalid_argument (there is none yet).
  Result<Genome> best() const;
  double best_fitness() const;  // -infinity before the first

  // Unset if it was never set, or if the file is of an older release.
  const std::optional<FitnessRecord>& fitness_record() const;
  void set_fitness_record(const FitnessRecord& record);

  struct LOOM_LOCAL Impl;
  explicit Population(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

struct EvolveOptions {
  int64_t generations = 100;     // maximum, in this call
  std::optional<double> goal{};  // ends at a fitness of at least this
  int threads = 0;               // that call the fitness; 0 means all cores
  // Called after each generation, which the population already holds; false stops with
  // Code::cancelled.
  std::function<bool(const GenerationReport&)> progress{};
};
struct Evolution {
  bool reached = false;                      // the goal
  int64_t generations = 0, evaluations = 0;  // of this call
  double best = 0;                           // of the population
};

// Fitness of a genome: higher is better. Called from several threads at a time, each with its own
// genome. The result must depend on the genome only. An error ends the evolution, and the
// population stays at the previous generation.
using Fitness = std::function<Result<double>(Genome& genome)>;
LOOM_API Result<Evolution> evolve(Population& population, const Fitness& fitness,
                                  const EvolveOptions& options = {});

// Fitness on samples; 1 is perfect. With class labels it is exp(-cross entropy) of the softmax over
// the outputs: the geometric mean of the probabilities of the right classes. With targets it is 1 /
// (1 + mean squared error).
class LOOM_API SampleFitness {
 public:
  // `normalize`: how inputs are shifted and scaled, computed from the samples. Errors:
  // invalid_argument (inputs without targets, ids, several labels or weights per sample, other
  // widths, Normalize::as_trained), out_of_memory.
  static Result<SampleFitness> create(const Dataset& data, int64_t inputs, int64_t outputs,
                                      Normalize normalize = Normalize::none);
  // Errors: invalid_argument (a recurrent genome, which runs steps, not samples; other widths).
  Result<double> operator()(Genome& genome) const;
  // Genome::network() with input normalization, class names and loss.
  Result<Network> network(const Genome& genome, const std::optional<Engine>& engine = {}) const;
  // Genome::json() with "input_shift" and "input_scale", one number per input: the genome takes (x
  // - shift) * scale. They are absent if inputs are not normalized. "classes" has the names of the
  // outputs, if the samples have names.
  std::string json(const Genome& genome) const;

  struct LOOM_LOCAL Impl;
  explicit SampleFitness(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace loom
#endif  // LOOM_MINIMAL

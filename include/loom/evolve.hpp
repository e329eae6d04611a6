// Evolution of networks: NEAT, which grows topologies and weights together (Stanley and
// Miikkulainen, "Evolving neural networks through augmenting topologies", 2002). A population asks
// for nothing but the fitness of each genome.
//
//   NeatOptions options{.inputs = 2, .outputs = 1, .seed = 7};
//   Population population = Population::create(options).or_exit();
//   Evolution found = evolve(population, [](Genome& g) { return score(g); },
//                            {.generations = 100, .goal = 0.95}).or_exit();
//   population.best().network().or_exit().save("best.json").or_exit();
//
// Equal options and fitness give equal bits, with any number of threads, and for a population that
// was saved and loaded in between. docs/evolution.md has the rules.
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

// One individual, with the memory of its own run.
class LOOM_API Genome {
 public:
  int64_t inputs() const;
  int64_t outputs() const;
  int64_t hidden() const;
  int64_t connections() const;  // enabled ones
  bool recurrent() const;

  // One step: x has inputs() numbers. A recurrent network goes on from the step before. The view
  // holds until the next call. Errors: invalid_argument.
  Result<std::span<const float>> step(std::span<const float> x);
  void reset();  // a recurrent network begins anew

  // The same function as a network of Dense layers, with the same bits. Errors: unsupported (a
  // recurrent genome).
  Result<Network> network(const std::optional<Engine>& engine = {}) const;
  // Nodes, connections, slope and whether it is recurrent, as JSON: all that it takes to run it
  // elsewhere (docs/evolution.md has the formula).
  std::string json() const;

  struct LOOM_LOCAL Impl;
  explicit Genome(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

// How the members of a population are judged. Its file keeps it, so that a run that goes on judges
// them alike.
struct FitnessRecord {
  bool samples = true;  // by samples; false: by a program
  Normalize normalize = Normalize::none;
  double validation = 0;         // share of the samples that is held out, 0 to 1
  std::string data_hash{};       // Dataset::hash() of all of them; "": not known
  double timeout = 0;            // of a program, seconds; 0: none
  std::optional<double> goal{};  // fitness that ends the search
  bool operator==(const FitnessRecord&) const = default;
};

struct SpeciesReport {
  int64_t id = 0, members = 0;
};
struct GenerationReport {
  int64_t generation = 0;   // the first is 0
  int64_t evaluations = 0;  // with this generation's
  double best = 0, mean = 0, worst = 0;
  int64_t failed = 0;                   // members whose fitness is no finite number
  int64_t hidden = 0, connections = 0;  // of its best
  std::vector<SpeciesReport> species{};
};

// A handle: copies mean the same population.
class LOOM_API Population {
 public:
  // Errors: invalid_argument, naming the option.
  static Result<Population> create(const NeatOptions& options);
  // Errors: not_found, bad_file.
  static Result<Population> load(const std::string& path);
  // The whole state as JSON. A file that is there is replaced as a whole or not at all.
  Status save(const std::string& path) const;

  int64_t size() const;
  int64_t inputs() const;
  int64_t outputs() const;
  bool recurrent() const;
  uint64_t seed() const;
  // A genome of this generation, with a run of its own. Errors: invalid_argument.
  Result<Genome> genome(int64_t index) const;
  // The fitness of every genome, higher is better: the next generation takes their place. What is
  // no finite number is below all others. Errors: invalid_argument.
  Status tell(std::span<const double> fitness);

  int64_t generation() const;  // those told so far
  std::vector<GenerationReport> history() const;
  // The best of all generations that were told. Errors: invalid_argument (none was).
  Result<Genome> best() const;
  double best_fitness() const;  // -infinity before the first

  // Unset: nobody said, or the file is of an older release.
  const std::optional<FitnessRecord>& fitness_record() const;
  void set_fitness_record(const FitnessRecord& record);

  struct LOOM_LOCAL Impl;
  explicit Population(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

struct EvolveOptions {
  int64_t generations = 100;     // at most, in this call
  std::optional<double> goal{};  // ends with a fitness of at least this
  int threads = 0;               // that call the fitness; 0: all cores
  // After each generation; false stops with Code::cancelled. The population has taken it in.
  std::function<bool(const GenerationReport&)> progress{};
};
struct Evolution {
  bool reached = false;                      // the goal
  int64_t generations = 0, evaluations = 0;  // of this call
  double best = 0;                           // of the population
};

// Fitness of a genome: higher is better. Called from several threads at a time, each with a genome
// of its own; what it returns must depend on the genome alone. An error ends the evolution, and the
// population stays at the generation before.
using Fitness = std::function<Result<double>(Genome& genome)>;
LOOM_API Result<Evolution> evolve(Population& population, const Fitness& fitness,
                                  const EvolveOptions& options = {});

// A fitness from samples. Of class labels: exp(-cross entropy) of the softmax over the outputs, in
// the mean of the samples: the geometric mean of the shares that the right classes are given. Of
// targets: 1 / (1 + mean squared error). 1 is perfect in both.
class LOOM_API SampleFitness {
 public:
  // `normalize`: how inputs are shifted and scaled, by what the samples show. Errors:
  // invalid_argument (inputs alone, ids, several labels or weights per sample, other widths,
  // Normalize::as_trained), out_of_memory.
  static Result<SampleFitness> create(const Dataset& data, int64_t inputs, int64_t outputs,
                                      Normalize normalize = Normalize::none);
  // Errors: invalid_argument (a recurrent genome, which answers steps, not samples; other widths).
  Result<double> operator()(Genome& genome) const;
  // Genome::network() that normalizes its inputs and knows its classes and loss.
  Result<Network> network(const Genome& genome, const std::optional<Engine>& engine = {}) const;
  // Genome::json() with "input_shift" and "input_scale", one number per input: the genome takes
  // (x - shift) * scale. They are absent if inputs are not normalized. "classes": names of the
  // outputs, if the samples have names.
  std::string json(const Genome& genome) const;

  struct LOOM_LOCAL Impl;
  explicit SampleFitness(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace loom
#endif  // LOOM_MINIMAL

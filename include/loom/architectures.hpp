// Evolution of whole networks: layers, widths, activations, number types and connections mutate and
// cross. Every network is trained briefly and scored by several objectives at a time. Those that no
// other network dominates are the Pareto front (NSGA-II: Deb et al., 2002).
//
//   auto search = ArchitectureSearch::create(net, data, {.population = 12}).or_exit();
//   for (int g = 0; g < 10; ++g) search.step().or_exit();
//   for (const ArchitectureInfo& m : search.front()) print(m.form, m.accuracy, m.parameters);
//   search.network(search.front()[0].id).or_exit().save("best.entity").or_exit();
//
// Equal options and data give equal bits, with any number of threads, and after a save and a load.
// Objective "time" is measured, so it may differ from run to run. docs/evolution.md has the rules.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "loom/dataset.hpp"
#include "loom/engine.hpp"
#include "loom/evolve_options.hpp"
#include "loom/export.hpp"
#include "loom/network.hpp"
#include "loom/result.hpp"
#include "loom/trainer.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

struct ArchitectureInfo {
  int64_t id = 0, parent = -1, other = -1;  // -1 means none
  int64_t born = 0;                         // generation
  std::string birth;                        // "widen cell 0: 32 to 41 units"
  std::string form;                         // "784-41 relu-10"
  double accuracy = 0, loss = 0;
  int64_t parameters = 0, bytes = 0;
  double seconds = 0;  // 0 unless "time" is an objective
};

struct ArchitectureReport {
  int64_t generation = 0;               // the first is 0
  int64_t evaluated = 0, rejected = 0;  // networks trained; mutations that were not possible
  int64_t front = 0;
  double best_accuracy = 0, best_loss = 0;
  int64_t least_parameters = 0;
};

class LOOM_API ArchitectureSearch {
 public:
  // `seed` must be a chain of cells; all members start from its weights. Errors: invalid_argument,
  // unsupported (links, shared weights, several inputs), out_of_memory.
  static Result<ArchitectureSearch> create(const Network& seed, const Dataset& data,
                                           const ArchitectureOptions& options = {});
  // Loads a saved search; `data` must be the data of create(). Errors: those of files, bad_file.
  static Result<ArchitectureSearch> load(const std::string& path, const Dataset& data);
  // Saves the whole state as JSON. An existing file is replaced as a whole or not at all.
  Status save(const std::string& path) const;

  // Runs one generation: makes, trains and scores children, then keeps the best of children and
  // parents. `threads` networks are trained at a time; 0 means all cores. on_network runs after
  // each network; if it returns false, step() fails with Code::cancelled and the search stays
  // unchanged.
  Result<ArchitectureReport> step(int threads = 0,
                                  const std::function<bool(int64_t, int64_t)>& on_network = {});

  std::vector<ArchitectureInfo> members() const;  // best first
  std::vector<ArchitectureInfo> front() const;    // by the first objective, best first
  std::vector<ArchitectureReport> history() const;
  ArchitectureInfo seed() const;  // scores of the starting network, trained like the others
  std::vector<std::string> objectives() const;
  // A member with its trained weights, input normalization and class names. Errors: not_found.
  Result<Network> network(int64_t id, const std::optional<Engine>& engine = {}) const;

  struct LOOM_LOCAL Impl;
  explicit ArchitectureSearch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace loom
#endif  // LOOM_MINIMAL

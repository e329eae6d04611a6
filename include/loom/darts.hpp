// Architecture search by gradients: Liu, Simonyan and Yang, "DARTS: Differentiable architecture
// search", 2019. Cells of a network become mixtures of alternatives. One half of the samples trains
// their weights, the other half their shares. Then each cell keeps its best alternative.
//
//   auto search = DartsSearch::create(net, data, {.order = 2, .epochs = 10}).or_exit();
//   while (search.epoch() < 10) search.step().or_exit();
//   for (const DartsCell& cell : search.cells()) print(cell.branches, cell.weights);
//   search.found().or_exit().save("found.json").or_exit();
//
// Equal options and data give equal bits, with any number of threads, on any instruction set, and
// after a save and a load. docs/evolution.md has the rules.
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

struct DartsCell {
  int64_t cell = 0;                   // index in the chain
  std::vector<std::string> branches;  // "conv 5x5 relu"; the first is the original layer
  std::vector<double> weights;        // softmax of the architecture parameters: they sum to 1
};

struct DartsReport {
  int64_t epoch = 0;  // from 1
  double train_loss = 0, validation_loss = 0;
  std::optional<double> accuracy;            // on the validation part
  std::vector<std::vector<double>> weights;  // per cell and branch
};

class LOOM_API DartsSearch {
 public:
  // `net` must be a chain of cells. Cells that are Parallel with combine "mixed" are searched. If
  // there are none, every Dense and CNN2 becomes a mixture of its possible replacements. Errors:
  // invalid_argument, unsupported (links, several inputs, Dropout with order 2).
  static Result<DartsSearch> create(const Network& net, const Dataset& data,
                                    const DartsOptions& options = {},
                                    const std::optional<Engine>& engine = {});
  // Loads a saved search; `data` must be the data of create(). Errors: those of files, bad_file.
  static Result<DartsSearch> load(const std::string& path, const Dataset& data,
                                  const std::optional<Engine>& engine = {});
  // Saves the whole state as safetensors. An existing file is replaced as a whole or not at all.
  Status save(const std::string& path) const;

  // Runs one epoch and calls on_step after each step. false stops with Code::cancelled; the search
  // must then be loaded again from its file.
  Result<DartsReport> step(const std::function<bool(int64_t done, int64_t all)>& on_step = {});

  int64_t epoch() const;   // epochs that are done
  int64_t epochs() const;  // of DartsOptions
  std::vector<DartsReport> history() const;
  std::vector<DartsCell> cells() const;
  int64_t seed_parameters() const;  // of the network before it was mixed; 0 if it was mixed already

  // The network in which every cell keeps one branch. The choice has the largest product of weights
  // among those with at most that many parameters; 0 means no limit. Its weights are those of the
  // search; train it further or from new weights. Errors: invalid_argument (no choice is that
  // small).
  Result<Network> found(int64_t most_parameters = 0) const;
  // The branches of that choice, per cell.
  Result<std::vector<int64_t>> choice(int64_t most_parameters = 0) const;

  struct LOOM_LOCAL Impl;
  explicit DartsSearch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace loom
#endif  // LOOM_MINIMAL

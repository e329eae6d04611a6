// Architecture search by gradients: Liu, Simonyan and Yang, "DARTS: Differentiable architecture
// search", 2019. Cells of a network become mixtures of alternatives, whose weights are trained on
// one half of the samples and their shares on the other; then each cell keeps its best alternative.
//
//   auto search = DartsSearch::create(net, data, {.order = 2, .epochs = 10}).or_exit();
//   while (search.epoch() < 10) search.step().or_exit();
//   for (const DartsCell& cell : search.cells()) print(cell.branches, cell.weights);
//   search.found().or_exit().save("found.json").or_exit();
//
// Equal options and data give equal bits, with any number of threads, on any instruction set, and
// for a search that was saved and loaded in between. docs/evolution.md has the rules.
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
  int64_t cell = 0;                   // its place in the row
  std::vector<std::string> branches;  // "conv 5x5 relu"; the first is what the network had
  std::vector<double> weights;        // softmax of the architecture parameters: they sum to 1
};

struct DartsReport {
  int64_t epoch = 0;  // from 1
  double train_loss = 0, validation_loss = 0;
  std::optional<double> accuracy;            // of the validation part
  std::vector<std::vector<double>> weights;  // per cell and branch
};

class LOOM_API DartsSearch {
 public:
  // `net`: a network whose cells follow each other. Cells that are Parallel with combine "mixed"
  // are decided; where there is none, every Dense and CNN2 becomes a mixture of what can stand in
  // its place. Errors: invalid_argument, unsupported (links, several inputs, Dropout with order 2).
  static Result<DartsSearch> create(const Network& net, const Dataset& data,
                                    const DartsOptions& options = {},
                                    const std::optional<Engine>& engine = {});
  // A search that was saved, with the data that it was made with. Errors: those of files, bad_file.
  static Result<DartsSearch> load(const std::string& path, const Dataset& data,
                                  const std::optional<Engine>& engine = {});
  // The whole state as safetensors. A file that is there is replaced as a whole or not at all.
  Status save(const std::string& path) const;

  // One epoch. on_step: after each step; false stops with Code::cancelled, and the search is to be
  // loaded again from its file.
  Result<DartsReport> step(const std::function<bool(int64_t done, int64_t all)>& on_step = {});

  int64_t epoch() const;   // those done
  int64_t epochs() const;  // of DartsOptions
  std::vector<DartsReport> history() const;
  std::vector<DartsCell> cells() const;
  int64_t seed_parameters() const;  // of the network before it was mixed; 0 where it came mixed

  // The network that is left when every cell keeps its branch: the choice with the largest product
  // of weights among those with at most so many parameters; 0: any number. Its weights are those of
  // the search, to be trained on or anew. Errors: invalid_argument (no choice is so small).
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

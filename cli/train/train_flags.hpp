// The options of `loom train`, and what they come to.
#pragma once

#include "../plots/learning.hpp"
#include "../shared/memory_report.hpp"
#include "option_flags.hpp"

namespace loom::cli {

struct TrainFlags {
  EngineFlags engine;
  DataFlags data;
  MemoryFlags memory;
  WeightFlags weight_flags;
  MemoryReport memory_report;
  TableFlags table;
  bool of_table = false;  // DATA is a table
  OptionFlags method;     // TrainerOptions but the seed, which starts weights and the split too
  std::string network, validation, validation_labels;
  double split = 0;
  OptionFlags run_line;  // FitOptions
  FitOptions run;        // those of the line, without callbacks
  std::string dtype, augment, triplets;
  std::vector<std::string> trainable;
  uint64_t seed = 1;
  bool force = false, json = false, quiet = false;
  int64_t folds = 0;
  std::string saved_at_stop;  // the checkpoint that Ctrl-C writes, if the run has no checkpoint
  bool names_output = false;  // the program chose the name
  std::string output, plot, layer_stats, rule_stats, tensorboard;
  std::vector<std::string> telemetry;

  void add(Command verb);
  void add_options(Command verb);  // those of TrainerOptions alone
  // Once, before all else: flags of earlier versions, and those without an effect, each with a
  // note.
  Status apply_defaults();
  Result<TrainerOptions> options() const;
  int64_t batch() const;  // samples of a step, for progress
  // Where the run tells how it goes; none where nothing asks for it.
  Result<std::optional<Telemetry>> make_telemetry() const;
  bool tells_passes() const;  // of layers, to a viewer
  // NETWORK, or for a table alone (settle_table()) a network that fits it, with `told` on its plan.
  Result<Network> open_or_plan(const Engine& engine, std::vector<std::string>& told);
  Result<Network> open(const Engine& engine) const;
  // Standardizes numeric targets of tables in training; other networks stay as they are.
  Result<Network> scaled(Network network, const Dataset& train, const Engine& engine) const;
  // A table in the place of NETWORK becomes DATA. Reads standard input and pipes.
  Status settle_table();
  // How samples are read for that network.
  Result<DatasetOptions> reading(const DataFlags& from, const NetworkInfo& info) const;
  // Classes with names are as many as the scores of a network that was not trained. Errors:
  // invalid_argument.
  Status check_classes(const NetworkInfo& info, const Dataset& data) const;
  // Can all that training will write be written? Asked before it begins.
  Status check_outputs() const;

 private:
  void add_files(Command verb);
  void add_method(Command verb);
  Result<LoadOptions> loading(const Engine& engine) const;
  // The optimizer of a table alone, unless the line names one.
  void set_for_table(TrainerOptions& options) const;
  // The plan of a table; its statistics are those of the samples that train.
  Result<TableOptions> planning(const TrainerOptions& options) const;
};

}  // namespace loom::cli

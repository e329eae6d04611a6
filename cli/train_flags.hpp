// The options of `loom train`, and what they come to.
#pragma once

#include "learning.hpp"
#include "memory_report.hpp"

namespace loom::cli {

struct TrainFlags {
  EngineFlags engine;
  DataFlags data;
  MemoryFlags memory;
  WeightFlags weight_flags;
  MemoryReport memory_report;
  std::string network, validation, validation_labels, normalize;
  double split = 0;
  int64_t epochs = 10, batch = 0, accumulate = 1, early_stop = 0;
  std::string optimizer = "adam", loss, clip = "none", schedule = "cosine", dtype;
  double rate = 2e-3, floor = 0, gamma = 0.1, power = 2, decay = -1, smoothing = 0, delta = 1;
  double gamma_focal = 2, alpha = -1, quantile = 0.5, margin = 1, temperature = 0.1;
  std::string triplets = "hard";
  bool pairs_across = false;
  int64_t warmup = 0, every = 10, patience = 5;
  std::vector<int64_t> milestones, heads;
  std::vector<std::string> freeze, unfreeze, trainable, rate_for, metrics;
  std::string class_weights, augment;
  bool balance = false;
  double ema = 0;
  int64_t swa = 0;
  std::string lookahead, gradient_noise, signal_rule = "back-propagation";
  double rule_beta = 0.6, rule_gate = -1, rule_noise = 0.1, rule_inverse_rate = 2e-3;
  double damping = -1, trust = -1, sophia_gamma = -1;
  int64_t inverse_every = 0;
  double rule_threshold = 2, rule_label_scale = 1, rule_temperature = 0;
  uint64_t seed = 1;
  bool no_shuffle = false, resume = false, json = false, quiet = false, native = false;
  bool carry_feedback = false;
  int64_t grad_checkpoint = 0, checkpoint_every = 0, folds = 0, blank = 0;
  std::string checkpoint, output, best, plot, layer_stats, rule_stats, tensorboard;
  std::vector<std::string> telemetry;

  void add(Command verb);
  Result<TrainerOptions> options() const;
  FitOptions fitting() const;  // without callbacks
  // Where the run tells how it goes; none where nothing asks for it.
  Result<std::optional<Telemetry>> told() const;
  bool tells_passes() const;  // of layers, to a viewer
  Result<Network> open(const Engine& engine) const;
  // How samples are read for that network.
  Result<DatasetOptions> reading(const DataFlags& from, const NetworkInfo& info) const;
  // Can all that training will write be written? Asked before it begins.
  Status check_outputs() const;

 private:
  void add_files(Command verb);
  void add_method(Command verb);
  void add_averages(Command verb);
  void add_schedule(Command verb);
};

}  // namespace loom::cli

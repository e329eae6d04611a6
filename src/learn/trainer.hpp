// Trainer: epochs over a dataset. It shuffles by a counter-based permutation, pads the last batch
// with rows of weight 0, validates and stops early. Its whole state can be saved, and a resumed run
// gives the same bits. Files, terminals and clocks are the caller's.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "learn/data/augment.hpp"
#include "learn/data/dataset.hpp"
#include "learn/metrics/scores.hpp"
#include "learn/rules/calibrate.hpp"
#include "learn/rules/links.hpp"
#include "learn/step/train_step.hpp"

namespace loom::core {

struct TrainerSpec {
  TrainStepOptions step;
  Schedule schedule;
  double rate = 1e-3;  // learning rate at the start of the schedule
  int64_t epochs = 10;
  int64_t batch = 32;
  int64_t early_stop = 0;  // epochs without a better validation loss; 0 disables it
  bool shuffle = true;
  // Class weights for labels with one head; 1 if empty. Weighted means are divided by the sum of
  // the weights.
  std::vector<float> class_weights;
  bool balanced_weights = false;  // of the data that create() is given, in place of class_weights
  std::vector<std::string> metrics;  // of the validation: learn/metrics/scores.hpp
  AugmentSpec augment;               // of training alone
  bool balance = false;              // epochs show every class equally often: balanced_order()
  uint64_t seed = 1;
  std::optional<uint64_t> start_seed;  // of the starting weights; unset: seed
  DType dtype = DType::f32;            // of matrices
};

struct Evaluation {
  double loss = 0;
  // Share of labels that have the largest value; of ctc that of samples that are spelled right,
  // of embeddings that of samples whose nearest other one has their label.
  std::optional<double> accuracy;
  std::vector<MetricValue> metrics;  // of TrainerSpec::metrics; Trainer::epoch() alone
};

struct EpochReport {
  int64_t epoch = 0;  // from 1
  double train_loss = 0;
  std::optional<Evaluation> validation;
  double learning_rate = 0;  // of the last step
  double gradient_norm = 0;
  int64_t dropped = 0;  // updates that were not finite
  bool best = false, last = false;
  std::vector<LinkReport> links;  // with options.step.rule.stats
};

// Where an epoch was left: batches that are done, and what they come to so far.
struct EpochPosition {
  int64_t batch = 0, dropped = 0;
  double sum = 0, counted = 0;
};

// The progress of a run, besides TrainStep::state(). Plain numbers, saved with it.
struct TrainerProgress {
  int64_t epoch = 0;  // finished ones
  int64_t updates = 0;
  int64_t pending = 0;  // batches whose gradients wait for an update
  int64_t stale = 0;    // epochs since the best
  int64_t plateau_stale = 0, plateau_drops = 0;
  double best_loss = 0;
  EpochPosition position;  // of a run that was saved within an epoch
};

class Trainer {
 public:
  // `grid` is finalized for batches of options.batch samples of data.sample. Weights start from
  // options.seed.
  static Result<Trainer> create(const GridSpec& grid, const Dataset& data,
                                const TrainerSpec& options, const Ops& ops, ThreadPool& pool);
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  // Called after each batch that is not trained on, with samples done and in all. false: stop now.
  using OnSamples = std::function<bool(int64_t done, int64_t total)>;
  // Called after each batch: steps done in this epoch, of how many, and the loss. false: stop now.
  using OnStep = std::function<bool(int64_t done, int64_t steps, double loss)>;
  // After every so many batches but the last of an epoch `save` is called, while progress() says
  // that the epoch is under way: a run that is restored from that goes on with the same bits.
  struct Pause {
    int64_t every = 0;
    std::function<Status()> save;
  };
  // One epoch over `train`, then `validation` when it has samples. Error cancelled when on_step or
  // on_validation said stop; pause.save() is called first. With options.step.carry_feedback every
  // epoch begins new streams, and so does every evaluation.
  Result<EpochReport> epoch(const Dataset& train, const Dataset& validation,
                            const OnStep& on_step = {}, const OnSamples& on_validation = {},
                            const Pause& pause = {0, {}});
  // One step on one batch of at most options.batch samples, for custom loops. The result has its
  // mean loss. Epochs and schedules do not change.
  Result<StepResult> train_batch(const Dataset& batch, double rate);
  // The same with a loss of the caller: TrainStep::run_with_loss(). `batch` needs no targets; y and
  // dy have the rows of options.batch samples, of which the first are those of `batch`.
  Result<StepResult> train_with_loss(const Dataset& batch, double rate,
                                     const TrainStep::GivenLoss& loss);
  // The mean loss over the rows of all predictions, and the accuracy. The same bits for every
  // options.batch, unless feedback is carried from batch to batch.
  Result<Evaluation> evaluate(const Dataset& data) { return evaluate(data, {}); }
  // The same, and shows what the network gave: y holds `count` samples from `first` on, row by row.
  using OnOutputs = std::function<void(int64_t first, int64_t count, const Tensor& y)>;
  Result<Evaluation> evaluate(const Dataset& data, const OnOutputs& on_outputs,
                              const OnSamples& on_samples = {});

  // Post-training quantization (learn/rules/calibrate.hpp). Runs `data` through the packed network,
  // narrows the rows of every matrix below 16 bits with the least error of its products, and packs
  // again. Masters change, so the network should be done training.
  Result<std::vector<ClipReport>> calibrate(const Dataset& data, const OnSamples& on_samples = {});
  // From now on the matrices of the cell at `at` are held, trained and evaluated in `dtype`;
  // masters and the optimizer's state stay. Tensors that step() gave before are gone.
  Status morph(const Coord& at, DType dtype);

  Network& network();
  TrainStep& step();
  const TrainerProgress& progress() const;
  int64_t bytes() const;  // of weights, state and activations
  // How long the run is from now on: epochs in all, those done included. Schedules span it.
  void plan(int64_t epochs, int64_t early_stop);
  Status restore(const TrainerProgress& progress);  // after TrainStep::state() was filled

 private:
  struct Impl;
  explicit Trainer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom::core

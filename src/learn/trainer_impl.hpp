// The parts of a Trainer. Private to the room.
#pragma once

#include <algorithm>

#include "learn/data/pairs.hpp"
#include "learn/step/step_builder.hpp"
#include "learn/trainer.hpp"

namespace loom::core {

// The forward pass and the loss, for evaluation.
struct Forward {
  StepTensors tensors;
  FeedbackMemory feedback;
  std::unique_ptr<Program> program;
  std::optional<PairJudge> judge;  // of losses of embeddings
};

// The result of begin_batch(): the weight of the batch, and its result if it is ready at once.
struct BatchBegun {
  double counted = 0;
  std::optional<StepResult> result;
};

struct Trainer::Impl {
  TrainerSpec options;
  std::unique_ptr<Network> network;
  std::optional<TrainStep> step;
  Forward forward;
  TrainerProgress progress;
  const Ops* ops = nullptr;
  ThreadPool* pool = nullptr;
  int64_t rows_per_sample = 1;
  std::vector<float> class_weights;
  bool labels = false;  // the data set that it began with has class labels
  Augmenter augmenter;

  bool sequences() const { return options.step.loss.sequence(); }
  bool pairs() const { return options.step.loss.pairs(); }
  PairLabels pair_labels(const Dataset& data) const { return {data, rows_per_sample}; }
  // The unit of the mean of the loss: rows of predictions, or samples.
  int64_t parts() const { return sequences() ? 1 : rows_per_sample; }
  Result<StepResult> sequence_step(const Dataset& data, const std::vector<int64_t>& order,
                                   int64_t first, int64_t count, float each, double rate);
  int64_t add_sequences(const Dataset& data, int64_t first, int64_t count, double& loss) const;
  int64_t named_labels(const Dataset& data) const;
  Status set_class_weights(const Dataset& data);
  bool plain(const Dataset& data) const {
    return data.weights.empty() && !data.ignored && class_weights.empty() && !pairs() &&
           data.lengths.empty();
  }
  double weight_of(const Dataset& data, int64_t sample, int64_t row) const;
  double counted(const Dataset& data, const std::vector<int64_t>& order, int64_t first,
                 int64_t count) const;
  float share(const Dataset& data, int64_t count, double counted, int64_t batches) const;
  // Batches of the update that batch `i` of an epoch of `steps` belongs to. The last update of an
  // epoch takes what is left.
  int64_t batches_of_update(int64_t i, int64_t steps) const {
    const int64_t most = options.step.accumulate;
    return std::min(most, steps - i / most * most);
  }
  double rate_of(int64_t i, int64_t steps) const;
  std::vector<int64_t> training_order(const Dataset& data) const;
  Result<BatchBegun> begin_batch(const Dataset& train, const std::vector<int64_t>& order, int64_t i,
                                 double rate);
  Status save_within(const EpochPosition& position, const Pause& pause);
  Status mixing_fits() const;
  Status inputs_fit(const Dataset& data) const;
  Status more_fit(const Dataset& data) const;
  bool of_padding(const Dataset& data, size_t i) const;
  Status padding_fits(const Dataset& data) const;
  Status fits(const Dataset& data) const;
  Status fill_inputs(const Dataset& data, const std::vector<int64_t>& order, int64_t first,
                     int64_t count, const Tensor& x, const std::vector<Tensor>& more = {}) const;
  Status fill_training(const Dataset& data, const std::vector<int64_t>& order, int64_t first,
                       int64_t count);
  void fill_targets(const Dataset& data, const std::vector<int64_t>& order, int64_t first,
                    int64_t count, const std::vector<Tensor>& targets, const Tensor& weight,
                    float each) const;
  void fill_relation(const Dataset& data, const std::vector<int64_t>& order, int64_t first,
                     int64_t count, const Tensor& relation, const Tensor& weight, float each) const;
  std::vector<double> anchor_weights(const Dataset& data, std::span<const int64_t> samples,
                                     const Tensor& relation) const;
  Status judge(const Dataset& data, std::span<const float> embeddings, Evaluation& result) const;
  int64_t hits(const Dataset& data, int64_t first, int64_t count) const;
  Status make_forward();
  Result<std::vector<InputRange>> observe_ranges(const Dataset& data, const OnSamples& on_samples);
  void note(EpochReport& report);
  Result<Evaluation> validate(Trainer& trainer, const Dataset& data,
                              const OnSamples& on_samples) const;
};

}  // namespace loom::core

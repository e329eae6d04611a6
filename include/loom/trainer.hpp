// Trainer: fits the weights of a network to a dataset.
//
//   Trainer trainer = Trainer::create(net, {.loss = Loss::cross_entropy, .rate = 1e-3}).or_exit();
//   History history = trainer.fit(train, test, {.epochs = 20}).or_exit();
//   print(trainer.evaluate(test).or_exit().accuracy);
//   net.save("digits.entity").or_exit();
//
// Equal networks, data, options and seeds give equal bits, on any machine and with any number of
// threads.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "loom/augment.hpp"
#include "loom/dataset.hpp"
#include "loom/export.hpp"
#include "loom/fit_options.hpp"
#include "loom/network.hpp"
#include "loom/training_events.hpp"
#include "loom/training_options.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

// Facts of a loss. Loss::automatic has those of cross_entropy, which labels choose.
struct LossInfo {
  bool labels = false;      // targets are integers: classes, sequences of them, or groups
  bool classes = false;     // outputs are logits of one class each
  bool sequences = false;   // targets are label sequences of any length
  bool embeddings = false;  // labels are any integers; samples of one label are a group
  bool numbers = false;     // targets are any numbers, which training may standardize
};
LOOM_API LossInfo loss_info(Loss loss);

// Scores of a class: precision is the share of its predictions that are right, recall the share of
// its samples that are found.
struct ClassScore {
  std::string name;  // or the class index
  int64_t samples = 0;
  double precision = 0, recall = 0, f1 = 0;
};

struct Evaluation {
  double loss = 0;
  int64_t samples = 0;
  // Labels:
  std::optional<double> accuracy;   // share of labels that have the largest output; ctc: share of
                                    // samples that are spelled right; embeddings: share of samples
                                    // whose nearest other one has their label
  std::vector<ClassScore> classes;  // one head only
  std::vector<std::vector<int64_t>> confusion;  // [class][predicted class]
  // Targets, over all outputs: mean absolute error, and 1 - (sum of squared errors) / (sum of
  // squared distances from the mean of each output). Unset if targets do not vary.
  std::optional<double> mean_absolute_error, r2;
  std::vector<Metric> metrics;  // those of TrainerOptions::metrics
};

struct History {
  std::vector<Epoch> epochs;
  bool stopped_early = false;
};

// How the ranges of one matrix were narrowed. plain and error: the lost share of the sum of squares
// of its products, with the old and the new ranges. kept: the share of the ranges that is kept.
struct RangeReport {
  std::string name;
  double plain = 0, error = 0, kept = 1;
};

struct StepReport {
  double loss = 0;
  bool updated = false;  // false: gradients are accumulating, or were not finite and were dropped
};

// One thread at a time. It changes its network, whose weights are current after every call.
class LOOM_API Trainer {
 public:
  static Result<Trainer> create(const Network& network, const TrainerOptions& options = {});
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  // Errors: invalid_argument (data that do not fit the network or the loss), cancelled,
  // out_of_memory, those of files; internal if the loss is no longer finite.
  Result<History> fit(const Dataset& train, const FitOptions& options = {});
  Result<History> fit(const Dataset& train, const Dataset& validation,
                      const FitOptions& options = {});
  Result<Evaluation> evaluate(const Dataset& data);
  // The same, and passes on the outputs: `outputs` are `count` predictions, starting at sample
  // `first`.
  using OnOutputs = std::function<void(int64_t first, int64_t count, const Tensor& outputs)>;
  // on_samples: called after each batch; false stops with Code::cancelled.
  using OnSamples = std::function<bool(int64_t done, int64_t total)>;
  Result<Evaluation> evaluate(const Dataset& data, const OnOutputs& on_outputs,
                              const OnSamples& on_samples = {});
  // Narrows the ranges of every matrix below 16 bits to minimize the error of its products on these
  // samples. For networks that are fully trained.
  Result<std::vector<RangeReport>> calibrate(const Dataset& data, const OnSamples& on_samples = {});
  // One update from one batch, for custom loops: x [batch, sample], y as for
  // Dataset::from_arrays(). Fewer samples than options.batch are allowed. An unset rate means that
  // of the options.
  Result<StepReport> train_step(const Tensor& x, const Tensor& y, std::optional<double> rate = {});
  // The same from a dataset, which may have lengths, weights and additional inputs.
  Result<StepReport> train_step(const Dataset& batch, std::optional<double> rate = {});

  // A custom loss. outputs: the network's output, float32 [batch, ...]; gradients: zeros of that
  // shape, to be filled with dL/d(outputs). Returns the loss L of this batch. An Error ends the
  // step and changes no weight. A loss that is not finite also changes no weight, without an Error.
  using OwnLoss = std::function<Result<double>(const Tensor& outputs, Tensor& gradients)>;
  // One update by that loss: forward, `loss`, backward. With options.accumulate, gradients are
  // accumulated. Equal gradients give the bits of a built-in loss. options.loss stays the loss of
  // evaluate() and of files.
  Result<StepReport> train_step(const Tensor& x, const OwnLoss& loss,
                                std::optional<double> rate = {});
  Result<StepReport> train_step(const Dataset& batch, const OwnLoss& loss,
                                std::optional<double> rate = {});

  const Network& network() const;
  int64_t bytes() const;  // memory in use; 0 before the first samples
  // Number of values in parameters frozen by `freeze` or by the network itself. Errors:
  // invalid_argument (a pattern without a match).
  Result<int64_t> frozen() const;
  int64_t epoch() const;  // completed epochs, including those before a resume
  // Saves the weights: as they are trained with float32 masters (.safetensors), or packed
  // (.entity). Either can be trained, evaluated and converted without any other file.
  Status save_weights(const std::string& path);
  // XXH3-128 of all parameters as float32, in their order.
  Result<std::string> weights_hash();

  struct LOOM_LOCAL Impl;
  explicit Trainer(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom
#endif

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
#include "loom/network.hpp"
#include "loom/training_options.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

// Of classes: precision = right of those called so, recall = found of those that are so.
struct ClassScore {
  std::string name;  // or the number of the class
  int64_t samples = 0;
  double precision = 0, recall = 0, f1 = 0;
};

// One of TrainerOptions::metrics; NaN where the samples do not determine it.
struct Metric {
  std::string name;
  double value = 0;
};

struct Evaluation {
  double loss = 0;
  int64_t samples = 0;
  // Labels:
  std::optional<double> accuracy;   // share of labels that have the largest output; of ctc of
                                    // samples that are spelled right; of embeddings of those
                                    // whose nearest other one has their label
  std::vector<ClassScore> classes;  // one head only
  std::vector<std::vector<int64_t>> confusion;  // [class][called so]
  // Targets, over all outputs: mean absolute error, and 1 - (sum of squared errors) / (sum of
  // squared distances from the mean of each output); unset where targets do not vary.
  std::optional<double> mean_absolute_error, r2;
  std::vector<Metric> metrics;  // those of TrainerOptions::metrics
};

struct Epoch {
  int64_t number = 0;  // from 1
  double train_loss = 0;
  std::optional<double> validation_loss, validation_accuracy;
  std::vector<Metric> validation_metrics;  // those of TrainerOptions::metrics
  double rate = 0;                         // of the last step
  double gradient_norm = 0;                // of the last step, where clipping asks for it
  int64_t dropped = 0;                     // updates that were not finite
  bool best = false;  // the least loss so far (of validation where there is one)
  double samples_per_second = 0;
};

// What a layer gave in the last step of an epoch, or what gradient came back to it.
struct LayerStats {
  int64_t epoch = 0;
  Coord at;
  std::string type;       // "Dense"
  bool backward = false;  // of the gradient of its output
  double mean = 0, std = 0, min = 0, max = 0;
  int64_t active = 0, total = 0;  // values beyond 1e-6 from 0, and all
};

// A layer that a batch just went through, forward or backward. Times are nanoseconds since 1970, by
// a clock that never steps back during a run; they hold the work of this layer alone.
struct LayerPass {
  Coord at;
  std::string type;       // "Dense"
  bool backward = false;  // the gradient of its output has come
  int64_t begin_ns = 0, end_ns = 0;
  std::vector<int64_t> shape;  // of its output
};

// How a learning rule sees a layer, on the mean over the batches of an epoch: docs/rules.md.
struct LinkStats {
  int64_t epoch = 0;
  Coord at;
  std::string type;   // "Dense"
  double budget = 0;  // 1: its output has the direction of its target, 0: the opposite one
  double gap = 0;     // root mean square of output - target
  double closed = 0;  // share of the batches in which it learned nothing
  double cosine = 0;  // of its signal and the gradient of the loss
  double size = 0;    // root mean square of its signal
};

struct History {
  std::vector<Epoch> epochs;
  bool stopped_early = false;
};

struct FitOptions {
  int64_t epochs = 10;     // in all; those done before (resume) count
  int64_t early_stop = 0;  // epochs without a better loss; 0: never
  std::string
      checkpoint{};  // file written after each epoch; the one before is kept as PATH.previous
  int64_t checkpoint_every = 0;  // batches after which it is written within an epoch too; 0: never
  bool resume = false;           // go on from that file, with the bits of a run that never stopped
  std::string best{};            // file of the weights with the least loss
  bool keep_best = false;        // at the end the network has the best weights, not the last
  // After each batch and each epoch; false stops with Code::cancelled. What was trained stays.
  std::function<bool(int64_t done, int64_t steps, double loss)> on_batch{};
  std::function<bool(const Epoch&)> on_epoch{};
  // While validation runs, in samples; false stops with Code::cancelled.
  std::function<bool(int64_t done, int64_t total)> on_validation{};
  std::function<void(const LayerStats&)> on_layer{};  // given to the first fit() of a trainer
  // In every batch, for every layer; given to the first fit() of a trainer. Called on the thread
  // that trains, which waits for it.
  std::function<void(const LayerPass&)> on_pass{};
  // After each epoch, for every layer in front of one with parameters and the last; given to the
  // first fit() of a trainer.
  std::function<void(const LinkStats&)> on_link{};
  // Everything is checked and the first epoch begins. Where the run goes on from: the checkpoint
  // (or the one before it), and the epochs that are done; "" and 0 from the start.
  std::function<void(const std::string& path, int64_t epochs)> on_begin{};
  // How `checkpoint` and `best` are written: calls `save` with their path, or another one where
  // that fails, so that no work is lost. Unset: a failure ends the training with its error.
  std::function<Status(const std::string& path,
                       const std::function<Status(const std::string&)>& save)>
      keep{};
};

// How the ranges of one matrix were narrowed: the share of the sum of squares of its products that
// is lost, with the ranges as they were and as they are, and what is kept of them.
struct RangeReport {
  std::string name;
  double plain = 0, error = 0, kept = 1;
};

struct StepReport {
  double loss = 0;
  bool updated = false;  // false: gradients are being added up, or were not finite and were dropped
};

// One thread at a time. Changes its network, whose weights are up to date after every call.
class LOOM_API Trainer {
 public:
  static Result<Trainer> create(const Network& network, const TrainerOptions& options = {});
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  // Errors: invalid_argument (data that do not fit the network or the loss), cancelled,
  // out_of_memory, those of files; internal where the loss is not finite any more.
  Result<History> fit(const Dataset& train, const FitOptions& options = {});
  Result<History> fit(const Dataset& train, const Dataset& validation,
                      const FitOptions& options = {});
  Result<Evaluation> evaluate(const Dataset& data);
  // The same, and shows the outputs: `outputs` are `count` predictions, from sample `first` on.
  using OnOutputs = std::function<void(int64_t first, int64_t count, const Tensor& outputs)>;
  // on_samples: after each batch; false stops with Code::cancelled.
  using OnSamples = std::function<bool(int64_t done, int64_t total)>;
  Result<Evaluation> evaluate(const Dataset& data, const OnOutputs& on_outputs,
                              const OnSamples& on_samples = {});
  // Narrows the ranges of every matrix below 16 bits to what costs its products least with these
  // samples: for networks that are done training.
  Result<std::vector<RangeReport>> calibrate(const Dataset& data, const OnSamples& on_samples = {});
  // One update from one batch, for loops of one's own: x [batch, sample], y as for
  // Dataset::from_arrays(). Fewer samples than options.batch are allowed. rate: unset, that of the
  // options.
  Result<StepReport> train_step(const Tensor& x, const Tensor& y, std::optional<double> rate = {});
  // The same from samples, which may have lengths, weights and further inputs.
  Result<StepReport> train_step(const Dataset& batch, std::optional<double> rate = {});

  // A loss of one's own. outputs: what the network gave, float32 [batch, ...]; gradients: zeros of
  // that shape, to be filled with dL/d(outputs) of the loss L of this batch, which it returns. An
  // Error ends the step, and no weight has changed; so does a loss that is not finite, without one.
  using OwnLoss = std::function<Result<double>(const Tensor& outputs, Tensor& gradients)>;
  // One update by that loss: forward, `loss`, backward. With options.accumulate gradients are added
  // up as they are given. Equal gradients give the bits of a built-in loss. options.loss is what
  // evaluate() and files go on to say.
  Result<StepReport> train_step(const Tensor& x, const OwnLoss& loss,
                                std::optional<double> rate = {});
  Result<StepReport> train_step(const Dataset& batch, const OwnLoss& loss,
                                std::optional<double> rate = {});

  const Network& network() const;
  int64_t bytes() const;  // memory that it took; 0 before the first samples
  // Numbers in parameters that `freeze` or the network itself freezes. Errors: invalid_argument (a
  // pattern without a match).
  Result<int64_t> frozen() const;
  int64_t epoch() const;  // epochs that are done, those before a resume included
  // The weights as they are trained, float32 masters included, .safetensors; or as they are packed,
  // .entity. Either can be trained on, evaluated and converted without any other file.
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

// TrainStep: forward, loss, gradients, clipping and update of a network as one recording, replayed
// for every batch. Inputs are pinned tensors that the caller fills; nothing is allocated by a step.
//
// Matrices keep an f32 master here, and the network holds them packed in their own dtype; gradients
// pass straight through the rounding (straight-through estimator), and after each update the master
// is packed again. With `native` there is no master: the packed values themselves are trained,
// rounded stochastically. Vectors are f32 and their own masters.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "learn/observer.hpp"
#include "learn/step/step_options.hpp"

namespace loom::core {

struct StepResult {
  double loss = 0;       // mean over the rows of the batch, weights applied
  double norm = 0;       // of all gradients; 0 where nothing asks for it
  bool updated = false;  // false: gradients are being added up, or were not finite and were dropped
  bool finite = true;
};

// Errors: averages, lookahead, noise of gradients or an optimizer that do not go with the rest.
Status check_step_options(const TrainStepOptions& options);

class TrainStep {
 public:
  // `network`: finalized for one batch, parameters loaded; must outlive this, at the same address.
  static Result<TrainStep> create(Network& network, const TrainStepOptions& options, const Ops& ops,
                                  ThreadPool& pool);
  TrainStep(TrainStep&&) noexcept;
  TrainStep& operator=(TrainStep&&) noexcept;
  ~TrainStep();

  // To be filled before run(). weight [rows of the prediction]: what each row's loss counts; the
  // loss of a batch is the weighted sum, so 1 / rows makes a mean, and 0 leaves a row out.
  const Tensor& x() const;
  const std::vector<Tensor>& more() const;  // TracedNetwork::more
  const Tensor& mask() const;
  const Tensor& target(size_t head = 0) const { return targets()[head]; }
  const std::vector<Tensor>& targets() const;  // per head
  const Tensor& weight() const;
  const Tensor& y() const;  // the prediction of the last run
  // Sets how many samples of the next batches are real. The others only fill the batch, and
  // statistics leave them out. By default all are real. Errors: fewer than a layer needs.
  Status set_present(int64_t samples);
  // With options.masked: how many positions of each sample of the next batches are real
  // (mark_lengths()). All, unless this was called.
  void set_lengths(std::span<const int64_t> lengths);

  // With options.documents: the lengths of the documents of each sample of the next batches. They
  // do not see each other, and positions begin at 0 in each. Each sample is one document unless
  // this was called. Errors: invalid_argument: their sum is not the length of a sample.
  Status set_documents(std::span<const std::vector<int64_t>> samples);

  Result<StepResult> run(double learning_rate);

  // One step whose loss the caller computes: from y [rows, cols] it fills dy, of that shape and
  // zero before, with the gradient of the loss, which it returns. Weights of rows have no part in
  // it, and neither has options.accumulate: gradients are added up as they are given.
  // custom_loss_x() is filled before. An Error of `loss` is returned, and no weight has changed.
  // custom_loss_inputs(): the same of inputs besides the first.
  using GivenLoss = std::function<Result<double>(const Tensor& y, const Tensor& dy)>;
  Result<Tensor> custom_loss_x();
  const std::vector<Tensor>& custom_loss_inputs() const;
  Result<StepResult> run_with_loss(double learning_rate, const GivenLoss& loss);

  // The same without waiting for the result. begin() returns when the step is on its way; on a
  // device it may still run, while the caller fills the next batch: what begin() was given is
  // copied. finish() waits for all steps begun since, and returns their results in order. kept: the
  // batch is that of the step before. A step that is dropped (StepResult::finite) still counts as
  // an update for those that were begun before finish() said so.
  Status begin(double learning_rate, bool kept = false);
  Result<std::vector<StepResult>> finish();
  // The results that are ready, in order, without waiting. A later call returns others, and
  // finish() all that are left. begin() waits if too many are pending.
  Result<std::vector<StepResult>> ready();
  // Steps worth beginning before ready(): 1 where begin() runs them at once.
  int64_t ahead() const;

  // With options.observed: called for every layer in every run from now on, forward and backward.
  // It changes the speed but no bits. An empty function stops it.
  void observe(LayerObserver observer);

  // Metamorphosis: from now on the matrices of the cell at `at` are held in `dtype`. Masters and
  // the optimizer's state stay; x(), y() and the other tensors of this step are new ones. Errors:
  // not_found when no matrix is there, invalid without masters.
  Status morph(const Coord& at, DType dtype);
  // The next batch is the first of its streams: feedback links read zeros (carry_feedback). A step
  // that is dropped because it is not finite does the same.
  Status forget();
  // Averages of the weights (AverageSpec). average() adds the weights as they are now to their
  // mean, for AverageSpec::from; has_average(): there is one by now. show_average(true): until the
  // next step the network and the masters of state() are the average, to be evaluated and saved;
  // false: those that are trained again, bit by bit. Where there is none yet it does nothing.
  Status average();
  bool has_average() const;
  Status show_average(bool shown);
  // Forgets frozen scales (scale_band) and packs all masters anew.
  Status refresh_scales();

  // On a device: everything below and the network's weights back to the host, and there again.
  // Nothing elsewhere. fetch() before reading them, saving or using the network elsewhere; send()
  // after writing. y() comes back by to_host().
  Status fetch();
  Status send();

  // Masters, vectors, buffers, optimizer state and gradients that are being added up, to save and
  // to restore; call restored() after writing.
  const std::vector<StateTensor>& state() const;
  Status restored(int64_t updates, int64_t pending = 0);
  int64_t updates() const;
  int64_t pending() const;  // batches since the last update
  // The next batch is followed by an update, even if fewer than options.accumulate were added up.
  void update_after_next();
  // Gradient of each parameter (options.accumulate > 1 only), in the order of Network::params();
  // empty for buffers and for those that are frozen.
  const std::vector<Tensor>& gradients() const;
  // With options.rule.stats, of the last run: a row per link, which is a cell in front of one with
  // parameters, and the last cell: [links, 5] of budget, gap, 1 where its gate was closed, cosine
  // with the gradient of the loss, root mean square of the signal (learn/rules/budgets.hpp). Else
  // empty.
  const Tensor& link_stats() const;
  std::vector<size_t> link_cells() const;  // into Network::cells()
  int64_t arena_bytes() const;
  int64_t state_bytes() const;
  // Bytes that create() would take for the recording of a step, its tensors, masters, moments and
  // gradients, without taking them.
  static Result<int64_t> planned_bytes(const Network& network, const TrainStepOptions& options,
                                       const Ops& ops);

 private:
  struct Impl;
  explicit TrainStep(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom::core

// The parts of a TrainStep. Private to the room.
#pragma once

#include <chrono>
#include <deque>
#include <span>

#include "learn/optimizer/optimizer.hpp"
#include "learn/rules/signals.hpp"
#include "learn/step/hyper.hpp"
#include "learn/step/step_builder.hpp"
#include "learn/step/train_step.hpp"
#include "ops/recording/program.hpp"

namespace loom::core {

// Tensors that follow others: each moves towards what it follows by the share of their distance.
struct WeightAverage {
  struct Pair {
    std::string name;  // of what is followed
    Tensor live, follower;
  };
  std::vector<Pair> pairs;
  Tensor share;  // [4]: hyper of an optimize op, the share first
  Tensor count;  // [1]: how often it moved; part of the state
  std::unique_ptr<Program> program;
};

struct TrainStep::Impl {
  Network* network = nullptr;
  TrainStepOptions options;
  const Ops* ops = nullptr;
  ThreadPool* pool = nullptr;
  StepTensors tensors;
  std::vector<Trained> trained;
  SignalPlan plan;
  std::vector<Buffer> memory;
  std::vector<StateTensor> state;
  FeedbackMemory feedback;
  std::vector<Tensor> gradients;
  std::unique_ptr<Program> step;    // forward, loss, gradients; the update too unless accumulating
  std::unique_ptr<Program> update;  // accumulating: clipping, update, gradients back to zero
  std::unique_ptr<Program> pack;    // masters into the network
  std::unique_ptr<Program> given;   // `step` with a loss of the caller; made when it is asked for
  StepTensors custom_loss_tensors;
  int64_t updates = 0;
  int64_t batches = 0;  // since the last update
  bool flush = false;   // the next batch is followed by an update, however few there were
  LayerObserver observer;
  std::unique_ptr<OptimizerDriver> driver;  // of some optimizers, else null
  Attached attached;
  // Steps begun: on a device their reports, in a ring of their own, of which whole groups are
  // fetched while later steps run. As many steps are begun ahead as run in kAhead.
  static constexpr int64_t kGroup = 16, kReports = 16 * kGroup;
  static constexpr double kAhead = 0.05;  // seconds
  using Clock = std::chrono::steady_clock;
  struct Fetch {
    int64_t ticket, first, count;
  };
  Tensor reports;  // [kReports, 4]
  std::vector<Buffer> reports_memory;
  Attached reports_attached;
  std::deque<Fetch> fetches;
  int64_t begun = 0, asked = 0, taken = 0;  // since all were fetched; asked: part of `fetches`
  int64_t max_ahead = 2 * kGroup;
  Clock::time_point taken_at;
  std::vector<StepResult> results;
  HyperNumbers hyper;
  WeightAverage average, slow;  // averages that are shown, and slow weights of lookahead
  std::vector<std::vector<std::byte>> hidden;  // the weights that averages replace; may be empty
  std::vector<MemoryRange> ranges() const;
  bool gathers() const { return options.gathers(); }
  bool updates_alone() const { return driver != nullptr && driver->updates_alone(); }

  Result<Tensor> persistent(const Shape& shape) { return loom::core::persistent(shape, memory); }
  Status make_weight(int i, Recorder& recorder, Trained& one);
  Status make_ranges(const Param& p, DType dtype, Trained& one);
  Status make_state();
  Status update_recorded(StepResult& result);
  Status update_by_driver(double rate, StepResult& result);
  void show(int64_t id, const Tensor& values) const;
  Status make_programs();
  Status make_with_loss();
  Status take_loss(const GivenLoss& loss);
  // The recording that stops for a loss of the caller; the step itself if its loss is not an op.
  const StepTensors& custom_loss_step() const {
    return options.loss.sequence() ? tensors : custom_loss_tensors;
  }
  Result<StepResult> finish_step(double rate, const Tensor& loss);
  float step_number() const {
    return static_cast<float>((updates * options.accumulate + batches) % (1 << 24));
  }
  Status set_hyper(double rate);
  // Steps that carry feedback wait for each other: one that is not finite must leave nothing.
  // So do those that are followed, since what follows counts the updates.
  bool overlaps() const {
    return ops->device != nullptr && !gathers() && !observer && feedback.empty() &&
           average.pairs.empty() && slow.pairs.empty() && plan.stats.empty() && driver == nullptr;
  }
  Status prepare(double rate);
  Status ask();
  Status take();
  Status take_all();
  Status make_following();
  Status make_averages(bool back, const std::vector<WeightAverage::Pair>& live, WeightAverage& out);
  Status follow(WeightAverage& following, double share);
  Status follow_update();
  Status restart_following();
  std::vector<std::span<std::byte>> shown_memory();
};

}  // namespace loom::core

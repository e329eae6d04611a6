// MeshTrainer: truncated back-propagation through ticks. Each window runs `window` ticks from the
// current state of the slots. The loss of one cell's output is differentiated through all of them,
// and the weights are updated. Then the stream advances by `stride` ticks, where the next window
// begins. (Williams and Peng, 1990: k2 = window, k1 = stride.) A window that overlaps the previous
// one runs its ticks again with the current weights.
//
// TrainStep provides losses, masters, number types, clipping and optimizers;
// learn/rules/tick_signals.hpp provides learning rules.
#pragma once

#include <memory>
#include <optional>

#include "learn/step/train_step.hpp"
#include "mesh/topology.hpp"

namespace loom::core {

struct MeshTrainOptions {
  TrainStepOptions step;        // forward and finish are set here; carry_feedback is ignored
  int64_t window = 8;           // ticks
  int64_t stride = 0;           // 0 means equal to the window
  std::optional<Coord> output;  // the cell that is trained; unset means the last
  bool steady = false;          // of rules: learn/rules/tick_signals.hpp
  uint64_t budget = 0;  // limit in bytes of windows, gradients and moments; 0 means no limit
};

class MeshTrainer {
 public:
  // `network`: made from `grid`, finalized for a batch, with loaded parameters; must outlive this
  // object, at the same address. Errors: those of MeshTopology and TrainStep; out_of_memory if the
  // budget is too small, before any allocation.
  static Result<MeshTrainer> create(Network& network, const GridSpec& grid,
                                    const MeshOptions& options, const MeshTrainOptions& train,
                                    const Ops& ops, ThreadPool& pool);
  MeshTrainer(MeshTrainer&&) noexcept;
  MeshTrainer& operator=(MeshTrainer&&) noexcept;
  ~MeshTrainer();

  const MeshTopology& topology() const;
  int64_t window() const;
  int64_t stride() const;
  // Ticks from a sample to the trained cell's output for it; 0 if it comes in the same tick.
  int64_t lag() const;

  // Fill these for every window, tick after tick: x(port) [window, port]; target [window * rows,
  // n], or ids [window * rows], rows being the trained cell's rows per tick; weight [window *
  // rows], the loss weight of each row.
  const Tensor& x(int port = 0) const;
  const Tensor& target() const;
  const Tensor& weight() const;
  const Tensor& y() const;  // [window * rows, n] of the last run
  int64_t rows() const;     // per tick

  // Runs the window at position(), updates, and advances by the stride. If an update was dropped
  // because it was not finite, the stream starts again.
  Result<StepResult> run(double learning_rate);
  int64_t position() const;  // ticks before the next window
  // Starts a new stream with the next window: slots are empty.
  Status reset();

  TrainStep& step();
  int64_t bytes() const;
  // The bytes that create() would allocate.
  static Result<int64_t> planned_bytes(const Network& network, const GridSpec& grid,
                                       const MeshOptions& options, const MeshTrainOptions& train,
                                       const Ops& ops);

 private:
  struct Impl;
  explicit MeshTrainer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom::core

// MeshTrainer: back-propagation through ticks with truncation. Window by window: `window` ticks are
// run from what the slots held, the loss of what one cell gives is differentiated through all of
// them, and the weights are updated; then the stream moves on by `stride` ticks and the next window
// begins there. (Williams and Peng, 1990: k2 = window, k1 = stride.) A window that overlaps the one
// before runs its ticks again with the weights as they are now.
//
// Losses, masters, number types, clipping and optimizers are those of TrainStep; learning rules
// those of learn/tick_signals.hpp.
#pragma once

#include <memory>
#include <optional>

#include "learn/train_step.hpp"
#include "mesh/topology.hpp"

namespace loom::core {

struct MeshTrainOptions {
  TrainStepOptions step;        // forward and finish are set here; carry_feedback has no meaning
  int64_t window = 8;           // ticks
  int64_t stride = 0;           // 0: as many as the window
  std::optional<Coord> output;  // the cell that is trained; unset: the last
  bool steady = false;          // of rules: learn/tick_signals.hpp
  uint64_t budget = 0;          // bytes that windows, gradients and moments may take; 0: no limit
};

class MeshTrainer {
 public:
  // `network`: of `grid`, finalized for a batch, parameters loaded; must outlive this, at the same
  // address. Errors: those of MeshTopology and TrainStep; out_of_memory where the budget is too
  // small, before anything is allocated.
  static Result<MeshTrainer> create(Network& network, const GridSpec& grid,
                                    const MeshOptions& options, const MeshTrainOptions& train,
                                    const Ops& ops, ThreadPool& pool);
  MeshTrainer(MeshTrainer&&) noexcept;
  MeshTrainer& operator=(MeshTrainer&&) noexcept;
  ~MeshTrainer();

  const MeshTopology& topology() const;
  int64_t window() const;
  int64_t stride() const;
  // Ticks from a sample to what the trained cell makes of it: 0 where it comes in the same tick.
  int64_t lag() const;

  // To be filled for every window, tick after tick: x(port) [window, port]; target [window * rows,
  // n], or ids [window * rows], rows being those that the trained cell gives in a tick; weight
  // [window * rows], what each row's loss counts.
  const Tensor& x(int port = 0) const;
  const Tensor& target() const;
  const Tensor& weight() const;
  const Tensor& y() const;  // [window * rows, n] of the last run
  int64_t rows() const;     // per tick

  // Runs the window that begins at position(), updates, and moves on by the stride. After an update
  // that was dropped because it was not finite the stream begins anew.
  Result<StepResult> run(double learning_rate);
  int64_t position() const;  // ticks before the next window
  // The next window begins a stream: nothing is held.
  Status reset();

  TrainStep& step();
  int64_t bytes() const;
  // What create() would take, in bytes.
  static Result<int64_t> planned_bytes(const Network& network, const GridSpec& grid,
                                       const MeshOptions& options, const MeshTrainOptions& train,
                                       const Ops& ops);

 private:
  struct Impl;
  explicit MeshTrainer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom::core

// L-BFGS (Nocedal and Wright, Numerical Optimization, algorithm 7.4), one iteration per update,
// without a line search: the step is rate, in the first iteration min(1, 1 / |g|_1) rate, as in
// PyTorch. For full batches: the gradients of an update must be of the same samples as those of the
// update before. Recorded as ops; the host reads three numbers per update.
//
// Pairs with s.y <= 1e-10 are not kept; where the direction does not go downhill the history is
// dropped and the gradient taken. Private to the room.
#pragma once

#include "learn/optimizer/optimizer.hpp"
#include "ops/recording/program.hpp"

namespace loom::core {

class Lbfgs : public OptimizerDriver {
 public:
  static constexpr int64_t kPairs = 10;

  // The parameters have masters and gradients.
  static Result<std::unique_ptr<OptimizerDriver>> create(const DriverCall& call);
  static Result<int64_t> planned_bytes(const Network& network, const TrainStepOptions& options,
                                       const std::vector<Trained>& trained, const Ops& ops);

  bool updates_alone() const override { return true; }
  Result<DriverOutcome> update(double rate, bool first) override;
  void add_ranges(std::vector<MemoryRange>& ranges) const override;
  int64_t arena_bytes() const override;
  int64_t state_bytes() const override;

 private:
  // State of one parameter. Slot 0 of s and y is the pair under test.
  struct Memory {
    Tensor p, gradient, p_before, gradient_before, r;
    std::vector<Tensor> s, y;
  };
  class Recording;

  Result<Tensor> persistent(const std::string& name, const Shape& shape);
  Status remember(const Trained& trained, int64_t index);
  Status record_all(const Ops& ops, ThreadPool& pool);
  float read(const Tensor& row, int64_t i) const { return row.f32()[i]; }

  const Ops* ops_ = nullptr;
  Attached attached_;
  float decay_factor_ = 0;
  std::vector<Memory> params_;
  std::vector<Buffer> buffers_;
  std::vector<StateTensor> state_;
  Tensor rho_;    // [1, pairs], 1 / s.y, newest first; 0 marks a missing pair
  Tensor gamma_;  // [1, 1], scale of the first guess of the inverse Hessian
  // [1, 5]: s.y and y.y of the pair; r.g, |g|_1 and g.g of the direction.
  Tensor report_;
  // [4] each: hyper of an optimize op that moves by that much.
  Tensor rate_, plus_, minus_, decay_rate_;
  std::unique_ptr<Program> decay_, pair_, insert_, direction_, apply_, forget_;
};

}  // namespace loom::core

// The cases of `loom bench layers`: layers and small networks at fixed shapes, forward or a whole
// training step, on any backend. Weights and inputs are pseudo-random; the caller measures time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "grid/grid.hpp"
#include "learn/step/train_step.hpp"
#include "ops/recording/program.hpp"

namespace loom::core {

// Suites: "peer" is that of the peers' scripts. A, B, D and E are those of the original project
// (spec/accel-llm.md 4.1, 4.2, 4.4, 4.5): forward showdown, training showdown, its layers in every
// dtype, seven layers per cell. "load" is that of `loom bench load`.
struct LayerCase {
  std::string suite, name;
  std::function<Result<GridSpec>()> grid;
  Shape input;
  bool train = false;
  const char* optimizer = "sgd";
  Loss loss = Loss::mse;
  int64_t vocab = 0;  // > 0: inputs are ids
  double flop = 0;    // of one run, multiplications and additions; 0 means not counted
};

const std::vector<LayerCase>& layer_cases();

// A prepared case: run() is one forward pass or one training step.
class LayerRun {
 public:
  static Result<LayerRun> create(const LayerCase& c, DType dtype, ActivationMode mode,
                                 const Ops& ops, ThreadPool& pool);
  Status run();
  // Runs several: training steps in sequence on the same batch; the losses are read at the end.
  Status run(int count);
  // Sum of the outputs' magnitudes, to check that they are not all zero.
  Result<double> output_magnitude() const;
  int64_t weight_bytes() const { return network_->param_bytes(); }

 private:
  std::unique_ptr<Network> network_;
  std::unique_ptr<TrainStep> step_;
  std::vector<RopeTable> ropes_;
  std::unique_ptr<Program> program_;
  const Ops* ops_ = nullptr;
  Tensor y_;
};

}  // namespace loom::core

// Small training runs for tests: a grid, data made of sines (fill_with_sines), a TrainStep.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/cpu.hpp"
#include "backend/reference/reference.hpp"
#include "base/threads/thread_pool.hpp"
#include "grid/grid_testing.hpp"
#include "grid/init.hpp"
#include "lab/training_hash.hpp"
#include "learn/step/train_step.hpp"

namespace loom::core::test {

class TrainRig {
 public:
  TrainRig(const GridSpec& grid, const Shape& input, DType dtype, const TrainStepOptions& options,
           const Ops& ops = cpu_ops(best_isa()), int threads = 1, DType train_in = DType::f32)
      : pool_(threads, true) {
    Result<Network> network = Network::finalize(grid, input);
    EXPECT_TRUE(network.ok()) << network.error().str();
    if (!network.ok()) return;
    network_ = std::make_unique<Network>(std::move(*network));
    EXPECT_TRUE(init_params(*network_, dtype, 7, pool_).ok());
    TrainStepOptions mine = options;
    mine.dtype = train_in;
    Result<TrainStep> step = TrainStep::create(*network_, mine, ops, pool_);
    EXPECT_TRUE(step.ok()) << step.error().str();
    if (!step.ok()) return;
    step_ = std::make_unique<TrainStep>(std::move(*step));
    fill_with_sines(*step_, network_->vocab());
  }

  bool ready() const { return step_ != nullptr; }
  TrainStep& step() { return *step_; }
  Network& network() { return *network_; }

  // Losses of `n` steps.
  std::vector<double> run(int n, double rate) {
    std::vector<double> losses;
    for (int i = 0; i < n; ++i) {
      const Result<StepResult> result = step_->run(rate);
      EXPECT_TRUE(result.ok()) << result.error().str();
      losses.push_back(result.ok() ? result->loss : NAN);
    }
    return losses;
  }

  // A hash of the whole training state and the last prediction (FNV-1a over bytes).
  uint64_t hash() const {
    uint64_t h = 14695981039346656037u;
    const auto add = [&](const Tensor& t) {
      const auto* p = reinterpret_cast<const unsigned char*>(t.data);
      for (int64_t i = 0; i < plain_bytes(t.dtype, t.shape); ++i) h = (h ^ p[i]) * 1099511628211u;
    };
    for (const StateTensor& s : step_->state()) add(s.tensor);
    add(step_->y());
    return h;
  }

 private:
  ThreadPool pool_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<TrainStep> step_;
};

}  // namespace loom::core::test

// Sessions of random networks against the evaluator: inputs shorter than the session's maximum,
// parts of sequences that continue the previous part, and feedback from pass to pass.
#include "base/threads/thread_pool.hpp"
#include "grid/session.hpp"
#include "outside/rig.hpp"

namespace loom::core::outside {
namespace {

constexpr int64_t kSequences = 2, kSteps = 6;
constexpr double kSessionTolerance = 2e-4;  // f32 against doubles

class Running {
 public:
  // Finalized for one sample of full length, for any session.
  explicit Running(const RandomGrid& grid) : grid_(grid), pool_(1, true) {
    Result<Network> made = Network::finalize(grid.spec.grid, grid.spec.input.after(1));
    EXPECT_TRUE(made.ok()) << made.error().str();
    if (!made.ok()) return;
    network_ = std::make_unique<Network>(std::move(*made));
    EXPECT_TRUE(load_params(*network_, pool_).ok());
    SessionOptions options;
    options.sequences = kSequences;
    options.max_positions = 64;
    options.activations = ActivationMode::f32;
    Result<Session> session = Session::create(*network_, cpu_ops(best_isa()), pool_,
                                              grid.spec.input.after(kSequences), options);
    EXPECT_TRUE(session.ok()) << session.error().str() << "\n" << grid.str();
    if (!session.ok()) return;
    session_ = std::make_unique<Session>(std::move(*session));
    evaluator_ = std::make_unique<Evaluator>(grid.spec.grid, kSequences);
    fill_params(*evaluator_, *network_, nullptr);
    reset();
  }

  void reset() {
    if (!ready()) return;
    session_->reset();
    evaluator_->forget();
    memory_ = {};
  }

  // One pass over `steps` steps in both; how far apart they are.
  double pass(int64_t steps) {
    Shape shape = grid_.spec.input.after(kSequences);
    shape[1] = steps;
    const std::vector<double> x = inputs(grid_, shape.count(), ++passes_);
    std::vector<float> values(x.begin(), x.end());
    std::vector<int32_t> ids(x.begin(), x.end());
    Tensor t;
    t.dtype = grid_.vocab > 0 ? DType::i32 : DType::f32;
    t.shape = shape;
    t.row_stride = shape.last();
    t.data = grid_.vocab > 0 ? reinterpret_cast<std::byte*>(ids.data())
                             : reinterpret_cast<std::byte*>(values.data());
    const Result<Tensor> y = session_->forward(t, 0, network_->cells().size());
    if (!y.ok()) {
      ADD_FAILURE() << y.error().str();
      return INFINITY;
    }
    const std::span<const float> got(y->f32(), static_cast<size_t>(y->shape.count()));
    for (const auto& [cell, fed] : grid_.fed_back)
      evaluator_->fed_back[cell] = {kSequences, steps, fed.last()};
    const Array want = evaluator_->pass(array_from(shape, x), &memory_);
    session_->advance(steps);
    return distance(got, values_of(want), 1.0);
  }
  bool ready() const { return session_ != nullptr; }

 private:
  const RandomGrid& grid_;
  ThreadPool pool_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Evaluator> evaluator_;
  Memory memory_;
  uint64_t passes_ = 0;
};

TEST(RandomSessions, TakeInputsOfAnyLengthUpToTheirOwn) {
  for (uint64_t seed = 0; seed < grid_count(200) && !HasFailure(); ++seed) {
    const RandomGrid grid = random_grid({.seed = seed, .shorter = true});
    Running running(grid);
    for (const int64_t steps : {kSteps, int64_t{3}, int64_t{1}, int64_t{5}, kSteps}) {
      running.reset();
      ASSERT_LE(running.pass(steps), kSessionTolerance) << steps << " steps, seed " << seed << "\n"
                                                        << grid.str();
    }
  }
}

TEST(RandomSessions, GoOnWhereTheLastPieceEnded) {
  for (uint64_t seed = 0; seed < grid_count(150) && !HasFailure(); ++seed) {
    const RandomGrid grid = random_grid({.seed = seed, .shorter = true});
    Running running(grid);
    for (const int64_t steps : {2, 1, 6, 3}) {
      ASSERT_LE(running.pass(steps), kSessionTolerance) << steps << " steps, seed " << seed << "\n"
                                                        << grid.str();
    }
  }
}

TEST(RandomSessions, CarryFeedbackFromPassToPassUntilTheyAreReset) {
  for (uint64_t seed = 0; seed < grid_count(150) && !HasFailure(); ++seed) {
    const RandomGrid grid = random_grid({.seed = seed, .feedback = true, .shorter = true});
    Running running(grid);
    for (const int64_t steps : {4, 6, 1}) {
      running.reset();
      for (int pass = 0; pass < 3; ++pass) {
        ASSERT_LE(running.pass(steps), kSessionTolerance)
            << "pass " << pass << " of " << steps << " steps, seed " << seed << "\n"
            << grid.str();
      }
    }
  }
}

}  // namespace
}  // namespace loom::core::outside

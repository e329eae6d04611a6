// L-BFGS against torch.optim.LBFGS (max_iter 1 a step, no line search, history 10).
#include "base/threads/thread_pool.hpp"
#include "learn/every_kind.hpp"

namespace loom::core::test {
namespace {

TrainStepOptions lbfgs(float decay = 0.0f) {
  TrainStepOptions o;
  o.optimizer.kind = *parse_optimizer("lbfgs");
  o.optimizer.weight_decay = decay;
  return o;
}

// Softmax regression from zero weights, as tools/goldens/lbfgs.py has it.
std::vector<double> regression(float decay, int steps, int threads, const Ops& ops,
                               uint64_t* hash = nullptr) {
  TrainStepOptions o = lbfgs(decay);
  o.loss.kind = Loss::cross_entropy;
  o.class_ids = true;
  TrainRig rig(row_of({dense(5, 3)}), Shape{8, 5}, DType::f32, o, ops, threads);
  for (const StateTensor& s : rig.step().state()) {
    if (s.name.rfind("lbfgs", 0) == 0) continue;
    std::fill_n(s.tensor.f32(), s.tensor.shape.count(), 0.0f);
  }
  EXPECT_TRUE(rig.step().restored(0).ok());
  const std::vector<double> losses = rig.run(steps, 1.0);
  if (hash != nullptr) *hash = rig.hash();
  return losses;
}

TEST(Lbfgs, HasTheLossesOfPyTorch) {
  const struct {
    float decay;
    std::vector<double> losses;
  } cases[] = {
      {0.0f,
       {1.0986123, 1.0894067, 1.0776521, 1.0745746, 1.0666770, 1.0623519, 1.0614462, 1.0604807,
        1.0586078, 1.0519078, 1.0409609, 1.0236942, 1.0128708, 1.0092581}},
      {0.05f,
       {1.0986123, 1.0894067, 1.0789071, 1.0765957, 1.0730516, 1.0728477, 1.0728177, 1.0728492,
        1.0728580, 1.0728411, 1.0728365, 1.0728365, 1.0728365, 1.0728365}},
  };
  for (const auto& c : cases) {
    const std::vector<double> ours =
        regression(c.decay, static_cast<int>(c.losses.size()), 1, cpu_ops(best_isa()));
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_NEAR(ours[i], c.losses[i], 2e-5) << "decay " << c.decay << ", step " << i;
    }
  }
}

TEST(Lbfgs, HasTheSameBitsOnAnyInstructionsAndThreads) {
  uint64_t expected = 0;
  regression(0.01f, 20, 1, reference_ops(), &expected);
  for (const Isa isa : available_isas()) {
    for (int threads : {1, 2, 3, 7}) {
      uint64_t hash = 0;
      regression(0.01f, 20, threads, cpu_ops(isa), &hash);
      EXPECT_EQ(hash, expected) << isa_name(isa) << ", " << threads;
    }
  }
}

TEST(Lbfgs, ComesToTheMinimumOfLeastSquaresSoonerThanAdam) {
  const auto losses = [](const TrainStepOptions& o, double rate) {
    TrainRig rig(row_of({dense(6, 2)}), Shape{16, 6}, DType::f32, o);
    return rig.run(200, rate);
  };
  const std::vector<double> ours = losses(lbfgs(), 1.0);
  const double minimum = ours.back();
  const auto steps_to_it = [&](const std::vector<double>& all) {
    return std::find_if(all.begin(), all.end(), [&](double l) { return l < 1.01 * minimum; }) -
           all.begin();
  };
  for (double rate : {0.003, 0.01, 0.03, 0.1}) {
    const std::vector<double> adam = losses({}, rate);
    EXPECT_GE(adam.back(), 0.999 * minimum);
    EXPECT_LT(2 * steps_to_it(ours), steps_to_it(adam)) << rate;
  }
}

TEST(Lbfgs, GoesOnFromItsStateWithTheSameBits) {
  const GridSpec grid = row_of({dense(6, 9, "tanh"), dense(9, 2)});
  TrainRig full(grid, Shape{16, 6}, DType::f32, lbfgs());
  TrainRig first(grid, Shape{16, 6}, DType::f32, lbfgs());
  TrainRig second(grid, Shape{16, 6}, DType::f32, lbfgs());
  full.run(9, 0.5);
  first.run(4, 0.5);
  ASSERT_EQ(first.step().state().size(), second.step().state().size());
  for (size_t i = 0; i < first.step().state().size(); ++i) {
    const Tensor& from = first.step().state()[i].tensor;
    std::copy_n(from.f32(), from.shape.count(), second.step().state()[i].tensor.f32());
  }
  ASSERT_TRUE(second.step().restored(4).ok());
  second.run(5, 0.5);
  EXPECT_EQ(second.hash(), full.hash());
}

TEST(Lbfgs, DropsAnUpdateThatIsNotFinite) {
  TrainRig rig(row_of({dense(5, 3)}), Shape{8, 5}, DType::f32, lbfgs());
  rig.run(3, 0.5);
  const float kept = rig.step().x().f32()[0], weight = rig.step().state()[0].tensor.f32()[0];
  rig.step().x().f32()[0] = NAN;
  const Result<StepResult> broken = rig.step().run(0.5);
  ASSERT_TRUE(broken.ok());
  EXPECT_FALSE(broken->updated);
  EXPECT_EQ(rig.step().state()[0].tensor.f32()[0], weight);
  rig.step().x().f32()[0] = kept;
  const std::vector<double> losses = rig.run(5, 0.5);
  EXPECT_LT(losses.back(), losses.front());
}

TEST(Lbfgs, AddsUpBatchesAndTrainsPackedWeights) {
  TrainStepOptions o = lbfgs();
  o.accumulate = 2;
  TrainRig rig(row_of({dense(5, 8, "tanh"), dense(8, 3)}), Shape{8, 5}, DType::f32, o,
               cpu_ops(best_isa()), 1, DType::i8);
  const std::vector<double> losses = rig.run(40, 0.1);
  EXPECT_EQ(rig.step().updates(), 20);
  EXPECT_LT(losses.back(), 0.9 * losses.front());
}

TEST(Lbfgs, RefusesWhatItDoesNotHave) {
  TrainStepOptions o = lbfgs();
  o.clip = {Clip::norm, 1.0f};
  Result<Network> network = Network::finalize(row_of({dense(5, 3)}), Shape{8, 5});
  ThreadPool pool(1);
  ASSERT_TRUE(init_params(*network, DType::f32, 1, pool).ok());
  const Result<TrainStep> step = TrainStep::create(*network, o, cpu_ops(best_isa()), pool);
  ASSERT_FALSE(step.ok());
  EXPECT_NE(step.error().message.find("lbfgs"), std::string::npos);
}

}  // namespace
}  // namespace loom::core::test

// Feedback links in training (docs/state.md): what a batch reads, what it leaves, and that no
// gradient flows from one batch to another. tests/outside holds random networks to the same.
#include <algorithm>

#include "base/text.hpp"
#include "learn/every_kind.hpp"
#include "learn/trainer.hpp"

namespace loom::core::test {
namespace {

LayerConfig square(const char* activation = "linear") {
  return layer(LayerKind::dense,
               {{"in", 4}, {"out", 4}, {"bias", false}, {"activation", activation}});
}

// Three cells, the last of which reads what the second gave in the pass before.
GridSpec fed_back(const char* activation = "linear") {
  GridSpec grid = row_of({square(activation), square(activation), square(activation)});
  EXPECT_TRUE(grid.put({0, 0, 2, 0}, {square(activation), {}, Link{{0, 0, 1, 0}, true}}).ok());
  return grid;
}

TrainStepOptions plain_sgd(bool carry) {
  TrainStepOptions o;
  o.optimizer.kind = *parse_optimizer("sgd");
  o.carry_feedback = carry;
  return o;
}

std::vector<float> values(const Tensor& t) {
  return {t.f32(), t.f32() + t.shape.count()};
}
std::vector<float> state_of(TrainRig& rig, const std::string& name) {
  for (const StateTensor& s : rig.step().state()) {
    if (s.name == name) return values(s.tensor);
  }
  return {};
}

TEST(Feedback, OfAFirstBatchIsZeroAndMovesNoWeight) {
  for (const bool carry : {false, true}) {
    TrainRig rig(fed_back(), Shape{1, 4}, DType::f32, plain_sgd(carry));
    std::vector<std::vector<float>> before;
    for (int cell = 0; cell < 3; ++cell)
      before.push_back(state_of(rig, cat("(0, 0, ", cell, ", 0)/weight")));
    rig.run(1, 0.5);
    for (int cell = 0; cell < 3; ++cell) {
      EXPECT_EQ(state_of(rig, cat("(0, 0, ", cell, ", 0)/weight")),
                before[static_cast<size_t>(cell)])
          << "cell " << cell << ", carry " << carry;
    }
  }
}

TEST(Feedback, IsZeroInEveryBatchUnlessItIsCarried) {
  for (const bool carry : {false, true}) {
    TrainRig rig(fed_back("tanh"), Shape{3, 4}, DType::f32, plain_sgd(carry));
    const std::vector<double> losses = rig.run(3, 0.0);
    EXPECT_EQ(losses[1] == losses[0], !carry);
    EXPECT_EQ(losses[2] == losses[1], true);  // the same batch gave the same before
    EXPECT_EQ(state_of(rig, "(0, 0, 1, 0)/feedback").empty(), !carry);
    ASSERT_TRUE(rig.step().forget().ok());
    EXPECT_EQ(rig.run(1, 0.0)[0], losses[0]);
  }
}

TEST(Feedback, OfABatchThatIsNotFiniteIsForgotten) {
  for (const int accumulate : {1, 2}) {
    TrainStepOptions options = plain_sgd(true);
    options.accumulate = accumulate;
    TrainRig rig(fed_back("tanh"), Shape{3, 4}, DType::f32, options);
    rig.run(2, 0.1);
    // The output of the second cell is NaN then, and the next batch would read it.
    const float kept = rig.step().x().f32()[0];
    rig.step().x().f32()[0] = NAN;
    for (int i = 0; i < 2 * accumulate; ++i) ASSERT_TRUE(rig.step().run(0.1).ok());
    rig.step().x().f32()[0] = kept;
    for (int i = 0; i < accumulate; ++i) ASSERT_TRUE(rig.step().run(0.1).ok());
    const std::vector<double> losses = rig.run(2 * accumulate, 0.1);
    EXPECT_TRUE(std::isfinite(losses.back())) << accumulate;
  }
}

TEST(Feedback, IsKeptWhenACellChangesItsNumberType) {
  TrainRig rig(fed_back("tanh"), Shape{3, 4}, DType::f32, plain_sgd(true));
  rig.run(2, 0.1);
  const std::vector<float> before = state_of(rig, "(0, 0, 1, 0)/feedback");
  ASSERT_EQ(before.size(), 12u);
  ASSERT_TRUE(rig.step().morph({0, 0, 0, 0}, DType::bf16).ok());
  EXPECT_EQ(state_of(rig, "(0, 0, 1, 0)/feedback"), before);
}

Dataset some_samples(int64_t n) {
  Dataset data;
  data.samples = n;
  data.sample = Shape{4};
  data.outputs = 4;
  for (int64_t i = 0; i < n * 4; ++i) {
    data.inputs.push_back(std::sin(0.3f * static_cast<float>(i)));
    data.targets.push_back(std::cos(0.7f * static_cast<float>(i)));
  }
  return data;
}

Result<Trainer> trainer_of(int64_t batch, bool carry, ThreadPool& pool) {
  TrainerSpec options;
  options.batch = batch;
  options.shuffle = false;
  options.step.carry_feedback = carry;
  return Trainer::create(fed_back("tanh"), some_samples(12), options, cpu_ops(best_isa()), pool);
}

TEST(Feedback, LeavesAnEvaluationTheSameHoweverOftenAndInWhateverBatches) {
  ThreadPool pool(1, true);
  std::vector<double> losses;
  for (const int64_t batch : {1, 3, 5, 12}) {
    Result<Trainer> trainer = trainer_of(batch, false, pool);
    ASSERT_TRUE(trainer.ok()) << trainer.error().str();
    for (int again = 0; again < 2; ++again)
      losses.push_back(trainer->evaluate(some_samples(12))->loss);
  }
  EXPECT_EQ(losses, std::vector<double>(losses.size(), losses[0]));
}

TEST(Feedback, ThatIsCarriedBeginsAnewWithEveryEpochAndEvaluation) {
  ThreadPool pool(1, true);
  Result<Trainer> trainer = trainer_of(3, true, pool);
  ASSERT_TRUE(trainer.ok()) << trainer.error().str();
  const Dataset data = some_samples(12);
  const double loss = trainer->evaluate(data)->loss;
  EXPECT_EQ(trainer->evaluate(data)->loss, loss);
  EXPECT_NE(trainer_of(4, true, pool)->evaluate(data)->loss, loss);
  // A run of two epochs, and one whose second epoch starts from the state after the first.
  ASSERT_TRUE(trainer->epoch(data, {}).ok());
  Result<Trainer> resumed = trainer_of(3, true, pool);
  for (size_t i = 0; i < trainer->step().state().size(); ++i) {
    const Tensor &from = trainer->step().state()[i].tensor, &to = resumed->step().state()[i].tensor;
    std::copy_n(from.data, plain_bytes(from.dtype, from.shape), to.data);
  }
  ASSERT_TRUE(resumed->restore(trainer->progress()).ok());
  const Result<EpochReport> a = trainer->epoch(data, {}), b = resumed->epoch(data, {});
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->train_loss, b->train_loss);
}

}  // namespace
}  // namespace loom::core::test

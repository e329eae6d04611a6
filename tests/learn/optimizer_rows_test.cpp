// Rows of optimizers: constants as checkpoints of every release have them, and steps of each.
#include <gtest/gtest.h>

#include "learn/optimizer/optimizer.hpp"
#include "learn/train_rig.hpp"

namespace loom::core::test {
namespace {

std::vector<loom::OptimizerKind> all_kinds() {
  std::vector<loom::OptimizerKind> kinds;
  for (uint8_t i = 0; optimizer_name(static_cast<loom::OptimizerKind>(i)) != "unknown"; ++i)
    kinds.push_back(static_cast<loom::OptimizerKind>(i));
  return kinds;
}

struct Usual {
  const char* name;
  float beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f, decay = 0.0f;
};
// By hand, from before there were rows: a resumed run has these in its file.
constexpr Usual kUsual[] = {
    {.name = "sgd"},
    {.name = "momentum"},
    {.name = "nesterov"},
    {.name = "rmsprop", .beta2 = 0.99f},
    {.name = "adam"},
    {.name = "adamw", .decay = 0.01f},
    {.name = "lion", .beta2 = 0.99f},
    {.name = "lbfgs"},
    {.name = "adagrad", .eps = 1e-10f},
    {.name = "adadelta", .beta2 = 0.9f, .eps = 1e-6f},
    {.name = "nadam"},
    {.name = "adamax"},
    {.name = "radam"},
    {.name = "lamb", .eps = 1e-6f, .decay = 0.01f},
    {.name = "adafactor", .eps = 1e-3f},
    {.name = "muon", .beta1 = 0.95f, .decay = 0.1f},
    {.name = "kfac"},
    {.name = "sophia", .beta1 = 0.96f, .beta2 = 0.99f, .eps = 1e-12f, .decay = 0.1f},
};

TEST(OptimizerRows, HaveTheConstantsThatCheckpointsHave) {
  for (const Usual& usual : kUsual) {
    SCOPED_TRACE(usual.name);
    const Optimizer o = resolved({.kind = *parse_optimizer(usual.name)});
    EXPECT_EQ(*o.beta1, usual.beta1);
    EXPECT_EQ(*o.beta2, usual.beta2);
    EXPECT_EQ(*o.eps, usual.eps);
    EXPECT_EQ(*o.weight_decay, usual.decay);
    EXPECT_EQ(*o.damping, 0.01f);
    EXPECT_EQ(*o.trust, 0.01f);
    EXPECT_EQ(*o.gamma, 0.05f);
    EXPECT_EQ(*o.inverse_every, 10);
  }
}

TEST(OptimizerRows, KeepAConstantThatIsSet) {
  for (const loom::OptimizerKind kind : all_kinds()) {
    const Optimizer o = resolved({.kind = kind, .beta1 = 0.25f, .inverse_every = 3});
    EXPECT_EQ(*o.beta1, 0.25f) << optimizer_name(kind);
    EXPECT_EQ(*o.inverse_every, 3) << optimizer_name(kind);
  }
}

// Every row, also those of a toy: the loss falls, with the same bits on any number of threads. A
// run that resumes from a saved state has its bits.
TEST(OptimizerRows, LowerTheLossAndGoOnFromTheirState) {
  const GridSpec grid =
      row_of({layer(LayerKind::dense, {{"in", 6}, {"out", 10}, {"activation", "tanh"}}),
              layer(LayerKind::dense, {{"in", 10}, {"out", 4}})});
  for (const loom::OptimizerKind kind : all_kinds()) {
    SCOPED_TRACE(std::string(optimizer_name(kind)));
    TrainStepOptions o;
    o.optimizer.kind = kind;
    const double rate = kind == loom::OptimizerKind::adadelta ? 10.0 : 0.02;
    TrainRig one(grid, Shape{8, 6}, DType::f32, o, reference_ops());
    TrainRig more(grid, Shape{8, 6}, DType::f32, o, cpu_ops(best_isa()), 3);
    const std::vector<double> losses = one.run(12, rate);
    EXPECT_LT(losses.back(), losses.front());
    more.run(12, rate);
    EXPECT_EQ(one.hash(), more.hash());
  }
}

// State tensors are those that OptimizerState says, for vectors and matrices.
TEST(OptimizerRows, SayWhatTheyKeep) {
  const auto count = [](const char* name, const Shape& shape) {
    const OptimizerState s = state_of(optimizer_def(*parse_optimizer(name)), shape);
    return (s.m ? s.m->count() : 0) + (s.v ? s.v->count() : 0);
  };
  EXPECT_EQ(count("sgd", Shape{3, 5}), 0);
  EXPECT_EQ(count("momentum", Shape{3, 5}), 15);
  EXPECT_EQ(count("adam", Shape{3, 5}), 30);
  EXPECT_EQ(count("adafactor", Shape{3, 5}), 8);
  EXPECT_EQ(count("adafactor", Shape{5}), 5);
  EXPECT_EQ(count("muon", Shape{3, 5}), 15);
  EXPECT_EQ(count("muon", Shape{5}), 10);
  EXPECT_EQ(count("lbfgs", Shape{5}), 0);
}

}  // namespace
}  // namespace loom::core::test

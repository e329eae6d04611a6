// Fifty steps of an optimizer end where PyTorch's do: the op and the numbers that correct it. The
// values are those of tools/goldens/optimizer_curves.py, in float64.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "backend/cpu/cpu.hpp"
#include "backend/reference/reference.hpp"
#include "learn/step/hyper.hpp"
#include "learn/train_rig.hpp"
#include "ops/ops.hpp"

namespace loom::core::test {
namespace {

struct Curve {
  const char* optimizer;
  double rate;
  float decay;
  std::array<double, 4> end;
};

constexpr Curve kCurves[] = {
    {"adagrad", 0.1, 0.0f, {0.735561980, -1.199410935, 0.593763031, 0.038656190}},
    {"adagrad", 0.1, 0.1f, {0.638191764, -1.155406432, 0.584971000, 0.037960497}},
    {"adadelta", 1.0, 0.0f, {0.369411923, -0.626210073, 1.326103468, -0.845349498}},
    {"adadelta", 1.0, 0.1f, {0.361277918, -0.622951523, 1.325041438, -0.845248047}},
    {"nadam", 0.02, 0.0f, {0.672552067, -1.036423329, 0.757253727, -0.229030787}},
    {"nadam", 0.02, 0.1f, {0.603764884, -1.009168671, 0.752058356, -0.228900535}},
    {"adamax", 0.02, 0.0f, {0.602463013, -0.930821047, 0.959334624, -0.180973570}},
    {"adamax", 0.02, 0.1f, {0.552860802, -0.905200706, 0.947447659, -0.181738599}},
    {"radam", 0.02, 0.0f, {0.346307386, -0.704460226, 1.224016580, 0.529437940}},
    {"radam", 0.02, 0.1f, {0.339872167, -0.697156667, 1.209879605, 0.534951298}},
};

Tensor row_of_four(std::array<float, 4>& values) {
  return f32_matrix(values.data(), 1, 4);
}

// `resumed`: the numbers come from an object that has seen no step before.
std::array<float, 4> walk(const Curve& c, const Ops& ops, bool resumed) {
  constexpr std::array<float, 4> kA = {0.5f, 1.0f, 2.0f, 4.0f}, kB = {1.0f, -2.0f, 0.5f, 3.0f};
  const Optimizer spec = resolved({.kind = *parse_optimizer(c.optimizer), .weight_decay = c.decay});
  std::array<float, 4> p = {0.25f, -0.5f, 1.5f, -1.0f}, g{}, m{}, v{}, hyper{};
  HyperNumbers numbers(spec, {});
  for (int step = 0; step < 50; ++step) {
    if (resumed) numbers = HyperNumbers(spec, {});
    const float sign = step % 10 == 9 ? -1.0f : 1.0f;
    for (size_t i = 0; i < 4; ++i) g[i] = kA[i] * (p[i] - sign * kB[i]);
    numbers.fill(c.rate, step, hyper.data());
    Tensor flat = row_of_four(hyper);
    flat.shape = Shape{4};
    OptimizeArgs args{row_of_four(p), row_of_four(g), row_of_four(m), row_of_four(v), flat};
    args.kind = optimizer_def(spec.kind).update;
    args.beta1 = *spec.beta1;
    args.beta2 = *spec.beta2;
    args.eps = *spec.eps;
    args.decay = *spec.weight_decay;
    ops.optimize(args, Lane{});
  }
  return p;
}

TEST(OptimizerCurves, EndWhereThoseOfPyTorchDo) {
  for (const Curve& c : kCurves) {
    const std::array<float, 4> end = walk(c, reference_ops(), false);
    for (size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(static_cast<double>(end[i]), c.end[i], 1e-5) << c.optimizer << " " << c.decay;
  }
}

TEST(OptimizerCurves, HaveTheSameBitsOnEveryInstructionSetAndAfterAResume) {
  for (const Curve& c : kCurves) {
    const std::array<float, 4> end = walk(c, reference_ops(), false);
    EXPECT_EQ(walk(c, cpu_ops(best_isa()), false), end) << c.optimizer;
    EXPECT_EQ(walk(c, reference_ops(), true), end) << c.optimizer;
  }
}

class NewOptimizers : public ::testing::TestWithParam<const char*> {};

TEST_P(NewOptimizers, LowerTheLossWithTheSameBitsForAnyThreads) {
  const GridSpec grid =
      row_of({layer(LayerKind::dense, {{"in", 8}, {"out", 24}, {"activation", "tanh"}}),
              layer(LayerKind::dense, {{"in", 24}, {"out", 6}})});
  TrainStepOptions o;
  o.optimizer.kind = *parse_optimizer(GetParam());
  const double rate = std::string(GetParam()) == "adadelta" ? 10.0 : 0.02;
  TrainRig one(grid, Shape{16, 8}, DType::f32, o, reference_ops());
  TrainRig more(grid, Shape{16, 8}, DType::f32, o, cpu_ops(best_isa()), 3);
  const std::vector<double> losses = one.run(60, rate);
  EXPECT_LT(losses.back(), 0.9 * losses.front());
  more.run(60, rate);
  EXPECT_EQ(one.hash(), more.hash());
}
INSTANTIATE_TEST_SUITE_P(Optimizers, NewOptimizers,
                         ::testing::Values("adagrad", "adadelta", "nadam", "adamax", "radam"));

}  // namespace
}  // namespace loom::core::test

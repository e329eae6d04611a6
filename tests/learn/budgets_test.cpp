// Link budgets: the numbers of TrainStep::link_stats() in doubles, the gate, and that rules without
// both are back-propagation bit by bit.
#include <algorithm>

#include "base/threads/thread_pool.hpp"
#include "learn/rule_oracle.hpp"

namespace loom::core::test {
namespace {

RuleCase budget_case(Rule rule) {
  RuleCase c;
  c.widths = {5, 16, 8, 3};
  c.batch = 6;
  c.rule = rule;
  return c;
}

// One layer whose output is set by its bias, and whose target is what the loss says.
struct Vectors {
  std::vector<float> h, t;
  double budget, rate;
};

// With weights 0 the output is the bias; mse of 2 values in one row has the gradient h - t, and
// dfa takes the whole way: its target is t.
TEST(Budgets, SayHowWellOutputsAgreeWithTargets) {
  const Vectors cases[] = {{{1, 0}, {2, 0}, 1.0, 1.0},
                           {{1, 0}, {0, 1}, 0.5, 0.75},
                           {{1, 0}, {-1, 0}, 0.0, 0.0},
                           {{0, 0}, {1, 0}, 0.5, 0.75},
                           {{7, 0}, {2, 0}, 1.0, 1.0}};
  for (const Vectors& v : cases) {
    RuleCase c;
    c.widths = {3, 2};
    c.rule = Rule::dfa;
    TrainStepOptions o = c.options();
    o.rule.stats = true;
    o.rule.gate = 0.2f;
    TrainRig rig(c.grid(), Shape{1, 3}, DType::f32, o);
    ASSERT_TRUE(rig.ready());
    Tensor bias;
    for (const StateTensor& p : rig.step().state()) {
      if (p.name.ends_with("/weight")) std::fill_n(p.tensor.f32(), p.tensor.shape.count(), 0.0f);
      if (p.name.ends_with("/bias")) bias = p.tensor;
    }
    std::copy_n(v.h.data(), 2, bias.f32());
    ASSERT_TRUE(rig.step().restored(0).ok());
    std::copy_n(v.t.data(), 2, rig.step().target().f32());
    rig.run(1, 0.25);
    const float* row = rig.step().link_stats().f32();
    EXPECT_NEAR(row[0], v.budget, 1e-6);
    EXPECT_EQ(row[2], v.budget < 0.2 ? 1.0f : 0.0f);
    const double gap = std::hypot(v.h[0] - v.t[0], v.h[1] - v.t[1]) / std::sqrt(2.0);
    EXPECT_NEAR(row[1], gap, 1e-6);
    for (size_t i = 0; i < 2; ++i)
      EXPECT_NEAR(bias.f32()[i], v.h[i] - 0.25 * v.rate * (v.h[i] - v.t[i]), 1e-6);
  }
}

TEST(Budgets, LeaveChainWithoutThemTheBitsOfBackPropagation) {
  RuleCase chain = budget_case(Rule::chain), plain = budget_case(Rule::back_propagation);
  TrainStepOptions open = chain.options();
  open.rule.gate = 0.0f;
  TrainRig one(chain.grid(), Shape{6, 5}, DType::f32, open);
  TrainRig two(plain.grid(), Shape{6, 5}, DType::f32, plain.options());
  ASSERT_TRUE(one.ready() && two.ready());
  one.run(20, 0.1);
  two.run(20, 0.1);
  EXPECT_EQ(one.hash(), two.hash());
}

TEST(Budgets, AreOfThePredictionAndOfEveryCut) {
  for (const Rule rule : {Rule::back_propagation, Rule::chain, Rule::dfa, Rule::drtp,
                          Rule::diff_project, Rule::fixed_dtp, Rule::dtp}) {
    SCOPED_TRACE(rule_name(rule));
    const RuleCase c = budget_case(rule);
    TrainStepOptions o = c.options();
    o.rule.stats = true;
    TrainRig looked(c.grid(), Shape{6, 5}, DType::f32, o);
    TrainRig plain(c.grid(), Shape{6, 5}, DType::f32, c.options());
    ASSERT_TRUE(looked.ready() && plain.ready());
    looked.run(3, 0.1);
    plain.run(3, 0.1);
    EXPECT_EQ(looked.hash(), plain.hash()) << "looking changes no bit";
    EXPECT_EQ(looked.step().link_cells(), (std::vector<size_t>{0, 1, 2}));
    ASSERT_EQ(looked.step().link_stats().rows(), 3);
    EXPECT_TRUE(plain.step().link_stats().empty());
    for (int64_t i = 0; i < 3; ++i) {
      const float* row = looked.step().link_stats().f32_row(i);
      for (int k = 0; k < 5; ++k) EXPECT_TRUE(std::isfinite(row[k])) << i << " " << k;
      EXPECT_GE(row[0], 0.0f);
      EXPECT_LE(row[0], 1.00001f);
      const bool exact = rule == Rule::back_propagation || rule == Rule::chain;
      if (exact || (i == 2 && rule != Rule::drtp)) {
        EXPECT_NEAR(row[3], 1.0f, 1e-5);
      }
    }
  }
}

// Both keep gradients until an update that is recorded apart.
TEST(Budgets, AreRefusedWhereGradientsAreGathered) {
  for (const bool kfac : {true, false}) {
    const RuleCase c = budget_case(Rule::chain);
    TrainStepOptions o = c.options();
    if (kfac) o.optimizer.kind = *parse_optimizer("kfac");
    if (!kfac) o.accumulate = 2;
    ThreadPool pool(1, true);
    Result<Network> network = Network::finalize(c.grid(), Shape{6, 5});
    ASSERT_TRUE(network.ok());
    ASSERT_TRUE(init_params(*network, DType::f32, 7, pool).ok());
    const Result<TrainStep> step = TrainStep::create(*network, o, cpu_ops(best_isa()), pool);
    ASSERT_FALSE(step.ok());
    const std::string says = step.error().message;
    EXPECT_NE(says.find("set accumulate to 1"), std::string::npos) << says;
    EXPECT_EQ(says.find("another optimizer than kfac") != std::string::npos, kfac) << says;
  }
}

// A gate that nothing reaches: no block learns.
TEST(Budgets, CloseTheGate) {
  const RuleCase c = budget_case(Rule::chain);
  TrainStepOptions o = c.options();
  o.rule.gate = 0.9999999f;
  TrainRig rig(c.grid(), Shape{6, 5}, DType::f32, o);
  ASSERT_TRUE(rig.ready());
  const uint64_t before = rig.hash();
  rig.run(1, 0.0);
  const uint64_t ran = rig.hash();
  rig.run(3, 0.5);
  EXPECT_EQ(rig.hash(), ran) << before;
}

}  // namespace
}  // namespace loom::core::test

// Learning rules other than back-propagation, budgets and K-FAC on the GPU: a few steps against the
// CPU.
#include <algorithm>

#include "gpu/support.hpp"
#include "learn/rule_oracle.hpp"

namespace loom::core::test {
namespace {

constexpr int kSteps = 4;

struct Ruled {
  std::vector<double> losses;
  std::vector<float> weights, stats;
};

Ruled follow_rule(const GridSpec& grid, const Shape& input, const TrainStepOptions& options,
                  const Ops& ops, double rate) {
  Ruled r;
  TrainRig rig(grid, input, DType::f32, options, ops);
  if (!rig.ready()) return r;
  r.losses = rig.run(kSteps, rate);
  EXPECT_TRUE(rig.step().fetch().ok());
  for (const StateTensor& s : rig.step().state()) {
    const float* values = s.tensor.f32();
    r.weights.insert(r.weights.end(), values, values + s.tensor.shape.count());
  }
  const Tensor& stats = rig.step().link_stats();
  if (!stats.empty()) r.stats.assign(stats.f32(), stats.f32() + stats.shape.count());
  return r;
}

void expect_same_rule(const GridSpec& grid, const Shape& input, const TrainStepOptions& options,
                      double rate = 0.1, bool learns = true) {
  const Ruled cpu = follow_rule(grid, input, options, cpu_ops(best_isa()), rate);
  const int64_t fallbacks = gpu()->counts().total_fallbacks();
  const Ruled got = follow_rule(grid, input, options, gpu()->ops(), rate);
  ASSERT_EQ(cpu.losses.size(), size_t{kSteps});
  ASSERT_EQ(got.losses.size(), size_t{kSteps});
  for (size_t i = 0; i < cpu.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], cpu.losses[i], 1e-3 * std::abs(cpu.losses[i])) << "step " << i;
  EXPECT_EQ(cpu.losses.front() != cpu.losses.back(), learns);
  EXPECT_LT(distance(cpu.weights, got.weights), 1e-3);
  if (!cpu.stats.empty()) {
    EXPECT_LT(distance(cpu.stats, got.stats), 1e-3);
  }
  EXPECT_EQ(gpu()->counts().total_fallbacks(), fallbacks) << "ops ran on the CPU";
}

class GpuRules : public testing::TestWithParam<Rule> {};

TEST_P(GpuRules, TrainsAsOnTheCpu) {
  LOOM_NEEDS_GPU();
  RuleCase c;
  c.widths = {5, 16, 8, 3};
  c.batch = 6;
  c.rule = GetParam();
  c.classes = true;
  TrainStepOptions options = c.options();
  options.rule.stats = c.rule == Rule::dfa || c.rule == Rule::chain;
  expect_same_rule(c.grid(), Shape{c.batch, c.widths[0]}, options);
}

TEST_P(GpuRules, TrainsConvolutionsAsOnTheCpu) {
  LOOM_NEEDS_GPU();
  if (GetParam() == Rule::hebb) GTEST_SKIP() << "of Dense alone";
  RuleCase c;
  c.widths = {64, 4};
  c.rule = GetParam();
  c.classes = true;
  expect_same_rule(
      row_of({layer(LayerKind::cnn2,
                    {{"channels", 1}, {"filters", 4}, {"padding", 1}, {"activation", "tanh"}}),
              layer(LayerKind::pool, {{"kernel", 2}, {"stride", 2}}),
              layer(LayerKind::dense, {{"in", 64}, {"out", 12}, {"activation", "tanh"}}),
              layer(LayerKind::dense, {{"in", 12}, {"out", 4}})}),
      Shape{6, 1, 8, 8}, c.options());
}

INSTANTIATE_TEST_SUITE_P(All, GpuRules,
                         testing::Values(Rule::back_propagation, Rule::chain, Rule::dfa, Rule::drtp,
                                         Rule::diff_project, Rule::fixed_dtp, Rule::dtp,
                                         Rule::forward_forward, Rule::hebb),
                         [](const auto& test) {
                           std::string name(rule_name(test.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(GpuGates, GatesCloseAsOnTheCpu) {
  LOOM_NEEDS_GPU();
  for (const Rule rule : {Rule::chain, Rule::diff_project}) {
    RuleCase c;
    c.widths = {5, 16, 8, 3};
    c.batch = 6;
    c.rule = rule;
    TrainStepOptions options = c.options();
    options.rule.gate = 0.99f;
    options.rule.stats = true;
    SCOPED_TRACE(std::string(rule_name(rule)));
    expect_same_rule(c.grid(), Shape{c.batch, c.widths[0]}, options, 0.1, false);
  }
}

TEST(GpuKfac, StepsAsOnTheCpu) {
  LOOM_NEEDS_GPU();
  RuleCase c;
  c.widths = {5, 16, 8, 3};
  c.batch = 12;
  c.classes = true;
  TrainStepOptions options = c.options();
  options.rule = {};
  options.optimizer = *parse_optimizer("kfac");
  options.optimizer.curvature.every = 3;
  expect_same_rule(c.grid(), Shape{c.batch, c.widths[0]}, options, 0.02);
}

}  // namespace
}  // namespace loom::core::test

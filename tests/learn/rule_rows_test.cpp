// Rows of learning rules: facts and keys as files of every release have them, and steps of each.
#include <gtest/gtest.h>

#include "learn/rules/rule.hpp"
#include "learn/train_rig.hpp"

namespace loom::core::test {
namespace {

std::vector<Rule> all_rules() {
  std::vector<Rule> rules;
  for (uint8_t i = 0; rule_name(static_cast<Rule>(i)) != "unknown"; ++i)
    rules.push_back(static_cast<Rule>(i));
  return rules;
}

struct RuleFacts {
  const char* name;
  const char* options;  // keys of checkpoints
  bool beta = false;
  float gate = 0;
};
// By hand, from before there were rows.
constexpr RuleFacts kRuleFacts[] = {
    {.name = "back-propagation", .options = ""},
    {.name = "dfa", .options = ""},
    {.name = "drtp", .options = ""},
    {.name = "diff-project", .options = "rule_beta", .beta = true},
    {.name = "fixed-dtp", .options = "rule_beta", .beta = true},
    {.name = "chain", .options = "", .gate = 0.2f},
    {.name = "dtp", .options = "rule_beta rule_noise rule_inverse_rate", .beta = true},
    {.name = "forward-forward", .options = "rule_threshold rule_label_scale rule_temperature"},
    {.name = "hebb", .options = ""},
};

TEST(RuleRows, HaveTheFactsOfEveryRelease) {
  for (const RuleFacts& facts : kRuleFacts) {
    SCOPED_TRACE(facts.name);
    const RuleSpec rule{.kind = *parse_rule(facts.name)};
    std::string keys;
    for (const RuleOption& option : rule_def(rule.kind).options)
      keys += (keys.empty() ? "" : " ") + std::string(option.key);
    EXPECT_EQ(keys, facts.options);
    EXPECT_EQ(rule.has_beta(), facts.beta);
    EXPECT_EQ(rule.min_budget(), facts.gate);
    EXPECT_EQ(RuleSpec({.kind = rule.kind, .gate = 0.5f}).min_budget(), 0.5f);
  }
}

TEST(RuleRows, HaveOneSourceOfSignals) {
  for (const Rule rule : all_rules()) {
    const RuleDef& def = rule_def(rule);
    const int sources = (def.gradients ? 1 : 0) + (def.direct != nullptr ? 1 : 0) +
                        (def.below != nullptr ? 1 : 0) + (def.contrast != nullptr ? 1 : 0);
    EXPECT_EQ(sources, 1) << rule_name(rule);
  }
}

// Every row, that of a toy too: the loss falls, with the same bits on any number of threads. hebb
// hardly learns.
TEST(RuleRows, LowerTheLoss) {
  const GridSpec grid =
      row_of({layer(LayerKind::dense, {{"in", 6}, {"out", 12}, {"activation", "tanh"}}),
              layer(LayerKind::layer_norm, {{"width", 12}}),
              layer(LayerKind::dense, {{"in", 12}, {"out", 4}})});
  for (const Rule rule : all_rules()) {
    if (rule == Rule::hebb) continue;
    SCOPED_TRACE(rule_name(rule));
    TrainStepOptions o;
    o.loss.kind = Loss::cross_entropy;
    o.class_ids = true;
    o.rule.kind = rule;
    TrainRig one(grid, Shape{8, 6}, DType::f32, o, reference_ops());
    TrainRig more(grid, Shape{8, 6}, DType::f32, o, cpu_ops(best_isa()), 3);
    ASSERT_TRUE(one.ready() && more.ready());
    const std::vector<double> losses = one.run(30, 0.02);
    EXPECT_LT(losses.back(), losses.front());
    more.run(30, 0.02);
    EXPECT_EQ(one.hash(), more.hash());
  }
}

TEST(RuleRows, AreListedByTheirFacts) {
  const std::string steady = rules_with(&RuleDef::steady), ticks = rules_with(&RuleDef::has_ticks);
  EXPECT_TRUE(steady.starts_with("dfa")) << steady;
  EXPECT_NE(steady.find("drtp"), std::string::npos) << steady;
  for (const char* name : {"dfa", "drtp", "diff-project", "chain"})
    EXPECT_NE(ticks.find(name), std::string::npos) << ticks;
  for (const char* name : {"back-propagation", "dtp,", "hebb", "forward-forward"})
    EXPECT_EQ(ticks.find(name), std::string::npos) << ticks;
}

}  // namespace
}  // namespace loom::core::test

// Frozen parameters keep their bits and cost nothing; rates of their own are those of a step with
// that rate.
#include "learn/step/param_rules.hpp"

#include <gmock/gmock.h>

#include "base/numbers/rng.hpp"
#include "base/pattern.hpp"
#include "base/threads/thread_pool.hpp"
#include "learn/train_rig.hpp"

namespace loom::core::test {
namespace {

using ::testing::HasSubstr;

GridSpec three_layers() {
  return row_of({layer(LayerKind::dense, {{"in", 8}, {"out", 12}, {"activation", "tanh"}}),
                 layer(LayerKind::dense, {{"in", 12}, {"out", 12}, {"activation", "relu"}}),
                 layer(LayerKind::dense, {{"in", 12}, {"out", 6}})});
}

TrainStepOptions step_of(const char* optimizer) {
  TrainStepOptions o;
  o.optimizer.kind = *parse_optimizer(optimizer);
  return o;
}

std::vector<float> values_of(TrainStep& step, const std::string& name) {
  for (const StateTensor& s : step.state()) {
    if (s.name == name) return {s.tensor.f32(), s.tensor.f32() + s.tensor.shape.count()};
  }
  return {};
}

// The matches of *, found by trying every way.
bool matches_slowly(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return matches_slowly(pattern.substr(1), text) ||
           (!text.empty() && matches_slowly(pattern, text.substr(1)));
  }
  if (text.empty() || (pattern[0] != '?' && pattern[0] != text[0])) return false;
  return matches_slowly(pattern.substr(1), text.substr(1));
}

TEST(ParamRules, PatternsMatchAsTheyDoWhenEveryWayIsTried) {
  const Rng rng(5, 0);
  uint64_t at = 0;
  int matched = 0;
  for (int n = 0; n < 20000; ++n) {
    std::string pattern, text;
    for (uint32_t i = rng.bits(at++) % 6; i > 0; --i) pattern += "ab*?*"[rng.bits(at++) % 5];
    for (uint32_t i = rng.bits(at++) % 8; i > 0; --i) text += "ab"[rng.bits(at++) % 2];
    const bool expected = matches_slowly(pattern, text);
    ASSERT_EQ(matches_pattern(pattern, text), expected) << pattern << " on " << text;
    matched += expected ? 1 : 0;
  }
  EXPECT_GT(matched, 1000);
}

TEST(ParamRules, ErrorsSayWhichPatternAndWhatThereIs) {
  const struct {
    ParamRules rules;
    const char* says;
  } cases[] = {
      {{{"(9, *"}, {}}, "freeze: no parameter matches '(9, *'; there is for example (0, 0, 0, 0)/"},
      {{{"*"}, {}}, "freeze: every parameter is frozen; leave one to train"},
      {{{}, {{"*", 0}}}, "rate_for '*': the factor is 0, must be above 0"},
      {{{}, {{"weight", 2}}}, "rate_for: no parameter matches 'weight'"},
  };
  for (const auto& c : cases) {
    const Network network = *Network::finalize(three_layers(), Shape{4, 8});
    const auto resolved = resolve_rules(c.rules, network);
    ASSERT_FALSE(resolved.ok()) << c.says;
    EXPECT_THAT(resolved.error().message, HasSubstr(c.says));
  }
}

TEST(ParamRules, FrozenParametersKeepTheirBitsAndHaveNoState) {
  for (const char* optimizer : {"sgd", "adamw", "lion", "lbfgs"}) {
    for (const int accumulate : {1, 2}) {
      for (const Clip clip : {Clip::none, Clip::norm, Clip::layer}) {
        TrainStepOptions o = step_of(optimizer);
        o.rules.freeze = {"(0, 0, 0, 0)/*", "(0, 0, 1, 0)/bias"};
        o.optimizer.weight_decay = 0.1f;
        o.accumulate = accumulate;
        if (o.optimizer.kind != loom::OptimizerKind::lbfgs) o.clip = {clip, 0.5f};
        TrainRig rig(three_layers(), Shape{16, 8}, DType::f32, o);
        ASSERT_TRUE(rig.ready());
        std::vector<std::vector<float>> before, after;
        for (auto* list : {&before, &after}) {
          for (const Param& p : rig.network().params())
            list->push_back(values_of(rig.step(), p.path));
          if (list == &before) rig.run(4, 0.01);
        }
        for (size_t i = 0; i < before.size(); ++i) {
          const std::string& path = rig.network().params()[i].path;
          const bool frozen =
              matches_pattern("(0, 0, 0, 0)/*", path) || path == "(0, 0, 1, 0)/bias";
          EXPECT_EQ(before[i] == after[i], frozen) << optimizer << " " << path;
          for (const char* state : {"/m", "/v", "/gradient"}) {
            const bool kept = !values_of(rig.step(), path + state).empty();
            EXPECT_FALSE(frozen && kept) << path << state;
          }
        }
      }
    }
  }
}

// Gradients of the last layer do not depend on whether those before it learn: its first step has
// the bits of one in which all learn.
TEST(ParamRules, WhatIsNotFrozenMovesAsItWouldWithoutTheRule) {
  for (const char* optimizer : {"momentum", "adam", "adamw", "lion"}) {
    TrainStepOptions o = step_of(optimizer);
    TrainRig all(three_layers(), Shape{16, 8}, DType::f32, o);
    o.rules.freeze = {"(0, 0, 0, 0)/*", "(0, 0, 1, 0)/*"};
    TrainRig last(three_layers(), Shape{16, 8}, DType::f32, o);
    all.run(1, 0.01);
    last.run(1, 0.01);
    EXPECT_EQ(values_of(all.step(), "(0, 0, 2, 0)/weight"),
              values_of(last.step(), "(0, 0, 2, 0)/weight"));
    EXPECT_LT(last.step().state_bytes(), all.step().state_bytes());
    EXPECT_LT(last.step().arena_bytes(), all.step().arena_bytes());
  }
}

GridSpec with_frozen(std::vector<std::string> patterns) {
  const GridSpec plain = three_layers();
  GridSpec grid(1, 1, 3, 1);
  for (int64_t i = 0; i < 3; ++i) {
    Cell cell = *plain.cell(i);
    if (i == 1) cell.frozen = patterns;
    EXPECT_TRUE(grid.put(plain.coord(i), std::move(cell)).ok());
  }
  return grid;
}

// Freezing by a network has the bits of freezing by a run. A run can train the frozen part once.
TEST(ParamRules, FrozenCellsTrainAsTheSamePatternsOfARun) {
  TrainStepOptions plain = step_of("adamw");
  TrainStepOptions frozen = plain, unfrozen = plain;
  frozen.rules.freeze = {"(0, 0, 1, 0)/weight"};
  unfrozen.rules.unfreeze = {"(0, 0, 1, 0)/*"};
  const GridSpec grid = with_frozen({"weight"});
  TrainRig all(three_layers(), Shape{16, 8}, DType::f32, plain);
  TrainRig by_run(three_layers(), Shape{16, 8}, DType::f32, frozen);
  TrainRig by_cell(grid, Shape{16, 8}, DType::f32, plain);
  TrainRig once(grid, Shape{16, 8}, DType::f32, unfrozen);
  for (TrainRig* rig : {&all, &by_run, &by_cell, &once}) rig->run(3, 0.01);
  for (const Param& p : all.network().params()) {
    EXPECT_EQ(values_of(by_cell.step(), p.path), values_of(by_run.step(), p.path)) << p.path;
    EXPECT_EQ(values_of(once.step(), p.path), values_of(all.step(), p.path)) << p.path;
  }
  EXPECT_NE(values_of(by_run.step(), "(0, 0, 1, 0)/weight"),
            values_of(all.step(), "(0, 0, 1, 0)/weight"));
  const ParamCounts counts = by_cell.network().param_counts();
  EXPECT_EQ(counts.frozen, 12 * 12);
  EXPECT_EQ(counts.trained + counts.frozen, all.network().param_count());
}

TEST(ParamRules, ANetworkThatFreezesAllSaysSo) {
  GridSpec grid(1, 1, 1, 1);
  Cell cell = *three_layers().cell(0);
  cell.frozen = {"*"};
  ASSERT_TRUE(grid.put({}, std::move(cell)).ok());
  const Network network = *Network::finalize(grid, Shape{4, 8});
  const auto resolved = resolve_rules({}, network);
  ASSERT_FALSE(resolved.ok());
  EXPECT_THAT(resolved.error().message, HasSubstr("the network freezes every parameter; unfreeze"));
}

TEST(ParamRules, AFactorGivesTheBitsOfAStepWithThatRate) {
  for (const char* optimizer : {"sgd", "adam", "adamw", "lion"}) {
    TrainStepOptions o = step_of(optimizer);
    TrainRig slow(three_layers(), Shape{16, 8}, DType::f32, o);
    TrainRig fast(three_layers(), Shape{16, 8}, DType::f32, o);
    o.rules.rates = {{"*", 4}, {"(0, 0, 2, 0)/*", 0.5}, {"(0, 0, 2, 0)/bias", 1}};
    TrainRig mixed(three_layers(), Shape{16, 8}, DType::f32, o);
    slow.run(1, 0.005);
    fast.run(1, 0.04);
    mixed.run(1, 0.01);
    const auto same = [&](TrainRig& rig, const char* name) {
      return values_of(rig.step(), name) == values_of(mixed.step(), name);
    };
    EXPECT_TRUE(same(fast, "(0, 0, 0, 0)/weight")) << optimizer;
    EXPECT_TRUE(same(fast, "(0, 0, 1, 0)/bias")) << optimizer;
    EXPECT_TRUE(same(slow, "(0, 0, 2, 0)/weight")) << optimizer;
    EXPECT_FALSE(same(slow, "(0, 0, 2, 0)/bias")) << optimizer;
  }
}

TEST(ParamRules, BitsDoNotDependOnThreadsOrInstructionSet) {
  TrainStepOptions o = step_of("adamw");
  o.rules = {{"(0, 0, 0, 0)/weight"}, {{"(0, 0, 1, *", 0.25}}};
  for (const DType dtype : {DType::f32, DType::i8}) {
    TrainRig one(three_layers(), Shape{16, 8}, dtype, o, reference_ops(), 1, dtype);
    one.run(10, 0.01);
    TrainRig two(three_layers(), Shape{16, 8}, dtype, o, cpu_ops(best_isa()), 3, dtype);
    two.run(10, 0.01);
    EXPECT_EQ(one.hash(), two.hash());
  }
}

TEST(ParamRules, LbfgsHasOneRate) {
  TrainStepOptions o = step_of("lbfgs");
  o.rules.rates = {{"*", 2}};
  Network network = *Network::finalize(three_layers(), Shape{4, 8});
  ThreadPool pool(1, true);
  ASSERT_TRUE(init_params(network, DType::f32, 7, pool).ok());
  const auto step = TrainStep::create(network, o, reference_ops(), pool);
  ASSERT_FALSE(step.ok());
  EXPECT_THAT(step.error().message, HasSubstr("leave rate_for out"));
}

}  // namespace
}  // namespace loom::core::test

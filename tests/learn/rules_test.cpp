// Learning rules beside back-propagation: one step of gradient descent on random networks of Dense
// layers against the formulas of learn/rules/signals.hpp in doubles, and what holds for every
// network.
#include <algorithm>
#include <random>

#include "base/threads/thread_pool.hpp"
#include "learn/rule_oracle.hpp"

namespace loom::core::test {
namespace {

constexpr Rule kAllRules[] = {Rule::dfa,   Rule::drtp, Rule::diff_project, Rule::fixed_dtp,
                              Rule::chain, Rule::dtp,  Rule::hebb};

RuleCase random_case(uint64_t seed) {
  std::mt19937 draw(static_cast<unsigned>(seed));
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(draw() % static_cast<unsigned>(n));
  };
  RuleCase c;
  const int64_t layers = 1 + below(4);
  for (int64_t i = 0; i <= layers; ++i) c.widths.push_back(1 + below(9));
  c.classes = below(2) == 0;
  if (c.classes) c.widths.back() = 2 + below(4);
  c.batch = 1 + below(6);
  c.tanh = below(2) == 0;
  c.rule = kAllRules[below(7)];
  c.seed = seed;
  return c;
}

TEST(LearningRules, ChangeTheWeightsOfRandomNetworksAsTheirFormulasSay) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const RuleCase c = random_case(seed);
    SCOPED_TRACE(c.str());
    TrainRig rig(c.grid(), Shape{c.batch, c.widths[0]}, DType::f32, c.options());
    ASSERT_TRUE(rig.ready());
    RuleOracle oracle(c, rig);
    constexpr double kRate = 0.5;
    rig.run(1, kRate);
    oracle.step(kRate);
    size_t seen = 0;
    for (size_t k = 0; k + 1 < c.widths.size(); ++k) {
      const auto rows = static_cast<size_t>(c.widths[k + 1]),
                 cols = static_cast<size_t>(c.widths[k]);
      for (const StateTensor& p : rig.step().state()) {
        if (p.name == cat("(0, 0, ", k, ", 0)/weight")) {
          ASSERT_LT(farthest(oracle.weight(k), grid_of(p.tensor, rows, cols)), 2e-6) << p.name;
          ++seen;
        }
        if (p.name == cat("(0, 0, ", k, ", 0)/bias")) {
          ASSERT_LT(farthest(oracle.bias(k), grid_of(p.tensor, 1, rows)), 2e-6) << p.name;
          ++seen;
        }
      }
    }
    ASSERT_EQ(seen, 2 * (c.widths.size() - 1)) << "a weight and a bias of every layer";
  }
}

RuleCase mlp(Rule rule) {
  RuleCase c;
  c.widths = {5, 16, 8, 3};
  c.batch = 6;
  c.rule = rule;
  return c;
}

GridSpec convolution_net() {
  const LayerConfig convolution = layer(
      LayerKind::cnn2, {{"channels", 1}, {"filters", 4}, {"padding", 1}, {"activation", "relu"}});
  return row_of({convolution, layer(LayerKind::pool, {{"kernel", 2}, {"stride", 2}}),
                 layer(LayerKind::dense, {{"in", 64}, {"out", 12}, {"activation", "tanh"}}),
                 layer(LayerKind::dense, {{"in", 12}, {"out", 4}})});
}

TEST(LearningRules, LowerTheLossOfAConvolutionNet) {
  for (const Rule rule : {Rule::dfa, Rule::fixed_dtp, Rule::diff_project, Rule::dtp, Rule::chain}) {
    SCOPED_TRACE(rule_name(rule));
    RuleCase c = mlp(rule);
    c.classes = true;
    TrainRig rig(convolution_net(), Shape{6, 1, 8, 8}, DType::f32, c.options());
    ASSERT_TRUE(rig.ready());
    const std::vector<double> losses = rig.run(300, 0.1);
    EXPECT_LT(losses.back(), 0.6 * losses.front());
  }
}

// LSTM, attention, norms and a container: whatever a rule sends down passes them.
GridSpec sequence_net() {
  const LayerConfig inner =
      layer(LayerKind::dense, {{"in", 8}, {"out", 8}, {"activation", "tanh"}});
  const LayerConfig residual = layer(LayerKind::residual, {}, {inner});
  return row_of({layer(LayerKind::lstm, {{"in", 5}, {"hidden", 8}}),
                 layer(LayerKind::multi_head_attention,
                       {{"width", 8}, {"heads", 2}, {"kv_heads", 2}, {"head_dim", 4}}),
                 residual, layer(LayerKind::layer_norm, {{"width", 8}}),
                 layer(LayerKind::dense, {{"in", 32}, {"out", 3}})});
}

TEST(LearningRules, LowerTheLossOfANetOfSequences) {
  for (const Rule rule : {Rule::dfa, Rule::diff_project, Rule::dtp, Rule::chain}) {
    SCOPED_TRACE(rule_name(rule));
    RuleCase c = mlp(rule);
    c.classes = true;
    TrainRig rig(sequence_net(), Shape{6, 4, 5}, DType::f32, c.options());
    ASSERT_TRUE(rig.ready());
    const std::vector<double> losses = rig.run(300, 0.1);
    EXPECT_LT(losses.back(), 0.7 * losses.front());
  }
}

TEST(LearningRules, TrainTernaryAndBinaryWeights) {
  for (const DType dtype : {DType::ternary, DType::binary}) {
    RuleCase c = mlp(Rule::diff_project);
    c.widths = {5, 64, 32, 3};  // few bits, so many units
    c.classes = true;
    TrainStepOptions o = c.options();
    o.optimizer.kind = *parse_optimizer("adam");
    TrainRig rig(c.grid(), Shape{c.batch, 5}, dtype, o, cpu_ops(best_isa()), 1, dtype);
    ASSERT_TRUE(rig.ready());
    const std::vector<double> losses = rig.run(400, 0.01);
    EXPECT_LT(*std::min_element(losses.end() - 20, losses.end()), 0.7 * losses.front());
  }
}

TEST(LearningRules, GoOnFromTheirStateWithTheSameBits) {
  std::vector<Rule> rules(std::begin(kAllRules), std::end(kAllRules));
  rules.push_back(Rule::forward_forward);
  for (const Rule rule : rules) {
    SCOPED_TRACE(rule_name(rule));
    RuleCase c = mlp(rule);
    c.classes = true;
    TrainRig full(c.grid(), Shape{c.batch, 5}, DType::f32, c.options());
    TrainRig half(c.grid(), Shape{c.batch, 5}, DType::f32, c.options());
    TrainRig rest(c.grid(), Shape{c.batch, 5}, DType::f32, c.options());
    ASSERT_TRUE(full.ready() && half.ready() && rest.ready());
    full.run(9, 0.05);
    half.run(4, 0.05);
    for (size_t i = 0; i < half.step().state().size(); ++i) {
      const Tensor& from = half.step().state()[i].tensor;
      std::copy_n(from.f32(), from.shape.count(), rest.step().state()[i].tensor.f32());
    }
    ASSERT_TRUE(rest.step().restored(4).ok());
    rest.run(5, 0.05);
    EXPECT_EQ(rest.hash(), full.hash());
  }
}

// Hidden units in another order, weights alike: targets in that order, so weights after a step too.
TEST(LearningRules, KnowNoOrderOfHiddenUnits) {
  const RuleCase c = mlp(Rule::diff_project);
  TrainRig one(c.grid(), Shape{c.batch, 5}, DType::f32, c.options());
  TrainRig two(c.grid(), Shape{c.batch, 5}, DType::f32, c.options());
  ASSERT_TRUE(one.ready() && two.ready());
  const auto rotated = [](int64_t i) { return (i + 5) % 16; };  // of the first hidden layer
  const auto find = [](TrainRig& rig, const std::string& name) {
    for (const StateTensor& p : rig.step().state()) {
      if (p.name == name) return p.tensor;
    }
    return Tensor{};
  };
  const Tensor in_one = find(one, "(0, 0, 0, 0)/weight"), in_two = find(two, "(0, 0, 0, 0)/weight");
  const Tensor out_one = find(one, "(0, 0, 1, 0)/weight"),
               out_two = find(two, "(0, 0, 1, 0)/weight");
  for (int64_t i = 0; i < 16; ++i) {
    std::copy_n(in_one.f32_row(i), 5, in_two.f32_row(rotated(i)));
    for (int64_t o = 0; o < 8; ++o) out_two.f32_row(o)[rotated(i)] = out_one.f32_row(o)[i];
  }
  ASSERT_TRUE(two.step().restored(0).ok());
  one.run(3, 0.2);
  two.run(3, 0.2);
  for (int64_t i = 0; i < 16; ++i) {
    for (int64_t k = 0; k < 5; ++k)
      EXPECT_NEAR(in_one.f32_row(i)[k], in_two.f32_row(rotated(i))[k], 1e-5);
    for (int64_t o = 0; o < 8; ++o)
      EXPECT_NEAR(out_one.f32_row(o)[i], out_two.f32_row(o)[rotated(i)], 1e-5);
  }
}

// Exclusive or by layers that are not square: a transposed index would fail at once.
TEST(LearningRules, LearnExclusiveOr) {
  for (const int64_t batch : {4, 16}) {
    RuleCase c;
    c.widths = {3, 5, 2};
    c.batch = batch;
    c.classes = true;
    c.rule = Rule::diff_project;
    c.seed = 3;
    TrainRig rig(c.grid(), Shape{batch, 3}, DType::f32, c.options());
    ASSERT_TRUE(rig.ready());
    for (int64_t r = 0; r < batch; ++r) {
      const int64_t a = r % 2, b = r / 2 % 2;
      float* x = rig.step().x().f32_row(r);
      x[0] = a != 0 ? 1.0f : -1.0f;
      x[1] = b != 0 ? 1.0f : -1.0f;
      x[2] = 1.0f;
      rig.step().target().i32()[r] = static_cast<int32_t>(a ^ b);
    }
    const std::vector<double> losses = rig.run(4999, 0.3);
    EXPECT_LT(losses.back(), 0.1) << batch;
  }
}

// Targets push hidden layers on even if the prediction is right, so the layers must be able to
// saturate. Samples alternate, with an update for each.
TEST(LearningRules, LearnExclusiveOrOneSampleAtATime) {
  RuleCase c;
  c.widths = {3, 5, 2};
  c.batch = 1;
  c.classes = true;
  c.rule = Rule::diff_project;
  c.seed = 3;
  TrainRig rig(c.grid(), Shape{1, 3}, DType::f32, c.options());
  ASSERT_TRUE(rig.ready());
  double worst = 0;
  for (int64_t i = 0; i < 4999; ++i) {
    const int64_t a = i % 2, b = i / 2 % 2;
    float* x = rig.step().x().f32();
    x[0] = a != 0 ? 1.0f : -1.0f;
    x[1] = b != 0 ? 1.0f : -1.0f;
    x[2] = 1.0f;
    rig.step().target().i32()[0] = static_cast<int32_t>(a ^ b);
    const double loss = rig.run(1, 0.1)[0];
    if (i >= 4990) worst = std::max(worst, loss);
  }
  EXPECT_LT(worst, 0.1);
}

// Four steps through a recurrent layer, alone at the bottom and between others.
TEST(LearningRules, LowerTheLossOfRecurrentNetsOverFourSteps) {
  for (const LayerKind kind : {LayerKind::rnn, LayerKind::lstm, LayerKind::gru}) {
    for (const Rule rule : {Rule::dfa, Rule::diff_project, Rule::chain}) {
      SCOPED_TRACE(cat(rule_name(rule), " ", static_cast<int>(kind)));
      RuleCase c = mlp(rule);
      c.classes = true;
      const LayerConfig dense =
          layer(LayerKind::dense, {{"in", 5}, {"out", 5}, {"activation", "tanh"}});
      TrainRig rig(row_of({dense, layer(kind, {{"in", 5}, {"hidden", 8}}),
                           layer(LayerKind::dense, {{"in", 32}, {"out", 3}})}),
                   Shape{6, 4, 5}, DType::f32, c.options());
      ASSERT_TRUE(rig.ready());
      const std::vector<double> losses = rig.run(300, 0.1);
      EXPECT_LT(losses.back(), 0.7 * losses.front());
    }
  }
}

TEST(LearningRules, LowerTheLossByTargetsAlone) {
  RuleCase c = mlp(Rule::drtp);
  c.classes = true;
  TrainRig rig(c.grid(), Shape{c.batch, 5}, DType::f32, c.options());
  ASSERT_TRUE(rig.ready());
  const Tensor& x = rig.step().x();
  for (int64_t i = 0; i < x.shape.count(); ++i) x.f32()[i] *= 10;
  const std::vector<double> losses = rig.run(600, 0.1);
  EXPECT_LT(losses.back(), 0.6 * losses.front());
}

TEST(LearningRules, GiveEqualBitsOverThreadsAndInstructionSets) {
  std::vector<Rule> rules(std::begin(kAllRules), std::end(kAllRules));
  rules.push_back(Rule::forward_forward);
  for (const Rule rule : rules) {
    SCOPED_TRACE(rule_name(rule));
    RuleCase c = mlp(rule);
    c.classes = true;
    std::optional<uint64_t> first;
    for (const Isa isa : available_isas()) {
      for (const int threads : {1, 2, 3, 7}) {
        TrainRig rig(c.grid(), Shape{c.batch, 5}, DType::i8, c.options(), cpu_ops(isa), threads,
                     DType::i8);
        ASSERT_TRUE(rig.ready());
        rig.run(20, 0.05);
        if (!first) first = rig.hash();
        EXPECT_EQ(rig.hash(), *first) << isa_name(isa) << " " << threads;
      }
    }
  }
}

// With a prediction that is the target all rules but drtp leave every bit where it is.
TEST(LearningRules, LeaveWeightsAloneWhereThePredictionIsTheTarget) {
  for (const Rule rule : {Rule::dfa, Rule::diff_project, Rule::fixed_dtp, Rule::dtp, Rule::chain}) {
    SCOPED_TRACE(rule_name(rule));
    const RuleCase c = mlp(rule);
    TrainStepOptions options = c.options();
    options.rule.inverse_rate = 0;  // inverses go on learning
    TrainRig rig(c.grid(), Shape{c.batch, 5}, DType::f32, options);
    ASSERT_TRUE(rig.ready());
    rig.run(1, 0.0);  // for the prediction alone
    std::copy_n(rig.step().y().f32(), rig.step().y().shape.count(), rig.step().target().f32());
    const auto weights = [&] {
      std::vector<float> all;
      for (const StateTensor& p : rig.step().state()) {
        if (p.name.ends_with("/v")) continue;
        all.insert(all.end(), p.tensor.f32(), p.tensor.f32() + p.tensor.shape.count());
      }
      return all;
    };
    const std::vector<float> before = weights();
    rig.run(1, 0.5);
    EXPECT_EQ(weights(), before);
  }
}

TEST(LearningRules, AddUpOverBatchesToThoseOfOne) {
  RuleCase c = mlp(Rule::dfa);
  TrainStepOptions twice = c.options();
  twice.accumulate = 2;
  TrainRig one(c.grid(), Shape{c.batch, 5}, DType::f32, c.options());
  TrainRig two(c.grid(), Shape{c.batch, 5}, DType::f32, twice);
  ASSERT_TRUE(one.ready() && two.ready());
  one.run(1, 0.2);
  two.run(2, 0.1);  // the same batch twice at half the rate
  for (const StateTensor& a : one.step().state()) {
    for (const StateTensor& b : two.step().state()) {
      if (a.name != b.name) continue;
      for (int64_t k = 0; k < a.tensor.shape.count(); ++k)
        EXPECT_NEAR(a.tensor.f32()[k], b.tensor.f32()[k], 1e-6) << a.name;
    }
  }
}

TEST(LearningRules, AreRefusedByNameWhereTheyHaveNoSignal) {
  const LayerConfig dense = layer(LayerKind::dense, {{"in", 4}, {"out", 4}});
  const LayerConfig norm = layer(LayerKind::layer_norm, {{"width", 4}});
  GridSpec linked(1, 1, 3, 1);
  ASSERT_TRUE(linked.put({0, 0, 0, 0}, {dense}).ok());
  ASSERT_TRUE(linked.put({0, 0, 1, 0}, {dense}).ok());
  ASSERT_TRUE(linked.put({0, 0, 2, 0}, {dense, {}, Link{{0, 0, 0, 0}}}).ok());
  const LayerConfig nothing = layer(LayerKind::sequential, {});
  const struct {
    GridSpec grid;
    Rule rule;
    float beta;
    std::string says;
    loom::OptimizerKind optimizer = loom::OptimizerKind::adam;
  } cases[] = {
      {row_of({dense, norm, dense}), Rule::hebb, 0.6f, "is not a Dense"},
      {row_of({dense, dense, nothing}), Rule::hebb, 0.6f, "is not a Dense layer of its own"},
      {row_of({dense, dense}), Rule::forward_forward, 0.6f, "it is for labels"},
      {row_of({dense, dense}), Rule::dtp, 0.0f, "beta is 0"},
      {row_of({dense, dense}), Rule::dfa, 0.6f, "L-BFGS", loom::OptimizerKind::lbfgs},
      {row_of({dense, dense}), Rule::diff_project, 0.0f, "beta is 0"},
      {row_of({dense, dense}), Rule::fixed_dtp, 1.5f, "beta is 1.5"},
      {linked, Rule::dfa, 0.6f, "has a link"},
  };
  ThreadPool pool(1, true);
  for (const auto& c : cases) {
    SCOPED_TRACE(c.says);
    Result<Network> network = Network::finalize(c.grid, Shape{2, 4});
    ASSERT_TRUE(network.ok()) << network.error().str();
    ASSERT_TRUE(init_params(*network, DType::f32, 7, pool).ok());
    TrainStepOptions o;
    o.rule.kind = c.rule;
    o.rule.beta = c.beta;
    o.optimizer.kind = c.optimizer;
    const Result<TrainStep> step = TrainStep::create(*network, o, cpu_ops(best_isa()), pool);
    ASSERT_FALSE(step.ok());
    EXPECT_NE(step.error().message.find(c.says), std::string::npos) << step.error().message;
  }
}

TEST(LearningRules, HaveNames) {
  for (const Rule rule : kAllRules) EXPECT_EQ(*parse_rule(rule_name(rule)), rule);
  const auto wrong = parse_rule("backprop");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("diff-project"), std::string::npos);
}

}  // namespace
}  // namespace loom::core::test

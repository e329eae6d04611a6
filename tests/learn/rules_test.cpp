// Learning rules beside back-propagation: one step of gradient descent on random networks of Dense
// layers against the formulas of learn/signals.hpp in doubles, and what holds for every network.
#include <algorithm>
#include <cmath>
#include <random>

#include "base/rng.hpp"
#include "base/text.hpp"
#include "learn/train_rig.hpp"

namespace loom::core::test {
namespace {

using Grid2 = std::vector<std::vector<double>>;

Grid2 empty_grid(size_t rows, size_t cols) {
  return Grid2(rows, std::vector<double>(cols));
}

Grid2 multiplied(const Grid2& a, const Grid2& b) {
  Grid2 y = empty_grid(a.size(), b[0].size());
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < b.size(); ++k)
      for (size_t j = 0; j < b[0].size(); ++j) y[i][j] += a[i][k] * b[k][j];
  return y;
}

Grid2 values_of(const Tensor& t, size_t rows, size_t cols) {
  Grid2 y = empty_grid(rows, cols);
  for (size_t i = 0; i < rows * cols; ++i) y[i / cols][i % cols] = static_cast<double>(t.f32()[i]);
  return y;
}

// The matrix of the cut behind `cell`.
Grid2 random_of(uint64_t seed, size_t cell, size_t rows, size_t cols) {
  const Rng rng(seed, (uint64_t{1} << 51) + cell);
  Grid2 b = empty_grid(rows, cols);
  const double most = std::sqrt(3.0 / static_cast<double>(rows));
  for (size_t i = 0; i < rows * cols; ++i)
    b[i / cols][i % cols] = (2.0 * static_cast<double>(rng.uniform(i)) - 1.0) * most;
  return b;
}

struct RuleCase {
  std::vector<int64_t> widths;  // of the input and of every layer
  int64_t batch = 1;
  bool tanh = true;  // of hidden layers; else ReLU
  bool classes = false;
  RuleKind rule = RuleKind::dfa;
  uint64_t seed = 1;

  std::string str() const {
    std::string text = cat(rule_name(rule), classes ? " classes" : " mse", " seed ", seed,
                           " batch ", batch, tanh ? " tanh" : " relu");
    for (const int64_t w : widths) text += cat(" ", w);
    return text;
  }
  GridSpec grid() const {
    std::vector<LayerConfig> layers;
    for (size_t i = 0; i + 1 < widths.size(); ++i) {
      const bool last = i + 2 == widths.size();
      layers.push_back(layer(LayerKind::dense, {{"in", widths[i]},
                                                {"out", widths[i + 1]},
                                                {"activation", std::string(last   ? "linear"
                                                                           : tanh ? "tanh"
                                                                                  : "relu")}}));
    }
    return row_of(std::move(layers));
  }
  TrainStepOptions options() const {
    TrainStepOptions o;
    o.loss.kind = classes ? LossKind::softmax_ce : LossKind::mse;
    o.class_ids = classes;
    o.optimizer.kind = OptimizerKind::sgd;
    o.rule.kind = rule;
    o.rule.beta = 0.5f;
    o.seed = seed;
    return o;
  }
};

// The step of one case in doubles.
class RuleOracle {
 public:
  RuleOracle(const RuleCase& c, TrainRig& rig) : c_(c), n_(static_cast<size_t>(c.batch)) {
    const auto size = [&](size_t i) { return static_cast<size_t>(c.widths[i]); };
    for (size_t k = 0; k + 1 < c.widths.size(); ++k) {
      const std::string at = cat("(0, 0, ", k, ", 0)/");
      for (const StateTensor& p : rig.step().state()) {
        if (p.name == at + "weight") w_.push_back(values_of(p.tensor, size(k + 1), size(k)));
        if (p.name == at + "bias") b_.push_back(values_of(p.tensor, 1, size(k + 1)));
      }
    }
    h_.push_back(values_of(rig.step().x(), n_, size(0)));
    for (size_t k = 0; k < w_.size(); ++k) forward(k);
    gradient_of_loss(rig);
  }

  // Signals of all layers, then the weights after a step with this rate.
  void step(double rate) {
    std::vector<Grid2> signals(w_.size());
    signals.back() = e_;
    const bool damped = c_.rule == RuleKind::diff_project || c_.rule == RuleKind::fixed_dtp;
    for (auto& row : signals.back())
      for (double& v : row) v *= damped ? 0.5 : 1.0;
    for (size_t k = w_.size() - 1; k-- > 0;) signals[k] = signal(k, signals[k + 1]);
    for (size_t k = 0; k < w_.size(); ++k) {
      for (size_t r = 0; r < n_; ++r) {
        for (size_t o = 0; o < w_[k].size(); ++o) {
          const double d = signals[k][r][o] * slope(k, r, o);
          b_[k][0][o] -= rate * d;
          for (size_t i = 0; i < w_[k][o].size(); ++i) w_[k][o][i] -= rate * d * h_[k][r][i];
        }
      }
    }
  }
  const Grid2& weight(size_t k) const { return w_[k]; }
  const Grid2& bias(size_t k) const { return b_[k]; }

 private:
  bool hidden(size_t k) const { return k + 1 < w_.size(); }

  void forward(size_t k) {
    Grid2 z = empty_grid(n_, w_[k].size());
    for (size_t r = 0; r < n_; ++r) {
      for (size_t o = 0; o < w_[k].size(); ++o) {
        double sum = b_[k][0][o];
        for (size_t i = 0; i < w_[k][o].size(); ++i) sum += w_[k][o][i] * h_[k][r][i];
        z[r][o] = !hidden(k) ? sum : c_.tanh ? std::tanh(sum) : std::max(sum, 0.0);
      }
    }
    h_.push_back(std::move(z));
  }

  double slope(size_t k, size_t r, size_t o) const {
    const double y = h_[k + 1][r][o];
    return !hidden(k) ? 1.0 : c_.tanh ? 1 - y * y : y > 0 ? 1.0 : 0.0;
  }

  void gradient_of_loss(TrainRig& rig) {
    const Grid2& y = h_.back();
    const size_t out = y[0].size();
    e_ = minus_t_ = empty_grid(n_, out);
    for (size_t r = 0; r < n_; ++r) {
      const double w = static_cast<double>(rig.step().weight().f32()[r]);
      double sum = 0;
      for (const double v : y[r]) sum += std::exp(v);
      for (size_t o = 0; o < out; ++o) {
        const Tensor& target = rig.step().target();
        const double t = c_.classes ? (target.i32()[r] == static_cast<int32_t>(o) ? 1.0 : 0.0)
                                    : static_cast<double>(target.f32()[r * out + o]);
        minus_t_[r][o] = -w * t;
        e_[r][o] = c_.classes ? w * (std::exp(y[r][o]) / sum - t)
                              : w * 2 * (y[r][o] - t) / static_cast<double>(out);
      }
    }
  }

  Grid2 signal(size_t k, const Grid2& above) const {
    const size_t width = h_[k + 1][0].size();
    switch (c_.rule) {
      case RuleKind::dfa: return multiplied(e_, random_of(c_.seed, k, e_[0].size(), width));
      case RuleKind::drtp: return multiplied(minus_t_, random_of(c_.seed, k, e_[0].size(), width));
      case RuleKind::fixed_dtp: return through_inverse(k, above);
      default: return projected(k, above);
    }
  }

  Grid2 projected(size_t k, const Grid2& above) const {
    const Grid2& w = w_[k + 1];
    Grid2 s = multiplied(above, w);
    for (size_t i = 0; i < s[0].size(); ++i) {
      double sum = 0;
      for (const auto& row : w) sum += std::fabs(row[i]);
      const double factor = sum > 0.01 ? std::sqrt(static_cast<double>(w.size())) / sum : 0.0;
      for (auto& row : s) row[i] *= factor;
    }
    return s;
  }

  Grid2 through_inverse(size_t k, const Grid2& above) const {
    const Grid2& upper = h_[k + 2];
    const Grid2 random = random_of(c_.seed, k, upper[0].size(), h_[k + 1][0].size());
    Grid2 target = upper;
    const double n = static_cast<double>(n_);
    for (size_t r = 0; r < n_; ++r)
      for (size_t o = 0; o < upper[0].size(); ++o) target[r][o] -= n * above[r][o];
    Grid2 s = multiplied(upper, random);
    const Grid2 wanted = multiplied(target, random);
    for (size_t r = 0; r < n_; ++r)
      for (size_t i = 0; i < s[0].size(); ++i)
        s[r][i] = (std::tanh(s[r][i]) - std::tanh(wanted[r][i])) / n;
    return s;
  }

  const RuleCase& c_;
  size_t n_;
  std::vector<Grid2> w_, b_, h_;  // h_[0]: the input
  Grid2 e_, minus_t_;
};

// Infinite where a number is none, which std::max would pass over.
double farthest(const Grid2& wanted, const Grid2& got) {
  double most = 0;
  for (size_t r = 0; r < wanted.size(); ++r) {
    for (size_t c = 0; c < wanted[0].size(); ++c) {
      const double gap = std::fabs(wanted[r][c] - got[r][c]);
      most = std::isnan(gap) ? INFINITY : std::max(most, gap);
    }
  }
  return most;
}

constexpr RuleKind kAllRules[] = {RuleKind::dfa, RuleKind::drtp, RuleKind::diff_project,
                                  RuleKind::fixed_dtp};

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
  c.rule = kAllRules[below(4)];
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
          ASSERT_LT(farthest(oracle.weight(k), values_of(p.tensor, rows, cols)), 2e-6) << p.name;
          ++seen;
        }
        if (p.name == cat("(0, 0, ", k, ", 0)/bias")) {
          ASSERT_LT(farthest(oracle.bias(k), values_of(p.tensor, 1, rows)), 2e-6) << p.name;
          ++seen;
        }
      }
    }
    ASSERT_EQ(seen, 2 * (c.widths.size() - 1)) << "a weight and a bias of every layer";
  }
}

RuleCase mlp(RuleKind rule) {
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
  for (const RuleKind rule : {RuleKind::dfa, RuleKind::fixed_dtp}) {
    SCOPED_TRACE(rule_name(rule));
    RuleCase c = mlp(rule);
    c.classes = true;
    TrainRig rig(convolution_net(), Shape{6, 1, 8, 8}, DType::f32, c.options());
    ASSERT_TRUE(rig.ready());
    const std::vector<double> losses = rig.run(300, 0.1);
    EXPECT_LT(losses.back(), 0.6 * losses.front());
  }
}

// Targets push hidden layers on however right the prediction is, so they must be able to saturate.
TEST(LearningRules, LowerTheLossByTargetsAlone) {
  RuleCase c = mlp(RuleKind::drtp);
  c.classes = true;
  TrainRig rig(c.grid(), Shape{c.batch, 5}, DType::f32, c.options());
  ASSERT_TRUE(rig.ready());
  const Tensor& x = rig.step().x();
  for (int64_t i = 0; i < x.shape.count(); ++i) x.f32()[i] *= 10;
  const std::vector<double> losses = rig.run(600, 0.1);
  EXPECT_LT(losses.back(), 0.6 * losses.front());
}

TEST(LearningRules, GiveEqualBitsOverThreadsAndInstructionSets) {
  for (const RuleKind rule : kAllRules) {
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
  for (const RuleKind rule : {RuleKind::dfa, RuleKind::diff_project, RuleKind::fixed_dtp}) {
    SCOPED_TRACE(rule_name(rule));
    const RuleCase c = mlp(rule);
    TrainRig rig(c.grid(), Shape{c.batch, 5}, DType::f32, c.options());
    ASSERT_TRUE(rig.ready());
    rig.run(1, 0.0);  // for the prediction alone
    std::copy_n(rig.step().y().f32(), rig.step().y().shape.count(), rig.step().target().f32());
    const uint64_t before = rig.hash();
    rig.run(1, 0.5);
    EXPECT_EQ(rig.hash(), before);
  }
}

TEST(LearningRules, AddUpOverBatchesToThoseOfOne) {
  RuleCase c = mlp(RuleKind::dfa);
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
    RuleKind rule;
    float beta;
    std::string says;
    int64_t history = 0;  // of L-BFGS
  } cases[] = {
      {row_of({dense, norm, dense}), RuleKind::diff_project, 0.6f, "is no Dense"},
      {row_of({dense, dense, nothing}), RuleKind::diff_project, 0.6f, "behind the last Dense"},
      {row_of({dense, nothing, dense, nothing, dense}), RuleKind::diff_project, 0.6f,
       "stands between two Dense"},
      {row_of({dense, dense}), RuleKind::dfa, 0.6f, "L-BFGS", 5},
      {row_of({dense, dense}), RuleKind::diff_project, 0.0f, "beta is 0"},
      {row_of({dense, dense}), RuleKind::fixed_dtp, 1.5f, "beta is 1.5"},
      {linked, RuleKind::dfa, 0.6f, "has a link"},
  };
  ThreadPool pool(1, true);
  for (const auto& c : cases) {
    SCOPED_TRACE(c.says);
    Result<Network> network = Network::finalize(c.grid, Shape{2, 4});
    ASSERT_TRUE(network.ok()) << network.error().str();
    ASSERT_TRUE(init_params(*network, DType::f32, 7, pool).ok());
    TrainStepOptions o;
    o.rule = {c.rule, c.beta};
    o.optimizer.history = c.history;
    const Result<TrainStep> step = TrainStep::create(*network, o, cpu_ops(best_isa()), pool);
    ASSERT_FALSE(step.ok());
    EXPECT_NE(step.error().message.find(c.says), std::string::npos) << step.error().message;
  }
}

TEST(LearningRules, HaveNames) {
  for (const RuleKind rule : kAllRules) EXPECT_EQ(*parse_rule(rule_name(rule)), rule);
  const auto wrong = parse_rule("hebb");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("diff-project"), std::string::npos);
}

}  // namespace
}  // namespace loom::core::test

// Forward-Forward: one step moves the weights of hidden layers by its formulas, in doubles.
// Goodness learns to separate right labels from wrong ones.
#include <algorithm>
#include <random>

#include "base/threads/thread_pool.hpp"
#include "learn/rule_oracle.hpp"

namespace loom::core::test {
namespace {

RuleCase contrast_case(uint64_t seed) {
  std::mt19937 draw(static_cast<unsigned>(seed));
  const auto below = [&](unsigned n) { return static_cast<int64_t>(draw() % n); };
  RuleCase c;
  const int64_t layers = 2 + below(3);
  for (int64_t i = 0; i <= layers; ++i) c.widths.push_back(1 + below(9));
  c.widths.back() = 2;  // with two classes the wrong label is the other one
  c.classes = true;
  c.batch = 1 + below(6);
  c.tanh = below(2) == 0;
  c.rule = Rule::forward_forward;
  c.seed = seed;
  return c;
}

double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

// The weights after one step, from those before it: the state of `rig` in doubles.
class ContrastOracle {
 public:
  // heat: the temperature; 0 takes the width of the layer.
  ContrastOracle(const RuleCase& c, TrainRig& rig, double heat)
      : c_(c), n_(static_cast<size_t>(c.batch)), heat_(heat) {
    const auto size = [&](size_t i) { return static_cast<size_t>(c.widths[i]); };
    for (size_t k = 0; k + 1 < c.widths.size(); ++k) {
      for (const StateTensor& p : rig.step().state()) {
        const std::string at = cat("(0, 0, ", k, ", 0)/");
        if (p.name == at + "weight") w_.push_back(grid_of(p.tensor, size(k + 1), size(k)));
        if (p.name == at + "bias") b_.push_back(grid_of(p.tensor, 1, size(k + 1)));
      }
    }
    x_ = grid_of(rig.step().x(), n_, size(0));
    for (size_t r = 0; r < n_; ++r) {
      labels_.push_back(static_cast<size_t>(rig.step().target().i32()[r]));
      rows_.push_back(static_cast<double>(rig.step().weight().f32()[r]));
    }
    patterns_ = random_of(c.seed, w_.size(), 2, size(0));
    for (auto& row : patterns_)
      for (double& v : row) v *= std::sqrt(2.0);
  }

  void step(double rate) {
    const std::vector<Grid2> w = w_, b = b_;
    for (const bool right : {true, false}) {
      Grid2 h = x_;
      for (size_t r = 0; r < n_; ++r) {
        const size_t label = right ? labels_[r] : 1 - labels_[r];
        for (size_t i = 0; i < h[r].size(); ++i) h[r][i] += patterns_[label][i];
      }
      for (size_t k = 0; k + 1 < w.size(); ++k) h = learn(w, b, k, h, right, rate);
    }
    read_out(w, b, rate);
  }
  const Grid2& weight(size_t k) const { return w_[k]; }
  const Grid2& bias(size_t k) const { return b_[k]; }

 private:
  Grid2 forward(const std::vector<Grid2>& w, const std::vector<Grid2>& b, size_t k,
                const Grid2& x) const {
    Grid2 y = empty_grid(n_, w[k].size());
    for (size_t r = 0; r < n_; ++r) {
      for (size_t o = 0; o < w[k].size(); ++o) {
        double sum = b[k][0][o];
        for (size_t i = 0; i < w[k][o].size(); ++i) sum += w[k][o][i] * x[r][i];
        y[r][o] = k + 1 == w.size() ? sum : c_.tanh ? std::tanh(sum) : std::max(sum, 0.0);
      }
    }
    return y;
  }

  Grid2 learn(const std::vector<Grid2>& w, const std::vector<Grid2>& b, size_t k, const Grid2& x,
              bool right, double rate) {
    const Grid2 h = forward(w, b, k, x);
    const auto width = static_cast<double>(h[0].size());
    const double heat = heat_ > 0 ? heat_ : width;
    for (size_t r = 0; r < n_; ++r) {
      double goodness = -2.0 * width;
      for (const double v : h[r]) goodness += v * v;
      const double share = right ? -sigmoid(-goodness / heat) : sigmoid(goodness / heat);
      for (size_t o = 0; o < h[r].size(); ++o) {
        const double slope = c_.tanh ? 1 - h[r][o] * h[r][o] : h[r][o] > 0 ? 1.0 : 0.0;
        const double d = rows_[r] * share * 2.0 * h[r][o] / heat * slope;
        b_[k][0][o] -= rate * d;
        for (size_t i = 0; i < x[r].size(); ++i) w_[k][o][i] -= rate * d * x[r][i];
      }
    }
    return h;
  }

  void read_out(const std::vector<Grid2>& w, const std::vector<Grid2>& b, double rate) {
    Grid2 h = x_;
    for (size_t k = 0; k + 1 < w.size(); ++k) h = forward(w, b, k, h);
    const size_t last = w.size() - 1;
    const Grid2 y = forward(w, b, last, h);
    for (size_t r = 0; r < n_; ++r) {
      double sum = 0;
      for (const double v : y[r]) sum += std::exp(v);
      for (size_t o = 0; o < y[r].size(); ++o) {
        const double d = rows_[r] * (std::exp(y[r][o]) / sum - (labels_[r] == o ? 1.0 : 0.0));
        b_[last][0][o] -= rate * d;
        for (size_t i = 0; i < h[r].size(); ++i) w_[last][o][i] -= rate * d * h[r][i];
      }
    }
  }

  const RuleCase& c_;
  size_t n_;
  double heat_;
  std::vector<Grid2> w_, b_;
  Grid2 x_, patterns_;
  std::vector<size_t> labels_;
  std::vector<double> rows_;
};

TEST(ForwardForward, ChangesTheWeightsOfRandomNetworksAsItsFormulasSay) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const RuleCase c = contrast_case(seed);
    SCOPED_TRACE(c.str());
    TrainStepOptions options = c.options();
    options.rule.temperature = seed % 3 == 0 ? 0.0f : 0.5f * static_cast<float>(seed % 5 + 1);
    TrainRig rig(c.grid(), Shape{c.batch, c.widths[0]}, DType::f32, options);
    ASSERT_TRUE(rig.ready());
    ContrastOracle oracle(c, rig, static_cast<double>(options.rule.temperature));
    // A low temperature makes gradients as much larger; the step stays what it was.
    constexpr double kMaxWide = 9;
    const auto heat = static_cast<double>(options.rule.temperature);
    const double rate = 0.5 * (heat > 0 ? heat / kMaxWide : 1.0);
    rig.run(1, rate);
    oracle.step(rate);
    for (size_t k = 0; k + 1 < c.widths.size(); ++k) {
      const auto rows = static_cast<size_t>(c.widths[k + 1]);
      const auto cols = static_cast<size_t>(c.widths[k]);
      for (const StateTensor& p : rig.step().state()) {
        if (p.name == cat("(0, 0, ", k, ", 0)/weight")) {
          ASSERT_LT(farthest(oracle.weight(k), grid_of(p.tensor, rows, cols)), 2e-6) << p.name;
        }
        if (p.name == cat("(0, 0, ", k, ", 0)/bias")) {
          ASSERT_LT(farthest(oracle.bias(k), grid_of(p.tensor, 1, rows)), 2e-6) << p.name;
        }
      }
    }
  }
}

TEST(ForwardForward, RefusesWhatHasNoLabels) {
  RuleCase c = contrast_case(1);
  c.widths = {4, 4, 3};
  const struct {
    std::string says;
    std::function<void(TrainStepOptions&)> change;
  } cases[] = {
      {"it is for labels", [](TrainStepOptions& o) { o.class_ids = false; }},
      {"no targets, so no budgets", [](TrainStepOptions& o) { o.rule.gate = 0.2f; }},
      {"no targets, so no budgets", [](TrainStepOptions& o) { o.rule.stats = true; }},
  };
  ThreadPool pool(1, true);
  for (const auto& one : cases) {
    Result<Network> network = Network::finalize(c.grid(), Shape{2, 4});
    ASSERT_TRUE(network.ok());
    ASSERT_TRUE(init_params(*network, DType::f32, 7, pool).ok());
    TrainStepOptions o = c.options();
    one.change(o);
    const Result<TrainStep> step = TrainStep::create(*network, o, cpu_ops(best_isa()), pool);
    ASSERT_FALSE(step.ok()) << one.says;
    EXPECT_NE(step.error().message.find(one.says), std::string::npos) << step.error().message;
  }
}

}  // namespace
}  // namespace loom::core::test

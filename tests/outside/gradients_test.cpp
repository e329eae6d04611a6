// Random networks against the evaluator, in doubles on the reference backend. Compared are the
// output and the gradient of every parameter, over three passes if feedback links carry values.
// Carried values are constants: no gradient flows through them.
#include "base/arena.hpp"
#include "grid/traced.hpp"
#include "ops/gradients/gradient.hpp"
#include "ops/recording/program.hpp"
#include "outside/rig.hpp"

namespace loom::core::outside {
namespace {

constexpr int kPasses = 3;
// Elementary functions in f64 have their own polynomials; see fmath.hpp.
constexpr double kF64Tolerance = 1e-6;

// One pass with its gradients, recorded once and replayed.
class Recorded {
 public:
  explicit Recorded(const RandomGrid& grid) : pool_(1, true) {
    Result<Network> made = Network::finalize(grid.spec.grid, grid.spec.input.after(2));
    EXPECT_TRUE(made.ok()) << made.error().str() << "\n" << grid.str();
    if (!made.ok()) return;
    network = std::make_unique<Network>(std::move(*made));
    const Status built = build();
    EXPECT_TRUE(built.ok()) << built.error().str() << "\n" << grid.str();
    ready = built.ok();
  }

  Status run(const std::vector<double>& x, const std::vector<double>& r) {
    put<double>(net_.x, x);
    put<double>(r_, r);
    return program_->run();
  }
  std::span<const double> y() const { return all(net_.y); }
  int64_t outputs() const { return network->output().count(); }
  // The gradient of parameter i. It is empty if the output does not depend on the parameter.
  std::span<const double> gradient(size_t i) const { return all(gradients_[i]); }

  std::unique_ptr<Network> network;
  bool ready = false;

 private:
  static std::span<const double> all(const Tensor& t) {
    if (t.empty()) return {};
    return {t.values<double>(), static_cast<size_t>(t.shape.count())};
  }

  static double* value_at(const Tensor& t, int64_t i) {
    if (t.layout == Layout::plain) return t.values<double>() + i;
    const R16 g = r16_geometry(t.dtype, t.shape[0], t.shape[1]);
    const int64_t row = i / g.cols, k = i % g.cols;
    return reinterpret_cast<double*>(t.data + row / 16 * g.group_bytes + g.codes +
                                     (k * 16 + row % 16) * 8);
  }

  Status build() {
    for (size_t i = 0; i < network->params().size(); ++i) {
      LOOM_TRY(network->allocate_param(static_cast<int>(i), DType::f64, DType::f64));
      const std::vector<double> values = param_values(*network, i);
      for (size_t k = 0; k < values.size(); ++k)
        *value_at(network->params()[i].tensor, static_cast<int64_t>(k)) = values[k];
    }
    std::vector<Shape> outputs;
    for (const GridNode& cell : network->cells()) outputs.push_back(cell.out);
    LOOM_ASSIGN(feedback_, FeedbackMemory::create(*network, outputs, reference_ops_f64()));
    Trace trace(DType::f64, true);
    Recorder recorder(trace);
    TraceOptions options;
    options.feedback = &feedback_.tensors();
    LOOM_ASSIGN(net_, trace_network(*network, trace, options));
    r_ = trace.fresh(Shape{net_.y.rows(), net_.y.cols()});
    Differentiator d(trace);
    for (const Param& p : network->params()) d.want(p.tensor);
    d.seed(net_.y, r_);  // L = sum of r y
    LOOM_TRY(d.run());
    LOOM_TRY(record_feedback(net_, feedback_.tensors(), recorder));
    for (const Param& p : network->params()) gradients_.push_back(d.gradient(p.tensor));
    std::vector<Tensor*> pins = {&net_.x, &net_.y, &net_.step, &r_};
    for (Tensor& g : gradients_) {
      if (!g.empty()) pins.push_back(&g);
    }
    LOOM_ASSIGN(Program program,
                Program::compile(std::move(trace), pins, reference_ops_f64(), pool_));
    program_ = std::make_unique<Program>(std::move(program));
    return {};
  }

  ThreadPool pool_;
  FeedbackMemory feedback_;
  TracedNetwork net_;
  Tensor r_;
  std::vector<Tensor> gradients_;
  std::unique_ptr<Program> program_;
};

// dL/dp of every parameter, L = sum of r y of one pass.
std::vector<std::vector<double>> derivatives(const Evaluator& evaluator, const Network& network,
                                             const Array& y, const std::vector<double>& r,
                                             const Tape& tape) {
  Var loss(0);
  for (size_t i = 0; i < y.v.size(); ++i) loss = loss + y.v[i] * Var(r[i]);
  const std::vector<double> d = tape.derivatives(loss.at);
  std::vector<std::vector<double>> all;
  for (const Param& p : network.params()) {
    std::vector<double>& mine = all.emplace_back();
    for (const Var& v : evaluator.params.at(p.path)) mine.push_back(d[static_cast<size_t>(v.at)]);
  }
  return all;
}

// Compares passes; a difference is a failure with the whole network in its message.
void expect_formulas(const RandomGrid& grid, int passes) {
  Recorded recorded(grid);
  if (!recorded.ready) return;
  const Network& network = *recorded.network;
  Evaluator evaluator = evaluator_of(grid, 2);
  for (int pass = 0; pass < passes; ++pass) {
    Tape tape;
    fill_params(evaluator, network, &tape);
    const auto seed = static_cast<uint64_t>(pass);
    const std::vector<double> x = inputs(grid, network.input().count(), seed);
    const std::vector<double> r = numbers(recorded.outputs(), 500 + seed);
    const Status ran = recorded.run(x, r);
    ASSERT_TRUE(ran.ok()) << ran.error().str();
    const Array y = evaluator.pass(array_from(network.input(), x), nullptr);
    ASSERT_LE(distance(recorded.y(), values_of(y), 1.0), kF64Tolerance)
        << "output of pass " << pass << "\n"
        << grid.str();
    const auto want = derivatives(evaluator, network, y, r, tape);
    for (size_t i = 0; i < want.size(); ++i) {
      const std::vector<double> zeros(want[i].size(), 0.0);
      const std::span<const double> none(zeros);
      const std::span<const double> got = recorded.gradient(i);
      ASSERT_LE(distance(got.empty() ? none : got, want[i], 1e-2), kF64Tolerance)
          << "gradient of " << network.params()[i].path << ", pass " << pass << "\n"
          << grid.str();
    }
  }
}

TEST(RandomGrids, HaveTheOutputsAndGradientsOfTheirFormulas) {
  for (uint64_t seed = 0; seed < grid_count(200) && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    expect_formulas(random_grid({.seed = seed}), 1);
  }
}

TEST(RandomGrids, WithFeedbackHaveTheGradientsOfThreePasses) {
  for (uint64_t seed = 0; seed < grid_count(300) && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    expect_formulas(random_grid({.seed = seed, .feedback = true}), kPasses);
  }
}

TEST(RandomGrids, WithFeedbackOfAnyWidthHaveTheGradientsOfThreePasses) {
  for (uint64_t seed = 0; seed < grid_count(300) && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    expect_formulas(random_grid({.seed = seed, .feedback = true, .any_width = true}), kPasses);
  }
}

TEST(RandomGrids, WithSharedCellsAddUpTheGradientsOfAllUsers) {
  for (uint64_t seed = 0; seed < grid_count(150) && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    expect_formulas(random_grid({.seed = seed, .feedback = seed % 3 == 0, .sharing = true}),
                    seed % 3 == 0 ? kPasses : 1);
  }
}

// The evaluator itself, against central differences of its own output.
TEST(Evaluator, HasTheDerivativesOfCentralDifferences) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const RandomGrid grid = random_grid({.seed = seed, .sharing = true, .smooth = true});
    Result<Network> network = Network::finalize(grid.spec.grid, grid.spec.input.after(2));
    ASSERT_TRUE(network.ok()) << network.error().str();
    const std::vector<double> x = inputs(grid, network->input().count(), 0);
    const std::vector<double> r = numbers(network->output().count(), 500);
    Evaluator evaluator(grid.spec.grid, 2);
    Tape tape;
    fill_params(evaluator, *network, &tape);
    const Array y = evaluator.pass(array_from(network->input(), x), nullptr);
    const auto exact = derivatives(evaluator, *network, y, r, tape);
    fill_params(evaluator, *network, nullptr);
    const auto loss = [&] {
      const Array moved = evaluator.pass(array_from(network->input(), x), nullptr);
      double sum = 0;
      for (size_t i = 0; i < moved.v.size(); ++i) sum += moved.v[i].value * r[i];
      return sum;
    };
    for (size_t i = 0; i < exact.size(); ++i) {
      std::vector<Var>& values = evaluator.params.at(network->params()[i].path);
      const size_t k = exact[i].size() / 2;
      const double old = values[k].value, h = 1e-5;
      values[k] = Var(old + h);
      const double up = loss();
      values[k] = Var(old - h);
      const double numeric = (up - loss()) / (2 * h);
      values[k] = Var(old);
      EXPECT_NEAR(numeric, exact[i][k], 1e-6 * std::max(1.0, std::fabs(numeric)))
          << network->params()[i].path << "\n"
          << grid.str();
    }
  }
}

}  // namespace
}  // namespace loom::core::outside

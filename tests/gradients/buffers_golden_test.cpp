// BatchNorm in f32 against PyTorch (golden/buffers.json): training, gradients, running statistics
// after three batches, and use, on the reference backend and on the best one of this processor.
#include <cmath>
#include <map>

#include "backend/cpu/cpu.hpp"
#include "backend/reference/reference.hpp"
#include "gradients/golden_rig.hpp"
#include "learn/step/step_builder.hpp"

namespace loom::core::test {
namespace {

// Two values per channel may be close to each other: their mean is rounded once, their distance
// not.
constexpr double kForward = 5e-5, kBackward = 1e-4;

struct BufferCase {
  GoldenCase golden;
  const Ops* ops = nullptr;
};

std::ostream& operator<<(std::ostream& out, const BufferCase& c) {
  return out << c.golden.name << " on " << c.ops->name;
}

std::vector<BufferCase> buffer_cases() {
  std::vector<BufferCase> all;
  const Result<std::vector<GoldenCase>> read = read_golden_index("buffers.json");
  EXPECT_TRUE(read.ok()) << read.error().str();
  if (!read.ok()) return all;
  for (const GoldenCase& c : *read) {
    all.push_back({c, &reference_ops()});
    all.push_back({c, &cpu_ops(best_isa())});
  }
  return all;
}

class BufferGolden : public ::testing::TestWithParam<BufferCase> {
 protected:
  BufferGolden() : pool_(2, true) {}

  void SetUp() override {
    const Status made = make();
    ASSERT_TRUE(made.ok()) << made.error().str();
  }

  Status make() {
    const GoldenCase& c = GetParam().golden;
    LOOM_ASSIGN(Golden golden, Golden::open(c));
    golden_ = std::make_unique<Golden>(std::move(golden));
    GridSpec grid(1, 1, 1, 1);
    LOOM_TRY(grid.put({0, 0, 0, 0}, {c.layer}));
    LOOM_ASSIGN(Network network, Network::finalize(grid, c.input));
    network_ = std::make_unique<Network>(std::move(network));
    for (size_t i = 0; i < network_->params().size(); ++i) {
      const std::string name = "p/" + golden_param(network_->params()[i]);
      LOOM_ASSIGN(const std::vector<float> values, golden_->values(name));
      const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
        std::copy_n(values.begin() + first, count, out);
        return {};
      };
      LOOM_TRY(network_->load_param(static_cast<int>(i), DType::f32, rows, pool_));
    }
    LOOM_ASSIGN(batches_, golden_->values("x"));
    return build();
  }

  // A training pass with its gradients, followed by the updates of buffers.
  Status build() {
    Trace trace(DType::f32, true);
    TraceOptions options;
    options.training = true;
    LOOM_ASSIGN(net_, trace_network(*network_, trace, options));
    r_ = trace.fresh(net_.y.shape);
    Differentiator d(trace);
    d.want(net_.x);
    for (const Param& p : network_->params()) {
      if (p.spec.trained) d.want(p.tensor);
    }
    d.seed(net_.y, r_);
    LOOM_TRY(d.run());
    Recorder recorder(trace);
    const Tensor finite = trace.fresh(Shape{1, 1});
    LOOM_TRY(recorder.fill({finite, 1.0f}));
    LOOM_TRY(record_kept(trace, net_, finite));
    gradients_["dx"] = d.gradient(net_.x);
    for (const Param& p : network_->params()) {
      if (p.spec.trained) gradients_["g/" + golden_param(p)] = d.gradient(p.tensor);
    }
    std::vector<Tensor*> pins = {&net_.x, &net_.y, &net_.step, &r_};
    for (auto& [name, gradient] : gradients_) pins.push_back(&gradient);
    LOOM_ASSIGN(Program program, Program::compile(std::move(trace), pins, *GetParam().ops, pool_));
    program_ = std::make_unique<Program>(std::move(program));
    LOOM_ASSIGN(const std::vector<float> r, golden_->loss_weights());
    std::copy_n(r.begin(), r_.shape.count(), r_.f32());
    return {};
  }

  void run_batch(size_t i) {
    const int64_t each = net_.x.shape.count();
    std::copy_n(batches_.begin() + static_cast<int64_t>(i) * each, each, net_.x.f32());
    const Status ran = program_->run();
    ASSERT_TRUE(ran.ok()) << ran.error().str();
  }

  void expect(const std::string& name, const Tensor& got, double tolerance) {
    ASSERT_FALSE(got.empty()) << name;
    const Result<std::vector<float>> want = golden_->values(name);
    ASSERT_TRUE(want.ok()) << want.error().str();
    ASSERT_EQ(static_cast<size_t>(got.shape.count()), want->size()) << name;
    for (size_t i = 0; i < want->size(); ++i) {
      const double target = static_cast<double>((*want)[i]);
      ASSERT_NEAR(static_cast<double>(got.f32()[i]), target, tolerance * (1 + std::fabs(target)))
          << name << " at " << i;
    }
  }

  Tensor buffer(const std::string& name) const {
    for (const Param& p : network_->params()) {
      if (p.spec.name == name) return p.tensor;
    }
    return {};
  }

  ThreadPool pool_;
  std::unique_ptr<Golden> golden_;
  std::unique_ptr<Network> network_;
  std::vector<float> batches_;
  TracedNetwork net_;
  Tensor r_;
  std::map<std::string, Tensor> gradients_;
  std::unique_ptr<Program> program_;
};

TEST_P(BufferGolden, TrainingIsThatOfPyTorch) {
  run_batch(0);
  expect("y", net_.y, kForward);
  for (const auto& [name, gradient] : gradients_) expect(name, gradient, kBackward);
}

TEST_P(BufferGolden, RunningStatisticsAreThoseOfPyTorchBehindThreeBatches) {
  for (size_t i = 0; i < 3; ++i) run_batch(i);
  expect("running_mean", buffer("running_mean"), kForward);
  expect("running_var", buffer("running_var"), kForward);
}

TEST_P(BufferGolden, UseAfterTrainingIsThatOfPyTorch) {
  for (size_t i = 0; i < 3; ++i) run_batch(i);
  SessionOptions options;
  options.sequences = net_.x.shape[0];
  options.activations = ActivationMode::f32;
  Result<Session> session =
      Session::create(*network_, *GetParam().ops, pool_, net_.x.shape, options);
  ASSERT_TRUE(session.ok()) << session.error().str();
  std::copy_n(batches_.begin(), net_.x.shape.count(), net_.x.f32());
  const Result<Tensor> y = session->forward(net_.x, 0, 1);
  ASSERT_TRUE(y.ok()) << y.error().str();
  expect("used", *y, kForward);
}

INSTANTIATE_TEST_SUITE_P(Layers, BufferGolden, ::testing::ValuesIn(buffer_cases()),
                         [](const auto& c) {
                           const bool reference = c.param.ops == &reference_ops();
                           return c.param.golden.name + (reference ? "_reference" : "_cpu");
                         });

}  // namespace
}  // namespace loom::core::test

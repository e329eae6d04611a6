// Training steps that are submitted in advance have the same bits as steps that are awaited.
#include <limits>

#include "gpu/support.hpp"
#include "grid/init.hpp"
#include "lab/training_hash.hpp"
#include "learn/step/train_step.hpp"

namespace loom::core::test {
namespace {

struct Prepared {
  std::unique_ptr<Network> network;
  std::optional<TrainStep> step;
};

Result<Prepared> prepare(const char* kind_name, Clip clip, const char* optimizer = "adam") {
  for (const KindNetwork& kind : kind_networks()) {
    if (kind.kind != kind_name) continue;
    Prepared p;
    const NetworkSpec& spec = kind.network;
    LOOM_ASSIGN(Network network, Network::finalize(spec.grid, spec.input.after(kind.batch)));
    p.network = std::make_unique<Network>(std::move(network));
    LOOM_TRY(init_params(*p.network, DType::f32, 7, threads()));
    TrainStepOptions options;
    LOOM_ASSIGN(options.optimizer.kind, parse_optimizer(optimizer));
    options.clip = {clip, 1.0f};
    LOOM_ASSIGN(TrainStep step, TrainStep::create(*p.network, options, gpu()->ops(), threads()));
    p.step.emplace(std::move(step));
    fill_with_sines(*p.step, p.network->vocab());
    return p;
  }
  return invalid("no such kind");
}

std::vector<float> weights(TrainStep& step) {
  std::vector<float> all;
  EXPECT_TRUE(step.fetch().ok());
  for (const StateTensor& s : step.state()) {
    all.insert(all.end(), s.tensor.f32(), s.tensor.f32() + s.tensor.shape.count());
  }
  return all;
}

class GpuSteps : public testing::TestWithParam<Clip> {};

TEST_P(GpuSteps, BegunAheadAreThoseWaitedFor) {
  LOOM_NEEDS_GPU();
  constexpr int kSteps = 300;  // more than reports are kept
  auto one = prepare("Dense", GetParam()), other = prepare("Dense", GetParam());
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_GT(other->step->ahead(), 1);
  std::vector<double> losses;
  for (int i = 0; i < kSteps; ++i) {
    const auto result = one->step->run(0.01);
    ASSERT_TRUE(result.ok()) << result.error().str();
    losses.push_back(result->loss);
    ASSERT_TRUE(other->step->begin(0.01, i % 2 == 1).ok());
  }
  const auto results = other->step->finish();
  ASSERT_TRUE(results.ok()) << results.error().str();
  ASSERT_EQ(results->size(), losses.size());
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_EQ((*results)[i].loss, losses[i]) << i;
    EXPECT_TRUE((*results)[i].updated);
  }
  EXPECT_EQ(one->step->updates(), other->step->updates());
  EXPECT_EQ(weights(*one->step), weights(*other->step));
}

INSTANTIATE_TEST_SUITE_P(Clip, GpuSteps,
                         testing::Values(Clip::none, Clip::norm, Clip::layer, Clip::value));

TEST(GpuSteps, ResultsThatAreReadyComeInOrderWhileLaterStepsRun) {
  LOOM_NEEDS_GPU();
  auto one = prepare("Dense", Clip::none), other = prepare("Dense", Clip::none);
  ASSERT_TRUE(one.ok() && other.ok());
  const auto ahead = static_cast<int>(one->step->ahead());
  const int steps = 37 * ahead + 3;  // the ring of reports wraps around
  std::vector<double> expected, got;
  const auto take = [&](const Result<std::vector<StepResult>>& results) {
    ASSERT_TRUE(results.ok()) << results.error().str();
    for (const StepResult& result : *results) got.push_back(result.loss);
  };
  for (int i = 0; i < steps; ++i) {
    const auto result = one->step->run(0.01);
    ASSERT_TRUE(result.ok()) << result.error().str();
    expected.push_back(result->loss);
    ASSERT_TRUE(other->step->begin(0.01).ok());
    if ((i + 1) % ahead == 0) take(other->step->ready());
    EXPECT_LE(got.size(), expected.size());
  }
  EXPECT_GE(got.size(), expected.size() / 2) << "nothing came before finish()";
  take(other->step->finish());
  EXPECT_EQ(got, expected);
  EXPECT_EQ(weights(*one->step), weights(*other->step));
  // Again, from an empty ring.
  ASSERT_TRUE(other->step->begin(0.01).ok());
  const auto last = other->step->finish();
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(last->size(), 1U);
}

TEST(GpuSteps, WithoutBiasCorrectionAStepOfTheSameBatchSendsNothing) {
  LOOM_NEEDS_GPU();
  for (const char* optimizer : {"sgd", "momentum", "rmsprop", "lion"}) {
    auto p = prepare("Dense", Clip::none, optimizer);
    ASSERT_TRUE(p.ok());
    ASSERT_TRUE(p->step->begin(0.01).ok());
    const int64_t before = gpu()->counts().uploaded;
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(p->step->begin(0.01, true).ok());
    EXPECT_EQ(gpu()->counts().uploaded, before) << optimizer;
    ASSERT_TRUE(p->step->begin(0.02, true).ok());
    EXPECT_EQ(gpu()->counts().uploaded, before + 16) << optimizer;
    ASSERT_TRUE(p->step->finish().ok());
  }
}

TEST(GpuSteps, ADroppedStepIsReportedAndChangesNothing) {
  LOOM_NEEDS_GPU();
  auto p = prepare("Dense", Clip::none);
  ASSERT_TRUE(p.ok());
  ASSERT_TRUE(p->step->begin(0.01).ok());
  auto before = p->step->finish();
  ASSERT_TRUE(before.ok() && before->size() == 1 && (*before)[0].updated);
  const std::vector<float> kept = weights(*p->step);
  const float value = p->step->target().f32()[0];
  p->step->target().f32()[0] = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(p->step->begin(0.01).ok());
  p->step->target().f32()[0] = value;
  auto dropped = p->step->finish();
  ASSERT_TRUE(dropped.ok());
  EXPECT_FALSE((*dropped)[0].finite);
  EXPECT_FALSE((*dropped)[0].updated);
  EXPECT_EQ(p->step->updates(), 1);
  EXPECT_EQ(weights(*p->step), kept);
  ASSERT_TRUE(p->step->begin(0.01).ok());
  EXPECT_TRUE((*p->step->finish())[0].updated);
}

}  // namespace
}  // namespace loom::core::test

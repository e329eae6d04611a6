// Gradients of several batches in one update: what an epoch leaves over is an update too, and
// schedules count updates.
#include <gmock/gmock.h>

#include <cmath>

#include "base/numbers/rng.hpp"
#include "learn/train_rig.hpp"
#include "learn/trainer.hpp"

namespace loom::core {
namespace {

using test::layer;
using test::row_of;

struct AccumulatedRun {
  int64_t samples, batch, accumulate, epochs, warmup;
  ScheduleKind schedule;
};

Dataset line_samples(int64_t n, uint64_t seed) {
  Dataset d;
  const Rng rng(seed, 3);
  d.samples = n;
  d.sample = Shape{2};
  d.outputs = 1;
  for (int64_t i = 0; i < 2 * n; ++i)
    d.inputs.push_back(rng.uniform(static_cast<uint64_t>(i)) * 2 - 1);
  for (int64_t i = 0; i < n; ++i)
    d.targets.push_back(rng.uniform(static_cast<uint64_t>(10000 + i)) * 2 - 1);
  return d;
}

TrainerSpec accumulating(const AccumulatedRun& run) {
  TrainerSpec o;
  o.step.accumulate = static_cast<int>(run.accumulate);
  o.step.optimizer.kind = parse_optimizer("sgd").value();
  o.schedule.kind = run.schedule;
  o.rate = 0.3;
  o.schedule.warmup = run.warmup;
  o.schedule.every = 1;
  o.schedule.gamma = 0.5;
  o.batch = run.batch;
  o.epochs = run.epochs;
  o.shuffle = false;
  return o;
}

std::vector<double> line_weights(Trainer& trainer) {
  std::vector<double> out;
  for (const StateTensor& s : trainer.step().state()) {
    if (!s.name.ends_with("/weight") && !s.name.ends_with("/bias")) continue;
    for (int64_t i = 0; i < s.tensor.shape.count(); ++i)
      out.push_back(static_cast<double>(s.tensor.f32()[i]));
  }
  return out;
}

// SGD on w0 x0 + w1 x1 + b in double, as a loop in PyTorch: loss / batches of the update, step()
// and scheduler.step() after each group and at the end of the epoch.
int64_t line_by_hand(const AccumulatedRun& run, const Dataset& data, std::vector<double>& w) {
  const int64_t steps = (run.samples + run.batch - 1) / run.batch;
  const int64_t per_epoch = (steps + run.accumulate - 1) / run.accumulate;
  const TrainerSpec options = accumulating(run);
  int64_t update = 0;
  for (int64_t epoch = 0; epoch < run.epochs; ++epoch) {
    for (int64_t from = 0; from < steps; from += run.accumulate) {
      const int64_t to = std::min(steps, from + run.accumulate);
      double g[3] = {};
      for (int64_t b = from; b < to; ++b) {
        const int64_t first = b * run.batch, last = std::min(run.samples, first + run.batch);
        for (int64_t i = first; i < last; ++i) {
          const double x[3] = {static_cast<double>(data.inputs[static_cast<size_t>(2 * i)]),
                               static_cast<double>(data.inputs[static_cast<size_t>(2 * i + 1)]), 1};
          const double d = w[0] * x[0] + w[1] * x[1] + w[2] -
                           static_cast<double>(data.targets[static_cast<size_t>(i)]);
          for (int j = 0; j < 3; ++j)
            g[j] += 2 * d * x[j] / static_cast<double>((last - first) * (to - from));
        }
      }
      const double rate = learning_rate(options.schedule, options.rate, update,
                                        run.epochs * per_epoch, per_epoch, 0);
      for (size_t j = 0; j < 3; ++j) w[j] -= rate * g[j];
      ++update;
    }
  }
  return update;
}

std::vector<AccumulatedRun> accumulated_runs() {
  std::vector<AccumulatedRun> out = {
      {10, 4, 2, 3, 0, ScheduleKind::linear},
      {10, 4, 8, 4, 0, ScheduleKind::cosine},    // fewer batches than that
      {3, 8, 16, 1, 0, ScheduleKind::constant},  // one batch in all
      {12, 2, 3, 5, 4, ScheduleKind::linear},
      {12, 2, 4, 4, 0, ScheduleKind::step}};
  const Rng rng(77, 1);
  constexpr ScheduleKind kKinds[] = {ScheduleKind::constant,       ScheduleKind::linear,
                                     ScheduleKind::cosine,         ScheduleKind::exponential,
                                     ScheduleKind::step,           ScheduleKind::one_cycle,
                                     ScheduleKind::cosine_restarts};
  for (uint64_t i = 0; i < 60; ++i) {
    const auto draw = [&](uint64_t at, uint64_t most) {
      return 1 + static_cast<int64_t>(rng.bits(8 * i + at) % most);
    };
    out.push_back({draw(0, 30), draw(1, 6), draw(2, 7), draw(3, 4), draw(4, 5) - 1,
                   kKinds[rng.bits(8 * i + 5) % std::size(kKinds)]});
  }
  return out;
}

TEST(Accumulate, EqualsALoopThatStepsAfterEachGroupAndAtTheEndOfAnEpoch) {
  static ThreadPool pool(1, true);
  for (const AccumulatedRun& run : accumulated_runs()) {
    SCOPED_TRACE(testing::Message() << run.samples << " samples, batch " << run.batch
                                    << ", accumulate " << run.accumulate << ", "
                                    << schedule_name(run.schedule) << ", warmup " << run.warmup);
    const Dataset data = line_samples(run.samples, static_cast<uint64_t>(run.samples));
    const GridSpec grid = row_of({layer(LayerKind::dense, {{"in", 2}, {"out", 1}})});
    Trainer trainer = Trainer::create(grid, data, accumulating(run), reference_ops(), pool).value();
    std::vector<double> expected = line_weights(trainer);
    ASSERT_EQ(expected.size(), 3u);
    const int64_t updates = line_by_hand(run, data, expected);
    for (int64_t e = 0; e < run.epochs; ++e) ASSERT_TRUE(trainer.epoch(data, {}).ok());
    EXPECT_EQ(trainer.step().updates(), updates);
    EXPECT_EQ(trainer.step().pending(), 0);
    const std::vector<double> got = line_weights(trainer);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 2e-5);
  }
}

// The loss that an epoch tells does not depend on how batches fall into updates.
TEST(Accumulate, TheLossOfAnEpochIsTheMeanOfItsBatches) {
  static ThreadPool pool(1, true);
  const Dataset data = line_samples(11, 2);
  const GridSpec grid = row_of({layer(LayerKind::dense, {{"in", 2}, {"out", 1}})});
  AccumulatedRun run{11, 2, 1, 1, 0, ScheduleKind::constant};
  const auto loss = [&](int64_t accumulate) {
    run.accumulate = accumulate;
    TrainerSpec o = accumulating(run);
    o.rate = 0;
    Trainer trainer = Trainer::create(grid, data, o, reference_ops(), pool).value();
    return trainer.epoch(data, {}).value().train_loss;
  };
  for (const int64_t accumulate : {2, 4, 5, 6, 100}) EXPECT_NEAR(loss(accumulate), loss(1), 1e-6);
}

}  // namespace
}  // namespace loom::core

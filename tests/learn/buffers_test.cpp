// Buffers (docs/decisions/0028) and the layers that differ in training: BatchNorm against a naive
// evaluation in doubles, and Dropout against what it promises.
#include <algorithm>
#include <cmath>

#include "base/numbers/rng.hpp"
#include "base/text.hpp"
#include "learn/every_kind.hpp"
#include "learn/trainer.hpp"
#include "ops/recording/trace.hpp"

namespace loom::core::test {
namespace {

using Floats = std::vector<float>;

Floats floats_of(const Tensor& t) {
  return {t.f32(), t.f32() + t.shape.count()};
}

TrainStepOptions by_sgd() {
  TrainStepOptions o;
  o.optimizer.kind = *parse_optimizer("sgd");
  return o;
}

LayerConfig batch_norm(int64_t channels, double momentum = 0.1, bool affine = true) {
  return layer(LayerKind::batch_norm,
               {{"channels", channels}, {"momentum", momentum}, {"affine", affine}});
}

LayerConfig dropout(double rate, const char* form = "elementwise") {
  return layer(LayerKind::dropout, {{"rate", rate}, {"form", form}});
}

const Tensor& state_named(TrainRig& rig, const std::string& name) {
  for (const StateTensor& s : rig.step().state()) {
    if (s.name == name) return s.tensor;
  }
  static const Tensor kNone;
  ADD_FAILURE() << "no state " << name;
  return kNone;
}

Floats buffer(TrainRig& rig, const char* name, int cell = 0) {
  return floats_of(state_named(rig, cat("(0, 0, ", cell, ", 0)/", name)));
}

// Mean and unbiased variance of every channel of the first `samples`, and the normalized values.
struct Statistics {
  std::vector<double> mean, unbiased, y;
  Statistics(const Floats& x, const Shape& shape, int64_t samples, double eps) {
    const int64_t channels = shape[1], spots = shape.count() / shape[0] / channels;
    y.resize(x.size());
    const auto at = [&](int64_t b, int64_t c, int64_t s) {
      return static_cast<size_t>((b * channels + c) * spots + s);
    };
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0, squares = 0;
      const auto n = static_cast<double>(samples * spots);
      for (int64_t b = 0; b < samples; ++b) {
        for (int64_t s = 0; s < spots; ++s) sum += x[at(b, c, s)];
      }
      mean.push_back(sum / n);
      for (int64_t b = 0; b < samples; ++b) {
        for (int64_t s = 0; s < spots; ++s) squares += std::pow(x[at(b, c, s)] - mean.back(), 2);
      }
      unbiased.push_back(squares / (n - 1));
      for (int64_t b = 0; b < shape[0]; ++b) {
        for (int64_t s = 0; s < spots; ++s)
          y[at(b, c, s)] = (x[at(b, c, s)] - mean.back()) / std::sqrt(squares / n + eps);
      }
    }
  }
};

TEST(BatchNormTraining, IsItsFormulaOnRandomShapesWithAndWithoutAbsentSamples) {
  const Rng random(3, 9);
  uint64_t drawn = 0;
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random.bits(drawn++) % static_cast<uint64_t>(n));
  };
  for (int round = 0; round < 60; ++round) {
    const int64_t batch = 2 + below(6), channels = 1 + below(9);
    Shape shape{batch, channels};
    if (below(3) > 0) shape = Shape{batch, channels, 1 + below(40)};
    if (below(3) == 0) shape = Shape{batch, channels, 1 + below(6), 1 + below(6)};
    const double momentum = 0.25 * static_cast<double>(below(5));
    TrainRig rig(row_of({batch_norm(channels, momentum)}), shape, DType::f32, by_sgd());
    ASSERT_TRUE(rig.ready());
    const int64_t present = 2 + below(batch - 1);
    ASSERT_TRUE(rig.step().set_present(present).ok());
    const Tensor& x = rig.step().x();
    for (int64_t i = 0; i < x.shape.count(); ++i)
      x.f32()[i] = 3 * random.uniform(drawn++) + static_cast<float>(i % 5);
    rig.run(1, 0.0);
    SCOPED_TRACE(cat(shape.str(), ", ", present, " present, momentum ", momentum));
    const Statistics want(floats_of(x), shape, present, 1e-5);
    const Floats y = floats_of(rig.step().y());
    for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], want.y[i], 2e-4) << i;
    const Floats mean = buffer(rig, "running_mean"), var = buffer(rig, "running_var");
    for (size_t c = 0; c < mean.size(); ++c) {
      ASSERT_NEAR(mean[c], momentum * want.mean[c], 1e-5) << c;
      ASSERT_NEAR(var[c], 1 + momentum * (want.unbiased[c] - 1), 1e-5) << c;
    }
  }
}

TEST(Buffers, AreNoBusinessOfTheOptimizer) {
  TrainStepOptions decaying;  // adamw
  decaying.optimizer.weight_decay = 0.5f;
  decaying.clip = {Clip::norm, 0.01f};
  TrainRig rig(row_of({batch_norm(4, 0.0), dense(4, 2)}), Shape{3, 4}, DType::f32, decaying);
  ASSERT_TRUE(rig.ready());
  rig.run(3, 0.1);
  EXPECT_EQ(buffer(rig, "running_mean"), Floats(4, 0.0f));
  EXPECT_EQ(buffer(rig, "running_var"), Floats(4, 1.0f));
  EXPECT_NE(buffer(rig, "gamma"), Floats(4, 1.0f));
  for (const StateTensor& s : rig.step().state()) {
    EXPECT_EQ(s.name.find("running_mean/"), std::string::npos) << s.name;
  }
}

TEST(Buffers, StayWhereAStepIsDropped) {
  for (const Clip clip : {Clip::none, Clip::norm}) {
    for (const int accumulate : {1, 2}) {
      TrainStepOptions o = by_sgd();
      o.clip = {clip, 1.0f};
      o.accumulate = accumulate;
      TrainRig rig(row_of({batch_norm(4), dense(4, 2)}), Shape{3, 4}, DType::f32, o);
      ASSERT_TRUE(rig.ready());
      rig.run(1, 0.1);
      const Floats mean = buffer(rig, "running_mean"), var = buffer(rig, "running_var");
      EXPECT_NE(mean, Floats(4, 0.0f));
      const float before = rig.step().x().f32()[5];
      rig.step().x().f32()[5] = std::numeric_limits<float>::quiet_NaN();
      rig.run(1, 0.1);
      EXPECT_EQ(buffer(rig, "running_mean"), mean) << accumulate;
      EXPECT_EQ(buffer(rig, "running_var"), var) << accumulate;
      rig.step().x().f32()[5] = before;
      rig.run(2, 0.1);
      EXPECT_NE(buffer(rig, "running_mean"), mean) << "the next one moves them";
    }
  }
}

TEST(Buffers, MoveWithEveryBatchThatIsAddedUp) {
  TrainStepOptions o = by_sgd();
  o.accumulate = 3;
  TrainRig one(row_of({batch_norm(4), dense(4, 2)}), Shape{3, 4}, DType::f32, o);
  TrainRig other(row_of({batch_norm(4), dense(4, 2)}), Shape{3, 4}, DType::f32, by_sgd());
  ASSERT_TRUE(one.ready() && other.ready());
  one.run(3, 0.0);
  other.run(3, 0.0);
  EXPECT_EQ(buffer(one, "running_mean"), buffer(other, "running_mean"));
  EXPECT_EQ(buffer(one, "running_var"), buffer(other, "running_var"));
}

TEST(Buffers, MoveWithALossThatTheCallerGivesUnlessItFails) {
  TrainRig given(row_of({batch_norm(4), dense(4, 2)}), Shape{3, 4}, DType::f32, by_sgd());
  TrainRig own(row_of({batch_norm(4), dense(4, 2)}), Shape{3, 4}, DType::f32, by_sgd());
  ASSERT_TRUE(given.ready() && own.ready());
  const Result<Tensor> x = given.step().custom_loss_x();
  ASSERT_TRUE(x.ok());
  std::copy_n(own.step().x().f32(), 12, x->f32());
  const auto failing = [](const Tensor&, const Tensor&) -> Result<double> {
    return make_error(Code::cancelled, "no loss today");
  };
  EXPECT_FALSE(given.step().run_with_loss(0.1, failing).ok());
  EXPECT_EQ(buffer(given, "running_mean"), Floats(4, 0.0f));
  const auto loss = [](const Tensor&, const Tensor&) -> Result<double> { return 1.0; };
  ASSERT_TRUE(given.step().set_present(2).ok() && own.step().set_present(2).ok());
  ASSERT_TRUE(given.step().run_with_loss(0.1, loss).ok());
  own.run(1, 0.0);
  EXPECT_NE(buffer(given, "running_mean"), Floats(4, 0.0f));
  EXPECT_EQ(buffer(given, "running_mean"), buffer(own, "running_mean"));
  EXPECT_EQ(buffer(given, "running_var"), buffer(own, "running_var"));
}

TEST(Buffers, OfSharedLayersMoveInTheOrderOfUse) {
  GridSpec grid = row_of({batch_norm(4, 0.5, false), dense(4, 4), dense(4, 4)});
  EXPECT_TRUE(grid.put({0, 0, 2, 0}, {batch_norm(4, 0.5, false), Coord{0, 0, 0, 0}}).ok());
  TrainStepOptions o = by_sgd();
  o.observed = true;
  TrainRig rig(grid, Shape{6, 4}, DType::f32, o);
  ASSERT_TRUE(rig.ready());
  std::vector<Floats> snapshots(3);
  rig.step().observe([&](const LayerEvent& e) {
    if (!e.backward) snapshots[static_cast<size_t>(e.at.x)] = floats_of(e.values);
  });
  rig.run(1, 0.0);
  const Statistics first(floats_of(rig.step().x()), Shape{6, 4}, 6, 1e-5);
  const Statistics second(snapshots[1], Shape{6, 4}, 6, 1e-5);
  const Floats mean = buffer(rig, "running_mean"), var = buffer(rig, "running_var");
  for (size_t c = 0; c < 4; ++c) {
    EXPECT_NEAR(mean[c], 0.5 * (0.5 * first.mean[c]) + 0.5 * second.mean[c], 1e-6);
    EXPECT_NEAR(var[c], 0.5 * (0.5 + 0.5 * first.unbiased[c]) + 0.5 * second.unbiased[c], 1e-5);
  }
}

GridSpec with_everything() {
  return row_of({layer(LayerKind::cnn1, {{"channels", 2}, {"filters", 6}, {"activation", "relu"}}),
                 batch_norm(6), dropout(0.3), dense(30, 9, "tanh"), batch_norm(9),
                 dropout(0.5, "alpha"), dense(9, 3)});
}

TEST(Buffers, HaveTheSameBitsWithGradientCheckpointing) {
  const auto hash = [](int64_t cells) {
    TrainStepOptions o;
    o.checkpoint_cells = cells;
    TrainRig rig(with_everything(), Shape{5, 2, 7}, DType::f32, o);
    rig.run(8, 0.01);
    return rig.hash();
  };
  const uint64_t want = hash(0);
  for (const int64_t cells : {1, 2, 3, 5}) EXPECT_EQ(hash(cells), want) << cells;
}

TEST(Buffers, AndDropoutGoOnWithTheBitsOfARunThatNeverStopped) {
  for (const int accumulate : {1, 2}) {
    TrainStepOptions o;
    o.accumulate = accumulate;
    TrainRig full(with_everything(), Shape{5, 2, 7}, DType::f32, o);
    TrainRig first(with_everything(), Shape{5, 2, 7}, DType::f32, o);
    TrainRig second(with_everything(), Shape{5, 2, 7}, DType::f32, o);
    ASSERT_TRUE(full.ready() && first.ready() && second.ready());
    full.run(11, 0.01);
    first.run(5, 0.01);
    second.run(2, 0.3);  // of no matter
    for (size_t i = 0; i < first.step().state().size(); ++i) {
      const StateTensor &from = first.step().state()[i], &to = second.step().state()[i];
      ASSERT_EQ(from.name, to.name);
      std::copy_n(from.tensor.data, plain_bytes(from.tensor.dtype, from.tensor.shape),
                  to.tensor.data);
    }
    ASSERT_TRUE(second.step().restored(first.step().updates(), first.step().pending()).ok());
    second.run(6, 0.01);
    EXPECT_EQ(second.hash(), full.hash()) << accumulate;
  }
}

// A trainer of such batches may still evaluate.
TEST(BatchNormTraining, RefusesOneValuePerChannel) {
  TrainRig rig(row_of({batch_norm(3)}), Shape{1, 3}, DType::f32, by_sgd());
  ASSERT_TRUE(rig.ready());
  const char* message =
      "a batch of 1 sample is too small for BatchNorm, which takes statistics of at least 2 "
      "samples; choose a batch size that leaves no such rest";
  const Result<StepResult> result = rig.step().run(0.1);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, message);
  const Status begun = rig.step().begin(0.1);
  ASSERT_FALSE(begun.ok());
  EXPECT_EQ(begun.error().message, message);
  Trace trace(DType::f32);
  TraceOptions training;
  training.training = true;
  const Result<TracedNetwork> traced = trace_network(rig.network(), trace, training);
  ASSERT_FALSE(traced.ok());
  EXPECT_EQ(traced.error().message,
            "BatchNorm: training needs more than one value per channel, the input [1, 3] has one; "
            "take a larger batch");
}

Dataset waves(int64_t samples, const Shape& sample, int64_t outputs) {
  Dataset d;
  d.samples = samples;
  d.sample = sample;
  d.outputs = outputs;
  for (int64_t i = 0; i < samples * sample.count(); ++i)
    d.inputs.push_back(static_cast<float>(std::sin(0.37 * static_cast<double>(i * i % 97))));
  for (int64_t i = 0; i < samples * outputs; ++i)
    d.targets.push_back(static_cast<float>(std::sin(0.11 * static_cast<double>(i))));
  return d;
}

struct Outcome {
  Floats mean, var, gamma;
  Result<EpochReport> report = EpochReport{};
};

// One epoch of `data` in batches of `batch`.
Outcome one_epoch(const Dataset& data, int64_t batch, const GridSpec& grid) {
  ThreadPool pool(2, true);
  TrainerSpec o;
  o.batch = batch;
  o.shuffle = false;
  o.step = by_sgd();
  o.rate = 0.1;
  Outcome result;
  Result<Trainer> trainer = Trainer::create(grid, data, o, cpu_ops(best_isa()), pool);
  EXPECT_TRUE(trainer.ok()) << trainer.error().str();
  if (!trainer.ok()) return result;
  result.report = trainer->epoch(data, {});
  for (const Param& p : trainer->network().params()) {
    if (p.spec.name == "running_mean") result.mean = floats_of(p.tensor);
    if (p.spec.name == "running_var") result.var = floats_of(p.tensor);
    if (p.spec.name == "gamma") result.gamma = floats_of(p.tensor);
  }
  return result;
}

TEST(BatchNormTraining, TakesItsStatisticsFromTheRealSamplesOfAShortBatch) {
  const GridSpec grid = row_of({batch_norm(3), dense(12, 2)});
  const Dataset data = waves(5, Shape{3, 4}, 2);
  const Outcome exact = one_epoch(data, 5, grid), filled = one_epoch(data, 8, grid);
  ASSERT_TRUE(exact.report.ok() && filled.report.ok());
  EXPECT_NEAR(exact.report->train_loss, filled.report->train_loss, 1e-6);
  const Statistics want(data.inputs, Shape{5, 3, 4}, 5, 1e-5);
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(exact.mean[c], 0.1 * want.mean[c], 1e-6);
    EXPECT_NEAR(filled.mean[c], 0.1 * want.mean[c], 1e-6);
    EXPECT_NEAR(filled.var[c], 0.9 + 0.1 * want.unbiased[c], 1e-6);
    EXPECT_NEAR(filled.gamma[c], exact.gamma[c], 1e-5) << "gradients are those of real samples";
  }
}

TEST(BatchNormTraining, RefusesALastBatchOfOneSampleBeforeTheFirst) {
  const Dataset data = waves(9, Shape{4}, 2);
  const Outcome refused = one_epoch(data, 4, row_of({batch_norm(4), dense(4, 2)}));
  ASSERT_FALSE(refused.report.ok());
  EXPECT_EQ(refused.report.error().message,
            "a batch of 1 sample is too small for BatchNorm, which takes statistics of at least 2 "
            "samples; choose a batch size that leaves no such rest");
  EXPECT_EQ(refused.mean, Floats(4, 0.0f));
  const Dataset wide = waves(9, Shape{2, 3}, 2);  // one sample has three values of a channel
  EXPECT_TRUE(one_epoch(wide, 4, row_of({batch_norm(2), dense(6, 2)})).report.ok());
}

TEST(BatchNormTraining, IsNoPartOfAnEvaluation) {
  ThreadPool pool(2, true);
  const Dataset data = waves(8, Shape{3, 4}, 2);
  TrainerSpec o;
  o.batch = 4;
  o.step = by_sgd();
  Result<Trainer> trainer =
      Trainer::create(row_of({batch_norm(3), dense(12, 2)}), data, o, cpu_ops(best_isa()), pool);
  ASSERT_TRUE(trainer.ok()) << trainer.error().str();
  ASSERT_TRUE(trainer->epoch(data, {}).ok());
  const Tensor& mean = trainer->network().params()[2].tensor;
  const Floats before = floats_of(mean);
  const Result<Evaluation> one = trainer->evaluate(data), two = trainer->evaluate(data);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->loss, two->loss);
  EXPECT_EQ(floats_of(mean), before);
}

// ---- Dropout ------------------------------------------------------------------------------------

TEST(Dropout, KeepsAValueScaledOrMakesItZero) {
  for (const double rate : {0.1, 0.5, 0.9, 1.0}) {
    TrainRig rig(row_of({dropout(rate)}), Shape{40, 100}, DType::f32, by_sgd());
    ASSERT_TRUE(rig.ready());
    const Tensor& x = rig.step().x();
    std::fill_n(x.f32(), x.shape.count(), 1.0f);
    rig.run(1, 0.0);
    const Floats y = floats_of(rig.step().y());
    const float scale = rate < 1 ? static_cast<float>(1 / (1 - rate)) : 0.0f;
    const auto kept = std::count(y.begin(), y.end(), rate < 1 ? scale : 1.0f);
    const auto zeros = std::count(y.begin(), y.end(), 0.0f);
    EXPECT_EQ(kept + zeros, 4000) << rate;
    EXPECT_NEAR(static_cast<double>(zeros) / 4000, rate, 0.03);
    rig.run(1, 0.0);
    EXPECT_EQ(floats_of(rig.step().y()) == y, rate == 1.0) << "other values in every step";
  }
}

TEST(Dropout, LeavesOutWholeChannels) {
  TrainRig rig(row_of({dropout(0.4, "channel")}), Shape{6, 50, 3, 4}, DType::f32, by_sgd());
  ASSERT_TRUE(rig.ready());
  const Tensor& x = rig.step().x();
  std::fill_n(x.f32(), x.shape.count(), 1.0f);
  rig.run(1, 0.0);
  const Floats y = floats_of(rig.step().y());
  int zeros = 0;
  for (size_t row = 0; row < 300; ++row) {
    for (size_t i = 1; i < 12; ++i) ASSERT_EQ(y[row * 12 + i], y[row * 12]) << row;
    if (y[row * 12] == 0.0f) ++zeros;
  }
  EXPECT_NEAR(zeros / 300.0, 0.4, 0.08);
}

TEST(Dropout, OfFormAlphaKeepsMeanAndVariance) {
  TrainRig rig(row_of({dropout(0.3, "alpha")}), Shape{100, 200}, DType::f32, by_sgd());
  ASSERT_TRUE(rig.ready());
  const Tensor& x = rig.step().x();
  const Rng random(5, 5);
  for (int64_t i = 0; i < x.shape.count(); ++i) {  // sums of 12 uniform numbers: N(0, 1)
    float sum = -6;
    for (int64_t k = 0; k < 12; ++k) sum += random.uniform(static_cast<uint64_t>(12 * i + k));
    x.f32()[i] = sum;
  }
  rig.run(1, 0.0);
  double sum = 0, squares = 0;
  for (const float v : floats_of(rig.step().y())) {
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  EXPECT_NEAR(sum / 20000, 0, 0.03);
  EXPECT_NEAR(squares / 20000, 1, 0.05);
}

TEST(Dropout, DropsTheSameValuesOnAllInstructionSetsAndThreads) {
  const auto dropped = [](const Ops& ops, int threads) {
    TrainRig rig(with_everything(), Shape{5, 2, 7}, DType::f32, by_sgd(), ops, threads);
    rig.run(4, 0.01);
    return rig.hash();
  };
  const uint64_t want = dropped(reference_ops(), 1);
  for (const Isa isa : available_isas()) {
    for (const int threads : {1, 2, 3, 7})
      EXPECT_EQ(dropped(cpu_ops(isa), threads), want) << isa_name(isa) << ", " << threads;
  }
}

}  // namespace
}  // namespace loom::core::test

// Training is repeatable. Random configurations have the same bits on every instruction set and
// with every number of threads. They have them also after an interruption within an epoch and a
// resume from the file. A failing case prints its seed; LOOM_REPEAT_CASES sets their number.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <random>
#include <tuple>

#include "e2e/temp_folder.hpp"
#include "loom/loom.hpp"

namespace loom {
namespace {

class Chance {
 public:
  explicit Chance(uint64_t seed) : engine_(seed) {}
  int64_t from(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool one_in(int64_t n) { return from(1, n) == 1; }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return *(all.begin() + from(0, static_cast<int64_t>(all.size()) - 1));
  }

 private:
  std::mt19937_64 engine_;
};

struct RepeatCase {
  std::string network, text;
  Dataset train, held_out;
  TrainerOptions options;
  DType dtype = DType::float32;
  int64_t epochs = 3, steps = 0;  // steps of an epoch
};

std::string random_network(Chance& c) {
  const char* act = c.one_of({"relu", "tanh", "gelu_erf"});
  const std::string form = c.one_of({"elementwise", "channel", "alpha"});
  const std::string drop = std::string(R"({"type": "Dropout", "rate": 0.)") +
                           std::to_string(c.from(1, 5)) + R"(, "form": ")" + form + R"("},)";
  const std::string norm = c.one_of({R"({"type": "BatchNorm", "channels": 4},)",
                                     R"({"type": "GroupNorm", "channels": 4, "groups": 2},)", ""});
  return R"({"loom": 1, "input": [3, 6, 6], "layers": [
    {"type": "CNN2", "channels": 3, "filters": 4, "padding": 1, "activation": ")" +
         std::string(act) + R"("},)" + norm + (c.one_in(2) ? drop : "") +
         R"({"type": "Pool"}, {"type": "Flatten"},)" +
         (c.one_in(2) ? R"({"type": "Dropout", "rate": 0.3},)" : "") +
         R"({"type": "Dense", "in": 36, "out": 4}]})";
}

Dataset random_pictures(Chance& c, int64_t samples, bool labels) {
  std::vector<float> x;
  for (int64_t i = 0; i < samples * 108; ++i)
    x.push_back(static_cast<float>(c.from(0, 255)) / 255.0f);
  const Tensor inputs = Tensor::copy(x, {samples, 3, 6, 6}).or_exit();
  if (labels) {
    std::vector<int32_t> y;
    for (int64_t i = 0; i < samples; ++i) y.push_back(static_cast<int32_t>(i % 4));
    return Dataset::from_arrays(inputs, Tensor::copy(y, {samples}).or_exit()).or_exit();
  }
  std::vector<float> y;
  for (int64_t i = 0; i < samples * 4; ++i) y.push_back(x[static_cast<size_t>(i)] - 0.5f);
  return Dataset::from_arrays(inputs, Tensor::copy(y, {samples, 4}).or_exit()).or_exit();
}

std::string random_augmentation(Chance& c) {
  std::string all;
  for (const char* word :
       {"flip", "flip_vertical:0.2", "crop:1", "rotate:20", "scale:0.2", "brightness:0.2",
        "contrast:0.2", "saturation:0.3", "mixup:0.4", "cutmix:1"}) {
    if (c.one_in(3)) all += (all.empty() ? "" : ",") + std::string(word);
  }
  return all;
}

RepeatCase random_case(uint64_t seed) {
  Chance c(seed);
  const bool labels = !c.one_in(3);
  const int64_t samples = c.from(30, 50);
  RepeatCase out{random_network(c),
                 {},
                 random_pictures(c, samples, labels),
                 random_pictures(c, 12, labels),
                 {},
                 DType::float32,
                 3,
                 0};
  TrainerOptions& o = out.options;
  o.optimizer.kind = c.one_of({OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::momentum,
                               OptimizerKind::rmsprop, OptimizerKind::lion, OptimizerKind::nadam,
                               OptimizerKind::lamb, OptimizerKind::adafactor, OptimizerKind::muon,
                               OptimizerKind::adadelta});
  if (c.one_in(6)) o.optimizer.kind = OptimizerKind::sophia;
  if (c.one_in(2)) o.optimizer.inverse_every = 3;
  o.rate = c.one_of({1e-3, 3e-3});
  o.schedule.kind = c.one_of({ScheduleKind::constant, ScheduleKind::cosine, ScheduleKind::one_cycle,
                              ScheduleKind::plateau});
  o.schedule.warmup = c.from(0, 4);
  o.batch = c.from(3, 8);
  o.accumulate = c.one_of({int64_t{1}, int64_t{1}, int64_t{2}, int64_t{3}});
  o.shuffle = !c.one_in(5);
  o.seed = static_cast<uint64_t>(c.from(0, 1000));
  o.normalize = c.one_of({Normalize::none, Normalize::standard, Normalize::range});
  out.text = random_augmentation(c);
  o.augment = parse_augment(out.text).or_exit();
  const bool mixes = o.augment.mixup > 0 || o.augment.cutmix > 0;
  if (labels && !mixes && c.one_in(3)) o.balance = true;
  if (labels && !mixes && c.one_in(3)) o.class_weights = {1, 2, 0.5f, 1};
  if (labels && c.one_in(2)) o.label_smoothing = 0.1f;
  if (c.one_in(4)) o.ema = 0.9;
  if (o.ema == 0 && c.one_in(4)) o.swa_from = 2;
  if (c.one_in(4)) o.lookahead = 3;
  if (c.one_in(4)) o.gradient_noise = 0.01;
  if (c.one_in(3)) o.clip = c.one_of({Clip::norm, Clip::layer, Clip::value});
  out.dtype = c.one_of({DType::float32, DType::float32, DType::int8, DType::bfloat16});
  out.steps = (samples + *o.batch - 1) / *o.batch;
  return out;
}

struct Outcome {
  std::string weights;
  std::vector<double> losses;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// stop: leave after this many batches in total; 0 means never.
Result<Outcome> train(const RepeatCase& c, const EngineOptions& on, FitOptions how,
                      int64_t stop = 0) {
  LOOM_ASSIGN(const Engine engine, Engine::create(on));
  LOOM_ASSIGN(const Network net,
              Network::from_json(c.network, {.dtype = c.dtype, .seed = 3, .engine = engine}));
  LOOM_ASSIGN(Trainer trainer, Trainer::create(net, c.options));
  how.epochs = c.epochs;
  int64_t batches = 0;
  if (stop > 0) how.on_batch = [&](int64_t, int64_t, double) { return ++batches < stop; };
  LOOM_ASSIGN(const History history, trainer.fit(c.train, c.held_out, how));
  Outcome out;
  for (const Epoch& e : history.epochs) {
    out.losses.push_back(e.train_loss);
    out.losses.push_back(e.validation_loss.value_or(0));
  }
  LOOM_ASSIGN(out.weights, trainer.weights_hash());
  return out;
}

int64_t repeat_cases() {
  const char* text = std::getenv("LOOM_REPEAT_CASES");
  return text != nullptr ? std::atoll(text) : 25;
}

TEST(Repeat, TheSameBitsOnEveryInstructionSetAndWithEveryNumberOfThreads) {
  const Engine engine = Engine::create({}).or_exit();
  for (int64_t seed = 0; seed < repeat_cases(); ++seed) {
    const RepeatCase c = random_case(static_cast<uint64_t>(seed));
    SCOPED_TRACE(std::to_string(seed) + ": " + c.text + " " + c.network);
    const Result<Outcome> want = train(c, {.threads = 1, .isa = "scalar"}, {});
    ASSERT_TRUE(want.ok()) << want.error().str();
    for (const std::string& isa : engine.info().isas) {
      const Result<Outcome> got =
          train(c, {.threads = 1 + static_cast<int>(seed % 3), .isa = isa}, {});
      ASSERT_TRUE(got.ok()) << got.error().str();
      ASSERT_EQ(got->weights, want->weights) << isa;
      ASSERT_EQ(got->losses, want->losses) << isa;
    }
  }
}

TEST(Repeat, ARunThatIsWatchedHasTheSameBitsAndEveryLayerIsSeenOnceABatchEachWay) {
  for (int64_t seed = 200; seed < 200 + repeat_cases(); ++seed) {
    const RepeatCase c = random_case(static_cast<uint64_t>(seed));
    SCOPED_TRACE(std::to_string(seed) + ": " + c.text + " " + c.network);
    const Result<Outcome> want = train(c, {.threads = 1}, {});
    ASSERT_TRUE(want.ok()) << want.error().str();
    using Side = std::tuple<int64_t, int64_t, int64_t, int64_t, bool>;
    std::map<Side, int64_t> passes, stats;
    int64_t last = 0;
    FitOptions how;
    how.on_pass = [&](const LayerPass& p) {
      ++passes[{p.at.z, p.at.y, p.at.x, p.at.l, p.backward}];
      EXPECT_LE(last, p.begin_ns);
      EXPECT_LE(p.begin_ns, p.end_ns);
      EXPECT_FALSE(p.shape.empty());
      last = p.end_ns;
    };
    how.on_layer = [&](const LayerStats& s) {
      ++stats[{s.at.z, s.at.y, s.at.x, s.at.l, s.backward}];
    };
    const Result<Outcome> got = train(c, {.threads = 1}, how);
    ASSERT_TRUE(got.ok()) << got.error().str();
    EXPECT_TRUE(*got == *want);
    ASSERT_FALSE(passes.empty());
    EXPECT_EQ(passes.size(), stats.size());
    for (const auto& [side, count] : passes) EXPECT_EQ(count, c.epochs * c.steps);
    for (const auto& [side, count] : stats) EXPECT_EQ(count, c.epochs);
  }
}

TEST(Repeat, ARunThatStopsAtAnyBatchOrInAnyValidationGoesOnWithTheSameBits) {
  const core::test::TempFolder folder;
  for (int64_t seed = 100; seed < 100 + repeat_cases(); ++seed) {
    const RepeatCase c = random_case(static_cast<uint64_t>(seed));
    SCOPED_TRACE(std::to_string(seed) + ": " + c.text + " " + c.network);
    Chance chance(static_cast<uint64_t>(seed));
    const Result<Outcome> want = train(c, {.threads = 1}, {});
    ASSERT_TRUE(want.ok()) << want.error().str();
    const std::string ending = seed % 2 == 0 ? ".safetensors" : ".entity";
    FitOptions how{.checkpoint = folder.path() + "/run" + std::to_string(seed) + ending,
                   .checkpoint_every = chance.from(0, 3)};  // 0 saves only at the stop
    const int64_t stop = seed % 4 == 0 ? 0 : chance.from(1, c.epochs * c.steps);
    int64_t validations = 0;
    const int64_t stopped_validation = chance.from(1, c.epochs);
    if (stop == 0)
      how.on_validation = [&](int64_t, int64_t) { return ++validations < stopped_validation; };
    const Result<Outcome> left = train(c, {.threads = 1}, how, stop);
    ASSERT_FALSE(left.ok()) << stop;
    ASSERT_EQ(left.error().code, Code::cancelled);
    how.on_validation = {};
    how.resume = true;
    const Result<Outcome> got = train(c, {.threads = 2}, how);
    ASSERT_TRUE(got.ok()) << got.error().str();
    EXPECT_EQ(got->weights, want->weights);
    EXPECT_EQ(got->losses, want->losses);
  }
}

// Fifty steps with everything that is drawn: dropout, augmentation, mixing, shuffles, noise.
RepeatCase fifty_steps() {
  Chance c(7);
  RepeatCase out{R"({"loom": 1, "input": [3, 6, 6], "layers": [
    {"type": "CNN2", "channels": 3, "filters": 8, "padding": 1},
    {"type": "BatchNorm", "channels": 8}, {"type": "Unary", "function": "relu"},
    {"type": "Dropout", "rate": 0.2, "form": "channel"},
    {"type": "CNN2", "channels": 8, "filters": 8, "padding": 1, "stride": 2, "activation": "relu"},
    {"type": "Flatten"}, {"type": "Dropout", "rate": 0.4},
    {"type": "Dense", "in": 72, "out": 4}]})",
                 "flip,crop:1,rotate:20,scale:0.2,brightness:0.2,contrast:0.2,saturation:0.3,"
                 "mixup:0.4,cutmix:1",
                 random_pictures(c, 40, true),
                 random_pictures(c, 12, true),
                 {},
                 DType::float32,
                 5,
                 10};
  TrainerOptions& o = out.options;
  o.optimizer.kind = OptimizerKind::adamw;
  o.rate = 3e-3;
  o.batch = 4;
  o.seed = 11;
  o.normalize = Normalize::standard;
  o.gradient_noise = 0.01;
  o.augment = parse_augment(out.text).or_exit();
  return out;
}

TEST(Repeat, FiftyStepsOfAllThatIsDrawnAreTheSameOnAnyNumberOfThreadsAndAfterAnyStop) {
  const RepeatCase c = fifty_steps();
  const Engine engine = Engine::create({}).or_exit();
  const Result<Outcome> want = train(c, {.threads = 1, .isa = "scalar"}, {});
  ASSERT_TRUE(want.ok()) << want.error().str();
  for (const std::string& isa : engine.info().isas) {
    for (const int threads : {1, 2, 3, 7}) {
      const Result<Outcome> got =
          train(c, {.threads = threads, .isa = isa, .exact_threads = true}, {});
      ASSERT_TRUE(got.ok()) << got.error().str();
      EXPECT_TRUE(*got == *want) << isa << " on " << threads;
    }
  }
  const core::test::TempFolder folder;
  for (const int64_t stop : {1, 9, 10, 26, 49}) {
    FitOptions how{.checkpoint = folder.path() + "/run" + std::to_string(stop) + ".entity",
                   .checkpoint_every = 1};
    const Result<Outcome> left = train(c, {.threads = 1}, how, stop);
    ASSERT_FALSE(left.ok());
    ASSERT_EQ(left.error().code, Code::cancelled);
    how.resume = true;
    const Result<Outcome> got = train(c, {.threads = 2}, how);
    ASSERT_TRUE(got.ok()) << got.error().str();
    EXPECT_TRUE(*got == *want) << "left after " << stop << " steps";
  }
}

}  // namespace
}  // namespace loom

// A loss of the caller's own in a training step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "loom/loom.hpp"

namespace {

using namespace loom;
using testing::HasSubstr;

// As the built-in loss computes it: each value in float32, the sum of a row from its front.
Result<double> mean_squares(const Tensor& outputs, const Tensor& targets, Tensor& gradients) {
  LOOM_ASSIGN(const std::span<const float> y, outputs.values<float>());
  LOOM_ASSIGN(const std::span<const float> t, targets.values<float>());
  LOOM_ASSIGN(const std::span<float> g, gradients.mutable_values<float>());
  const auto cols = static_cast<float>(outputs.shape().back());
  const float weight = 1.0f / static_cast<float>(y.size() / static_cast<size_t>(cols));
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    const float d = y[i] - t[i];
    g[i] = weight * ((d + d) / cols);
    sum += static_cast<double>(d) * static_cast<double>(d);
  }
  return sum / static_cast<double>(y.size());
}

struct OwnLossCase {
  std::string name;
  TrainerOptions options;
  DType dtype = DType::float32;
  int64_t samples = 8;
};

std::vector<float> wave(int64_t n, float step) {
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(std::sin(step * static_cast<float>(i + 1)));
  return out;
}

std::string hash_after(const OwnLossCase& c, bool own) {
  Network net = Network::sequential({Dense{.in = 5, .out = 7, .activation = Activation::tanh},
                                     Dense{.in = 7, .out = 3}},
                                    {.input = {5}, .seed = 11, .dtype = c.dtype})
                    .or_exit();
  TrainerOptions options = c.options;
  options.loss = Loss::mse;
  Trainer trainer = Trainer::create(net, options).or_exit();
  const std::vector<float> x = wave(c.samples * 5, 0.7f), y = wave(c.samples * 3, 0.3f);
  const Tensor inputs = Tensor::view(x.data(), {c.samples, 5});
  const Tensor targets = Tensor::view(y.data(), {c.samples, 3});
  for (int step = 0; step < 6; ++step) {
    if (!own) {
      (void)trainer.train_step(inputs, targets).or_exit();
      continue;
    }
    double text = 0;
    const auto loss = [&](const Tensor& outputs, Tensor& gradients) -> Result<double> {
      EXPECT_EQ(outputs.shape(), (Shape{c.samples, 3}));
      LOOM_ASSIGN(text, mean_squares(outputs, targets, gradients));
      return text;
    };
    const StepReport report = trainer.train_step(inputs, loss).or_exit();
    EXPECT_NEAR(report.loss, text, 1e-6) << c.name;
    EXPECT_TRUE(report.updated) << c.name;
  }
  return trainer.weights_hash().or_exit();
}

TEST(OwnLoss, WithTheGradientOfABuiltInOneHasItsBits) {
  const std::vector<OwnLossCase> cases = {
      {"adam", {.rate = 1e-2}},
      {"a smaller batch than the trainer's", {.rate = 1e-2, .batch = 32}, DType::float32, 5},
      {"sgd", {.optimizer = {OptimizerKind::sgd}, .rate = 0.1}},
      {"clipped", {.rate = 1e-2, .clip = Clip::norm, .clip_limit = 0.01f}},
      {"clipped by layer", {.rate = 1e-2, .clip = Clip::layer, .clip_limit = 0.01f}},
      {"int8 with masters", {.rate = 1e-2}, DType::int8},
      {"int8 without", {.rate = 1e-2, .native = true}, DType::int8},
      {"l-bfgs", {.optimizer = {OptimizerKind::lbfgs}, .rate = 0.5, .batch = 8}},
  };
  for (const OwnLossCase& c : cases) EXPECT_EQ(hash_after(c, true), hash_after(c, false)) << c.name;
}

TEST(OwnLoss, AddsUpGradientsAsTheyAreGiven) {
  // Two batches of the same samples with half of the gradient each equal one batch with all of it.
  const auto hash = [](int64_t accumulate) {
    Network net = Network::sequential({Dense{.in = 5, .out = 3}}, {.input = {5}}).or_exit();
    Trainer trainer =
        Trainer::create(net,
                        {.optimizer = {OptimizerKind::sgd}, .rate = 0.5, .accumulate = accumulate})
            .or_exit();
    const std::vector<float> x = wave(20, 0.7f);
    for (int64_t i = 0; i < accumulate; ++i) {
      const auto loss = [&](const Tensor&, Tensor& gradients) -> Result<double> {
        LOOM_ASSIGN(const std::span<float> g, gradients.mutable_values<float>());
        for (float& v : g) v = 0.25f / static_cast<float>(accumulate);
        return 1.0;
      };
      const StepReport report = trainer.train_step(Tensor::view(x.data(), {4, 5}), loss).or_exit();
      EXPECT_EQ(report.updated, i + 1 == accumulate);
      EXPECT_EQ(report.loss, 1.0);
    }
    return trainer.weights_hash().or_exit();
  };
  EXPECT_EQ(hash(1), hash(2));
}

TEST(OwnLoss, FollowsStepsOfABuiltInOne) {
  const std::vector<float> x = wave(20, 0.7f), y = wave(12, 0.3f);
  const Tensor inputs = Tensor::view(x.data(), {4, 5}), targets = Tensor::view(y.data(), {4, 3});
  const auto own = [&](const Tensor& outputs, Tensor& gradients) {
    return mean_squares(outputs, targets, gradients);
  };
  const auto hash = [&](const std::vector<bool>& steps) {
    Network net = Network::sequential({Dense{.in = 5, .out = 3}}, {.input = {5}}).or_exit();
    Trainer trainer = Trainer::create(net, {.rate = 1e-2}).or_exit();
    for (const bool mine : steps)
      (void)(mine ? trainer.train_step(inputs, own) : trainer.train_step(inputs, targets))
          .or_exit();
    return trainer.weights_hash().or_exit();
  };
  const std::string expected = hash({false, false, false, false});
  EXPECT_EQ(hash({true, false, true, false}), expected);
  EXPECT_EQ(hash({false, false, true, true}), expected);
}

TEST(OwnLoss, ThatFailsOrIsNotFiniteChangesNothing) {
  Network net = Network::sequential({Dense{.in = 5, .out = 3}}, {.input = {5}}).or_exit();
  Trainer trainer = Trainer::create(net, {.rate = 1e-2}).or_exit();
  const std::vector<float> x = wave(20, 0.7f), y = wave(12, 0.3f);
  const Tensor inputs = Tensor::view(x.data(), {4, 5});
  (void)trainer.train_step(inputs, Tensor::view(y.data(), {4, 3})).or_exit();
  const std::string before = trainer.weights_hash().or_exit();
  const auto fill = [](Tensor& gradients, float value) {
    const std::span<float> values = gradients.mutable_values<float>().or_exit();
    for (float& v : values) v = value;
  };
  const auto fails = [&](const Tensor&, Tensor& gradients) -> Result<double> {
    fill(gradients, 3.0f);
    return Error{Code::cancelled, "enough", {}, -1};
  };
  EXPECT_EQ(trainer.train_step(inputs, fails).error().message, "enough");
  EXPECT_EQ(trainer.weights_hash().or_exit(), before);
  const auto infinite = [&](const Tensor&, Tensor& gradients) -> Result<double> {
    fill(gradients, 3.0f);
    return std::numeric_limits<double>::infinity();
  };
  EXPECT_FALSE(trainer.train_step(inputs, infinite).or_exit().updated);
  EXPECT_EQ(trainer.weights_hash().or_exit(), before);
  const auto other_shape = [&](const Tensor&, Tensor& gradients) -> Result<double> {
    gradients = Tensor::zeros({2, 2}).or_exit();
    return 1.0;
  };
  EXPECT_THAT(trainer.train_step(inputs, other_shape).error().message, HasSubstr("[2, 2]"));
  EXPECT_FALSE(trainer.train_step(inputs, Trainer::OwnLoss()).ok());
  const auto fine = [&](const Tensor&, Tensor& gradients) -> Result<double> {
    fill(gradients, 0.5f);
    return 1.0;
  };
  EXPECT_TRUE(trainer.train_step(inputs, fine).or_exit().updated);
  EXPECT_NE(trainer.weights_hash().or_exit(), before);
}

TEST(OwnLoss, TrainersKeepToTheKindOfTargetsThatTheyBeganWith) {
  const std::vector<float> x = wave(20, 0.7f);
  const std::vector<float> y = {1, 0, 0, 0, 0.5f, 0.5f, 0.2f, 0.3f, 0.5f, 0, 0, 1};
  const std::vector<int32_t> labels = {0, 1, 2, 0};
  const Tensor inputs = Tensor::view(x.data(), {4, 5}), numbers = Tensor::view(y.data(), {4, 3});
  Network net = Network::sequential({Dense{.in = 5, .out = 3}}, {.input = {5}}).or_exit();
  {
    Trainer trainer = Trainer::create(net, {.loss = Loss::cross_entropy}).or_exit();
    (void)trainer.train_step(inputs, Tensor::view(labels.data(), {4})).or_exit();
    EXPECT_THAT(trainer.train_step(inputs, numbers).error().message, HasSubstr("class labels"));
  }
  Trainer trainer = Trainer::create(net, {.loss = Loss::cross_entropy}).or_exit();
  (void)trainer.train_step(inputs, numbers).or_exit();
  EXPECT_THAT(trainer.train_step(inputs, Tensor::view(labels.data(), {4})).error().message,
              HasSubstr("numbers"));
}

}  // namespace

// Averages of the weights and folds in the C++ interface: metrics, callbacks, saved files and
// predictions use the average, and training continues with the weights themselves.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "e2e/temp_folder.hpp"
#include "loom/loom.hpp"

namespace loom {
namespace {

constexpr const char* kNetwork = R"({"loom": 1, "input": [3], "layers": [
  {"type": "Dense", "in": 3, "out": 8, "activation": "tanh"},
  {"type": "BatchNorm", "channels": 8},
  {"type": "Dense", "in": 8, "out": 2}]})";

Dataset numbers(int64_t samples) {
  std::vector<float> x, y;
  for (int64_t i = 0; i < samples; ++i) {
    for (int k = 0; k < 3; ++k) x.push_back(std::sin(static_cast<float>(7 * i + k)));
    y.push_back(x[static_cast<size_t>(3 * i)] * x[static_cast<size_t>(3 * i + 1)]);
    y.push_back(x[static_cast<size_t>(3 * i + 2)]);
  }
  const Tensor inputs = Tensor::copy(x, {samples, 3}).or_exit();
  return Dataset::from_arrays(inputs, Tensor::copy(y, {samples, 2}).or_exit()).or_exit();
}

Network fresh() {
  return Network::from_json(kNetwork).or_exit();
}

double squared_error(const Network& net, const Dataset& data) {
  Session session = net.session().or_exit();
  const Tensor y = session.run(data.x()).or_exit();
  const Tensor want = data.y();
  const auto got = y.values<float>().or_exit(), target = want.values<float>().or_exit();
  double sum = 0;
  for (size_t i = 0; i < got.size(); ++i)
    sum += std::pow(static_cast<double>(got[i] - target[i]), 2);
  return sum / static_cast<double>(got.size());
}

TEST(Averages, AreWhatANetworkPredictsWithWhereverItIsAsked) {
  const core::test::TempFolder folder;
  const Dataset train = numbers(40), test = numbers(16);
  for (const bool epochs : {false, true}) {
    TrainerOptions options{.rate = 0.02, .batch = 8};
    options.swa_from = epochs ? 2 : 0;
    options.ema = epochs ? 0 : 0.8;
    Network net = fresh(), plain = fresh();
    Trainer trainer = Trainer::create(net, options).or_exit();
    FitOptions how{.epochs = 4, .best = folder.path() + "/best.entity"};
    int asked = 0;
    // Callbacks read the network during a run; the bits are those of a run without reads.
    how.on_batch = [&](int64_t, int64_t, double) {
      return net.info().parameters > 0 && ++asked > 0;
    };
    how.on_epoch = [&](const Epoch& e) {
      EXPECT_NEAR(squared_error(net, test), *e.validation_loss, 1e-6);
      return true;
    };
    const History history = trainer.fit(train, test, how).or_exit();
    EXPECT_GT(asked, 0);
    EXPECT_EQ(trainer.evaluate(test).or_exit().loss, *history.epochs.back().validation_loss);
    Trainer quiet = Trainer::create(plain, options).or_exit();
    quiet.fit(train, test, {.epochs = 4}).or_exit();
    EXPECT_EQ(trainer.weights_hash().or_exit(), quiet.weights_hash().or_exit());
    net.save(folder.path() + "/net.entity").or_exit();
    const Network saved = Network::load(folder.path() + "/net.entity").or_exit();
    EXPECT_NEAR(squared_error(saved, test), *history.epochs.back().validation_loss, 1e-6);
  }
}

TEST(Averages, DoNotChangeWhatIsTrained) {
  const Dataset train = numbers(40);
  Network a = fresh(), b = fresh();
  Trainer averaged = Trainer::create(a, {.rate = 0.02, .batch = 8, .ema = 0.9}).or_exit();
  Trainer plain = Trainer::create(b, {.rate = 0.02, .batch = 8}).or_exit();
  const History x = averaged.fit(train, {.epochs = 5}).or_exit();
  const History y = plain.fit(train, {.epochs = 5}).or_exit();
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(x.epochs[i].train_loss, y.epochs[i].train_loss);
  EXPECT_NE(averaged.weights_hash().or_exit(), plain.weights_hash().or_exit());
}

TEST(Folds, HoldEverySampleOutOnce) {
  const Dataset data = numbers(23);
  std::set<float> seen;
  for (int64_t i = 0; i < 4; ++i) {
    const Dataset::Parts parts = data.fold(i, 4).or_exit();
    EXPECT_EQ(parts.first.samples() + parts.second.samples(), 23);
    const Tensor x = parts.second.x();
    const auto values = x.values<float>().or_exit();
    for (size_t k = 0; k < values.size(); k += 3) EXPECT_TRUE(seen.insert(values[k]).second);
  }
  EXPECT_EQ(seen.size(), 23u);
  EXPECT_FALSE(data.fold(0, 1).ok());
  EXPECT_FALSE(data.fold(4, 4).ok());
  EXPECT_FALSE(data.fold(0, 24).ok());
}

TEST(WeightAverage, IsRefusedBeforeAnythingIsTrained) {
  const Network net = fresh();
  EXPECT_FALSE(Trainer::create(net, {.ema = 1.5}).ok());
  EXPECT_FALSE(Trainer::create(net, {.ema = 0.9, .swa_from = 2}).ok());
  EXPECT_FALSE(Trainer::create(net, {.lookahead = 5, .lookahead_share = 0}).ok());
  EXPECT_FALSE(Trainer::create(net, {.gradient_noise = -1}).ok());
}

// Outputs [rows, classes] that spell labels of any number, from arrays and with a custom loss.
TEST(Ctc, TrainsFromPaddedArraysAndGoesWithALossOfOnesOwn) {
  Network net = Network::from_json(R"({"loom": 1, "input": [6, 3], "layers": [
    {"type": "Dense", "in": 3, "out": 8, "activation": "tanh"},
    {"type": "Dense", "in": 8, "out": 4}]})")
                    .or_exit();
  std::vector<float> x;
  std::vector<int32_t> y;
  for (int64_t i = 0; i < 32; ++i) {
    std::vector<int32_t> labels;
    for (int64_t row = 0; row < 6; ++row) {
      const int64_t kind = row % 2 == 0 ? (i * 5 + row * i) % 4 : 3;
      for (int64_t k = 0; k < 3; ++k) x.push_back(k == kind ? 1.0f : 0.0f);
      if (kind < 3) labels.push_back(static_cast<int32_t>(kind) + 1);
    }
    labels.resize(3, -1);
    y.insert(y.end(), labels.begin(), labels.end());
  }
  const Tensor inputs = Tensor::copy(x, {32, 6, 3}).or_exit();
  const Dataset data =
      Dataset::from_arrays(inputs, Tensor::copy(y, {32, 3}).or_exit(), {.ignore_label = -1})
          .or_exit();
  Trainer trainer = Trainer::create(net, {.loss = Loss::ctc, .rate = 0.05, .batch = 8}).or_exit();
  const History history = trainer.fit(data, {.epochs = 40}).or_exit();
  EXPECT_LT(history.epochs.back().train_loss, 0.2 * history.epochs.front().train_loss);
  const Evaluation measured = trainer.evaluate(data).or_exit();
  EXPECT_GT(*measured.accuracy, 0.9);
  EXPECT_TRUE(measured.confusion.empty());
  EXPECT_EQ(net.info().loss, "ctc");
  EXPECT_EQ(*parse_loss("ctc"), Loss::ctc);
  const auto own = [](const Tensor& outputs, Tensor& gradients) -> Result<double> {
    gradients.mutable_values<float>().or_exit()[0] = 1;
    return static_cast<double>(outputs.values<float>().or_exit()[0]);
  };
  EXPECT_TRUE(trainer.train_step(inputs.slice(0, 8).or_exit(), own).or_exit().updated);
}

}  // namespace
}  // namespace loom

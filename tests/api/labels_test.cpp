// Labels with names, integers that are numbers, and a training that is stopped in its first epoch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loom/loom.hpp"

namespace loom {
namespace {

using testing::HasSubstr;

constexpr int64_t kLabeled = 40;

Network network(int64_t outputs) {
  const Mlp mlp{.in = 4, .out = outputs, .hidden = {8}};
  return Network::from_json(describe(mlp).or_exit(), {.seed = 3}).or_exit();
}

// Samples whose target is an integer of `type`, from 0 to classes - 1.
template <class T>
Dataset samples(int64_t classes) {
  std::vector<float> x;
  std::vector<T> y;
  for (int64_t i = 0; i < kLabeled * 4; ++i) x.push_back(static_cast<float>(i * 37 % 101) / 50 - 1);
  for (int64_t i = 0; i < kLabeled; ++i) y.push_back(static_cast<T>(i % classes));
  return Dataset::from_arrays(Tensor::view(x.data(), {kLabeled, 4}),
                              Tensor::view(y.data(), {kLabeled, 1}))
      .or_exit();
}

TEST(ClassNames, AreThoseOfTheNetworkAfterTraining) {
  const Dataset data = samples<int32_t>(3);
  EXPECT_THAT(data.with_classes({"a", "b"}).error().str(), HasSubstr("2 names for 3 classes"));
  EXPECT_THAT(samples<float>(3).with_classes({"a"}).error().str(), HasSubstr("without labels"));
  const Dataset named = data.with_classes({"a", "b", "c"}).or_exit();
  const Network net = network(3);
  Trainer trainer = Trainer::create(net).or_exit();
  ASSERT_TRUE(trainer.fit(named, {.epochs = 1}).ok());
  EXPECT_EQ(net.info().classes, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(data.classes().empty());
}

TEST(Integers, AreNumbersForANetworkWithoutRoomForClasses) {
  for (const Loss loss : {Loss::automatic, Loss::mae}) {
    const Network one = network(1), other = network(1);
    Trainer a = Trainer::create(one, {.loss = loss}).or_exit();
    Trainer b = Trainer::create(other, {.loss = loss}).or_exit();
    ASSERT_TRUE(a.fit(samples<int32_t>(9), {.epochs = 2}).ok());
    ASSERT_TRUE(b.fit(samples<float>(9), {.epochs = 2}).ok());
    EXPECT_EQ(a.weights_hash().or_exit(), b.weights_hash().or_exit());
    EXPECT_EQ(a.evaluate(samples<int32_t>(9)).or_exit().loss,
              b.evaluate(samples<float>(9)).or_exit().loss);
  }
  Trainer classes = Trainer::create(network(9), {.loss = Loss::automatic}).or_exit();
  ASSERT_TRUE(classes.fit(samples<int32_t>(9), {.epochs = 1}).ok());
  EXPECT_TRUE(classes.evaluate(samples<int32_t>(9)).or_exit().accuracy.has_value());
  Trainer wrong = Trainer::create(network(3), {.loss = Loss::mse}).or_exit();
  EXPECT_FALSE(wrong.fit(samples<int32_t>(3), {.epochs = 1}).ok());
}

TEST(AStop, InTheFirstEpochIsNoStartFromZero) {
  const Dataset data = samples<int32_t>(3);
  const Network net = network(3);
  {
    Trainer trainer = Trainer::create(net, {.batch = 8}).or_exit();
    const FitOptions stop{.on_batch = [](int64_t done, int64_t, double) { return done < 2; }};
    EXPECT_EQ(trainer.fit(data, stop).error().code, Code::cancelled);
  }
  EXPECT_FALSE(net.info().fresh);
  const std::string kept = net.save_bytes(NetworkFormat::entity).or_exit();
  const Network again = Network::load(FileBytes{std::as_bytes(std::span(kept))}).or_exit();
  Trainer here = Trainer::create(net).or_exit(), there = Trainer::create(again).or_exit();
  ASSERT_TRUE(here.fit(data, {.epochs = 1}).ok());
  ASSERT_TRUE(there.fit(data, {.epochs = 1}).ok());
  EXPECT_EQ(here.weights_hash().or_exit(), there.weights_hash().or_exit());
}

}  // namespace
}  // namespace loom

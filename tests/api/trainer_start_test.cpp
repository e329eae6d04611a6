// A trainer of the public interface compared with the core trainer: equal bits from equal seeds.
#include <gtest/gtest.h>

#include "api/network/network_impl.hpp"
#include "loom/loom.hpp"

namespace loom::core {
namespace {

class TrainerStart : public testing::TestWithParam<loom::DType> {};

// Packed weights have scales in ranges, which start from the initial weights. A second packing on
// the way would start from other ranges.
TEST_P(TrainerStart, OfAFreshNetworkHasTheBitsOfTheTrainerBelow) {
  const Engine engine = Engine::shared().or_exit();
  const loom::Network net =
      loom::Network::from_json(
          loom::describe(loom::Mlp{.in = 6, .out = 1, .hidden = {32}}).or_exit(),
          {.dtype = GetParam(), .seed = 3})
          .or_exit();
  std::vector<float> x, y;
  for (int i = 0; i < 240; ++i) x.push_back(static_cast<float>(i * 37 % 101 - 50) / 50);
  for (int i = 0; i < 40; ++i) y.push_back(x[static_cast<size_t>(i * 6)]);
  const loom::Dataset data = loom::Dataset::from_arrays(loom::Tensor::view(x.data(), {40, 6}),
                                                        loom::Tensor::view(y.data(), {40, 1}))
                                 .or_exit();
  core::TrainerSpec below;
  below.dtype = static_cast<DType>(GetParam());
  below.seed = below.step.seed = 3;
  below.epochs = 3;
  Engine::Impl& impl = engine.impl();
  Trainer expected =
      Trainer::create(net.impl().model.network.grid, data.impl().data, below, *impl.ops, impl.pool)
          .or_exit();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(expected.epoch(data.impl().data, {}).ok());
  loom::Trainer trainer = loom::Trainer::create(net, {.seed = 3}).or_exit();
  ASSERT_TRUE(trainer.fit(data, {.epochs = 3}).ok());
  EXPECT_EQ(trainer.weights_hash().or_exit(), hash_weights(expected).or_exit());
}

INSTANTIATE_TEST_SUITE_P(DTypes, TrainerStart,
                         testing::Values(loom::DType::float32, loom::DType::int8, loom::DType::q4_0,
                                         loom::DType::ternary));

}  // namespace
}  // namespace loom::core

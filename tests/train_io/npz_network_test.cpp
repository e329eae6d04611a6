// Networks in NPZ files: what they keep besides the weights, and what the memory budget is asked
// for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "convert/convert.hpp"
#include "io/arrays/npy_write.hpp"
#include "io/io_testing.hpp"

namespace loom::core {
namespace {

using ::testing::HasSubstr;

OpenedModel one_dense_layer(int64_t in, int64_t out) {
  MlpOptions mlp;
  mlp.in = in;
  mlp.out = out;
  auto source = std::make_unique<MemorySource>(*build_mlp(mlp));
  source->values["(0, 0, 0, 0)/weight"] = std::vector<float>(static_cast<size_t>(in * out), 0.5f);
  source->values["(0, 0, 0, 0)/bias"] = std::vector<float>(static_cast<size_t>(out), 0.25f);
  OpenedModel model;
  model.network = std::move(source);
  return model;
}

Status write_npz(const std::string& path, const OpenedModel& model) {
  ThreadPool pool(1);
  return write_model(path, model, {}, pool);
}

TEST(NpzNetwork, KeepsTheNormalizationOfItsInputs) {
  const test::TemporaryFolder folder;
  const Normalization given{{1, -2, 3}, {0.5f, 4, 1}};
  const OpenedModel model = one_dense_layer(3, 2);
  keep_normalization(given, *model.network);
  ASSERT_TRUE(write_npz(folder.path("net.npz"), model).ok());
  const auto back = open_network(folder.path("net.npz"));
  ASSERT_TRUE(back.ok()) << back.error().str();
  const auto kept = normalization_of(*back->network);
  ASSERT_TRUE(kept.ok()) << kept.error().str();
  EXPECT_EQ(*kept, given);
  const auto weights = open_network_weights(folder.path("net.npz"), model.network->spec);
  ASSERT_TRUE(weights.ok()) << weights.error().str();
  EXPECT_EQ(*normalization_of(**weights), given);
}

TEST(NpzNetwork, WithAnotherNumberOfNormalizedInputsIsRefused) {
  const test::TemporaryFolder folder;
  const OpenedModel model = one_dense_layer(3, 2);
  keep_normalization({{1, 2}, {1, 1}}, *model.network);
  ASSERT_TRUE(write_npz(folder.path("net.npz"), model).ok());
  const auto back = open_network(folder.path("net.npz"));
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.error().code, Code::bad_file);
  EXPECT_THAT(back.error().str(), HasSubstr("input/shift"));
  EXPECT_THAT(back.error().str(), HasSubstr("is [2], but a sample of the network has 3 values"));
}

TEST(NpzNetwork, AsksTheBudgetBeforeAParameterIsRead) {
  const test::TemporaryFolder folder;
  const OpenedModel model = one_dense_layer(512, 512);  // 1 MB of weights
  ASSERT_TRUE(write_npz(folder.path("net.npz"), model).ok());
  for (const bool fits : {false, true}) {
    const MemoryBudget memory(fits ? 4 << 20 : 1 << 19);
    const auto back = open_network(folder.path("net.npz"), {.memory = memory});
    ASSERT_TRUE(back.ok()) << back.error().str();
    const NetworkSpec& spec = back->network->spec;
    const auto network = Network::finalize(spec.grid, spec.input.after(1));
    ASSERT_TRUE(network.ok());
    const auto weight = back->network->weight(network->params()[0]);
    ASSERT_EQ(weight.ok(), fits);
    if (!fits) {
      EXPECT_EQ(weight.error().code, Code::out_of_memory) << weight.error().str();
    }
  }
}

TEST(NpzNetwork, AsksTheBudgetBeforeItsDescriptionIsParsed) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(write_npz(folder.path("net.npz"), one_dense_layer(3, 2)).ok());
  const auto back = open_network(folder.path("net.npz"), {.memory = MemoryBudget(6 << 10)});
  ASSERT_FALSE(back.ok());
  EXPECT_EQ(back.error().code, Code::out_of_memory) << back.error().str();
  EXPECT_THAT(back.error().str(), HasSubstr("loom/network"));
}

}  // namespace
}  // namespace loom::core

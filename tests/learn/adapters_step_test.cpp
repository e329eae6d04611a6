// Training steps of networks with adapters: frozen weights stay as they are packed.
#include <cstring>

#include "learn/train_rig.hpp"

namespace loom::core::test {
namespace {

GridSpec adapted_grid() {
  GridSpec grid(1, 1, 2, 1);
  const std::vector<AdapterSpec> adapters = {{{"*"}, "lora", 3, 2.0, 0.25}};
  Cell first{layer(LayerKind::swiglu, {{"width", 32}, {"inner", 48}})};
  Cell last{layer(LayerKind::dense, {{"in", 32}, {"out", 5}})};
  first.adapters = last.adapters = adapters;
  EXPECT_TRUE(grid.put({0, 0, 0, 0}, first).ok());
  EXPECT_TRUE(grid.put({0, 0, 1, 0}, last).ok());
  return grid;
}

std::vector<std::byte> bytes_of(const Param& p) {
  return {p.tensor.data, p.tensor.data + p.bytes()};
}

class FrozenWeights : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, FrozenWeights,
                         ::testing::Values(DType::f32, DType::bf16, DType::i8, DType::q4_0),
                         [](const auto& test) { return std::string(dtype_name(test.param)); });

TEST_P(FrozenWeights, WithoutAMasterTrainTheSameAdapters) {
  TrainStepOptions options;
  options.optimizer.kind = OptimizerKind::adam;
  TrainRig with(adapted_grid(), Shape{6, 32}, GetParam(), options, cpu_ops(best_isa()), 2,
                GetParam());
  options.keep_frozen = false;
  TrainRig without(adapted_grid(), Shape{6, 32}, GetParam(), options, cpu_ops(best_isa()), 2,
                   GetParam());
  ASSERT_TRUE(with.ready() && without.ready());
  std::vector<std::vector<std::byte>> before;
  for (const Param& p : without.network().params()) before.push_back(bytes_of(p));
  const std::vector<double> losses = without.run(4, 0.02);
  EXPECT_EQ(with.run(4, 0.02), losses);
  EXPECT_NE(losses.front(), losses.back());
  for (size_t i = 0; i < before.size(); ++i) {
    const Param& p = without.network().params()[i];
    EXPECT_EQ(bytes_of(p) == before[i], p.frozen) << p.path;
    EXPECT_EQ(bytes_of(p), bytes_of(with.network().params()[i])) << p.path;
  }
  for (const StateTensor& t : without.step().state())
    EXPECT_TRUE(t.name.find(".lora.") != std::string::npos || t.name.find("bias") < t.name.size())
        << t.name;
  EXPECT_LT(without.step().state_bytes(), with.step().state_bytes());
}

}  // namespace
}  // namespace loom::core::test

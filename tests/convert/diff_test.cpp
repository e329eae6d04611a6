// diff() of two models in any formats: it finds all differences, and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evolve/networks.hpp"
#include "loom/loom.hpp"

namespace loom::core {
namespace {

using testing::IsEmpty;

const char* const kNames[] = {"net.entity", "net.json", "net.safetensors", "net.npz", "net.onnx"};

// A row of Dense layers of random widths, kinds of activation and weights.
loom::Network random_network(const Rng& rng, uint64_t seed, loom::Activation last) {
  constexpr loom::Activation kHidden[] = {loom::Activation::relu, loom::Activation::tanh,
                                          loom::Activation::sigmoid};
  std::vector<Layer> layers;
  int64_t width = 1 + static_cast<int64_t>(rng.bits(0) % 9);
  const loom::Shape input = {width};
  const uint64_t count = 1 + rng.bits(1) % 3;
  for (uint64_t i = 0; i < count; ++i) {
    const int64_t next = 1 + static_cast<int64_t>(rng.bits(10 + i) % 9);
    layers.push_back(Dense{.in = width,
                           .out = next,
                           .activation = i + 1 == count ? last : kHidden[rng.bits(20 + i) % 3]});
    width = next;
  }
  loom::Network net =
      loom::Network::sequential(std::move(layers), {.input = input, .seed = seed}).value();
  test::fill_gaussian(net, seed * 100 + 1);
  return net;
}

// Saves `net` in the folder, in the format of the name.
std::string saved(const loom::Network& net, const test::EvolveFolder& folder,
                  const std::string& name) {
  const std::string entity = folder / (name + ".tmp.entity"), path = folder / name;
  net.save(entity).or_exit();
  convert(entity, path, loom::ConvertOptions{.with_weights = true}).or_exit();
  return path;
}

std::vector<std::string> unequal(const std::vector<loom::TensorDifference>& all) {
  std::vector<std::string> names;
  for (const loom::TensorDifference& d : all) {
    if (!d.equal()) names.push_back(d.name);
  }
  return names;
}

TEST(Diff, FindsOneChangedWeightBetweenAnyTwoFormats) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const Rng rng(seed, 5);
    const loom::Network a = random_network(rng, seed, loom::Activation::linear);
    loom::Network b = random_network(rng, seed, loom::Activation::linear);
    const std::vector<ParameterInfo> parameters = b.parameters();
    const std::string changed = parameters[rng.bits(30) % parameters.size()].name;
    std::vector<float> values = test::values_of(b, changed);
    values[rng.bits(31) % values.size()] += 0.5f;
    test::set_values(b, changed, values);
    const test::EvolveFolder folder;
    for (const char* first : kNames) {
      for (const char* second : kNames) {
        const std::string one = saved(a, folder, std::string("a-") + first);
        const std::string same = saved(a, folder, std::string("same-") + second);
        const std::string other = saved(b, folder, std::string("b-") + second);
        for (const bool by_parameters : {false, true}) {
          SCOPED_TRACE(std::string(first) + " and " + second + ", seed " + std::to_string(seed));
          const auto equal = diff(one, same, {.by_parameters = by_parameters}).value();
          EXPECT_FALSE(equal.empty());
          EXPECT_THAT(unequal(equal), IsEmpty());
          const auto found = diff(one, other, {.by_parameters = by_parameters}).value();
          EXPECT_EQ(unequal(found).size(), 1u);
        }
      }
    }
  }
}

TEST(Diff, FindsOtherSettingsOfLayersWithEqualWeights) {
  const Rng rng(3, 5);
  const loom::Network a = random_network(rng, 3, loom::Activation::tanh),
                      b = random_network(rng, 3, loom::Activation::relu);
  const test::EvolveFolder folder;
  for (const char* name : kNames) {
    SCOPED_TRACE(name);
    const std::string one = saved(a, folder, "a.entity");
    const std::string other = saved(b, folder, std::string("b-") + name);
    for (const bool by_parameters : {false, true}) {
      const auto found = diff(one, other, {.by_parameters = by_parameters}).value();
      ASSERT_FALSE(unequal(found).empty());
      EXPECT_THAT(unequal(found).back(), testing::EndsWith(" layer"));
      EXPECT_THAT(found.back().shape_a, testing::HasSubstr("activation tanh"));
      EXPECT_THAT(found.back().shape_b, testing::HasSubstr("activation relu"));
    }
  }
}

// Networks without parameters have nothing but their layers to compare.
TEST(Diff, FindsOtherLayersWhereThereAreNoWeights) {
  const auto net = [](Layer layer) {
    return loom::Network::sequential({std::move(layer)}, {.input = {4}}).value();
  };
  const test::EvolveFolder folder;
  net(Softmax{}).save(folder / "a.entity").or_exit();
  net(Softmax{.temperature = 2}).save(folder / "b.entity").or_exit();
  EXPECT_THAT(unequal(diff(folder / "a.entity", folder / "a.entity").value()), IsEmpty());
  EXPECT_EQ(unequal(diff(folder / "a.entity", folder / "b.entity").value()).size(), 1u);
}

}  // namespace
}  // namespace loom::core

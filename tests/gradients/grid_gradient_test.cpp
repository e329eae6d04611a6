// Features of the grid besides layers: links, shared weights, disabled cells, adapters, whole
// grids.
// Gradients are compared with central differences, as for layers.
#include "gradients/gradient_rig.hpp"
#include "grid/builders.hpp"

namespace loom::core::test {
namespace {

LayerConfig dense(int64_t in, int64_t out, const char* activation = "tanh") {
  return layer(LayerKind::dense, {{"in", in}, {"out", out}, {"activation", activation}});
}

void put(GridSpec& grid, const Coord& at, Cell cell) {
  const Status status = grid.put(at, std::move(cell));
  ASSERT_TRUE(status.ok()) << status.error().str();
}

TEST(GridGradient, FlowsThroughASkipConnection) {
  GridSpec grid(1, 1, 4, 1);
  put(grid, {0, 0, 0, 0}, {dense(3, 4)});
  put(grid, {0, 0, 1, 0}, {dense(4, 5)});
  // Reads the first cell again; the second is read by the residual below.
  put(grid, {0, 0, 2, 0}, {dense(4, 5), {}, Link{{0, 0, 0, 0}}});
  put(grid, {0, 0, 3, 0}, {layer(LayerKind::residual, {}), {}, Link{{0, 0, 1, 0}}});
  GradientRig(grid, Shape{4, 3}).check();
}

TEST(GridGradient, AddsUpOverAllReadersOfACell) {
  GridSpec grid(2, 2, 1, 1);
  put(grid, {0, 0, 0, 0}, {dense(3, 3)});
  put(grid, {0, 1, 0, 0}, {dense(3, 3), {}, Link{{0, 0, 0, 0}}});
  put(grid, {1, 0, 0, 0}, {layer(LayerKind::residual, {}), {}, Link{{0, 0, 0, 0}}});
  put(grid, {1, 1, 0, 0}, {layer(LayerKind::residual, {}), {}, Link{{0, 0, 0, 0}}});
  GradientRig(grid, Shape{2, 3}).check();
}

TEST(GridGradient, OfSharedWeightsIsTheSumOfTheirUses) {
  GridSpec grid(1, 1, 3, 1);
  put(grid, {0, 0, 0, 0}, {dense(4, 4)});
  put(grid, {0, 0, 1, 0}, {dense(4, 4, "silu"), Coord{0, 0, 0, 0}});
  put(grid, {0, 0, 2, 0}, {dense(4, 4, "linear"), Coord{0, 0, 0, 0}});
  GradientRig(grid, Shape{3, 4}).check();
}

TEST(GridGradient, StopsAtFeedback) {
  GridSpec grid(1, 1, 2, 1);
  put(grid, {0, 0, 0, 0}, {dense(3, 4)});
  put(grid, {0, 0, 1, 0}, {layer(LayerKind::residual, {}), {}, Link{{0, 0, 1, 0}, true}});
  GradientRig(grid, Shape{3, 3}).check();
}

TEST(GridGradient, PassesDisabledCellsUnchanged) {
  GridSpec grid(1, 1, 3, 1);
  LayerConfig off = dense(9, 9);
  off.disabled = true;
  put(grid, {0, 0, 0, 0}, {dense(3, 5)});
  put(grid, {0, 0, 1, 0}, {off});
  put(grid, {0, 0, 2, 0}, {layer(LayerKind::parallel, {{"combine", "add"}}, {dense(5, 5), off})});
  GradientRig(grid, Shape{2, 3}).check();
}

// The example of a kind whose weights can have adapters, with two of them on every weight.
class AdapterGradient : public ::testing::TestWithParam<const LayerDef*> {};

std::vector<const LayerDef*> kinds_with_products() {
  std::vector<const LayerDef*> kinds;
  for (const LayerDef* def : layer_table())
    if (has_products(*def)) kinds.push_back(def);
  return kinds;
}
INSTANTIATE_TEST_SUITE_P(Kinds, AdapterGradient, ::testing::ValuesIn(kinds_with_products()),
                         [](const auto& test) { return std::string(test.param->name); });

TEST_P(AdapterGradient, IsThatOfCentralDifferences) {
  const LayerExample example = GetParam()->example();
  Result<std::vector<LayerConfig>> layers = make_layers(example.layers);
  ASSERT_TRUE(layers.ok()) << layers.error().str();
  GridSpec grid(1, 1, static_cast<int64_t>(layers->size()), 1);
  const std::vector<AdapterSpec> adapters = {{{"*"}, "first", 2, 1.5, 0.25}, {{"*"}, "next", 1}};
  for (size_t i = 0; i < layers->size(); ++i) {
    Cell cell{std::move((*layers)[i])};
    if (has_products(*cell.layer.def)) cell.adapters = adapters;
    put(grid, {0, 0, static_cast<int64_t>(i), 0}, std::move(cell));
  }
  GradientRig rig(grid, example.input.after(2));
  EXPECT_GE(rig.network().params().size(), 5u);
  rig.check();
}

TEST(GridGradient, OfAdaptersInContainersIsThatOfCentralDifferences) {
  GridSpec grid(1, 1, 2, 1);
  const auto residual = [] {
    return layer(LayerKind::residual, {}, {dense(3, 4), dense(4, 3, "linear")});
  };
  put(grid, {0, 0, 0, 0}, {residual(), {}, {}, {}, {}, {{{"1/weight"}, "deep", 2, 0.5}}});
  // Weights are shared, adapters are not.
  put(grid, {0, 0, 1, 0},
      {residual(), Coord{0, 0, 0, 0}, {}, {}, {}, {{{"*/weight"}, "deep", 1, 2.0}}});
  GradientRig rig(grid, Shape{2, 3});
  EXPECT_EQ(rig.network().params().size(), 10u);
  rig.check();
}

TEST(GridGradient, OfGraftedNetworksIsThatOfCentralDifferences) {
  const Result<NetworkSpec> a = build_mlp({.in = 4, .out = 3, .hidden = {5}, .activation = "tanh"});
  const Result<NetworkSpec> b = build_mlp({.in = 4, .out = 3, .hidden = {6}, .activation = "silu"});
  const Result<NetworkSpec> same =
      build_mlp({.in = 3, .out = 3, .hidden = {}, .activation = "tanh"});
  ASSERT_TRUE(a.ok() && b.ok() && same.ok());
  for (const char* combine : {"concat", "add", "avg"}) {
    const Result<NetworkSpec> both = graft({*a, *b}, combine);
    ASSERT_TRUE(both.ok()) << both.error().str();
    GradientRig(both->grid, Shape{3, 4}).check();
  }
  const Result<NetworkSpec> around = graft_residual(*same);
  ASSERT_TRUE(around.ok()) << around.error().str();
  GradientRig(around->grid, Shape{3, 3}).check();
}

TEST(Graft, RefusesWhatALayerCannotHold) {
  GridSpec grid(1, 1, 2, 1);
  put(grid, {0, 0, 0, 0}, {dense(3, 3)});
  put(grid, {0, 0, 1, 0}, {dense(3, 3), {}, Link{{0, 0, 0, 0}}});
  const Result<LayerConfig> layer = as_layer(grid);
  ASSERT_FALSE(layer.ok());
  EXPECT_EQ(layer.error().message,
            "cell (0, 0, 1, 0) has a link, which a layer inside another cannot have; remove it "
            "before grafting");
}

TEST(GridGradient, OfADeepStackIsThatOfCentralDifferences) {
  GridSpec grid(2, 2, 2, 1);
  int64_t i = 0;
  for (int64_t z = 0; z < 2; ++z) {
    for (int64_t y = 0; y < 2; ++y) {
      for (int64_t x = 0; x < 2; ++x)
        put(grid, {z, y, x, 0}, {dense(4, 4, i++ % 2 ? "silu" : "tanh")});
    }
  }
  GradientRig(grid, Shape{2, 4}).check();
}

}  // namespace
}  // namespace loom::core::test

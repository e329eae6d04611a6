// Gradient checkpointing changes memory and time, never bits.
#include "grid/builders.hpp"
#include "layers/core/forward_call.hpp"
#include "learn/every_kind.hpp"

namespace loom::core::test {
namespace {

struct GridCase {
  const char* name;
  std::function<GridSpec()> grid;
  Shape input;
};

std::ostream& operator<<(std::ostream& out, const GridCase& c) {
  return out << c.name;
}

GridSpec of(Result<NetworkSpec> network) {
  EXPECT_TRUE(network.ok()) << network.error().str();
  return network->grid;
}

GridSpec linked() {
  GridSpec grid = row_of({dense(6, 6, "tanh"), dense(6, 6, "gelu_tanh"), dense(6, 6, "silu"),
                          dense(6, 6), dense(6, 6, "tanh"), layer(LayerKind::residual, {})});
  const auto link = [&](int64_t at, Cell cell) {
    EXPECT_TRUE(grid.put({0, 0, at, 0}, std::move(cell)).ok());
  };
  link(3, {dense(6, 6), {}, Link{{0, 0, 0, 0}}});                // a skip over two cells
  link(4, {dense(6, 6, "tanh"), Coord{0, 0, 1, 0}});             // weights of cell 1
  link(2, {dense(6, 6, "silu"), {}, Link{{0, 0, 4, 0}, true}});  // feedback
  return grid;
}

GridSpec noisy() {
  return row_of({dense(5, 7, "tanh"), layer(LayerKind::softmax, {{"variant", "gumbel"}}),
                 dense(7, 7, "elu"), layer(LayerKind::softmax, {{"variant", "gumbel"}}),
                 layer(LayerKind::parallel, {{"combine", "filter"}, {"top_k", 1}},
                       {dense(7, 4), dense(7, 4, "tanh"), dense(7, 2)}),
                 dense(4, 3)});
}

std::vector<GridCase> grids() {
  TransformerOptions transformer;
  transformer.vocab = 19;
  transformer.width = 16;
  transformer.layers = 3;
  transformer.time = 8;
  RandomOptions random;
  random.layers = 2;
  RecurrentOptions recurrent;
  recurrent.hidden = {9, 8, 7};
  recurrent.in = 5;
  recurrent.time = 9;
  return {
      {"Links", linked, Shape{4, 6}},
      {"Noise", noisy, Shape{4, 5}},
      {"Transformer", [=] { return of(build_transformer(transformer)); }, Shape{2, 8}},
      {"Random", [=] { return of(build_random(random)); }, Shape{4, 8}},
      {"Recurrent", [=] { return of(build_recurrent(recurrent)); }, Shape{3, 9, 5}},
  };
}

TrainStepOptions checkpointed(int64_t cells) {
  TrainStepOptions o;
  o.clip = {Clip::norm, 1.0f};
  o.checkpoint_cells = cells;
  return o;
}

class GradientCheckpoint : public ::testing::TestWithParam<GridCase> {};

TEST_P(GradientCheckpoint, LeavesTheSameBits) {
  const GridCase& c = GetParam();
  const auto hash = [&](int64_t cells, int accumulate) {
    TrainStepOptions options = checkpointed(cells);
    options.accumulate = accumulate;
    TrainRig rig(c.grid(), c.input, DType::f32, options, cpu_ops(best_isa()), 2);
    if (!rig.ready()) return uint64_t{0};
    rig.run(6, 0.01);
    return rig.hash();
  };
  for (int accumulate : {1, 3}) {
    const uint64_t full = hash(0, accumulate);
    for (int64_t cells : {1, 2, 3, 100}) {
      EXPECT_EQ(hash(cells, accumulate), full) << cells << " cells, " << accumulate;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Grids, GradientCheckpoint, ::testing::ValuesIn(grids()),
                         [](const auto& c) { return c.param.name; });

TEST(GradientCheckpoint, OfADeepNetworkNeedsAFractionOfTheMemory) {
  std::vector<LayerConfig> layers;
  for (int i = 0; i < 36; ++i) {
    layers.push_back(layer(LayerKind::residual, {},
                           {layer(LayerKind::layer_norm, {{"width", 16}}),
                            dense(16, 48, "gelu_tanh"), dense(48, 16)}));
  }
  const GridSpec grid = row_of(std::move(layers));
  const auto arena = [&](int64_t cells) {
    TrainRig rig(grid, Shape{1024, 16}, DType::f32, checkpointed(cells));
    return rig.ready() ? rig.step().arena_bytes() : 0;
  };
  const int64_t full = arena(0), six = arena(6);
  EXPECT_GT(six, 0);
  EXPECT_LT(six * 3, full) << six << " of " << full;
}

}  // namespace
}  // namespace loom::core::test

// A session assigns planned memory in the order of the layers' requests. So a layer must request as
// many tensors for one step and one sample as for many (layers/core/layer.hpp).
#include <gtest/gtest.h>

#include "grid/grid_testing.hpp"
#include "grid/init.hpp"
#include "grid/traced.hpp"
#include "ops/recording/trace.hpp"

namespace loom::core::test {
namespace {

int64_t tensors_for(std::vector<LayerConfig> layers, const Shape& input) {
  Result<Network> network = Network::finalize(row_of(std::move(layers)), input);
  EXPECT_TRUE(network.ok()) << network.error().str();
  if (!network.ok()) return -1;
  ThreadPool pool(1, true);
  EXPECT_TRUE(init_params(*network, DType::f32, 1, pool).ok());
  Trace trace(DType::f32);
  const Result<TracedNetwork> traced = trace_network(*network, trace, {});
  EXPECT_TRUE(traced.ok()) << traced.error().str();
  return trace.tensors();
}

TEST(Layers, AskForAsManyTensorsForOneStepAsForMany) {
  using K = LayerKind;
  const LayerConfig gru = layer(K::gru, {{"in", 4}, {"hidden", 4}});
  const std::vector<LayerConfig> all = {
      layer(K::rnn, {{"in", 4}, {"hidden", 3}}),
      layer(K::lstm, {{"in", 4}, {"hidden", 3}}),
      gru,
      layer(K::gru, {{"in", 4}, {"hidden", 3}, {"return_sequence", false}}),
      layer(K::multi_head_attention,
            {{"width", 4}, {"heads", 2}, {"kv_heads", 1}, {"head_dim", 2}}),
      layer(K::swiglu, {{"width", 4}, {"inner", 6}}),
      layer(K::rms_norm, {{"width", 4}}),
      layer(K::layer_norm, {{"width", 4}}),
      layer(K::dense, {{"in", 4}, {"out", 3}}),
      layer(K::kmeans, {{"clusters", 3}, {"width", 4}, {"mode", "features"}}),
      layer(K::softmax, {{"variant", "adaptive"}}),
      layer(K::softmax, {{"variant", "mixture"}, {"rows", 2}, {"cols", 2}}),
      layer(K::parallel, {{"combine", "avg"}}, {gru, layer(K::rms_norm, {{"width", 4}})}),
      layer(K::residual, {}, {gru, gru}),
  };
  for (const LayerConfig& config : all) {
    const int64_t large = tensors_for({config}, Shape{3, 7, 4});
    for (const Shape& input : {Shape{3, 1, 4}, Shape{1, 7, 4}, Shape{2, 4, 4}}) {
      EXPECT_EQ(tensors_for({config}, input), large) << config.def->name << " for " << input.str();
    }
  }
}

TEST(Layers, AskForAsManyTensorsForOneSampleAsForManyInEveryExample) {
  for (const LayerDef* def : layer_table()) {
    const LayerExample example = def->example();
    const Result<std::vector<LayerConfig>> layers = make_layers(example.layers);
    ASSERT_TRUE(layers.ok()) << layers.error().str();
    const int64_t one = tensors_for(*layers, example.input.after(1));
    for (const int64_t batch : {int64_t{2}, example.batch}) {
      EXPECT_EQ(tensors_for(*layers, example.input.after(batch)), one) << def->name;
    }
  }
}

}  // namespace
}  // namespace loom::core::test

// Every layer kind (by its example) and variant: dL/dx and every parameter against central
// differences in f64, to 1e-6 of the largest component.
#include "gradients/gradient_rig.hpp"
#include "layers/blocks/blocks.hpp"
#include "layers/core/graph.hpp"

namespace loom::core::test {
namespace {

using Fields = std::vector<Field>;
using Layers = std::vector<LayerConfig>;

struct Case {
  std::string name;
  std::function<Layers()> layers;
  Shape input;
  GradientOptions options = {};
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.name;
}

Case one(std::string name, LayerKind kind, Fields fields, Shape input, GradientOptions o = {}) {
  return {std::move(name), [=] { return Layers{layer(kind, fields)}; }, input, o};
}

class LayerGradient : public ::testing::TestWithParam<Case> {};

TEST_P(LayerGradient, IsThatOfCentralDifferences) {
  const Case& c = GetParam();
  GradientRig rig(row_of(c.layers()), c.input, c.options);
  rig.check();
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

std::vector<Case> dense_cases() {
  std::vector<Case> all;
  for (const char* activation :
       {"linear", "relu", "leaky_relu", "relu2", "silu", "gelu_tanh", "gelu_erf", "tanh", "sigmoid",
        "mish", "softplus", "elu", "hard_swish"}) {
    all.push_back(one(std::string("dense_") + activation, LayerKind::dense,
                      {{"in", 5}, {"out", 7}, {"activation", activation}}, Shape{3, 5}));
  }
  all.push_back(one("dense_capped", LayerKind::dense, {{"in", 5}, {"out", 7}, {"soft_cap", 0.8}},
                    Shape{3, 5}));
  all.push_back(one("dense_scaled", LayerKind::dense,
                    {{"in", 5}, {"out", 7}, {"soft_cap", 0.8}, {"scale", 0.3}}, Shape{3, 5}));
  all.push_back(one("dense_without_bias", LayerKind::dense,
                    {{"in", 4}, {"out", 17}, {"bias", false}}, Shape{2, 3, 4}));
  all.push_back(
      one("dense_of_whole_samples", LayerKind::dense, {{"in", 24}, {"out", 3}}, Shape{2, 2, 3, 4}));
  return all;
}
INSTANTIATE_TEST_SUITE_P(Dense, LayerGradient, ::testing::ValuesIn(dense_cases()), name_of);

std::vector<Case> norm_cases() {
  std::vector<Case> all;
  all.push_back(one("rms", LayerKind::rms_norm, {{"width", 6}}, Shape{4, 6}));
  all.push_back(one("layer_norm", LayerKind::layer_norm, {{"width", 6}}, Shape{2, 2, 6}));
  all.push_back(one("layer_norm_without_bias", LayerKind::layer_norm,
                    {{"width", 6}, {"bias", false}}, Shape{2, 2, 6}));
  all.push_back(one("layer_norm_without_weight", LayerKind::layer_norm,
                    {{"width", 6}, {"weight", false}}, Shape{2, 2, 6}));
  all.push_back(one("layer_norm_alone", LayerKind::layer_norm,
                    {{"width", 6}, {"weight", false}, {"bias", false}}, Shape{2, 2, 6}));
  all.push_back(
      {"residual_scaled",
       [] {
         const LayerConfig inner = layer(LayerKind::dense, {{"in", 4}, {"out", 4}});
         return Layers{make_layer(LayerKind::residual, {{"scale", 0.4}}, {inner}).value()};
       },
       Shape{3, 4}});
  for (const char* gate : {"silu", "gelu_tanh", "relu2", "sigmoid"}) {
    all.push_back(one(std::string("swiglu_") + gate, LayerKind::swiglu,
                      {{"width", 4}, {"inner", 6}, {"bias", true}, {"activation", gate}},
                      Shape{2, 3, 4}));
  }
  GradientOptions ids;
  ids.vocab = 7;
  all.push_back(
      one("embedding", LayerKind::embedding, {{"vocab", 7}, {"width", 3}}, Shape{3, 8}, ids));
  all.push_back(one("embedding_tanh", LayerKind::embedding,
                    {{"vocab", 7}, {"width", 3}, {"activation", "tanh"}}, Shape{3, 8}, ids));
  all.push_back(one("embedding_scaled", LayerKind::embedding,
                    {{"vocab", 7}, {"width", 3}, {"scale", 2.5}}, Shape{3, 8}, ids));
  all.push_back(one("embedding_positions", LayerKind::embedding,
                    {{"vocab", 7}, {"width", 3}, {"positions", 9}, {"scale", 1.5}}, Shape{3, 8},
                    ids));
  all.push_back(one("swiglu_sub_norm", LayerKind::swiglu,
                    {{"width", 4}, {"inner", 6}, {"activation", "relu2"}, {"sub_norm", true}},
                    Shape{2, 3, 4}));
  all.push_back(one("swiglu_sub_norm_biases", LayerKind::swiglu,
                    {{"width", 4}, {"inner", 6}, {"bias", true}, {"sub_norm", true}},
                    Shape{2, 3, 4}));
  all.push_back(one("kmeans_probabilities", LayerKind::kmeans,
                    {{"clusters", 4}, {"width", 3}, {"temperature", 0.7}}, Shape{5, 3}));
  all.push_back(one("kmeans_features", LayerKind::kmeans,
                    {{"clusters", 4}, {"width", 3}, {"mode", "features"}, {"activation", "tanh"}},
                    Shape{2, 3, 3}));
  return all;
}
INSTANTIATE_TEST_SUITE_P(Rows, LayerGradient, ::testing::ValuesIn(norm_cases()), name_of);

std::vector<Case> channel_cases() {
  std::vector<Case> all;
  all.push_back(one("batch_norm_flat", LayerKind::batch_norm, {{"channels", 3}}, Shape{6, 3}));
  all.push_back(one("batch_norm_1d", LayerKind::batch_norm, {{"channels", 3}}, Shape{4, 3, 5}));
  all.push_back(one("batch_norm_2d", LayerKind::batch_norm, {{"channels", 2}, {"affine", false}},
                    Shape{3, 2, 3, 4}));
  all.push_back(one("batch_norm_one_sample", LayerKind::batch_norm, {{"channels", 2}, {"eps", 0.1}},
                    Shape{1, 2, 7}));
  all.push_back(
      one("group_norm", LayerKind::group_norm, {{"channels", 6}, {"groups", 2}}, Shape{2, 6, 5}));
  all.push_back(
      one("group_norm_flat", LayerKind::group_norm, {{"channels", 8}, {"groups", 2}}, Shape{3, 8}));
  all.push_back(one("group_norm_plain", LayerKind::group_norm,
                    {{"channels", 4}, {"groups", 4}, {"affine", false}}, Shape{2, 4, 3, 2}));
  all.push_back(one("instance_norm", LayerKind::instance_norm, {{"channels", 3}}, Shape{2, 3, 5}));
  all.push_back(one("instance_norm_affine", LayerKind::instance_norm,
                    {{"channels", 3}, {"affine", true}}, Shape{2, 3, 2, 4}));
  all.push_back(one("dropout", LayerKind::dropout, {{"rate", 0.3}}, Shape{4, 7}));
  all.push_back(
      one("dropout_channel", LayerKind::dropout, {{"form", "channel"}}, Shape{4, 3, 2, 2}));
  all.push_back(
      one("dropout_alpha", LayerKind::dropout, {{"rate", 0.2}, {"form", "alpha"}}, Shape{4, 7}));
  return all;
}
INSTANTIATE_TEST_SUITE_P(Channels, LayerGradient, ::testing::ValuesIn(channel_cases()), name_of);
std::vector<Case> pool_cases() {
  std::vector<Case> all;
  using List = std::vector<int64_t>;
  using K = LayerKind;
  for (const char* kind : {"max", "average", "lp"}) {
    const std::string name = std::string("pool_") + kind;
    all.push_back(one(name, K::pool, {{"kind", kind}}, Shape{2, 2, 6}));
    all.push_back(one(name + "_overlapping", K::pool,
                      {{"kind", kind},
                       {"kernel", 3},
                       {"stride", 2},
                       {"padding", 1},
                       {"ceil", true},
                       {"include_padding", true}},
                      Shape{2, 2, 6, 5}));
    all.push_back(one(name + "_to_extents", K::pool, {{"kind", kind}, {"output", List{2, 3}}},
                      Shape{2, 2, 5, 4}));
    all.push_back(
        one(name + "_of_all", K::pool, {{"kind", kind}, {"output", 1}}, Shape{2, 3, 2, 4}));
  }
  all.push_back(one("pool_norm_1", K::pool, {{"kind", "lp"}, {"p", 1}}, Shape{2, 2, 6}));
  all.push_back(one("flatten", K::flatten, {}, Shape{2, 2, 3}));
  all.push_back(one("reshape", K::reshape, {{"shape", List{3, -1}}}, Shape{2, 2, 6}));
  all.push_back(one("permute", K::permute, {{"axes", List{2, 0, 1}}}, Shape{2, 2, 3, 4}));
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
    all.push_back(one(std::string("pad_") + mode, K::pad,
                      {{"before", List{1, 2}}, {"after", List{2, 1}}, {"mode", mode}},
                      Shape{2, 2, 3, 4}));
  }
  all.push_back(one("upsample", K::upsample, {}, Shape{2, 2, 3, 2}));
  all.push_back(
      one("upsample_to_extents", K::upsample, {{"output", List{2, 7}}}, Shape{2, 2, 3, 4}));
  all.push_back(one("upsample_linear", K::upsample, {{"mode", "linear"}}, Shape{2, 2, 3, 2}));
  all.push_back(one("upsample_corners", K::upsample,
                    {{"mode", "linear"}, {"output", List{5, 2}}, {"align_corners", true}},
                    Shape{2, 2, 3, 4}));
  all.push_back(one("pixel_shuffle", K::pixel_shuffle, {}, Shape{2, 4, 2, 3}));
  all.push_back(one("pixel_unshuffle", K::pixel_shuffle, {{"inverse", true}}, Shape{2, 2, 4, 2}));
  return all;
}
INSTANTIATE_TEST_SUITE_P(PoolAndMove, LayerGradient, ::testing::ValuesIn(pool_cases()), name_of);

std::vector<Case> conv_cases() {
  std::vector<Case> all;
  using List = std::vector<int64_t>;
  all.push_back(one("cnn1", LayerKind::cnn1, {{"channels", 2}, {"filters", 3}, {"padding", 1}},
                    Shape{2, 2, 7}));
  all.push_back(one("cnn1_strided_dilated", LayerKind::cnn1,
                    {{"channels", 2},
                     {"filters", 4},
                     {"stride", 2},
                     {"dilation", 2},
                     {"groups", 2},
                     {"activation", "gelu_tanh"}},
                    Shape{2, 2, 9}));
  all.push_back(one("cnn2", LayerKind::cnn2,
                    {{"channels", 2},
                     {"filters", 3},
                     {"kernel", List{3, 2}},
                     {"stride", List{2, 1}},
                     {"padding", List{1, 0}},
                     {"activation", "tanh"}},
                    Shape{2, 2, 5, 4}));
  all.push_back(
      one("cnn2_depthwise", LayerKind::cnn2,
          {{"channels", 3}, {"filters", 3}, {"groups", 3}, {"padding", 1}, {"bias", false}},
          Shape{2, 3, 4, 3}));
  all.push_back(one("cnn3", LayerKind::cnn3,
                    {{"channels", 2},
                     {"filters", 2},
                     {"kernel", 2},
                     {"padding", List{0, 1, 0}},
                     {"dilation", List{1, 1, 2}}},
                    Shape{2, 2, 3, 2, 4}));
  all.push_back(one("conv_transposed1", LayerKind::conv_transposed1,
                    {{"channels", 3},
                     {"filters", 2},
                     {"stride", 2},
                     {"padding", 1},
                     {"output_padding", 1},
                     {"activation", "tanh"}},
                    Shape{2, 3, 4}));
  all.push_back(one("conv_transposed2", LayerKind::conv_transposed2,
                    {{"channels", 4},
                     {"filters", 2},
                     {"groups", 2},
                     {"kernel", List{2, 3}},
                     {"stride", List{1, 2}},
                     {"activation", "silu"}},
                    Shape{2, 4, 2, 3}));
  all.push_back(one("conv_transposed3", LayerKind::conv_transposed3,
                    {{"channels", 2},
                     {"filters", 2},
                     {"kernel", 2},
                     {"dilation", List{1, 2, 1}},
                     {"bias", false}},
                    Shape{2, 2, 2, 2, 2}));
  return all;
}
INSTANTIATE_TEST_SUITE_P(Convolution, LayerGradient, ::testing::ValuesIn(conv_cases()), name_of);

// y = f(x, states) + what both last states say, the first states being parameters.
LayerConfig with_states(const char* kind) {
  const bool lstm = std::string(kind) == "LSTM";
  GraphNames names;
  std::vector<LayerConfig> nodes;
  const auto node = [&](const char* name, std::vector<std::string> from, LayerConfig config) {
    names.nodes.push_back({name, std::move(from)});
    nodes.push_back(std::move(config));
  };
  const std::vector<int64_t> state = {3, 4};
  std::vector<std::string> reads = {"input", "h"}, ends = {"layer:1"};
  node("h", {}, layer(LayerKind::constant, {{"shape", state}}));
  if (lstm) {
    node("c", {}, layer(LayerKind::constant, {{"shape", state}}));
    reads.emplace_back("c");
    ends.emplace_back("layer:2");
  }
  node("layer", reads,
       *make_layer(*find_layer(kind), {{"in", 3},
                                       {"hidden", 4},
                                       {"return_sequence", false},
                                       {"initial_state", true},
                                       {"final_state", true}}));
  ends.emplace_back("layer");
  node("sum", ends, layer(LayerKind::binary, {{"function", "mul"}}));
  names.outputs = {"sum"};
  return *make_graph(*wire_graph(names), std::move(nodes));
}

std::vector<Case> recurrent_cases() {
  std::vector<Case> all;
  const std::pair<const char*, LayerKind> kinds[] = {
      {"rnn", LayerKind::rnn}, {"lstm", LayerKind::lstm}, {"gru", LayerKind::gru}};
  for (const auto& [name, kind] : kinds) {
    all.push_back(one(name, kind, {{"in", 3}, {"hidden", 4}}, Shape{2, 9, 3}));
    all.push_back(one(std::string(name) + "_last_state", kind,
                      {{"in", 3}, {"hidden", 4}, {"return_sequence", false}}, Shape{3, 8, 3}));
    if (kind == LayerKind::gru) continue;  // it always has both
    all.push_back(one(std::string(name) + "_of_two_biases", kind,
                      {{"in", 3}, {"hidden", 4}, {"state_bias", true}}, Shape{2, 5, 3}));
  }
  GradientOptions early;
  early.lengths = {5, 1, 8};
  for (const auto& [name, kind] : kinds) {
    for (const bool sequence : {false, true}) {
      all.push_back(one(std::string(name) + (sequence ? "_of_lengths" : "_last_of_lengths"), kind,
                        {{"in", 3}, {"hidden", 4}, {"return_sequence", sequence}}, Shape{3, 8, 3},
                        early));
    }
  }
  for (const char* kind : {"RNN", "LSTM", "GRU"}) {
    for (const bool lengths : {false, true}) {
      const auto layers = [kind] { return Layers{with_states(kind)}; };
      all.push_back({std::string(kind) + (lengths ? "_states_of_lengths" : "_states"), layers,
                     Shape{3, 8, 3}, lengths ? early : GradientOptions{}});
    }
  }
  all.push_back(one("turned_steps_of_lengths", LayerKind::slice,
                    {{"starts", std::vector<int64_t>{-1}},
                     {"ends", std::vector<int64_t>{-100}},
                     {"axes", std::vector<int64_t>{1}},
                     {"steps", std::vector<int64_t>{-1}}},
                    Shape{3, 8, 2}, early));
  all.push_back(one("rnn_sigmoid", LayerKind::rnn,
                    {{"in", 3}, {"hidden", 4}, {"activation", "sigmoid"}}, Shape{2, 8, 3}));
  all.push_back(one("rnn_silu", LayerKind::rnn, {{"in", 3}, {"hidden", 4}, {"activation", "silu"}},
                    Shape{2, 8, 3}));
  return all;
}
INSTANTIATE_TEST_SUITE_P(Recurrent, LayerGradient, ::testing::ValuesIn(recurrent_cases()), name_of);

std::vector<Case> attention_cases() {
  const auto mha = [](std::string name, Fields extra, GradientOptions o = {}) {
    Fields fields = {{"width", 6}, {"heads", 2}, {"kv_heads", 2}, {"head_dim", 4}};
    for (Field& f : extra) fields.push_back(f);
    return one(std::move(name), LayerKind::multi_head_attention, fields, Shape{2, 5, 6}, o);
  };
  GradientOptions masked;
  masked.masked = true;
  GradientOptions documents;
  documents.documents = {{2, 1, 2}, {5}};
  return {
      mha("causal_rope", {}),
      mha("documents", {{"kv_heads", 1}}, documents),
      mha("documents_window", {{"window", 2}, {"sinks", true}, {"soft_cap", 0.7}}, documents),
      mha("documents_alibi", {{"alibi", 8.0}, {"rope", false}}, documents),
      mha("bidirectional", {{"causal", false}, {"rope", false}}),
      mha("windowed", {{"window", 2}}),
      mha("windowed_both_ways", {{"window", 2}, {"causal", false}}),
      mha("masked", {{"causal", false}}, masked),
      mha("masked_causal", {}, masked),
      mha("biases", {{"bias", true}, {"out_bias", true}}),
      mha("qk_norm", {{"qk_norm", true}}),
      mha("part_of_the_head_turns", {{"rope_width", 2}}),
      mha("scaled", {{"scale", 0.3}}),
      mha("capped", {{"soft_cap", 0.4}}),
      mha("capped_window", {{"soft_cap", 0.7}, {"window", 2}, {"kv_heads", 1}}, masked),
      mha("sub_norm", {{"sub_norm", true}, {"qk_norm", true}, {"bias", true}, {"out_bias", true}}),
      mha("multi_query", {{"kv_heads", 1}, {"bias", true}}),
      mha("grouped", {{"heads", 4}, {"kv_heads", 2}, {"head_dim", 2}, {"qk_norm", true}}),
      mha("norm_of_all_heads", {{"qk_norm", true}, {"qk_norm_form", "rms_wide"}}),
      mha("layer_norm_of_heads",
          {{"qk_norm", true}, {"qk_norm_form", "layer"}, {"qk_norm_after_rope", true}}),
      mha("shared_layer_norm", {{"qk_norm", true}, {"qk_norm_form", "layer_shared"}}),
      mha("norm_without_weights",
          {{"qk_norm", true}, {"qk_norm_form", "l2"}, {"qk_norm_after_rope", true}}),
      mha("clipped", {{"clip", 0.35}, {"bias", true}}),
      mha("alibi", {{"alibi", 8.0}, {"rope", false}, {"heads", 6}, {"head_dim", 2}}),
      mha("alibi_both_ways", {{"alibi", 4.0}, {"causal", false}, {"window", 3}}, masked),
      mha("sinks", {{"sinks", true}, {"kv_heads", 1}}),
      mha("latent", {{"latent", 5}, {"rope_width", 2}, {"value_dim", 3}}),
      mha("latent_queries",
          {{"latent", 3}, {"latent_q", 5}, {"rope_width", 2}, {"sinks", true}, {"window", 3}}),
      mha("latent_masked", {{"latent", 4}, {"rope_width", 2}, {"causal", false}}, masked),
      mha("sinks_masked", {{"sinks", true}, {"window", 2}, {"soft_cap", 0.7}}, masked),
  };
}
INSTANTIATE_TEST_SUITE_P(Attention, LayerGradient, ::testing::ValuesIn(attention_cases()), name_of);

std::vector<Case> softmax_cases() {
  using List = std::vector<int64_t>;
  const auto softmax = [](std::string name, Fields fields, int64_t width) {
    fields.insert(fields.begin(), Field("variant", name.substr(0, name.find("_with"))));
    fields.emplace_back("temperature", 0.7);
    return one(name, LayerKind::softmax, fields, Shape{3, width});
  };
  return {
      softmax("standard", {}, 6),
      softmax("temperature", {}, 5),
      softmax("grid", {{"rows", 2}, {"cols", 3}}, 6),
      softmax("hierarchical", {{"levels", List{2, 3}}}, 8),
      softmax("hierarchical_with_leaves", {{"levels", List{2, 3}}}, 6),
      softmax("gumbel", {}, 6),
      softmax("masked", {{"mask", List{1, 0, 1, 1, 0, 1}}}, 7),
      softmax("sparse", {}, 6),
      softmax("entmax", {}, 6),
      softmax("entmax_with_alpha", {{"alpha", 1.3}}, 6),
      softmax("entmax_with_alpha_one", {{"alpha", 1.0}}, 6),
      softmax("mixture", {{"rows", 2}, {"cols", 3}}, 8),
      softmax("mixture_with_uniform_gates", {{"rows", 2}, {"cols", 3}}, 6),
  };
}
INSTANTIATE_TEST_SUITE_P(Softmax, LayerGradient, ::testing::ValuesIn(softmax_cases()), name_of);

std::vector<Case> expert_cases() {
  const auto experts = [](std::string name, Fields fields) {
    for (const auto& [field, value] : {std::pair("width", 5), std::pair("experts", 4)})
      fields.emplace_back(field, value);
    return one(std::move(name), LayerKind::experts, fields, Shape{3, 2, 5});
  };
  return {
      experts("whole_groups_of_rows", {{"inner", 16}, {"chosen", 3}}),
      experts("one_choice", {{"inner", 3}, {"chosen", 1}, {"normalize", false}}),
      experts("sigmoid_scaled",
              {{"inner", 6}, {"chosen", 2}, {"score", "sigmoid"}, {"scale", 1.7}}),
      experts("limited_gates", {{"inner", 6},
                                {"chosen", 2},
                                {"limit", 0.4},
                                {"gate_scale", 1.7},
                                {"up_offset", 1.0},
                                {"bias", true},
                                {"router_bias", true}}),
      experts("scaled_inputs", {{"inner", 3},
                                {"chosen", 1},
                                {"score", "sigmoid"},
                                {"normalize", false},
                                {"scale_inputs", true}}),
      experts("sparsemixer", {{"inner", 3},
                              {"chosen", 2},
                              {"score", "sparsemixer"},
                              {"normalize", false},
                              {"jitter", 0.45}}),
      experts("shared", {{"inner", 6}, {"chosen", 2}, {"shared_inner", 3}, {"bias", true}}),
      experts("two_groups", {{"inner", 4},
                             {"chosen", 2},
                             {"groups", 2},
                             {"chosen_groups", 1},
                             {"activation", "gelu_erf"}}),
  };
}
INSTANTIATE_TEST_SUITE_P(Experts, LayerGradient, ::testing::ValuesIn(expert_cases()), name_of);

// Every kind that is registered, by its example; the others here are variants.
std::vector<Case> example_cases() {
  std::vector<Case> all;
  for (const LayerDef* def : layer_table()) {
    const LayerExample example = def->example();
    const auto layers = [example] { return *make_layers(example.layers); };
    GradientOptions o;
    const Result<Network> network = Network::finalize(row_of(layers()), example.input.after(2));
    if (network.ok()) o.vocab = network->vocab();
    all.push_back({std::string(def->name), layers, example.input.after(2), o});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Examples, LayerGradient, ::testing::ValuesIn(example_cases()), name_of);

// Parts of blocks have their own cases. These are for whole blocks.
std::vector<Case> block_cases() {
  const auto block = [](const char* name, Fields fields, Shape input) {
    const auto layers = [=] { return Layers{*make_layer(*find_layer(name), fields)}; };
    return Case{name, layers, input};
  };
  return {
      block("SqueezeExcite", {{"channels", 3}, {"hidden", 2}, {"activation", "tanh"}},
            Shape{2, 3, 2, 3}),
      block("SeparableConv", {{"channels", 2}, {"filters", 3}, {"padding", 1}}, Shape{2, 2, 3, 4}),
      block("Positions", {{"length", 3}, {"width", 4}}, Shape{2, 3, 4}),
      block("BiasedAttention", {{"width", 4}, {"heads", 2}, {"length", 3}, {"bias", "relative"}},
            Shape{2, 3, 4}),
      block("RecurrentStack",
            {{"kind", "gru"}, {"in", 3}, {"hidden", 2}, {"layers", 2}, {"bidirectional", true}},
            Shape{2, 3, 3}),
      block("WeightNormDense", {{"in", 3}, {"out", 4}}, Shape{2, 3}),
      block("WeightNormConv",
            {{"channels", 2}, {"filters", 3}, {"padding", 1}, {"activation", "tanh"}},
            Shape{2, 2, 3, 4}),
      block("SpectralNormDense", {{"in", 3}, {"out", 4}, {"iterations", 300}}, Shape{2, 3}),
      block("SpectralNormConv",
            {{"channels", 2}, {"filters", 3}, {"axes", 1}, {"stride", 2}, {"iterations", 300}},
            Shape{2, 2, 7}),
      block("Mamba", {{"width", 3}, {"state", 2}, {"kernel", 2}, {"rank", 2}}, Shape{2, 4, 3}),
  };
}
INSTANTIATE_TEST_SUITE_P(Blocks, LayerGradient, ::testing::ValuesIn(block_cases()), name_of);

LayerConfig dense(int64_t in, int64_t out, const char* activation = "tanh") {
  return layer(LayerKind::dense, {{"in", in}, {"out", out}, {"activation", activation}});
}

std::vector<Case> container_cases() {
  const auto parallel = [](std::string name, Fields fields, std::function<Layers()> children) {
    return Case{std::move(name),
                [=] { return Layers{layer(LayerKind::parallel, fields, children())}; },
                Shape{4, 3}};
  };
  const auto same = [] { return Layers{dense(3, 4), dense(3, 4, "silu"), dense(3, 4)}; };
  const auto gated = [] {
    return Layers{dense(3, 4), dense(3, 4), dense(3, 4), dense(3, 3, "linear")};
  };
  using List = std::vector<int64_t>;
  return {
      parallel("concat", {},
               [] {
                 return Layers{dense(3, 2), dense(3, 5)};
               }),
      parallel("add", {{"combine", "add"}}, same),
      parallel("avg", {{"combine", "avg"}}, same),
      parallel("scatter",
               {{"combine", "grid_scatter"},
                {"rows", 2},
                {"cols", 2},
                {"targets", List{0, 1, 1, 0, 1, 1}}},
               same),
      parallel("filter", {{"combine", "filter"}}, gated),
      parallel("top_two", {{"combine", "filter"}, {"top_k", 2}, {"balance", 0.3}}, gated),
      {"sequential",
       [] {
         return Layers{layer(LayerKind::sequential, {}, {dense(3, 5), dense(5, 3)})};
       },
       Shape{4, 3}},
      {"residual_around",
       [] {
         return Layers{layer(LayerKind::residual, {}, {dense(3, 5), dense(5, 3)})};
       },
       Shape{4, 3}},
      {"residual_after_in_sequence",
       [] {
         return Layers{layer(LayerKind::sequential, {},
                             {dense(3, 3), dense(3, 3, "silu"), layer(LayerKind::residual, {})})};
       },
       Shape{4, 3}},
      {"residual_in_the_grid",
       [] {
         return Layers{dense(3, 3), dense(3, 3, "silu"), layer(LayerKind::residual, {})};
       },
       Shape{4, 3}},
      {"nested",
       [] {
         LayerConfig inner = layer(LayerKind::parallel, {{"combine", "add"}},
                                   {dense(3, 3), layer(LayerKind::residual, {}, {dense(3, 3)})});
         LayerConfig outer =
             layer(LayerKind::sequential, {},
                   {inner,
                    layer(LayerKind::parallel, {}, {dense(3, 2), layer(LayerKind::sequential, {})}),
                    dense(5, 2)});
         return Layers{outer};
       },
       Shape{3, 3}},
  };
}
INSTANTIATE_TEST_SUITE_P(Containers, LayerGradient, ::testing::ValuesIn(container_cases()),
                         name_of);

}  // namespace
}  // namespace loom::core::test

// A small network around every layer kind, for tests that run over all of them.
#pragma once

#include <functional>

#include "learn/train_rig.hpp"

namespace loom::testing {

struct KindCase {
  std::string name;
  std::function<GridSpec()> grid;
  Shape input;
  int64_t vocab = 0;
};

inline std::ostream& operator<<(std::ostream& out, const KindCase& c) {
  return out << c.name;
}

inline LayerConfig dense(int64_t in, int64_t out, const char* activation = "linear") {
  return layer(LayerKind::dense, {{"in", in}, {"out", out}, {"activation", activation}});
}

// One case per row of registry.def; a test counts them.
inline std::vector<KindCase> every_kind() {
  using K = LayerKind;
  using L = std::vector<LayerConfig>;
  std::vector<KindCase> all;
  const auto add = [&](std::string name, Shape input, std::function<L()> layers,
                       int64_t vocab = 0) {
    all.push_back({std::move(name), [=] { return row_of(layers()); }, input, vocab});
  };
  add("Dense", {8, 9}, [] { return L{dense(9, 17, "tanh"), dense(17, 3)}; });
  add("MultiHeadAttention", {3, 8, 12}, [] {
    return L{layer(K::multi_head_attention, {{"width", 12},
                                             {"heads", 4},
                                             {"kv_heads", 2},
                                             {"head_dim", 4},
                                             {"bias", true},
                                             {"out_bias", true},
                                             {"qk_norm", true}})};
  });
  add("SwiGLU", {8, 9}, [] {
    return L{layer(K::swiglu, {{"width", 9}, {"inner", 14}, {"bias", true}})};
  });
  add("RMSNorm", {8, 9}, [] { return L{layer(K::rms_norm, {{"width", 9}}), dense(9, 3)}; });
  add("LayerNorm", {8, 9}, [] { return L{layer(K::layer_norm, {{"width", 9}}), dense(9, 3)}; });
  add("CNN1", {3, 2, 17}, [] {
    return L{
        layer(K::cnn1, {{"channels", 2}, {"filters", 5}, {"padding", 1}, {"activation", "relu"}}),
        dense(85, 3)};
  });
  add("CNN2", {3, 2, 7, 5}, [] {
    return L{layer(K::cnn2, {{"channels", 2}, {"filters", 5}, {"stride", 2}, {"padding", 1}}),
             dense(60, 3)};
  });
  add("CNN3", {2, 2, 4, 3, 5}, [] {
    return L{layer(K::cnn3, {{"channels", 2}, {"filters", 3}, {"kernel", 2}}), dense(72, 3)};
  });
  add("ConvTransposed1D", {3, 3, 5}, [] {
    return L{layer(K::conv_transposed1, {{"channels", 3}, {"filters", 2}, {"stride", 2}})};
  });
  add("ConvTransposed2D", {3, 3, 3, 4}, [] {
    return L{layer(K::conv_transposed2, {{"channels", 3}, {"filters", 2}, {"stride", 2}})};
  });
  add("ConvTransposed3D", {2, 2, 2, 3, 2}, [] {
    return L{layer(K::conv_transposed3, {{"channels", 2}, {"filters", 2}, {"kernel", 2}})};
  });
  add("RNN", {3, 9, 5}, [] { return L{layer(K::rnn, {{"in", 5}, {"hidden", 11}})}; });
  add("LSTM", {3, 9, 5}, [] {
    return L{layer(K::lstm, {{"in", 5}, {"hidden", 11}}), dense(11, 3)};
  });
  add("GRU", {3, 9, 5}, [] { return L{layer(K::gru, {{"in", 5}, {"hidden", 11}}), dense(11, 3)}; });
  add(
      "Embedding", {4, 8},
      [] {
        return L{layer(K::embedding, {{"vocab", 19}, {"width", 6}}), dense(6, 3)};
      },
      19);
  add("KMeans", {8, 5}, [] {
    return L{layer(K::kmeans, {{"clusters", 6}, {"width", 5}, {"mode", "features"}}), dense(5, 3)};
  });
  add("Softmax", {8, 5}, [] {
    return L{dense(5, 6), layer(K::softmax, {{"variant", "entmax"}}), dense(6, 3)};
  });
  add("Parallel", {8, 5}, [] {
    return L{layer(K::parallel, {{"combine", "filter"}, {"top_k", 2}, {"balance", 0.01}},
                   {dense(5, 4, "tanh"), dense(5, 4), dense(5, 4, "silu"), dense(5, 3)})};
  });
  add("Sequential", {8, 5}, [] {
    return L{layer(K::sequential, {}, {dense(5, 9, "tanh"), dense(9, 4)})};
  });
  add("Residual", {8, 5}, [] {
    return L{dense(5, 5, "tanh"), layer(K::residual, {}),
             layer(K::residual, {}, {dense(5, 9, "relu"), dense(9, 5)})};
  });
  return all;
}

}  // namespace loom::testing

// The table of `loom bench layers`. Its kinds and sizes are those of other programs' benchmarks, so
// that times are comparable. It does not use the table of kinds: a LayerDef's example is small for
// tests, and its time is meaningless.
#include "base/text.hpp"
#include "lab/layer_bench.hpp"

namespace loom::core {
namespace {

using K = LayerKind;
using Fields = std::vector<Field>;

struct Part {
  LayerKind kind;
  Fields fields;
};

// A grid of one row.
std::function<Result<GridSpec>()> row(std::vector<Part> parts) {
  return [parts]() -> Result<GridSpec> {
    GridSpec grid(1, 1, static_cast<int64_t>(parts.size()), 1);
    for (size_t i = 0; i < parts.size(); ++i) {
      LOOM_ASSIGN(LayerConfig layer, make_layer(parts[i].kind, parts[i].fields));
      LOOM_TRY(grid.put({0, 0, static_cast<int64_t>(i), 0}, {std::move(layer)}));
    }
    return grid;
  };
}

Part dense(int64_t in, int64_t out, const char* activation = "linear", bool bias = true) {
  return {K::dense, {{"in", in}, {"out", out}, {"activation", activation}, {"bias", bias}}};
}

Part conv(LayerKind kind, int64_t channels, int64_t filters, const char* activation = "linear",
          int64_t padding = 1) {
  return {kind,
          {{"channels", channels},
           {"filters", filters},
           {"padding", padding},
           {"activation", activation}}};
}

Part mha(int64_t width, int64_t heads, int64_t dim, bool causal, bool rope) {
  return {K::multi_head_attention,
          {{"width", width},
           {"heads", heads},
           {"kv_heads", heads},
           {"head_dim", dim},
           {"causal", causal},
           {"rope", rope},
           {"bias", true},
           {"out_bias", false}}};
}

// The cases of the peers' scripts, with the same shapes.
void add_peer(std::vector<LayerCase>& all) {
  for (int64_t n : {512, 1024, 2048, 4096}) {
    for (int64_t m : {1, 64, 512}) {
      all.push_back({"peer", cat("dense ", m, "x", n, "x", n), row({dense(n, n, "linear", false)}),
                     Shape{m, n}});
      all.back().flop = 2.0 * static_cast<double>(m) * static_cast<double>(n * n);
    }
  }
  all.push_back({"peer", "cnn2 3x32x32-16-32",
                 row({conv(K::cnn2, 3, 16, "relu"), conv(K::cnn2, 16, 32, "relu")}),
                 Shape{1, 3, 32, 32}});
  for (int64_t b : {1, 16}) {
    all.push_back({"peer", cat("lstm 64-128 T=32 B=", b),
                   row({{K::lstm, {{"in", 64}, {"hidden", 128}}}}), Shape{b, 32, 64}});
  }
  all.push_back(
      {"peer", "mha d512 h8 s128", row({mha(512, 8, 64, false, false)}), Shape{1, 128, 512}});
  for (const char* optimizer : {"sgd", "adam"}) {
    LayerCase c{"peer", cat("train mlp 128-512-512-8 batch 64 ", optimizer),
                row({dense(128, 512, "relu"), dense(512, 512, "relu"), dense(512, 8)}),
                Shape{64, 128}};
    c.train = true;
    c.optimizer = optimizer;
    c.loss = Loss::cross_entropy;
    all.push_back(c);
  }
}

// Forward showdown; convolutions with matched outputs.
void add_a(std::vector<LayerCase>& all) {
  const auto add = [&](std::string name, Part part, Shape input, int64_t vocab = 0) {
    all.push_back({"A", std::move(name), row({std::move(part)}), input});
    all.back().vocab = vocab;
  };
  add("Dense 1024-1024", dense(1024, 1024), Shape{1, 1024});
  add("RNN 512-512", {K::rnn, {{"in", 512}, {"hidden", 512}}}, Shape{1, 1, 512});
  add("LSTM 512-512", {K::lstm, {{"in", 512}, {"hidden", 512}}}, Shape{1, 1, 512});
  add("CNN1 64x512-64", conv(K::cnn1, 64, 64), Shape{1, 64, 512});
  add("CNN2 32x64x64-32", conv(K::cnn2, 32, 32), Shape{1, 32, 64, 64});
  add("CNN3 16x16^3-16", conv(K::cnn3, 16, 16), Shape{1, 16, 16, 16, 16});
  add("Embedding 2048x128, 64", {K::embedding, {{"vocab", 2048}, {"width", 128}}}, Shape{1, 64},
      2048);
  add("RMSNorm 1024", {K::rms_norm, {{"width", 1024}}}, Shape{1, 1024});
  add("MHA d128 h4", mha(128, 4, 32, true, true), Shape{1, 1, 128});
  add("SwiGLU 512-1024", {K::swiglu, {{"width", 512}, {"inner", 1024}}}, Shape{1, 512});
  add("Residual 1024", {K::residual, {}}, Shape{1, 1024});
}

// Training showdown: SGD on mean squared error.
void add_b(std::vector<LayerCase>& all) {
  const auto add = [&](std::string name, std::vector<Part> parts, Shape input) {
    all.push_back({"B", std::move(name), row(std::move(parts)), input});
    all.back().train = true;
  };
  add("Dense MLP", {dense(128, 512, "relu"), dense(512, 512, "relu"), dense(512, 8)},
      Shape{64, 128});
  add("CNN1", {conv(K::cnn1, 3, 32, "relu"), conv(K::cnn1, 32, 64, "relu"), dense(8192, 8)},
      Shape{32, 3, 128});
  add("CNN2", {conv(K::cnn2, 3, 16, "relu"), conv(K::cnn2, 16, 32, "relu"), dense(32768, 8)},
      Shape{16, 3, 32, 32});
  add("CNN3", {conv(K::cnn3, 2, 8, "relu"), dense(4096, 8)}, Shape{8, 2, 8, 8, 8});
  add("RMSNorm MLP",
      {dense(128, 512), {K::rms_norm, {{"width", 512}}}, dense(512, 512, "relu"), dense(512, 8)},
      Shape{64, 128});
  add("Deep Dense",
      {dense(128, 512, "relu"), dense(512, 512, "relu"), dense(512, 512, "relu"),
       dense(512, 512, "relu"), dense(512, 8)},
      Shape{64, 128});
}

// The generic layers, forward and one training step.
void add_d(std::vector<LayerCase>& all) {
  const auto add = [&](std::string name, Part part, Shape input, int64_t vocab = 0) {
    for (bool train : {false, true}) {
      if (train && part.kind == K::residual) continue;  // nothing to train
      all.push_back({"D", cat(name, train ? " train" : ""), row({part}), input});
      all.back().train = train;
      all.back().vocab = vocab;
    }
  };
  add("CNN1 8x3x32-16", conv(K::cnn1, 3, 16, "relu"), Shape{8, 3, 32});
  add("CNN2 8x3x32x32-8", conv(K::cnn2, 3, 8, "relu"), Shape{8, 3, 32, 32});
  add("CNN3 4x3x16^3-4", conv(K::cnn3, 3, 4, "relu"), Shape{4, 3, 16, 16, 16});
  add("Dense 8x1024-512", dense(1024, 512, "relu"), Shape{8, 1024});
  add("Embedding 100x64, 8", {K::embedding, {{"vocab", 100}, {"width", 64}}}, Shape{8, 1}, 100);
  for (const bool sparse : {false, true}) {
    add(cat("Embedding 100000x64, 512", sparse ? " sparse" : ""),
        {K::embedding, {{"vocab", 100000}, {"width", 64}, {"sparse", sparse}}}, Shape{8, 64},
        100000);
  }
  add("RNN 1x8x16-32", {K::rnn, {{"in", 16}, {"hidden", 32}}}, Shape{1, 8, 16});
  add("LSTM 1x8x16-32", {K::lstm, {{"in", 16}, {"hidden", 32}}}, Shape{1, 8, 16});
  add("MHA 1x16x128 h8", mha(128, 8, 16, true, true), Shape{1, 16, 128});
  add("Residual 8x128", {K::residual, {}}, Shape{8, 128});
  add("SwiGLU 16x128-256", {K::swiglu, {{"width", 128}, {"inner", 256}}}, Shape{16, 128});
}

// A chain of 189 such layers outputs only zeros, whatever the weights.
bool fades(LayerKind kind) {
  return kind == K::swiglu || kind == K::rnn || kind == K::lstm;
}
// As in deep networks: x + layer(norm(x)).
Result<LayerConfig> added(LayerConfig layer, int64_t width) {
  LOOM_ASSIGN(LayerConfig norm, make_layer(K::rms_norm, {{"width", width}}));
  LOOM_ASSIGN(LayerConfig both, make_layer(K::sequential, {}, {std::move(norm), std::move(layer)}));
  return make_layer(K::residual, {}, {std::move(both)});
}

// Seven layers per cell on grids of 1, 2 and 3 cells per edge; batch 4.
void add_e(std::vector<LayerCase>& all) {
  const auto add = [&](std::string name, int64_t edge, Part part, Shape input, int64_t vocab = 0) {
    LayerCase c{"E", cat(name, " ", edge, "^3"), nullptr, input};
    c.vocab = vocab;
    c.grid = [edge, part, input, vocab]() -> Result<GridSpec> {
      GridSpec grid(edge, edge, edge, 7);
      for (int64_t i = 0; i < grid.size(); ++i) {
        Part mine = part;
        if (vocab > 0 && i > 0) mine = dense(32, 32);
        LOOM_ASSIGN(LayerConfig layer, make_layer(mine.kind, mine.fields));
        if (fades(part.kind)) {
          LOOM_ASSIGN(layer, added(std::move(layer), input[input.rank() - 1]));
        }
        LOOM_TRY(grid.put(grid.coord(i), {std::move(layer)}));
      }
      return grid;
    };
    all.push_back(c);
  };
  for (int64_t edge : {1, 2, 3}) {
    const int64_t dense_width = edge == 1 ? 32 : edge == 2 ? 16 : 32;
    const int64_t gated = edge == 1 ? 32 : 16, state = edge == 1 ? 32 : edge == 2 ? 8 : 4;
    const int64_t channels = edge == 3 ? 16 : 8, extent = edge == 1 ? 16 : edge == 2 ? 8 : 4;
    const int64_t model = edge == 1 ? 64 : edge == 2 ? 16 : 32, heads = edge == 2 ? 2 : 4;
    const int64_t steps = edge == 1 ? 8 : 4;
    add("Dense", edge, dense(dense_width, dense_width), Shape{4, dense_width});
    add("SwiGLU", edge, {K::swiglu, {{"width", gated}, {"inner", 32}}}, Shape{4, gated});
    add("RNN", edge, {K::rnn, {{"in", state}, {"hidden", state}}}, Shape{4, 8, state});
    add("LSTM", edge, {K::lstm, {{"in", state}, {"hidden", state}}}, Shape{4, 8, state});
    add("CNN1", edge, conv(K::cnn1, channels, channels), Shape{4, channels, extent});
    add("CNN2", edge, conv(K::cnn2, channels, channels), Shape{4, channels, extent, extent});
    add("MHA", edge, mha(model, heads, model / heads, true, true), Shape{4, steps, model});
    add("Embedding", edge, {K::embedding, {{"vocab", 50}, {"width", 32}}}, Shape{4, 8}, 50);
    add("Residual", edge, {K::residual, {}}, Shape{4, dense_width});
    if (edge == 1) add("CNN3", edge, conv(K::cnn3, 4, 4), Shape{4, 4, 8, 8, 8});
  }
}

// A small and a large network, for `loom bench load`.
void add_load(std::vector<LayerCase>& all) {
  const auto add = [&](std::string name, std::vector<Part> parts, Shape input, bool train) {
    all.push_back({"load", std::move(name), row(std::move(parts)), input});
    all.back().train = train;
    all.back().optimizer = "adam";
  };
  const std::vector<Part> small = {dense(64, 32, "relu"), dense(32, 10)};
  add("run mlp 64-32-10", small, Shape{1, 64}, false);
  add("train mlp 64-32-10 batch 32", small, Shape{32, 64}, true);
  add("train mlp 784-2048-2048-10 batch 256",
      {dense(784, 2048, "relu"), dense(2048, 2048, "relu"), dense(2048, 10)}, Shape{256, 784},
      true);
}

}  // namespace

const std::vector<LayerCase>& layer_cases() {
  static const std::vector<LayerCase> all = [] {
    std::vector<LayerCase> cases;
    add_peer(cases);
    add_a(cases);
    add_b(cases);
    add_d(cases);
    add_e(cases);
    add_load(cases);
    return cases;
  }();
  return all;
}

}  // namespace loom::core

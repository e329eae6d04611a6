// NetworkSpec: a grid and what one sample of its input looks like. And builders of common networks:
// each gives a description that can be printed, edited, and finalized; none knows a file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "grid/grid.hpp"

namespace loom::core {

struct NetworkSpec {
  GridSpec grid;
  Shape input;  // of one sample, without the batch axis; ids for an Embedding: [time]
  // If the network was made of a PyTorch module: the entries of its state_dict, and where their
  // values are in the parameters (docs/absorb.md). Weights go back to a module by it.
  std::vector<std::pair<std::string, std::string>> state_dict = {};
};

// Layers in a row along x, one cell each.
Result<NetworkSpec> build_row(std::vector<LayerConfig> layers, const Shape& input);

// Dense layers in -> hidden... -> out; the last is linear.
struct MlpOptions {
  int64_t in = 1, out = 1;
  std::vector<int64_t> hidden;
  std::string activation = "relu";
};
Result<NetworkSpec> build_mlp(const MlpOptions& options);

// 2D convolutions with stride (each halves the picture, padding keeps its border), then Dense.
struct CnnOptions {
  Shape input{1, 28, 28};  // [channels, height, width]
  std::vector<int64_t> filters = {16, 32};
  std::vector<int64_t> kernels = {5, 3};  // per convolution; the last goes on
  int64_t stride = 2;
  std::vector<int64_t> hidden;  // dense layers before the last
  int64_t out = 10;
  std::string activation = "relu";
};
Result<NetworkSpec> build_cnn(const CnnOptions& options);

// Embedding, [Residual(RMSNorm, attention), Residual(RMSNorm, SwiGLU)] x layers, RMSNorm, Dense.
struct TransformerOptions {
  int64_t vocab = 256, width = 64, layers = 2, heads = 4, kv_heads = 0;  // kv_heads 0: heads
  int64_t inner = 0;                                                     // 0: 4 width
  int64_t time = 32;
  int64_t out = 0;  // values per position; 0: vocab
  bool causal = true;
};
Result<NetworkSpec> build_transformer(const TransformerOptions& options);

// Recurrent layers over [time, in], then Dense on the last state or on every one.
struct RecurrentOptions {
  std::string cell = "gru";  // rnn, lstm, gru
  int64_t in = 1, out = 1, time = 16;
  std::vector<int64_t> hidden = {32};
  int64_t vocab = 0;      // > 0: the input are ids, through an Embedding of width `in`
  bool sequence = false;  // a prediction per step
};
Result<NetworkSpec> build_recurrent(const RecurrentOptions& options);

// A grid of random layers between a Dense from `in` and a Dense to `out`: the same for the same
// seed on every machine.
struct RandomOptions {
  int64_t in = 8, out = 2, width = 16;
  int64_t depth = 2, rows = 2, cols = 2, layers = 1;
  uint64_t seed = 1;
};
Result<NetworkSpec> build_random(const RandomOptions& options);

// Grafting. A whole network as one layer: a Sequential of its cells in traversal order. Links,
// shared weights and number types of single cells have no place inside a layer and are refused.
Result<LayerConfig> as_layer(const GridSpec& grid);
// Networks side by side on one input, combined as Parallel does: "concat", "add", "avg".
Result<NetworkSpec> graft(const std::vector<NetworkSpec>& networks, const std::string& combine);
// x + network(x).
Result<NetworkSpec> graft_residual(const NetworkSpec& network);

}  // namespace loom::core

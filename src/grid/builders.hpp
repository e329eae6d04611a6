// NetworkSpec: a grid and the shape of one sample of its input, with builders of common networks.
// Each builder returns a description that can be printed, edited and finalized; none depends on
// files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "grid/grid.hpp"

namespace loom::core {

struct NetworkSpec {
  GridSpec grid;
  Shape input;  // of one sample, without the batch axis; ids for an Embedding: [time]
  // For a network made of a PyTorch module: the entries of its state_dict, and the location of
  // their values in the parameters (docs/absorb.md). They are used to export weights to a module.
  std::vector<std::pair<std::string, std::string>> state_dict = {};
};

// Sequential layers along x, one cell each.
Result<NetworkSpec> build_row(std::vector<LayerConfig> layers, const Shape& input);

// Dense layers in -> hidden... -> out; the last is linear.
struct MlpOptions {
  int64_t in = 1, out = 1;
  std::vector<int64_t> hidden;
  std::string activation = "relu";
};
Result<NetworkSpec> build_mlp(const MlpOptions& options);

// 2D convolutions with stride (each halves the image, padding keeps its border), then Dense.
struct CnnOptions {
  Shape input{1, 28, 28};  // [channels, height, width]
  std::vector<int64_t> filters = {16, 32};
  std::vector<int64_t> kernels = {5, 3};  // per convolution; the last repeats
  int64_t stride = 2;
  std::vector<int64_t> hidden;  // dense layers before the last
  int64_t out = 10;
  std::string activation = "relu";
};
Result<NetworkSpec> build_cnn(const CnnOptions& options);

// Embedding, [Residual(RMSNorm, attention), Residual(RMSNorm, SwiGLU)] x layers, RMSNorm, Dense.
struct TransformerOptions {
  int64_t vocab = 256, width = 64, layers = 2, heads = 4, kv_heads = 0;  // kv_heads 0: heads
  int64_t inner = 0;                                                     // 0 means 4 width
  int64_t time = 32;
  int64_t out = 0;  // values per position; 0 means vocab
  bool causal = true;
};
Result<NetworkSpec> build_transformer(const TransformerOptions& options);

// Recurrent layers over [time, in], then Dense on the last state or on every one.
struct RecurrentOptions {
  std::string cell = "gru";  // rnn, lstm, gru
  int64_t in = 1, out = 1, time = 16;
  std::vector<int64_t> hidden = {32};
  int64_t vocab = 0;                // above 0: the input is ids, through an Embedding of width `in`
  bool sequence = false;            // one prediction per step
  std::vector<int64_t> dense = {};  // widths of dense layers, with ReLU, before the last
};
Result<NetworkSpec> build_recurrent(const RecurrentOptions& options);

// A grid of random layers between a Dense from `in` and a Dense to `out`. Equal seeds give equal
// grids on every machine.
struct RandomOptions {
  int64_t in = 8, out = 2, width = 16;
  int64_t depth = 2, rows = 2, cols = 2, layers = 1;
  uint64_t seed = 1;
};
Result<NetworkSpec> build_random(const RandomOptions& options);

// Grafting. A whole network as one layer: a Sequential of its cells in traversal order. Errors:
// links, shared weights and number types of single cells, which a layer cannot express.
Result<LayerConfig> as_layer(const GridSpec& grid);
// Several networks on one input, combined as in Parallel: "concat", "add", "avg".
Result<NetworkSpec> graft(const std::vector<NetworkSpec>& networks, const std::string& combine);
// x + network(x).
Result<NetworkSpec> graft_residual(const NetworkSpec& network);

}  // namespace loom::core

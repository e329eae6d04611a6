// Descriptions of common networks, as JSON to read, edit and train (docs/network.md). `loom new`
// writes them.
//
//   std::string json = describe(Mlp{.in = 784, .hidden = {256, 128}, .out = 10}).or_exit();
//   Network net = Network::from_json(json).or_exit();
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "loom/export.hpp"
#include "loom/layers.hpp"
#include "loom/result.hpp"

namespace loom {

// Dense layers in -> hidden... -> out; the last is linear.
struct Mlp {
  int64_t in = 1, out = 1;
  std::vector<int64_t> hidden{};
  Activation activation = Activation::relu;
};

// 2D convolutions with stride (each halves the image; padding keeps the border), then Dense.
struct Cnn {
  std::vector<int64_t> picture = {1, 28, 28};  // channels, height, width
  std::vector<int64_t> filters = {16, 32};
  std::vector<int64_t> kernels = {5, 3};  // per convolution; the last one repeats
  int64_t stride = 2;
  std::vector<int64_t> hidden{};  // widths of Dense layers before the last
  int64_t out = 10;
  Activation activation = Activation::relu;
};

// Embedding, [Residual(RMSNorm, attention), Residual(RMSNorm, SwiGLU)] x layers, RMSNorm, Dense.
struct Transformer {
  int64_t vocab = 256, width = 64, layers = 2, heads = 4;
  int64_t kv_heads = 0;  // 0 means heads
  int64_t inner = 0;     // of SwiGLU; 0 means 4 width
  int64_t time = 32;     // positions of a sample
  int64_t out = 0;       // values per position; 0 means vocab
  bool causal = true;
};

// Recurrent layers over [time, in], then Dense on the last state or on every one.
enum class RecurrentCell : uint8_t { rnn, lstm, gru };
struct Recurrent {
  RecurrentCell cell = RecurrentCell::gru;
  int64_t in = 1, out = 1, time = 16;
  std::vector<int64_t> hidden = {32};
  int64_t vocab = 0;      // above 0: inputs are ids for an Embedding of width `in`
  bool sequence = false;  // one prediction per step
};

// A grid of random layers between a Dense from `in` and a Dense to `out`. Equal seeds give equal
// grids on every machine.
struct RandomGrid {
  int64_t in = 8, out = 2, width = 16;
  int64_t depth = 2, rows = 2, cols = 2, layers = 1;
  uint64_t seed = 1;
};

// "rnn", "lstm", "gru".
LOOM_API std::string_view recurrent_cell_name(RecurrentCell cell);
LOOM_API Result<RecurrentCell> parse_recurrent_cell(std::string_view name);

// Errors: invalid_argument, naming the invalid value.
LOOM_API Result<std::string> describe(const Mlp& network);
LOOM_API Result<std::string> describe(const Cnn& network);
LOOM_API Result<std::string> describe(const Transformer& network);
LOOM_API Result<std::string> describe(const Recurrent& network);
LOOM_API Result<std::string> describe(const RandomGrid& network);

}  // namespace loom

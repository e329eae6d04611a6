// Blocks: layers under one name that others together already compute. A network that is made of one
// holds what it stands for: Graph, Sequential and their nodes; so does its file.
//
// In the shapes below B counts samples, T and S steps, W values per step, C channels.
#pragma once

#include <cstdint>
#include <string>

#include "loom/export.hpp"
#include "loom/layers.hpp"

namespace loom {

// x times a factor for each channel, gate(W2 f(W1 mean(x))): [B, C, ..] -> the same. `axes` counts
// the extents behind the channels (Hu, Shen and Sun, 2018).
struct LOOM_API SqueezeExcite {
  int64_t channels = 1, hidden = 1, axes = 2;
  Activation activation = Activation::relu, gate = Activation::sigmoid;
  operator Layer() const;
};

// A convolution of each channel, without bias, then one of kernel 1 over all: [B, channels, ..] ->
// [B, filters, ..] (Chollet, 2017).
struct LOOM_API SeparableConv {
  int64_t channels = 1, filters = 1, axes = 2;
  Axes kernel = {3}, stride = {1}, padding = {0}, dilation = {1};
  Activation activation = Activation::linear;
  operator Layer() const;
};

// x plus a row for each step: [B, length, width] -> the same. Learned, or sines and cosines
// (Vaswani et al., 2017).
enum class PositionKind : uint8_t { learned, sinusoidal };
struct LOOM_API Positions {
  int64_t length = 1, width = 1;
  PositionKind kind = PositionKind::learned;
  operator Layer() const;
};

// A node of a Graph with two inputs: queries of the first, [B, T, width], over keys and values of
// the second, [B, S, context] -> [B, T, width].
struct LOOM_API CrossAttention {
  int64_t width = 1, context = 1, heads = 1;
  operator Layer() const;
};

// Attention within sequences of `length` steps, [B, length, width], to whose products a bias of
// each head is added: alibi, -slope |t - s| (Press, Smith and Lewis, 2022); relative, a learned
// value for each t - s.
enum class AttentionBias : uint8_t { alibi, relative, none };
struct LOOM_API BiasedAttention {
  int64_t width = 1, heads = 1, length = 2;
  AttentionBias bias = AttentionBias::alibi;
  bool causal = false;
  operator Layer() const;
};

// The mean, sum or largest of the rows that the ids of a sample name: [B, T] ids -> [B, width].
enum class BagMode : uint8_t { mean, sum, max };
struct LOOM_API EmbeddingBag {
  int64_t vocab = 1, width = 1;
  BagMode mode = BagMode::mean;
  operator Layer() const;
};

// Recurrent layers upon each other, in one direction or both: [B, T, in] -> [B, T, hidden], or
// twice as wide; without return_sequence the last states alone, [B, hidden].
enum class RecurrentKind : uint8_t { rnn, lstm, gru };
struct LOOM_API RecurrentStack {
  RecurrentKind kind = RecurrentKind::lstm;
  int64_t in = 1, hidden = 1, layers = 1;
  bool bidirectional = false, return_sequence = true;
  Activation activation = Activation::tanh;  // of rnn
  // A node of a Graph may read the states that it begins with, [B, S, hidden], of an lstm h and c,
  // and give the last ones behind its output; S counts the directions of all layers.
  bool initial_state = false, final_state = false;
  operator Layer() const;
};

// A Dense layer whose rows are g v / |v|, g and v learned apart: [.., in] -> [.., out] (Salimans
// and Kingma, 2016).
struct LOOM_API WeightNormDense {
  int64_t in = 1, out = 1;
  bool bias = true;
  Activation activation = Activation::linear;
  operator Layer() const;
};

// The same for a convolution over [B, channels, ..] with 1 to 3 axes behind the channels; per-axis
// fields are one number or one per axis.
struct LOOM_API WeightNormConv {
  int64_t channels = 1, filters = 1, axes = 2;
  std::vector<int64_t> kernel{3}, stride{1}, padding{0}, dilation{1};
  bool bias = true;
  Activation activation = Activation::linear;
  operator Layer() const;
};

// A Dense layer, or a convolution, whose weights are divided by their largest singular value, which
// power iteration follows while it trains (Miyato et al., 2018).
struct LOOM_API SpectralNormDense {
  int64_t in = 1, out = 1;
  bool bias = true;
  Activation activation = Activation::linear;
  int64_t iterations = 1;
  double eps = 1e-12;
  operator Layer() const;
};
struct LOOM_API SpectralNormConv {
  int64_t channels = 1, filters = 1, axes = 2;
  std::vector<int64_t> kernel{3}, stride{1}, padding{0}, dilation{1};
  bool bias = true;
  Activation activation = Activation::linear;
  int64_t iterations = 1;
  double eps = 1e-12;
  operator Layer() const;
};

// A selective state-space model, [B, T, width] -> the same: `state` values for each of expand *
// width channels, a convolution of `kernel` steps before it (Gu and Dao, 2023). rank 0: a sixteenth
// of the width.
struct LOOM_API Mamba {
  int64_t width = 1, state = 16, expand = 2, kernel = 4, rank = 0;
  operator Layer() const;
};

}  // namespace loom

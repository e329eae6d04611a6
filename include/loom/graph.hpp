// Graphs of layers: for networks that are no row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "loom/export.hpp"
#include "loom/layers.hpp"

namespace loom {

// Layers as nodes of a graph without cycles, each reading the values it names: branches, joins and
// skips of any kind. A node reads the input or nodes that were added before it.
//
//   Graph g;
//   GraphValue left = g.add(Conv2d{.in = 3, .out = 8, .padding = {1}}, {g.input()});
//   GraphValue right = g.add(Conv2d{.in = 3, .out = 4, .kernel = {1}}, {g.input()}, "narrow");
//   g.output(g.add(Concat{.axis = 1}, {left, right}));                 // [B, 12, H, W]
//   Network::sequential({g, Dense{.in = 12 * 64, .out = 10}}, {.input = {3, 8, 8}});
struct GraphValue {
  int64_t node = -1;  // -1: the input
  int64_t output = 0;
};
class LOOM_API Graph {
 public:
  GraphValue input() const { return {}; }
  // name: for messages and files; "" goes by its number.
  GraphValue add(Layer node, const std::vector<GraphValue>& inputs, std::string name = "");
  // What the node that gives `node` makes of other inputs, with the same weights: a tower that
  // reads two things, a step that is taken again. Training moves one set of weights, and one is
  // stored.
  GraphValue again(const GraphValue& node, const std::vector<GraphValue>& inputs,
                   std::string name = "");
  Graph& output(const GraphValue& value);  // without: that of the last node
  operator Layer() const;

 private:
  std::vector<Layer> nodes_;
  std::vector<int64_t> wires_, outputs_, owners_;
  std::string names_;
};

// Nodes of several inputs; shapes are broadcast as NumPy does. More than two: from the left.
enum class BinaryFunction : uint8_t { add, sub, mul, div, max, min };
struct LOOM_API Binary {
  BinaryFunction function = BinaryFunction::add;
  operator Layer() const;
};
// The inputs one after the other along an axis, the batch being axis 0; negative: from the last.
struct LOOM_API Concat {
  int64_t axis = -1;
  operator Layer() const;
};

// a b over the last two axes; those before them are broadcast.
struct LOOM_API MatMul {
  bool transpose_a = false, transpose_b = false;
  operator Layer() const;
};
// Values that do not depend on the input, stored with the weights: a node without inputs. They have
// no batch: {1, T, D} or {D} is broadcast by what reads it.
//
// What they begin as: fill, one of normal, zeros, ones, sinusoidal ({.., T, W}), alibi ({.., heads,
// T, T}), causal ({.., T, T}: 0, and -1e9 behind the diagonal), log_range (log(n + 1)); times
// `factor`. With trained = false they stay so.
struct LOOM_API Constant {
  std::vector<int64_t> shape = {1};
  bool trained = true;
  std::string fill = "normal";
  double factor = 1.0;
  operator Layer() const;
};

// Another input of the network, under a name: a node that reads any value of the batch. `shape` is
// that of one sample, or of all where they share it; Session::run() takes it behind the first.
struct LOOM_API Input {
  std::string input = "more";
  std::vector<int64_t> shape = {1};
  bool batched = true;
  int64_t ids = 0;  // above 0: whole numbers below it, for an Embedding
  operator Layer() const;
};

// Nodes of one input, which also stand in a row. Axes count the batch as 0, negative ones from the
// last.
// An activation by itself, or exp, log, sqrt, neg, abs, square, reciprocal, step (1 from 0 on).
struct LOOM_API Unary {
  std::string function = "linear";
  operator Layer() const;
};
// One value for all positions along the axes; none: along all but the batch.
enum class Reduction : uint8_t { sum, mean, max, min, sum_squares, l1, l2 };
struct LOOM_API Reduce {
  Reduction function = Reduction::sum;
  std::vector<int64_t> axes = {};
  bool keep = false;  // the axes stay, with an extent of 1
  operator Layer() const;
};
// As x[start:end:step] in Python, along each of the axes.
struct LOOM_API Slice {
  std::vector<int64_t> starts = {0}, ends = {kEnd}, axes = {}, steps = {1};
  static constexpr int64_t kEnd = 9007199254740991;
  operator Layer() const;
};
// Axis k of the output is axis axes[k] of the input; none: all reversed.
struct LOOM_API Transpose {
  std::vector<int64_t> axes = {};
  operator Layer() const;
};
// The same values in another shape; 0: the extent of the input there, -1: what is left.
struct LOOM_API View {
  std::vector<int64_t> shape = {0, -1};
  operator Layer() const;
};
// Extents of 1 are repeated until the shape is broadcast with this one. With a second input the
// first extent is that input's.
struct LOOM_API Expand {
  std::vector<int64_t> shape = {1};
  operator Layer() const;
};
// An LSTM of pictures, whose products are convolutions with odd kernels: [B, T, C, H, W] ->
// [B, T, filters, H, W], or the last state (Shi et al., 2015).
struct LOOM_API ConvLstm {
  int64_t channels = 1, filters = 1;
  Axes kernel = {3};
  bool return_sequence = true;
  operator Layer() const;
};
// A node of two inputs of one shape, a and b, [B, T, ..]: y_t = a_t y_(t-1) + b_t, from 0 on, value
// by value. `width` counts the values behind T.
struct LOOM_API Scan {
  int64_t width = 1;
  operator Layer() const;
};

// W [rows, cols] divided by its largest singular value, as `iterations` steps of power iteration in
// each step of training follow it (Miyato et al., 2018).
struct LOOM_API SpectralNorm {
  int64_t rows = 1, cols = 1, iterations = 1;
  double eps = 1e-12;  // the least length that a vector is divided by
  operator Layer() const;
};

}  // namespace loom

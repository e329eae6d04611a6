// An evaluator of networks that shares nothing with the engine but their description: every layer
// written straight from its formula, in doubles, one number at a time (tape.hpp gives derivatives).
// Parameters are found by path, as in files. Shape letters: B samples, T steps, D values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "grid/grid.hpp"
#include "outside/tape.hpp"

namespace loom::core::outside {

struct Array {
  std::vector<int64_t> shape;
  std::vector<Var> v;

  int64_t last() const { return shape.back(); }
  int64_t rows() const { return static_cast<int64_t>(v.size()) / last(); }
  Var& at(int64_t row, int64_t col) { return v[static_cast<size_t>(row * last() + col)]; }
  const Var& at(int64_t row, int64_t col) const {
    return v[static_cast<size_t>(row * last() + col)];
  }
};
Array array_of(std::vector<int64_t> shape, double value = 0);

// State of layers between passes of a session, by the path of the layer: values per sequence. A
// recurrent layer keeps its state, attention keeps all keys and values so far.
struct Memory {
  std::map<std::string, std::vector<std::vector<Var>>> states;
};

class Evaluator {
 public:
  Evaluator(const GridSpec& grid, int64_t sequences) : grid_(grid), sequences_(sequences) {}

  // Values of every parameter, "(z, y, x, l)/0/name".
  std::map<std::string, std::vector<Var>> params;
  // Outputs of cells that feedback links read, by flat index, for the zeros of the first pass. For
  // a cell that is absent here: the output of the cell before the reader.
  std::map<int64_t, std::vector<int64_t>> fed_back;

  // One pass over all cells. Feedback links read the outputs of the previous pass, zeros in the
  // first; they are constants of this pass. memory is null if a pass holds whole sequences.
  Array pass(const Array& x, Memory* memory);
  void forget() { before_.clear(); }

 private:
  struct Place {
    std::string own, params;  // paths of the layer, and of the one that owns its parameters
  };
  using Layer = Array (Evaluator::*)(const LayerConfig&, const Place&, const Array&);
  static const std::map<std::string_view, Layer>& layers();

  Array run(const LayerConfig& c, const Place& at, const Array& x, const Array& skip);
  Array dense(const LayerConfig& c, const Place& at, const Array& x);
  Array swiglu(const LayerConfig& c, const Place& at, const Array& x);
  Array rms_norm(const LayerConfig& c, const Place& at, const Array& x);
  Array layer_norm(const LayerConfig& c, const Place& at, const Array& x);
  Array rnn(const LayerConfig& c, const Place& at, const Array& x);
  Array lstm(const LayerConfig& c, const Place& at, const Array& x);
  Array gru(const LayerConfig& c, const Place& at, const Array& x);
  Array softmax(const LayerConfig& c, const Place& at, const Array& x);
  Array kmeans(const LayerConfig& c, const Place& at, const Array& x);
  Array embedding(const LayerConfig& c, const Place& at, const Array& x);
  Array convolution(const LayerConfig& c, const Place& at, const Array& x);
  Array attention(const LayerConfig& c, const Place& at, const Array& x);
  Array parallel(const LayerConfig& c, const Place& at, const Array& x);
  Array sequence(const LayerConfig& c, const Place& at, const Array& x);
  Array residual(const LayerConfig& c, const Place& at, const Array& x, const Array& skip);
  Array graph(const LayerConfig& c, const Place& at, const Array& x);
  Array node(const LayerConfig& c, const Place& at, const std::vector<Array>& inputs);

  const std::vector<Var>& param(const Place& at, const char* name) const;
  // x W^T + b of every row; b may be missing.
  Array linear(const Place& at, const Array& x, const char* weight, const char* bias) const;
  // Calls step(row of `from_input`, state) for every step of every sequence; a step changes the
  // state, whose first H values are the output.
  template <class Step>
  Array recurrent(const LayerConfig& c, const Place& at, const Array& from_input, int64_t width,
                  Step step);

  const GridSpec& grid_;
  int64_t sequences_;
  Memory* memory_ = nullptr;
  std::map<int64_t, Array> before_;  // outputs of the pass before, by flat index
};

}  // namespace loom::core::outside

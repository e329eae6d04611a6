// Pass: one walk over the cells of a network, recording what they do. What differs between users is
// where memory comes from (a trace, or the planned arena of a session), so that is a function here.
// Sessions and traced networks are the interfaces; the mesh (room mesh) takes cells one by one.
#pragma once

#include <functional>
#include <vector>

#include "grid/network.hpp"
#include "grid/rope_table.hpp"
#include "ops/fwd.hpp"

namespace loom::core {

struct AddedLoss {
  Tensor value;
  float weight = 1.0f;
};

// buffer += rate * (value - buffer), times `gate` where there is one.
struct KeptValue {
  Tensor buffer, value;
  float rate = 1.0f;
  Tensor gate;
};

struct Pass {
  const Network* network = nullptr;
  Recorder* recorder = nullptr;
  std::function<Result<Tensor>(const Shape&)> tensor;
  const std::vector<RopeTable>* ropes = nullptr;
  int64_t sequences = 1;
  int64_t first = 0;
  Tensor mask;
  SequenceEnds ends;  // with a mask
  Tensor places;      // of a ragged pass (layers/layer.hpp)
  // With caches and states, one per state, passes build on each other.
  bool stateful = false;
  const std::vector<KvCache>* caches = nullptr;
  const std::vector<Tensor>* states = nullptr;
  // What feedback links read, per cell; empty where none does. The pass does not write it.
  const std::vector<Tensor>* feedback = nullptr;
  // By Network::more_inputs(); null: this pass has none.
  const std::vector<Tensor>* given = nullptr;
  // Where layers may look at values in between: ForwardCall::settle(). Empty: they may not.
  std::function<Result<bool>()> settle;
  bool training = false;
  uint64_t seed = 0;
  Tensor step;
  std::vector<AddedLoss> losses;
  std::vector<KeptValue> kept;  // in the order of use
  // Whether samples may be absent; `present` is made when a layer asks for it, and `least` is how
  // many of them the layers need.
  bool partial = false;
  Tensor present;
  int64_t least = 0;
  // Where outputs of all cells go, when somebody asks (feedback links are fed from it).
  std::vector<Tensor>* outputs = nullptr;
  // Where all outputs of the network go once its last cell has run, when somebody asks.
  std::vector<Tensor>* results = nullptr;
  // Called before each cell with its number: a session finds its place in the plan.
  std::function<void(size_t)> on_cell;
  // Called after each cell with its output.
  std::function<void(size_t, const Tensor&)> on_output;

  // Cells [begin, end) on x; returns the output of the last.
  Result<Tensor> run(size_t begin, size_t end, const Tensor& x);
  // Cell i alone, on what its caller says it reads: no link is looked at.
  Result<Tensor> cell(size_t i, const Tensor& in, const Tensor& skip);
  // The same with all outputs of the cell.
  Result<std::vector<Tensor>> cell_all(size_t i, const Tensor& in, const Tensor& skip);
};

}  // namespace loom::core

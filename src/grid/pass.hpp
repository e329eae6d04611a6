// Pass: one walk over the cells of a network that records their commands. Its users differ only in
// the source of memory (a trace, or the planned arena of a session), so that is a function here.
// Sessions and traced networks are the interfaces; the mesh (room mesh) runs single cells.
#pragma once

#include <functional>
#include <vector>

#include "grid/network.hpp"
#include "grid/rope_table.hpp"
#include "layers/core/forward_call.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

// Records ForwardCall::product() with the adapters of a weight (grid/adapters/adapter.hpp).
Status adapted_product(ForwardCall& call, const Network& network, const Node& node, size_t weight,
                       MatmulArgs m);

// Whether rows of several sequences can share a pass of a network. Errors: unsupported, naming the
// first layer that looks at several rows; links; further inputs.
Status check_ragged(const Network& network);

struct AddedLoss {
  Tensor value;
  float weight = 1.0f;
};

// buffer += rate * (value - buffer), times `gate` if present.
struct BufferUpdate {
  Tensor buffer, value;
  float rate = 1.0f;
  Tensor gate;
};

struct Pass : PassState {
  const Network* network = nullptr;
  std::function<Result<Tensor>(const Shape&)> tensor;
  const std::vector<RopeTable>* ropes = nullptr;
  // For stateful passes, one per state.
  const std::vector<KvCache>* caches = nullptr;
  const std::vector<Tensor>* states = nullptr;
  // The inputs of feedback links, per cell; empty if a cell has none. The pass does not write them.
  const std::vector<Tensor>* feedback = nullptr;
  // In the order of Network::extra_inputs(); may be null: this pass has none.
  const std::vector<Tensor>* given = nullptr;
  // Lets layers read values: ForwardCall::synchronize(). Empty means that they may not.
  std::function<Result<bool>()> synchronize;
  uint64_t seed = 0;
  Tensor step;
  std::vector<AddedLoss> losses;
  std::vector<BufferUpdate> kept;  // in the order of use
  // Whether samples may be absent. `present` is created on a layer's request; `least` is the number
  // of samples that the layers need.
  bool partial = false;
  Tensor present;
  int64_t least = 0;
  // Receives the outputs of all cells on request; feedback links are updated from it.
  std::vector<Tensor>* outputs = nullptr;
  // Receives all outputs of the network on request, after its last cell has run.
  std::vector<Tensor>* results = nullptr;
  // Called before each cell with its number: a session seeks to its position in the plan.
  std::function<void(size_t)> on_cell;
  // Called after each cell with its output.
  std::function<void(size_t, const Tensor&)> on_output;

  // Runs cells [begin, end) on x; returns the output of the last.
  Result<Tensor> run(size_t begin, size_t end, const Tensor& x);
  // Runs cell i alone on these inputs; links are ignored. Returns all its outputs.
  Result<LayerOutputs> cell(size_t i, const Tensor& in, const Tensor& skip);
};

}  // namespace loom::core

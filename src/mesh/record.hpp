// Recording of ticks, shared by the running mesh and its unrolled form. Private to the room.
#pragma once

#include <functional>
#include <vector>

#include "grid/pass.hpp"
#include "mesh/topology.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

// Whether a layer, or one below it, keeps a vector between ticks; and whether one keeps keys and
// values. A recording cannot keep these, because it would contain their position.
bool keeps_state(const Network& network, const Node& node);
bool keeps_cache(const Network& network, const Node& node);
// Cells whose layers continue from the previous tick under MeshOptions::carry. Errors: a cell that
// mixes recurrent layers and attention.
Result<std::vector<bool>> carrying_cells(const MeshTopology& topology, const Network& network);

// Tables for attention over the longest input of a cell.
Result<std::vector<RopeTable>> mesh_ropes(const MeshTopology& topology, const Network& network);

// The data of a cell's layers besides their inputs.
struct CellCall {
  const Network* network = nullptr;
  const std::vector<RopeTable>* ropes = nullptr;
  const std::vector<Tensor>* states = nullptr;  // per Network::states(); null means per call
  const std::vector<Tensor>* given = nullptr;   // per Network::extra_inputs()
  bool training = false;
  uint64_t seed = 0;
  Tensor step;
};
// Results of a cell's layers for the training of a window, besides their output.
struct CellExtras {
  std::vector<AddedLoss> losses;
  std::vector<BufferUpdate> kept;
};
// Records cell `slot.cell` on these inputs and returns its output, a tensor of the trace. Adds
// further results of its layers to `extras`, if it is set.
Result<Tensor> record_cell(Trace& trace, const CellCall& call, const MeshSlot& slot,
                           const Tensor& in, const Tensor& second, CellExtras* extras = nullptr);

// Redirects every tensor inside of `from`, in commands [begin, end), to the same offset of `to`;
// with written_only, only written ones. Both have the same size and are contiguous.
void redirect(Trace& trace, size_t begin, size_t end, const Tensor& from, const Tensor& to,
              bool written_only = false);

// Contiguous, at `data`.
Tensor tensor_at(std::byte* data, DType dtype, const Shape& shape);
// Part `i` of `count` equal parts of t's memory, in the shape of one.
Tensor part_of_tensor(const Tensor& t, int64_t i, const Shape& shape);

}  // namespace loom::core

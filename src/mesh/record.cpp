#include "mesh/record.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "ops/recording/recorder.hpp"
#include "ops/recording/trace.hpp"
#include "ops/recording/visit.hpp"

namespace loom::core {
namespace {

bool any_state(const Network& network, const Node& node, bool cache) {
  if (node.disabled()) return false;
  if (node.state >= 0) {
    const StateSpec& spec = network.states()[static_cast<size_t>(node.state)];
    if ((cache ? spec.kv_heads : spec.width) > 0) return true;
  }
  return std::any_of(node.children.begin(), node.children.end(),
                     [&](const Node& child) { return any_state(network, child, cache); });
}

}  // namespace

bool keeps_state(const Network& network, const Node& node) {
  return any_state(network, node, false);
}

bool keeps_cache(const Network& network, const Node& node) {
  return any_state(network, node, true);
}

Result<std::vector<bool>> carrying_cells(const MeshTopology& topology, const Network& network) {
  std::vector<bool> carrying(topology.slots().size());
  for (size_t k = 0; k < carrying.size() && topology.options().carry; ++k) {
    const MeshSlot& slot = topology.slots()[k];
    if (slot.cell < 0) continue;
    const Node& node = network.cells()[static_cast<size_t>(slot.cell)].node;
    carrying[k] = keeps_state(network, node);
    if (carrying[k] && keeps_cache(network, node)) {
      return invalid(cat(slot.str(),
                         " holds recurrent layers and attention, of which only the "
                         "first can be carried from tick to tick; give them cells of their own"));
    }
  }
  return carrying;
}

Result<std::vector<RopeTable>> mesh_ropes(const MeshTopology& topology, const Network& network) {
  int64_t length = 1;
  for (const MeshSlot& slot : topology.slots()) {
    if (slot.in.rank() > 1) length = std::max(length, slot.in[1]);
  }
  std::vector<RopeTable> ropes;
  for (const RopeSpec& spec : network.ropes()) {
    LOOM_ASSIGN(RopeTable table, RopeTable::make(spec, length));
    ropes.push_back(std::move(table));
  }
  return ropes;
}

Result<Tensor> record_cell(Trace& trace, const CellCall& call, const MeshSlot& slot,
                           const Tensor& in, const Tensor& second, CellExtras* extras) {
  Recorder recorder(trace);
  Pass pass;
  pass.network = call.network;
  pass.recorder = &recorder;
  pass.tensor = [&](const Shape& shape) -> Result<Tensor> { return trace.fresh(shape); };
  pass.ropes = call.ropes;
  pass.sequences = call.network->input()[0];
  pass.given = call.given;
  pass.stateful = call.states != nullptr;
  pass.states = call.states;
  pass.training = call.training;
  pass.seed = call.seed;
  pass.step = call.step;
  LOOM_ASSIGN(const LayerOutputs outputs, pass.cell(static_cast<size_t>(slot.cell), in, second));
  if (extras == nullptr) return outputs[0];
  extras->losses.insert(extras->losses.end(), pass.losses.begin(), pass.losses.end());
  extras->kept.insert(extras->kept.end(), pass.kept.begin(), pass.kept.end());
  return outputs[0];
}

void redirect(Trace& trace, size_t begin, size_t end, const Tensor& from, const Tensor& to,
              bool written_only) {
  const std::byte* last = from.data + plain_bytes(from.dtype, from.shape);
  for (size_t i = begin; i < end; ++i) {
    visit_command(trace.commands()[i], [&](Tensor& t, Access access) {
      if (t.empty() || t.data < from.data || t.data >= last) return;
      if (written_only && access == Access::read) return;
      t.data = to.data + (t.data - from.data);
    });
  }
}

Tensor tensor_at(std::byte* data, DType dtype, const Shape& shape) {
  Tensor t;
  t.dtype = dtype;
  t.shape = shape;
  t.row_stride = shape.last();
  t.data = data;
  return t;
}

Tensor part_of_tensor(const Tensor& t, int64_t i, const Shape& shape) {
  return tensor_at(t.data + i * plain_bytes(t.dtype, shape), t.dtype, shape);
}

}  // namespace loom::core

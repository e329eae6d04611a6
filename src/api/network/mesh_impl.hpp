// Common parts of meshes and their trainers. Private to the room.
#pragma once

#include "api/network/network_impl.hpp"
#include "loom/mesh.hpp"
#include "mesh/topology.hpp"

namespace loom::core {

// The same network for `batch` samples, with a copy of the packed weights.
Result<Network> mesh_network(const TrainedModel& model, const Network& weights, int64_t batch);
Result<MeshOptions> mesh_options(const loom::MeshOptions& from);
// Values for port `port`, which is not the first: contiguous, and of the port's type. Errors:
// invalid_argument (numbers for a port of ids), out_of_range (an id outside the mesh's table).
Result<loom::Tensor> port_values(const MeshTopology& topology, int port, const loom::Tensor& x);

}  // namespace loom::core

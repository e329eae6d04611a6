// Constants of a file that becomes a network, computed by the operators of this room: whatever a
// graph computes of known values alone is known before the network is made.
#pragma once

#include "onnx/import/import.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core::evaluate {

// `ops` (of a CPU) must outlive it. It refuses nodes that hold graphs, and types that networks do
// not read.
OnnxFolder evaluating_folder(const Ops& ops);

}  // namespace loom::core::evaluate

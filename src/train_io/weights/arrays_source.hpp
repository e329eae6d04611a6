// The parameters of a network as arrays called by their paths, in an NPZ or safetensors file. An
// NPZ that `loom convert` wrote describes its network too: arrays loom/network and loom/model hold
// the text of the description and of the section "model" (weights_source.hpp).
#pragma once

#include "base/memory_budget.hpp"
#include "bridge/network_source.hpp"
#include "io/files/file_ref.hpp"

namespace loom::core {

constexpr std::string_view kNpzNetwork = "loom/network", kNpzModel = "loom/model";

// A network from an NPZ that describes it. Errors: bad_file (no description); out_of_memory, also
// later, where a parameter is unpacked.
Result<std::unique_ptr<NetworkSource>> open_npz_network(const FileRef& path,
                                                        const MemoryBudget& memory);
// Arrays of a file that describes nothing, for the network `spec`.
Result<std::unique_ptr<NetworkSource>> open_arrays(const FileRef& path, NetworkSpec spec,
                                                   const MemoryBudget& memory);

}  // namespace loom::core

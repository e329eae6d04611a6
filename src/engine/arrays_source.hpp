// The parameters of a network as arrays called by their paths, in an NPZ or safetensors file. An
// NPZ that `loom convert` wrote describes its network too: arrays loom/network and loom/model hold
// the text of the description and of the section "model" (weights_source.hpp).
#pragma once

#include "bridge/network_source.hpp"

namespace loom {

constexpr std::string_view kNpzNetwork = "loom/network", kNpzModel = "loom/model";

// A network from an NPZ that describes it. Errors: bad_file (no description).
Result<std::unique_ptr<NetworkSource>> open_npz_network(const std::string& path);
// Arrays of a file that describes nothing, for the network `spec`.
Result<std::unique_ptr<NetworkSource>> open_arrays(const std::string& path, NetworkSpec spec);

}  // namespace loom

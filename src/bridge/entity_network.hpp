// Networks in .entity files. The section "network" is the description (network_json.hpp, as an
// object); every parameter is a blob called by its path, matrices in layout r16 in their own number
// type, vectors plain. A file may hold more: what a model was trained for ("model", blobs input/),
// a language model ("language_model", blobs text/), the state of training ("training", blobs
// state/).
#pragma once

#include <memory>
#include <vector>

#include "bridge/weight_source.hpp"
#include "grid/builders.hpp"
#include "grid/network.hpp"
#include "io/file_ref.hpp"

namespace loom::core {

// The section and the blobs of a network whose parameters are loaded; it must outlive the writing.
void add_network(const NetworkSpec& spec, const Network& network, JsonValue& header,
                 std::vector<EntityOutput>& blobs);
Status save_network(const std::string& path, const NetworkSpec& spec, const Network& network);

// Opens a file and refuses sections and blobs that no part of this release knows.
Result<std::shared_ptr<const Entity>> open_entity(const FileRef& path);
Status check_sections(const Entity& file);

// The description in a file.
Result<NetworkSpec> entity_spec(const Entity& file);
// Makes the blobs of `file` the parameters of `network`, which was finalized from its description.
// Nothing is copied: the network keeps the file mapped. Blobs are compared with their hashes when a
// session first uses them.
// allow_nonfinite: NaN and infinite weights are no errors.
Status map_params(const std::shared_ptr<const Entity>& file, Network& network,
                  bool allow_nonfinite = false);
// A parameter of a file, for packing it in another type or writing it elsewhere. Verified here.
Result<SourceWeight> entity_weight(const Entity& file, const Param& param);
// entity_spec() and map_params() for a batch of `batch` samples.
struct MappedNetwork {
  NetworkSpec spec;
  Network network;
};
Result<MappedNetwork> map_network(const std::shared_ptr<const Entity>& file, int64_t batch,
                                  bool allow_nonfinite = false);

}  // namespace loom::core

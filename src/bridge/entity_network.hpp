// Networks in .entity files. The section "network" is the description (network_json.hpp, as an
// object). Every parameter is a blob named by its path: matrices in layout r16 with their own
// number type, vectors plain. A file may hold more: the training task of a model ("model", blobs
// input/), a language model ("language_model", blobs text/), the state of training ("training",
// blobs state/).
#pragma once

#include <memory>
#include <vector>

#include "bridge/weight_source.hpp"
#include "grid/builders.hpp"
#include "grid/network.hpp"
#include "io/files/file_ref.hpp"

namespace loom::core {

// Adds the section and the blobs of a loaded network, which must outlive the writing.
void add_network(const NetworkSpec& spec, const Network& network, JsonValue& header,
                 std::vector<EntityOutput>& blobs);
Status save_network(const std::string& path, const NetworkSpec& spec, const Network& network);

// Opens a file. Errors: sections and blobs that this release does not know.
Result<std::shared_ptr<const Entity>> open_entity(const FileRef& path);
Status check_sections(const Entity& file);

// The description in a file.
Result<NetworkSpec> entity_spec(const Entity& file);
// Makes the blobs of `file` the parameters of `network`, which was finalized from its description.
// Nothing is copied: the network keeps the file mapped. The first use in a session verifies the
// hashes of blobs. allow_nonfinite: NaN and infinite weights are not errors.
Status map_params(const std::shared_ptr<const Entity>& file, Network& network,
                  bool allow_nonfinite = false);
// A parameter of a file, to pack it in another type or write it elsewhere. Verified here.
Result<SourceWeight> entity_weight(const Entity& file, const Param& param);
// entity_spec() and map_params() for a batch of `batch` samples.
struct MappedNetwork {
  NetworkSpec spec;
  Network network;
};
Result<MappedNetwork> map_network(const std::shared_ptr<const Entity>& file, int64_t batch,
                                  bool allow_nonfinite = false);

}  // namespace loom::core

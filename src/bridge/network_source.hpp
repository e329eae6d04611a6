// NetworkSource: the description and parameters of a network in a file, for further processing.
// Readers of formats produce it; converters, trainers and evaluators consume it.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "bridge/normalization.hpp"
#include "bridge/weight_source.hpp"
#include "grid/builders.hpp"
#include "io/files/file_ref.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

class NetworkSource : public WeightSource {
 public:
  explicit NetworkSource(NetworkSpec s) : spec(std::move(s)) {}
  std::string where() const override { return path; }

  std::string path;
  NetworkSpec spec;
  std::string dtype = "float32";  // of most matrices
  bool fresh = false;             // the weights are initial values for training
  // Sections and blobs of an .entity file that are copied ("model", input/): see
  // entity_network.hpp.
  JsonValue sections = JsonValue::object();
  std::vector<EntityOutput> blobs;
};

// The content of its blobs input/shift and input/scale; empty if there are none. Errors: bad_file.
Result<Normalization> normalization_of(const NetworkSource& source);
// Adds those blobs, unless the normalization is empty.
void keep_normalization(Normalization normalization, NetworkSource& source);

// Parameters as f32 in memory, by path.
class MemorySource : public NetworkSource {
 public:
  using NetworkSource::NetworkSource;
  Result<SourceWeight> weight(const Param& param) const override;

  std::unordered_map<std::string, std::vector<float>> values;
};

// The network of an .entity file, with the sections and blobs that it does not interpret.
Result<std::unique_ptr<NetworkSource>> open_network_entity(std::shared_ptr<const Entity> file);

struct SaveNetworkOptions {
  PackPolicy policy;  // policy.dtype null: as stored
  EntityProgress progress;
};
Status save_network(const FileRef& path, const NetworkSource& source,
                    const SaveNetworkOptions& options, ThreadPool& pool);

}  // namespace loom::core

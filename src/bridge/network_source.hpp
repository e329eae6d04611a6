// NetworkSource: a network in a file, described and with its parameters, for whatever is done with
// it next. Readers of formats fill one; converters, trainers and evaluators take one.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "bridge/weight_source.hpp"
#include "grid/builders.hpp"

namespace loom {

class NetworkSource : public WeightSource {
 public:
  explicit NetworkSource(NetworkSpec s) : spec(std::move(s)) {}
  std::string path;
  NetworkSpec spec;
  std::string dtype = "float32";  // of most matrices
  // Sections and blobs of an .entity file that go along ("model", input/): see entity_network.hpp.
  JsonValue sections = JsonValue::object();
  std::vector<EntityOutput> blobs;
};

// Parameters as f32 in memory, by path.
class MemorySource : public NetworkSource {
 public:
  using NetworkSource::NetworkSource;
  Result<SourceWeight> weight(const Param& param) const override;

  std::unordered_map<std::string, std::vector<float>> values;
};

// The network of an .entity file, with the sections and blobs that it does not name itself.
Result<std::unique_ptr<NetworkSource>> open_network_entity(std::shared_ptr<const Entity> file);

struct SaveNetworkOptions {
  PackPolicy policy;  // policy.dtype null: as stored
  EntityProgress progress;
};
Status save_network(const std::string& path, const NetworkSource& source,
                    const SaveNetworkOptions& options, ThreadPool& pool);

}  // namespace loom

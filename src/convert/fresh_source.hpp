// A description without weights: those that training would start from. Private to the room.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "bridge/network_source.hpp"
#include "grid/network.hpp"

namespace loom::core {

class FreshSource : public NetworkSource {
 public:
  using NetworkSource::NetworkSource;
  Result<SourceWeight> weight(const Param& param) const override;

 private:
  // Called only if weights are needed: they are as large as the description implies, and otherwise
  // useless.
  Status make() const;

  mutable std::unique_ptr<Network> network_;
  mutable std::unordered_map<std::string, int> index_;  // of parameters, by path
};

}  // namespace loom::core

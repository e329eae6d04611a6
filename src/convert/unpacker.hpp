// The parameters of a network as f32, for formats that hold plain arrays. Private to the room.
#pragma once

#include <span>
#include <vector>

#include "convert/convert.hpp"
#include "grid/network.hpp"

namespace loom::core {

// One parameter at a time in memory.
class Unpacker {
 public:
  static Result<Unpacker> create(const NetworkSource& source, const WriteOptions& options);
  const std::vector<Param>& params() const { return network_.params(); }
  // Good until the next call.
  Result<std::span<const std::byte>> values(size_t index);

 private:
  Unpacker(const WeightSource& source, const WriteOptions& options, Network network)
      : source_(&source), options_(&options), network_(std::move(network)) {}

  const WeightSource* source_;
  const WriteOptions* options_;
  Network network_;
  std::vector<float> values_;
  uint64_t done_ = 0;  // bytes
};

std::vector<int64_t> extents_of(const Shape& shape);

}  // namespace loom::core

// Common parts of searches over networks: training and scoring samples, and networks from genomes.
// Private to the room.
#pragma once

#include "api/network/network_impl.hpp"
#include "evolve/networks/grid_genome.hpp"

namespace loom::core {

// Samples for training and for scoring, with their normalization.
struct ScoredData {
  Dataset train, held;
  Normalization normalization;
  std::vector<std::string> names;
  TableColumns columns;
  std::optional<SplitRecord> split;
  Loss loss() const { return default_loss(train.has_labels()); }
};

// held: the scoring share; kind: a Normalize, computed from the training samples. Errors:
// invalid_argument (inputs without targets), those of splitting.
Result<ScoredData> split_scored(const loom::Dataset& data, double held, uint64_t seed,
                                int64_t kind);

// A genome with its values as a network, with normalization and class names.
Result<loom::Network> network_of(const GridGenome& genome, const ScoredData& data, uint64_t seed,
                                 const std::optional<loom::Engine>& engine);

}  // namespace loom::core

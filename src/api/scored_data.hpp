// What searches over networks share: samples that train and samples that score, and networks made
// of genomes. Private to the room.
#pragma once

#include "api/network_impl.hpp"
#include "evolve/grid_genome.hpp"

namespace loom::core {

// Samples that train and samples that score, normalized, and how.
struct ScoredData {
  Dataset train, held;
  Normalization normalization;
  std::vector<std::string> names;
  TableColumns columns;
  std::optional<SplitRecord> split;
  LossKind loss() const { return train.has_labels() ? LossKind::softmax_ce : LossKind::mse; }
};

// held: the share that scores; kind: a Normalize, found by the samples that train. Errors:
// invalid_argument (inputs alone), those of splitting.
Result<ScoredData> split_scored(const loom::Dataset& data, double held, uint64_t seed,
                                int64_t kind);

// A genome with its values, which normalizes its inputs and knows its classes.
Result<loom::Network> network_of(const GridGenome& genome, const ScoredData& data, uint64_t seed,
                                 const std::optional<loom::Engine>& engine);

}  // namespace loom::core

// The output stage of networks whose numeric targets are standardized in training: a last cell with
// fixed values, y * scale + shift. Training computes the loss before it, with standardized targets;
// all other passes run it. Its form alone tells that it is one, so no file format knows it.
#pragma once

#include <optional>
#include <string>

#include "bridge/normalization.hpp"
#include "grid/builders.hpp"
#include "learn/data/dataset.hpp"

namespace loom::core {

// The cell as JSON: shift and scale have a value per target. Empty if a value is out of the range
// of a Constant's factor.
std::string describe_target_scale(const Normalization& stage);

// Shift and scale of the last cell; unset if it is not such a stage.
std::optional<Normalization> target_scale_of(const NetworkSpec& network);

// Mean and deviation of numeric targets, one pair per output; a target that does not vary has
// deviation 1.
Normalization find_target_scale(const Dataset& data);

// The network with the stage as a further cell; unset where it cannot have one: its grid is not a
// row, its last layer is not a Dense without an activation, or describe_target_scale() is empty.
std::optional<NetworkSpec> add_target_scale(const NetworkSpec& network, const Normalization& stage);

// Targets as training sees them: (y - shift) / scale.
void standardize_targets(const Normalization& stage, Dataset& data);
// Outputs of the cell before the stage become those of the stage, in place.
void apply_target_scale(const Normalization& stage, const Tensor& y);

}  // namespace loom::core

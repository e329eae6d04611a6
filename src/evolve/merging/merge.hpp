// Merging opened models into one that can be written: loom/merge.hpp.
#pragma once

#include <memory>

#include "evolve/merging/made_weights.hpp"
#include "evolve/merging/merge_math.hpp"

namespace loom::core {

struct NamedModel {
  std::string path;  // for messages
  std::shared_ptr<const OpenedModel> model;
};

// `base`: its model is null if the method takes none. The result has the description of the base,
// or else of the first model. notes: differences besides weights. progress: weights merged, and
// total. Errors: invalid_argument (models that are not the same network).
Result<OpenedModel> merged_model(const std::vector<NamedModel>& models, const NamedModel& base,
                                 const MergeRecipe& recipe,
                                 std::function<bool(uint64_t done, uint64_t total)> progress,
                                 std::vector<std::string>& notes);

}  // namespace loom::core

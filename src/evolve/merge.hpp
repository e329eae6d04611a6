// Merging opened models into one that can be written: loom/merge.hpp.
#pragma once

#include <memory>

#include "evolve/made_weights.hpp"
#include "evolve/merge_math.hpp"

namespace loom::core {

struct NamedModel {
  std::string path;  // for messages
  std::shared_ptr<const OpenedModel> model;
};

// `base`: its model is null where the method takes none. The result is described like the base,
// else like the first model. notes: what differs beyond weights. progress: weights merged, of all.
// Errors: invalid_argument (models that are not the same network).
Result<OpenedModel> merged_model(const std::vector<NamedModel>& models, const NamedModel& base,
                                 const MergeRecipe& recipe,
                                 std::function<bool(uint64_t done, uint64_t total)> progress,
                                 std::vector<std::string>& notes);

}  // namespace loom::core

// Language models in .entity files: the network (bridge/entity_network.hpp), the section
// "language_model", and the texts of config.json, generation_config.json, tokenizer.json and the
// chat template. So one file is the whole model.
#pragma once

#include "bridge/entity_network.hpp"
#include "llm/model_source.hpp"

namespace loom::core {

// Writes the model of `source`, packed one parameter at a time by `policy`; a null policy.dtype
// means as stored. `dtype`: the recorded type of the blocks; unset means that of their first
// matrix.
struct SaveModelOptions {
  PackPolicy policy;
  std::optional<DType> dtype;
  EntityProgress progress;
};
Status save_model(const std::string& path, const ModelSource& source,
                  const SaveModelOptions& options, ThreadPool& pool);

// The number type of the blocks. Errors: bad_file if this is not a language model.
Result<DType> entity_model_dtype(const Entity& file);
Result<std::unique_ptr<ModelSource>> open_entity_source(std::shared_ptr<const Entity> file);

}  // namespace loom::core

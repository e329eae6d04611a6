// Language models in .entity files: the network (bridge/entity_network.hpp), the section
// "language_model", and as texts config.json, generation_config.json, tokenizer.json and the chat
// template, so that one file is the whole model.
#pragma once

#include "bridge/entity_network.hpp"
#include "llm/model_source.hpp"

namespace loom::core {

// Writes the model of `source`, packed one parameter at a time as `policy` says; policy.dtype null:
// as stored. `dtype`: what the blocks are then said to be packed in; unset: what the first of their
// matrices is.
struct SaveModelOptions {
  PackPolicy policy;
  std::optional<DType> dtype;
  EntityProgress progress;
};
Status save_model(const std::string& path, const ModelSource& source,
                  const SaveModelOptions& options, ThreadPool& pool);

// The number type of the blocks. Errors: bad_file when this is no language model.
Result<DType> entity_model_dtype(const Entity& file);
Result<std::unique_ptr<ModelSource>> open_entity_source(std::shared_ptr<const Entity> file);

}  // namespace loom::core

#include "llm/model_source.hpp"

#include "io/file.hpp"
#include "llm/entity_model.hpp"

namespace loom {

Result<std::unique_ptr<ModelSource>> open_model_source(const std::string& path) {
  if (is_directory(path)) return open_hf_folder(path);
  LOOM_ASSIGN(const bool is_entity, is_entity_file(path));
  if (is_entity) {
    LOOM_ASSIGN(std::shared_ptr<const Entity> file, open_entity(path));
    return open_entity_source(std::move(file));
  }
  return open_hf_folder(path);
}

}  // namespace loom

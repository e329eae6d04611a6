// Picks the reader of a model by what a path holds, never by its name alone.
#include "llm/model_source.hpp"

#include "base/text.hpp"
#include "llm/entity_model.hpp"
#include "llm/gguf_source.hpp"

namespace loom::core {

Result<std::unique_ptr<ModelSource>> open_model_source(const FileRef& path) {
  switch (model_file_kind(path)) {
    case ModelFile::gguf: return open_gguf(path);
    case ModelFile::entity: {
      LOOM_ASSIGN(std::shared_ptr<const Entity> file, open_entity(path));
      return open_entity_source(std::move(file));
    }
    case ModelFile::other:
      return unsupported(
          "no language model that is read here; give a folder, an .entity or a GGUF file", path);
    default: return open_hf_folder(path);
  }
}

}  // namespace loom::core

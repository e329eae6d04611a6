#include "io/model_file.hpp"

#include <cstring>

#include "io/entity.hpp"
#include "io/file.hpp"

namespace loom::core {

ModelFile model_file_kind(const FileRef& path) {
  if (is_directory(path)) return ModelFile::folder;
  if (!file_exists(path)) return ModelFile::none;
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok()) return ModelFile::other;
  const std::span<const std::byte> bytes = file->bytes();
  if (bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0) return ModelFile::gguf;
  return entity_version(bytes) != 0 ? ModelFile::entity : ModelFile::other;
}
}  // namespace loom::core

// What a path holds, told by how its bytes begin and never by its name.
#pragma once

#include <cstdint>
#include <string>

#include "io/file_ref.hpp"

namespace loom::core {

enum class ModelFile : uint8_t { none, folder, gguf, entity, other };
ModelFile model_file_kind(const FileRef& path);

}  // namespace loom::core

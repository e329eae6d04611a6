// What a path holds, told by how its bytes begin and never by its name.
#pragma once

#include <cstdint>
#include <string>

namespace loom::core {

enum class ModelFile : uint8_t { none, folder, gguf, entity, other };
ModelFile model_file_kind(const std::string& path);

}  // namespace loom::core

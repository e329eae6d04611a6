// Language models from files of any format: the rows of formats.hpp select the reader.
#pragma once

#include <cstdint>
#include <memory>

#include "io/files/file_ref.hpp"
#include "llm/model.hpp"

namespace loom::core {

// The kind of a path for language models.
enum class ModelFileKind : uint8_t { none, folder, gguf, entity, other };
ModelFileKind model_file_kind(const FileRef& path);

// Errors: not_found, unsupported (a file of another kind), and those of the reader.
Result<std::unique_ptr<ModelSource>> open_model_source(const FileRef& path);

// Opens and loads. An .entity file in the requested dtype is mapped, not read.
Result<LanguageModel> load_language_model(const FileRef& path, const LoadModelOptions& options,
                                          ThreadPool& pool);

}  // namespace loom::core

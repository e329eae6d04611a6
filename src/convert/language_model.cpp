#include "convert/language_model.hpp"

#include "base/text.hpp"
#include "convert/formats/formats.hpp"
#include "convert/lora.hpp"
#include "io/files/file.hpp"

namespace loom::core {
namespace {

// The row that a path belongs to; null: nothing is there, or it cannot be read.
const Format* format_at(const FileRef& path) {
  if (!file_exists(path)) return nullptr;
  if (is_directory(path)) return format_of({path, {}, true, {}});
  const Result<MappedFile> file = MappedFile::open(path);
  return file.ok() ? format_of({path, file->bytes(), false, {}}) : nullptr;
}

}  // namespace

ModelFileKind model_file_kind(const FileRef& path) {
  if (!file_exists(path)) return ModelFileKind::none;
  const Format* format = format_at(path);
  if (format == &kFolderFormat) return ModelFileKind::folder;
  if (format == &kGgufFormat) return ModelFileKind::gguf;
  const bool entity = format == &kEntityFormat || format == &kOriginalEntityFormat;
  return entity ? ModelFileKind::entity : ModelFileKind::other;
}

Result<std::unique_ptr<ModelSource>> open_model_source(const FileRef& path) {
  if (!file_exists(path)) {
    return make_error(Code::not_found,
                      "no such file or folder; give an .entity or .gguf file, or a folder with "
                      "config.json and model.safetensors",
                      path);
  }
  const Format* format = format_at(path);
  if (format == nullptr || !format->decoders) {
    return unsupported(
        "no language model that is read here; give a folder, an .entity or a GGUF file", path);
  }
  if (format->left_out)
    return left_out_of_build(cat("reader for ", format->files), format->how, path);
  return format->open_decoder(path);
}

Result<LanguageModel> load_language_model(const FileRef& path, const LoadModelOptions& options,
                                          ThreadPool& pool) {
  LOOM_ASSIGN(const std::unique_ptr<ModelSource> source, open_model_source(path));
  source->allow_nonfinite = options.allow_nonfinite;
  LOOM_ASSIGN(LanguageModel model, LanguageModel::load(*source, options, pool));
  LOOM_TRY(add_lora(model, options.lora, pool));
  return model;
}

}  // namespace loom::core

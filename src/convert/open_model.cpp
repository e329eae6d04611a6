// Selects the reader of a file: see convert.hpp.
#include "base/text.hpp"
#include "convert/formats/formats.hpp"
#include "io/files/file.hpp"
#include "io/files/foreign_file.hpp"
#include "io/weights/torch_file.hpp"
#include "train_io/file_memory.hpp"

namespace loom::core {
namespace {

Result<OpenedModel> open_found(const Probe& found) {
  const Format* format = format_of(found);
  if (format == nullptr) return bad_file("is not a model that this build opens", found.path);
  const bool named = !found.options.trainable.empty() || !found.options.frozen.empty();
  if (named && !format->initializers) {
    return invalid(
        cat("trainable and frozen name initializers of ONNX files, and this is one of the ",
            format->files, "; freeze its parameters where it trains"));
  }
  if (!format->left_out) {
    Result<OpenedModel> opened = format->open(found);
    if (!opened.ok()) return file_error(opened.error(), found.path);
    OpenedModel model = std::move(*opened);
    if (model.network != nullptr) model.network->allow_nonfinite = found.options.allow_nonfinite;
    if (model.decoder != nullptr) model.decoder->allow_nonfinite = found.options.allow_nonfinite;
    return model;
  }
  return left_out_of_build(cat("reader for ", format->files), format->how, found.path);
}

}  // namespace

Result<OpenedModel> open_model(const FileRef& path, const OpenOptions& options) {
  if (!file_exists(path)) {
    return make_error(
        Code::not_found,
        "no such file or folder; give an .entity, .gguf, .onnx, .tflite, .safetensors, .pt, "
        ".npz or .json file, or a folder with config.json and model.safetensors",
        path);
  }
  LOOM_TRY(check_opening(path, options.memory));
  if (is_directory(path)) return open_found({path, {}, true, options});
  LOOM_ASSIGN(const MappedFile file, MappedFile::open(path));
  if (!is_torch_file(file.bytes()))
    if (const auto foreign = foreign_file(file.bytes(), path)) return *foreign;
  return open_found({path, file.bytes(), false, options});
}

std::optional<Error> not_a_graph(const FileRef& path) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok()) return std::nullopt;
  const Format* format = format_of({path, file->bytes(), false, OpenOptions{}});
  // The row of safetensors accepts every file.
  for (const Format* other : {&kOnnxFormat, &kTfliteFormat, &kSafetensorsFormat})
    if (format == other) return std::nullopt;
  return bad_file(cat("is one of the ", format->files,
                      ", not an ONNX or TFLite file; load it as a network or a language model"),
                  path);
}

Result<OpenedModel> open_network(const FileRef& path, const OpenOptions& options) {
  LOOM_ASSIGN(OpenedModel model, open_model(path, options));
  if (model.network != nullptr) return model;
  return unsupported(
      "this is a language model; give a network: a description or what loom train wrote", path);
}

}  // namespace loom::core

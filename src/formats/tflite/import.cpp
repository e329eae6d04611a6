// The doors of the reader of TFLite files. See import.hpp.
#include "formats/tflite/import.hpp"

#include "formats/tflite/lower.hpp"
#include "io/files/file.hpp"

namespace loom::core {

Result<TfliteAsOnnx> tflite_as_onnx(const TfliteModel& file, const std::string& where,
                                    const TfliteOptions& options) {
  return TfliteGraph(file, where, options).run();
}

Result<ImportedNetwork> import_tflite(std::span<const std::byte> file, const std::string& where,
                                      const OnnxImportOptions& options) {
  LOOM_ASSIGN(const TfliteModel read, parse_tflite(file, where));
  const TfliteOptions how = {options.open_extent, !options.for_training, options.folder};
  LOOM_ASSIGN(TfliteAsOnnx translated, tflite_as_onnx(read, where, how));
  OnnxImportOptions as_onnx = options;
  as_onnx.has_batch = true;
  LOOM_ASSIGN(ImportedNetwork made, import_onnx(translated.model, where, as_onnx));
  made.notes.insert(made.notes.begin(), translated.notes.begin(), translated.notes.end());
  return made;
}

Result<ImportedNetwork> load_tflite(const FileRef& path, const OnnxImportOptions& options) {
  LOOM_ASSIGN(const MappedFile file, MappedFile::open(path));
  return import_tflite(file.bytes(), path, options);
}

}  // namespace loom::core

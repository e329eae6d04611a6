// TFLite: read only.
#include "base/text.hpp"
#include "convert/formats/formats.hpp"

#ifndef LOOM_WITHOUT_TFLITE
#include "convert/imported.hpp"
#include "formats/tflite/import.hpp"
#endif

namespace loom::core {
namespace {

// Detects by content, or by name if there is no content, so that the error is about TFLite.
bool is_tflite_file(const Probe& file) {
  return (file.bytes.size() >= 8 && file.text().substr(4, 4) == "TFL3") ||
         to_lower_ascii(file.path.name()).ends_with(".tflite");
}

#ifndef LOOM_WITHOUT_TFLITE
Result<OpenedModel> open_tflite(const Probe& file) {
  const FileRef& path = file.path;
  // By default, values of a quantized file are rounded to its steps, which training cannot use.
  LOOM_ASSIGN(ImportedNetwork imported, load_tflite(path, import_options(file.options, false)));
  return opened_network("TFLite", path, std::move(imported));
}
#endif

}  // namespace

#ifndef LOOM_WITHOUT_TFLITE
const Format kTfliteFormat = {
    .files = "TFLite files", .is = is_tflite_file, .open = open_tflite, .initializers = true};
#else
const Format kTfliteFormat = {.files = "TFLite files",
                              .how = LOOM_BUILD_WITH("LOOM_TFLITE=ON"),
                              .left_out = true,
                              .is = is_tflite_file};
#endif

}  // namespace loom::core

#include "convert/formats/formats.hpp"

#include <array>

namespace loom::core {

// The original's magic is Loom's with another version, and its JSON is JSON: they come first. ONNX
// files have no magic, so their name decides, after all formats with one.
std::span<const Format* const> all_formats() {
  static constexpr std::array kFormats = {
      &kFolderFormat, &kOriginalEntityFormat, &kEntityFormat, &kOriginalJsonFormat,
      &kJsonFormat,   &kGgufFormat,           &kNpzFormat,    &kTfliteFormat,
      &kOnnxFormat,   &kSafetensorsFormat};
  return kFormats;
}

const Format* format_of(const Probe& found) {
  for (const Format* format : all_formats())
    if (format->is != nullptr && format->is(found)) return format;
  return nullptr;
}

std::string parent_folder(const FileRef& path) {
  const size_t slash = path.name().rfind('/');
  return slash == std::string::npos ? "." : path.name().substr(0, slash + 1);
}

}  // namespace loom::core

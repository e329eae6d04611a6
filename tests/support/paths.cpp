#include "support/paths.hpp"

namespace loom_test {

std::string source_path(std::string_view below_root) {
  return std::string(LOOM_SOURCE_DIR "/").append(below_root);
}

const std::string& program_path() {
  static const std::string path = LOOM_PROGRAM_PATH;
  return path;
}

const std::string& noisy_library_path() {
  static const std::string path = LOOM_NOISY_LIBRARY_PATH;
  return path;
}

const std::string& faulty_webgpu_path() {
  static const std::string path = LOOM_FAULTY_WEBGPU_PATH;
  return path;
}

}  // namespace loom_test

#include "io/links.hpp"

#ifndef __wasi__
#include <filesystem>
#endif

namespace loom::core {

#ifdef __wasi__
// A page has no files.
bool is_link(const std::string&) {
  return false;
}
#else
bool is_link(const std::string& path) {
  std::error_code failed;
  if (std::filesystem::is_symlink(path, failed)) return true;
  if (!std::filesystem::is_regular_file(path, failed)) return false;
  const auto names = std::filesystem::hard_link_count(path, failed);
  return !failed && names > 1;
}
#endif

}  // namespace loom::core

#include "io/files/links.hpp"

#ifndef __wasi__
#include <filesystem>
#endif

namespace loom::core {

#ifdef __wasi__
// A page has no files.
bool is_link(const std::string&) {
  return false;
}
bool is_cache_link(const std::string&) {
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

bool is_cache_link(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path link(path);
  if (!fs::is_symlink(link, failed)) return false;
  const fs::path target = fs::canonical(link, failed);
  if (failed || is_link(target.string()) || !fs::is_regular_file(target, failed)) return false;
  fs::path up = fs::canonical(link.has_parent_path() ? link.parent_path() : ".", failed);
  while (!failed && up.has_relative_path() && up.filename() != "snapshots") up = up.parent_path();
  return !failed && up.filename() == "snapshots" &&
         target.parent_path() == up.parent_path() / "blobs";
}
#endif

}  // namespace loom::core

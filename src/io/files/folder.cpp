#include "io/files/folder.hpp"

#ifndef __wasi__
#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "io/files/descriptor.hpp"
#endif

#include "base/text.hpp"

namespace loom::core {

#ifdef __wasi__

Result<std::vector<FolderEntry>> list_folder(const std::string& path, size_t /*most*/) {
  return unsupported("this build has no files", path);
}

#else

Result<std::vector<FolderEntry>> list_folder(const std::string& path, size_t most) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (folder == nullptr) return os_error("open", path);
  std::vector<FolderEntry> entries;
  errno = 0;
  while (const dirent* entry = ::readdir(folder.get())) {
    std::string name = entry->d_name;
    struct stat info = {};
    const bool there = name[0] != '.' && ::stat(cat(path, "/", name).c_str(), &info) == 0;
    if (there && (S_ISDIR(info.st_mode) || S_ISREG(info.st_mode))) {
      if (entries.size() == most) return bad_file(cat("more than ", most, " files"), path);
      entries.push_back({std::move(name), S_ISDIR(info.st_mode)});
    }
    errno = 0;
  }
  if (errno != 0) return os_error("read", path);
  std::ranges::sort(entries, {}, &FolderEntry::name);
  return entries;
}

#endif

}  // namespace loom::core

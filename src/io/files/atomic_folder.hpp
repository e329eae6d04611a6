// AtomicFolder: a folder of several files that appears under its name only when it is complete. The
// files are written into a temporary folder next to it; commit() exchanges the two. The name always
// refers to the old or the new folder, even if the process is killed.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loom::core {

class AtomicFolder {
 public:
  // `is_replaced`: whether a file of an existing folder, by its name, is to be replaced. Other
  // files of that folder are kept: the new folder has them too. A symbolic link at `path` is
  // followed. Leftovers of a killed process next to `path` are removed. If a kill in the fallback
  // of commit() left `path` missing, the old folder gets its name back first. Errors:
  // invalid_argument (the folder contains folders or devices, is the current folder or a mount
  // point; not a path), not_found (no such parent), io_error.
  static Result<AtomicFolder> create(const std::string& path,
                                     const std::function<bool(std::string_view)>& is_replaced);
  AtomicFolder(AtomicFolder&& other) noexcept;
  AtomicFolder& operator=(AtomicFolder&&) = delete;
  ~AtomicFolder();  // without a commit() it removes the temporary folder

  // The folder to write the files to.
  const std::string& temporary() const { return temporary_; }
  // An error of writing there, with the path that the user gave.
  Error renamed(Error error) const;
  // If the system cannot exchange names, it uses two renames. A kill between them leaves the old
  // folder complete as .NAME.old-*, and no `path`; create() undoes that.
  Status commit();

 private:
  AtomicFolder(std::string path, std::string temporary, int fd);
  static Result<AtomicFolder> create_beside(const std::string& path);
  Status take_over(const std::vector<std::string>& names);
  Status replace();
  std::string path_, temporary_;
  int fd_ = -1;  // holds the lock of the temporary folder
};

}  // namespace loom::core

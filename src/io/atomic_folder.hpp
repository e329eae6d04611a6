// AtomicFolder: a folder of several files that appears under its name only when it is whole. The
// files are written into a temporary folder beside it; commit() exchanges the two. At every moment
// the name has the old or the new folder, whatever kills the process.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loom::core {

class AtomicFolder {
 public:
  // `is_replaced`: whether a file of an existing folder, by its name, belongs to what is replaced.
  // Other files of that folder stay: the new folder has them too. A symbolic link at `path` is
  // followed. What a process that was killed left beside `path` is removed; if `path` is missing
  // because of a kill in the fallback of commit(), the old folder gets its name back first.
  // Errors: invalid_argument (the folder has folders or devices inside, is the current folder or a
  // mount point; not a path), not_found (no such parent), io_error.
  static Result<AtomicFolder> create(const std::string& path,
                                     const std::function<bool(std::string_view)>& is_replaced);
  AtomicFolder(AtomicFolder&& other) noexcept;
  AtomicFolder& operator=(AtomicFolder&&) = delete;
  ~AtomicFolder();  // without a commit() the temporary folder is removed

  // Where to write the files.
  const std::string& temporary() const { return temporary_; }
  // An error of writing there, with the name that the user knows.
  Error renamed(Error error) const;
  // On a system that cannot exchange, two renames: a kill between them leaves the old folder whole
  // as .NAME.old-*, and no `path`; create() undoes that.
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

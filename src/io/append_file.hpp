// AppendFile: a file that grows while others read it, such as a log. What must appear as a whole or
// not at all is written by AtomicFile (file.hpp).
#pragma once

#include <span>
#include <string>

#include "base/result.hpp"

namespace loom::core {

class AppendFile {
 public:
  // Goes on at the end of the file, which is made where it is not there.
  // Errors: invalid_argument (a folder), not_found (no such folder), io_error.
  static Result<AppendFile> open(const std::string& path);
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&&) = delete;
  ~AppendFile();

  // Others see the bytes afterwards. Errors: io_error (the disk is full, ...); some of the bytes
  // may be in the file then.
  Status write(std::span<const std::byte> bytes);

 private:
  AppendFile(std::string path, int fd);
  std::string path_;
  int fd_ = -1;
};

}  // namespace loom::core

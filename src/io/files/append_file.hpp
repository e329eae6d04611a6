// AppendFile: a file that grows while others read it, such as a log. AtomicFile (file.hpp) writes
// files that must appear whole or not at all.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"

namespace loom::core {

class AppendFile {
 public:
  // Appends at the end of the file, which is created if it is missing. Errors: invalid_argument (a
  // folder), not_found (no such folder), io_error.
  static Result<AppendFile> open(const std::string& path);
  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&&) = delete;
  ~AppendFile();

  // Appends the bytes, which readers can see afterwards. Errors: io_error (the disk is full, ...).
  // Some of the bytes may be in the file then; see written(). A later write may succeed.
  Status write(std::span<const std::byte> bytes);
  // Bytes that this object has written.
  uint64_t written() const { return written_; }

 private:
  AppendFile(std::string path, int fd);
  std::string path_;
  int fd_ = -1;
  uint64_t written_ = 0;
};

}  // namespace loom::core

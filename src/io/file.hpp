// Files: read whole, map read-only, write atomically. The only room that opens paths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace loom {

constexpr uint64_t kMaxTextFile = uint64_t{256} << 20;

// The whole file as bytes. Errors: not_found; io_error for a folder, a pipe, a device; bad_file
// when larger than `max_bytes`.
Result<std::string> read_file(const std::string& path, uint64_t max_bytes = kMaxTextFile);

bool file_exists(const std::string& path);
bool is_directory(const std::string& path);

// A read-only memory map of a whole file. Move-only; unmapped by the destructor. An empty file maps
// to an empty span.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  // Tells the system that pages [offset, offset+size) are not needed any more (they may be read
  // again from the file).
  void release(uint64_t offset, uint64_t size) const;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::string path_;
};

// Writes `bytes` so that `path` holds either its old content or all of the new: temp file beside
// it, fsync, rename, fsync of the directory; the temp file is removed on any error.
Status write_file_atomic(const std::string& path, std::span<const std::byte> bytes);

// Gives a file another name; what had that name is replaced.
Status rename_file(const std::string& from, const std::string& to);

}  // namespace loom

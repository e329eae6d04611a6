// Files: read whole, map read-only, write atomically. The only room that opens paths. A FileRef to
// memory is read and written in memory, without a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "io/files/file_ref.hpp"

namespace loom::core {

constexpr uint64_t kMaxTextFile = uint64_t{256} << 20;

// The whole file as bytes. Errors: not_found; io_error (a system error); bad_file for a folder, a
// pipe or a device, and for more than `max_bytes`.
Result<std::string> read_file(const FileRef& path, uint64_t max_bytes = kMaxTextFile);

bool file_exists(const FileRef& path);
bool is_directory(const FileRef& path);
// Makes a folder inside an existing one. An existing folder is not an error.
Status make_folder(const std::string& path);

// A read-only memory map of a whole file, or bytes of a FileRef. Move-only; the destructor unmaps.
// An empty file maps to an empty span.
class MappedFile {
 public:
  static Result<MappedFile> open(const FileRef& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  // Tells the system that pages [offset, offset+size) are not needed any more. They can be read
  // again from the file.
  void release(uint64_t offset, uint64_t size) const;

 private:
  static MappedFile in_memory(const FileRef& file);
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false;                // false for memory, which owner_ may keep alive
  std::shared_ptr<const void> owner_;  // for memory, null if the caller keeps it; else watch_map()
  std::string path_;
};

// A file that appears under its name only when it is complete. It is written next to `path` under a
// temporary name. commit() runs fsync, rename, and fsync of the folder. Until then `path` is
// untouched in all cases. Without a commit() the temporary file is removed. The next create()
// removes leftovers of killed processes. A symbolic link at `path` is replaced, not followed. The
// new file gets the permissions of the replaced one, and maps of the old file stay valid.
class AtomicFile {
 public:
  // Errors: invalid_argument (a folder, a device, no path), not_found (no such folder), io_error.
  static Result<AtomicFile> create(const FileRef& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  Status write(std::span<const std::byte> bytes);  // appends
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text))); }
  // Zero bytes up to the next multiple of `alignment`.
  Status pad(uint64_t alignment);
  // Overwrites bytes that were written before, for headers that are known last.
  Status rewrite(uint64_t offset, std::span<const std::byte> bytes);
  uint64_t size() const { return size_; }
  // keep: a name in the same folder under which the replaced file is kept; a former file of that
  // name is lost. Empty means that it is not kept.
  Status commit(const std::string& keep = {});

 private:
  AtomicFile(std::string path, std::string temporary, int fd);
  static Result<AtomicFile> create_beside(const std::string& path);
  Status replace(const std::string& keep);
  std::string path_, temporary_;
  int fd_ = -1;
  uint64_t size_ = 0;
  std::string* out_ = nullptr;  // target of a file in memory
  std::string written_;
};

// AtomicFile in one call.
Status write_file_atomic(const FileRef& path, std::span<const std::byte> bytes,
                         const std::string& keep = {});

}  // namespace loom::core

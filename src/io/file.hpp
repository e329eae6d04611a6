// Files: read whole, map read-only, write atomically. The only room that opens paths. A FileRef to
// memory is read and written there, and never meets a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "io/file_ref.hpp"

namespace loom::core {

constexpr uint64_t kMaxTextFile = uint64_t{256} << 20;

// The whole file as bytes. Errors: not_found; io_error (the system refuses); bad_file for a folder,
// a pipe or a device, and when larger than `max_bytes`.
Result<std::string> read_file(const FileRef& path, uint64_t max_bytes = kMaxTextFile);

bool file_exists(const FileRef& path);
bool is_directory(const FileRef& path);
// Makes a folder inside one that exists; one that is there already is fine.
Status make_folder(const std::string& path);

// A read-only memory map of a whole file, or bytes of a FileRef. Move-only; unmapped by the
// destructor. An empty file maps to an empty span.
class MappedFile {
 public:
  static Result<MappedFile> open(const FileRef& path);
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
  static MappedFile in_memory(const FileRef& file);
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false;                // false: of memory, which owner_ may keep
  std::shared_ptr<const void> owner_;  // of memory, null: the caller keeps it; else watch_map()
  std::string path_;
};

// A file that appears under its name only when it is whole: written beside `path` under a temporary
// name, then commit(): fsync, rename, fsync of the folder. Until then `path` is untouched, whatever
// happens; without a commit() the temporary file is removed. What a process that was killed left
// beside `path` is removed by the next create(). A symbolic link at `path` is replaced, not
// followed; a file that is replaced hands on its permissions, and maps of it stay valid.
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
  // Overwrites bytes that were written before: for headers that are known last.
  Status rewrite(uint64_t offset, std::span<const std::byte> bytes);
  uint64_t size() const { return size_; }
  // keep: the name that the file which is replaced goes on under, in the same folder; what had that
  // name is lost. Empty: nothing is kept.
  Status commit(const std::string& keep = {});

 private:
  AtomicFile(std::string path, std::string temporary, int fd);
  static Result<AtomicFile> create_beside(const std::string& path);
  Status replace(const std::string& keep);
  std::string path_, temporary_;
  int fd_ = -1;
  uint64_t size_ = 0;
  std::string* out_ = nullptr;  // where the file goes to memory
  std::string written_;
};

// AtomicFile in one call.
Status write_file_atomic(const FileRef& path, std::span<const std::byte> bytes,
                         const std::string& keep = {});

}  // namespace loom::core

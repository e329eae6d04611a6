// Files for systems without them: a WebAssembly module gets bytes from its host and returns bytes
// (FileRef). Every path is an error that names it, so other code needs no special case. The real
// file access is in file.cpp.
#ifdef __wasi__

#include "io/files/file.hpp"

#include <algorithm>

namespace loom::core {
namespace {

Error no_files(const std::string& path) {
  return make_error(Code::unsupported, "this build has no files; pass the bytes", path);
}

}  // namespace

Result<std::string> read_file(const FileRef& path, uint64_t max_bytes) {
  if (!path.in_memory()) return no_files(path.name());
  const std::span<const std::byte> bytes = path.bytes();
  if (bytes.size() > max_bytes) return bad_file("larger than what is read of a text", path.name());
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

bool file_exists(const FileRef& path) {
  return path.in_memory();
}

bool is_directory(const FileRef&) {
  return false;
}

Status make_folder(const std::string& path) {
  return no_files(path);
}

Result<MappedFile> MappedFile::open(const FileRef& path) {
  if (!path.in_memory()) return no_files(path);
  return in_memory(path);
}

MappedFile MappedFile::in_memory(const FileRef& file) {
  MappedFile map;
  map.path_ = file.name();
  map.data_ = file.bytes().data();
  map.size_ = file.bytes().size();
  map.owner_ = file.owner();
  return map;
}

MappedFile::MappedFile(MappedFile&&) noexcept = default;
MappedFile& MappedFile::operator=(MappedFile&&) noexcept = default;
MappedFile::~MappedFile() = default;
void MappedFile::release(uint64_t, uint64_t) const {}

Result<AtomicFile> AtomicFile::create(const FileRef& to) {
  if (!to.in_memory()) return no_files(to.name());
  AtomicFile file(to.name(), {}, -1);
  file.out_ = to.out();
  return file;
}

AtomicFile::AtomicFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

AtomicFile::AtomicFile(AtomicFile&&) noexcept = default;
AtomicFile::~AtomicFile() = default;

Status AtomicFile::write(std::span<const std::byte> bytes) {
  written_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  size_ += bytes.size();
  return {};
}

Status AtomicFile::pad(uint64_t alignment) {
  const uint64_t zeros = (alignment - size_ % alignment) % alignment;
  written_.append(static_cast<size_t>(zeros), '\0');
  size_ += zeros;
  return {};
}

Status AtomicFile::rewrite(uint64_t offset, std::span<const std::byte> bytes) {
  if (offset > size_ || bytes.size() > size_ - offset)
    return make_error(Code::internal, "a rewrite beyond the end", path_);
  std::copy_n(reinterpret_cast<const char*>(bytes.data()), bytes.size(),
              written_.begin() + static_cast<std::ptrdiff_t>(offset));
  return {};
}

Status AtomicFile::commit(const std::string&) {
  *out_ = std::move(written_);
  return {};
}

Status write_file_atomic(const FileRef& path, std::span<const std::byte> bytes,
                         const std::string& keep) {
  LOOM_ASSIGN(AtomicFile file, AtomicFile::create(path));
  LOOM_TRY(file.write(bytes));
  return file.commit(keep);
}

}  // namespace loom::core

#endif  // __wasi__

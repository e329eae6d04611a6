// Files where there are none: WebAssembly modules get bytes from their host (SafeTensors::parse,
// Tokenizer::parse) and hand bytes back. Every path is refused by name, so that nothing else in the
// library needs to know. The real file access is in file.cpp.
#ifdef __wasi__

#include "io/file.hpp"

namespace loom::core {
namespace {

Error no_files(const std::string& path) {
  return make_error(Code::unsupported, "this build has no files; pass the bytes", path);
}

}  // namespace

Result<std::string> read_file(const FileRef& path, uint64_t max_bytes) {
  if (!path.in_memory()) return no_files(path);
  const std::span<const std::byte> bytes = path.bytes();
  if (bytes.size() > max_bytes) return bad_file("larger than what is read of a text", path);
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

Result<AtomicFile> AtomicFile::create(const FileRef& path) {
  return no_files(path);
}

AtomicFile::AtomicFile(AtomicFile&&) noexcept = default;
AtomicFile::~AtomicFile() = default;

Status AtomicFile::write(std::span<const std::byte>) {
  return no_files(path_);
}

Status AtomicFile::pad(uint64_t) {
  return no_files(path_);
}

Status AtomicFile::rewrite(uint64_t, std::span<const std::byte>) {
  return no_files(path_);
}

Status AtomicFile::commit(const std::string&) {
  return no_files(path_);
}

Status write_file_atomic(const FileRef& path, std::span<const std::byte>, const std::string&) {
  return no_files(path);
}

}  // namespace loom::core

#endif  // __wasi__

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

Result<std::string> read_file(const std::string& path, uint64_t) {
  return no_files(path);
}

bool file_exists(const std::string&) {
  return false;
}

bool is_directory(const std::string&) {
  return false;
}

Status make_folder(const std::string& path) {
  return no_files(path);
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  return no_files(path);
}

MappedFile::MappedFile(MappedFile&&) noexcept = default;
MappedFile& MappedFile::operator=(MappedFile&&) noexcept = default;
MappedFile::~MappedFile() = default;
void MappedFile::release(uint64_t, uint64_t) const {}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
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

Status write_file_atomic(const std::string& path, std::span<const std::byte>, const std::string&) {
  return no_files(path);
}

}  // namespace loom::core

#endif  // __wasi__

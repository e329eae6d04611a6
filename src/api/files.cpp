#include "loom/files.hpp"

#include <span>

#include "io/file.hpp"

namespace loom {

Result<std::string> read_file(const std::string& path, uint64_t limit) {
  return core::read_file(path, limit);
}

Status write_file(const std::string& path, std::string_view bytes) {
  return core::write_file_atomic(path, std::as_bytes(std::span(bytes)));
}

Status check_writable(const std::string& path) {
  const Result<core::AtomicFile> file = core::AtomicFile::create(path);
  return file.ok() ? Status() : Status(file.error());
}

}  // namespace loom

#include "loom/files.hpp"

#include <cstring>
#include <span>

#include "api/engine/impl.hpp"
#include "io/files/file.hpp"
#include "io/files/mapped_watch.hpp"

namespace loom::core {
namespace {

constexpr uintptr_t kAlignment = 64;

struct CopiedBytes {
  Buffer bytes;
  MemoryShare share;
};

}  // namespace

Result<FileRef> file_ref(const FileBytes& file, bool lasting, const MemoryBudget& memory) {
  const bool aligned = reinterpret_cast<uintptr_t>(file.bytes.data()) % kAlignment == 0;
  if (lasting && file.borrow && !aligned)
    return invalid("borrowed bytes must begin at a multiple of 64; let them be copied", file.name);
  if (aligned && (file.borrow || !lasting)) return FileRef::of_bytes(file.name, file.bytes);
  const size_t size = file.bytes.size();
  LOOM_ASSIGN(MemoryShare share, memory.take(size, "a copy of its bytes", file.name));
  LOOM_ASSIGN(Buffer copy, Buffer::allocate(static_cast<int64_t>(size)));
  if (size > 0) std::memcpy(copy.data(), file.bytes.data(), size);
  const std::span<const std::byte> bytes(copy.data(), size);
  return FileRef::of_bytes(
      file.name, bytes,
      std::make_shared<const CopiedBytes>(CopiedBytes{std::move(copy), std::move(share)}));
}

}  // namespace loom::core

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

#if defined(__wasi__)
void guard_files() {}
std::string changed_file() {
  return {};
}
#else
void guard_files() {
  core::guard_mapped_files();
}
std::string changed_file() {
  return core::mapped_file_that_changed();
}
#endif

}  // namespace loom

#include "io/files/append_file.hpp"

#include "base/text.hpp"
#ifndef __wasi__
#include "io/files/descriptor.hpp"
#endif

namespace loom::core {

AppendFile::AppendFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), written_(other.written_) {}

#ifdef __wasi__

Result<AppendFile> AppendFile::open(const std::string& path) {
  return make_error(Code::unsupported, "this build has no files", path);
}
AppendFile::~AppendFile() = default;
Status AppendFile::write(std::span<const std::byte>) {
  return make_error(Code::unsupported, "this build has no files", path_);
}

#else

// O_NONBLOCK: opening a named pipe must not wait for a reader.
Result<AppendFile> AppendFile::open(const std::string& path) {
  if (path.find('\0') != std::string::npos) return invalid("a path with a NUL byte");
  Descriptor file(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK, 0666);
  if (!file.is_open() && errno == EISDIR)
    return make_error(Code::invalid_argument, "this is a folder, not a file", path);
  if (!file.is_open()) return os_error("write", path);
  return AppendFile(path, file.take());
}

AppendFile::~AppendFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status AppendFile::write(std::span<const std::byte> bytes) {
  return write_all(bytes, path_, [this](std::span<const std::byte> some) {
    const ssize_t done = ::write(fd_, some.data(), some.size());
    if (done > 0) written_ += static_cast<uint64_t>(done);
    return done;
  });
}

#endif

}  // namespace loom::core

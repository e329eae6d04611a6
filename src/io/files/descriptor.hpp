// File descriptors, and errors from errno. Private to the room.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "base/text.hpp"

namespace loom::core {

// The last system error. `action`: what failed, as in "cannot open".
inline Error os_error(std::string_view action, const std::string& path) {
  const int number = errno;
  Code code = Code::io_error;
  const bool absent =
      number == ENOENT || number == ENOTDIR || number == ELOOP || number == ENAMETOOLONG;
  if (absent) code = Code::not_found;
  if (number == ENOMEM) code = Code::out_of_memory;
  return make_error(code, cat("cannot ", action, ": ", std::generic_category().message(number)),
                    path);
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags, mode_t mode = 0) {
    do {
      fd_ = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    } while (fd_ < 0 && errno == EINTR);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  bool is_open() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int take() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// Calls write(bytes) until all bytes are written; it returns the result of the system call. Some
// systems write at most 2 GB per call. A call that writes nothing must not loop here forever.
template <class Write>
Status write_all(std::span<const std::byte> bytes, const std::string& path, Write&& write) {
  constexpr size_t kAtOnce = size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t written = write(bytes.first(std::min(bytes.size(), kAtOnce)));
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = EIO;
    if (written <= 0) return os_error("write", path);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

}  // namespace loom::core

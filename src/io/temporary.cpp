#ifndef __wasi__  // file_none.cpp

#include "io/temporary.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <string_view>

#include "base/text.hpp"

namespace loom::core {
namespace {

// ".NAME.tmp-": what the names for `path` begin with.
std::string prefix_of(std::string_view name) {
  constexpr size_t kNameBytes = 200;  // of the 255 that file systems give
  return cat(".", name.substr(0, kNameBytes), ".tmp-");
}

// PROCESS of "PROCESS-TIME-COUNT"; 0: it is no such text.
pid_t process_of(std::string_view rest) {
  uint64_t numbers[3] = {};
  const char* at = rest.data();
  const char* const end = at + rest.size();
  for (int i = 0; i < 3; ++i) {
    if (i > 0 && (at == end || *at++ != '-')) return 0;
    const auto [stop, error] = std::from_chars(at, end, numbers[i]);
    if (error != std::errc()) return 0;
    at = stop;
  }
  constexpr uint64_t kMost = 1U << 30;
  return at == end && numbers[0] <= kMost ? static_cast<pid_t>(numbers[0]) : 0;
}

bool lives(pid_t process) {
  return ::getpgid(process) >= 0 || errno != ESRCH;
}

// A file system without locks cannot tell, so nothing is removed there.
void remove_if_nobody_holds(int folder, const char* name) {
  const int fd = ::openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  struct stat info = {};
  const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  if (regular && flock(fd, LOCK_EX | LOCK_NB) == 0) ::unlinkat(folder, name, 0);
  ::close(fd);
}

}  // namespace

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

std::string temporary_name(const std::string& path) {
  static std::atomic<uint32_t> count = 0;
  const size_t name = path.rfind('/') + 1;  // 0 without a slash
  const auto ticks = std::chrono::steady_clock::now().time_since_epoch().count();
  return cat(path.substr(0, name), prefix_of(path.substr(name)), getpid(), "-", ticks, "-",
             count.fetch_add(1));
}

bool hold_temporary(int fd) {
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  struct stat info = {};
  return fstat(fd, &info) == 0 && info.st_nlink > 0;
}

void remove_stale_temporaries(const std::string& path) {
  DIR* folder = ::opendir(folder_of(path).c_str());
  if (folder == nullptr) return;
  const std::string prefix = prefix_of(path.substr(path.rfind('/') + 1));
  while (const dirent* entry = ::readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(prefix)) continue;
    const pid_t process = process_of(name.substr(prefix.size()));
    if (process > 0 && !lives(process)) remove_if_nobody_holds(::dirfd(folder), entry->d_name);
  }
  ::closedir(folder);
}

}  // namespace loom::core

#endif  // !__wasi__

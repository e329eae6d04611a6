#ifndef __wasi__  // file_none.cpp

#include "io/files/temporary.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "io/files/descriptor.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kTemporary = "tmp", kSetAside = "old";

// ".NAME.KIND-": the common prefix of the names for `path`.
std::string prefix_of(const std::string& path, std::string_view kind) {
  constexpr size_t kNameBytes = 200;  // of the 255 that file systems allow
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  return cat(".", name.substr(0, kNameBytes), ".", kind, "-");
}

std::string unique_name(const std::string& path, std::string_view kind) {
  static std::atomic<uint32_t> count = 0;
  const auto ticks = std::chrono::steady_clock::now().time_since_epoch().count();
  const size_t name = path.rfind('/') + 1;  // 0 without a slash
  return cat(path.substr(0, name), prefix_of(path, kind), getpid(), "-", ticks, "-",
             count.fetch_add(1));
}

// PROCESS of "PROCESS-TIME-COUNT"; 0 if the text has another form.
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
  constexpr uint64_t kMax = 1U << 30;
  return at == end && numbers[0] <= kMax ? static_cast<pid_t>(numbers[0]) : 0;
}

bool lives(pid_t process) {
  return ::getpgid(process) >= 0 || errno != ESRCH;
}

void remove_flat_folder_at(int parent, const char* name) {
  const int fd = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR* const folder = fd < 0 ? nullptr : ::fdopendir(fd);
  if (folder == nullptr) {
    if (fd >= 0) ::close(fd);
    return;
  }
  while (const dirent* entry = ::readdir(folder)) {
    const std::string_view inside = entry->d_name;
    if (inside != "." && inside != "..") ::unlinkat(fd, entry->d_name, 0);
  }
  ::closedir(folder);
  ::unlinkat(parent, name, AT_REMOVEDIR);
}

enum class Kind { file, folder };

// On a file system without locks this is unknown, so nothing is removed.
void remove_if_nobody_holds(int parent, const char* name, Kind kind) {
  const int flags = kind == Kind::folder ? O_RDONLY | O_DIRECTORY : O_RDWR | O_NONBLOCK;
  const int fd = ::openat(parent, name, flags | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  struct stat info = {};
  const bool ours = fstat(fd, &info) == 0 && (S_ISREG(info.st_mode) || kind == Kind::folder);
  if (ours && flock(fd, LOCK_EX | LOCK_NB) == 0) {
    if (kind == Kind::folder) {
      remove_flat_folder_at(parent, name);
    } else {
      ::unlinkat(parent, name, 0);
    }
  }
  ::close(fd);
}

// The names in the folder of `path` that ended processes made for it.
std::vector<std::string> stale_names(DIR* folder, const std::string& path, std::string_view kind) {
  std::vector<std::string> names;
  const std::string prefix = prefix_of(path, kind);
  while (const dirent* entry = ::readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(prefix)) continue;
    const pid_t process = process_of(name.substr(prefix.size()));
    if (process > 0 && !lives(process)) names.emplace_back(name);
  }
  return names;
}

void remove_stale(const std::string& path, std::string_view prefix, Kind kind) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(folder_of(path).c_str()), ::closedir);
  if (folder == nullptr) return;
  for (const std::string& name : stale_names(folder.get(), path, prefix))
    remove_if_nobody_holds(::dirfd(folder.get()), name.c_str(), kind);
}

}  // namespace

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

std::string temporary_name(const std::string& path) {
  return unique_name(path, kTemporary);
}

std::string set_aside_name(const std::string& path) {
  return unique_name(path, kSetAside);
}

bool sync_file(int fd) {
  int done = 0;
  do {
    done = fsync(fd);
  } while (done != 0 && errno == EINTR);
  return done == 0;
}

// Some file systems reject the sync of a folder (EINVAL): they have nothing to sync.
Status sync_folder(const std::string& path) {
  const std::string folder = folder_of(path);
  const Descriptor descriptor(folder, O_RDONLY | O_DIRECTORY);
  if (!descriptor.is_open()) return os_error("open", folder);
  if (!sync_file(descriptor.get()) && errno != EINVAL) return os_error("sync", folder);
  return {};
}

bool hold_temporary(int fd) {
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  struct stat info = {};
  return fstat(fd, &info) == 0 && info.st_nlink > 0;
}

void remove_stale_temporaries(const std::string& path) {
  remove_stale(path, kTemporary, Kind::file);
}

void remove_stale_folders(const std::string& path) {
  remove_stale(path, kTemporary, Kind::folder);
}

Status restore_set_aside(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  struct stat info = {};
  if (::lstat(path.c_str(), &info) == 0) {
    remove_stale(path, kSetAside, Kind::folder);
    return {};
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(folder_of(path).c_str()), ::closedir);
  if (folder == nullptr) return {};
  const std::vector<std::string> names = stale_names(folder.get(), path, kSetAside);
  if (names.empty()) return {};
  const std::string aside = folder_of(path) + names.front();
  if (::rename(aside.c_str(), path.c_str()) != 0) return os_error("rename it to " + path, aside);
  return {};
}

void remove_flat_folder(const std::string& path) {
  remove_flat_folder_at(AT_FDCWD, path.c_str());
}

}  // namespace loom::core

#endif  // !__wasi__

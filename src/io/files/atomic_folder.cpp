// See atomic_folder.hpp.
#include "io/files/atomic_folder.hpp"

#include <utility>

#include "base/text.hpp"

#ifndef __wasi__
#include <dirent.h>
#include <cstdio>
#include <cstdlib>

#include <memory>

#include "io/files/descriptor.hpp"
#include "io/files/file.hpp"
#include "io/files/temporary.hpp"
#endif

namespace loom::core {

AtomicFolder::AtomicFolder(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

AtomicFolder::AtomicFolder(AtomicFolder&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)) {}

Error AtomicFolder::renamed(Error error) const {
  if (error.where.starts_with(temporary_)) error.where.replace(0, temporary_.size(), path_);
  return error;
}

#ifdef __wasi__

Result<AtomicFolder> AtomicFolder::create(const std::string& path,
                                          const std::function<bool(std::string_view)>&) {
  return unsupported("this build has no files; pass the bytes", path);
}
AtomicFolder::~AtomicFolder() = default;
Status AtomicFolder::commit() {
  return unsupported("this build has no files", path_);
}

#else

namespace {

bool is_mount_point([[maybe_unused]] const std::string& path) {
#if defined(STATX_ATTR_MOUNT_ROOT)
  struct statx info = {};
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_BASIC_STATS, &info) != 0) return false;
  return (info.stx_attributes_mask & info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
#else
  return false;
#endif
}

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), ::free);
  return real == nullptr ? path : std::string(real.get());
}

// The absolute name of the folder to write or replace, without links and trailing slashes.
Result<std::string> target_of(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) return invalid("not a path", path);
  if (is_directory(path)) {
    std::string real = real_path(path);
    if (real == real_path(".")) {
      return invalid("this is the current folder, which cannot be replaced; run this from outside",
                     path);
    }
    if (real == "/" || is_mount_point(real)) {
      return invalid("a mount point cannot be replaced; give the name of a folder inside of it",
                     path);
    }
    return real;
  }
  if (file_exists(path)) return invalid("this is a file; give the name of a folder", path);
  std::string name = path;
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  return name;
}

// The files of an existing folder that the new one keeps.
Result<std::vector<std::string> > remaining_files(
    const std::string& path, const std::function<bool(std::string_view)>& replaced) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (folder == nullptr) return os_error("open", path);
  while (const dirent* entry = ::readdir(folder.get())) {
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat info = {};
    if (::lstat(cat(path, "/", name).c_str(), &info) != 0) return os_error("read", path);
    if (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) {
      return invalid(cat("it has '", printable(name),
                         "' inside, which is not a file of a model and would be lost; give "
                         "another name, or move that away"),
                     path);
    }
    if (!replaced(name)) names.push_back(std::move(name));
  }
  return names;
}

Status copy_link(const std::string& from, const std::string& to) {
  std::string target(4096, '\0');  // Linux has no longer paths
  const ssize_t size = ::readlink(from.c_str(), target.data(), target.size());
  if (size < 0 || static_cast<size_t>(size) == target.size())
    return os_error("read the link", from);
  target.resize(static_cast<size_t>(size));
  if (::symlink(target.c_str(), to.c_str()) != 0) return os_error("make a link", to);
  return {};
}

// A second name for the file; a copy if the file system has no hard links.
Status link_or_copy(const std::string& from, const std::string& to) {
  struct stat info = {};
  if (::lstat(from.c_str(), &info) != 0) return os_error("read", from);
  if (S_ISLNK(info.st_mode)) return copy_link(from, to);
  if (::link(from.c_str(), to.c_str()) == 0) return {};
  LOOM_ASSIGN(const MappedFile file, MappedFile::open(from));
  return write_file_atomic(to, file.bytes());
}

}  // namespace

Result<AtomicFolder> AtomicFolder::create_beside(const std::string& path) {
  constexpr int kTries = 16;  // another process may mistake a new folder for a stale one
  for (int i = 0; i < kTries; ++i) {
    const std::string temporary = temporary_name(path);
    if (::mkdir(temporary.c_str(), 0777) != 0) {
      if (errno == ENOENT)
        return make_error(Code::not_found, "the folder for it does not exist; make it first", path);
      return os_error("create it", path);
    }
    AtomicFolder folder(path, temporary, -1);
    Descriptor held(temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (held.is_open() && hold_temporary(held.get())) {
      folder.fd_ = held.take();
      return folder;
    }
  }
  return make_error(Code::io_error, "cannot create it: others remove what is written there", path);
}

Result<AtomicFolder> AtomicFolder::create(
    const std::string& name, const std::function<bool(std::string_view)>& is_replaced) {
  LOOM_TRY(restore_set_aside(name));
  LOOM_ASSIGN(const std::string path, target_of(name));
  const bool exists = is_directory(path);
  std::vector<std::string> kept;
  if (exists) {
    LOOM_ASSIGN(kept, remaining_files(path, is_replaced));
  }
  remove_stale_folders(path);
  LOOM_ASSIGN(AtomicFolder folder, create_beside(path));
  struct stat old = {};
  if (exists && (::stat(path.c_str(), &old) != 0 || ::fchmod(folder.fd_, old.st_mode & 07777) != 0))
    return os_error("keep the permissions", path);
  LOOM_TRY(folder.take_over(kept));
  return folder;
}

Status AtomicFolder::take_over(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const Status done = link_or_copy(cat(path_, "/", name), cat(temporary_, "/", name));
    if (!done.ok()) return renamed(done.error());
  }
  return {};
}

AtomicFolder::~AtomicFolder() {
  if (!temporary_.empty()) remove_flat_folder(temporary_);
  if (fd_ >= 0) ::close(fd_);
}

Status AtomicFolder::replace() {
#if defined(RENAME_EXCHANGE)
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) == 0)
    return {};
  const bool cannot = errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM;
  if (!cannot && errno != ENOENT) return os_error("replace", path_);
#endif
  if (!is_directory(path_)) {
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) return os_error("replace", path_);
    temporary_.clear();
    return {};
  }
  const std::string aside = set_aside_name(path_);
  if (::rename(path_.c_str(), aside.c_str()) != 0) return os_error("replace", path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    Error error = os_error("replace", path_);
    if (::rename(aside.c_str(), path_.c_str()) != 0)
      error.message += cat("; the old folder is ", aside);
    return error;
  }
  temporary_ = aside;
  return {};
}

Status AtomicFolder::commit() {
  if (!sync_file(fd_) && errno != EINVAL) return os_error("sync", path_);
  LOOM_TRY(replace());
  LOOM_TRY(sync_folder(path_));
  // The temporary name now has the old folder.
  if (!temporary_.empty()) remove_flat_folder(std::exchange(temporary_, {}));
  return {};
}

#endif

}  // namespace loom::core

// Files over POSIX: see file.hpp. All paths of the library are opened here. Interrupted calls are
// repeated; short reads and writes are continued; every descriptor is closed on every path. If
// another program changes a mapped file, the caller bears the risk (mapped_watch.hpp). Our own
// writer never does that: it renames.
#ifndef __wasi__  // file_none.cpp

#include "io/files/file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

#include "base/text.hpp"
#include "io/files/descriptor.hpp"
#include "io/files/mapped_watch.hpp"
#include "io/files/temporary.hpp"

namespace loom::core {
namespace {

struct OpenFile {
  Descriptor descriptor;
  uint64_t size;
};

// A regular file, opened for reading. O_NONBLOCK: opening a named pipe must not wait for a writer.
Result<OpenFile> open_regular(const std::string& path) {
  if (path.find('\0') != std::string::npos) return invalid("a path with a NUL byte");
  Descriptor descriptor(path, O_RDONLY | O_NONBLOCK);
  struct stat info = {};
  if (!descriptor.is_open() || fstat(descriptor.get(), &info) != 0) return os_error("open", path);
  if (S_ISDIR(info.st_mode)) return bad_file("this is a folder, not a file", path);
  if (!S_ISREG(info.st_mode)) return bad_file("this is a device or a pipe, not a file", path);
  return OpenFile{std::move(descriptor), static_cast<uint64_t>(info.st_size)};
}

// A second name for `path`, so that the file outlives its first name. "" if there is no such file,
// or if the file system has no hard links.
Result<std::string> link_beside(const std::string& path) {
  std::string name = temporary_name(path);
  if (::link(path.c_str(), name.c_str()) == 0) return name;
  const bool cannot = errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK;
  if (cannot || errno == ENOENT) return std::string();
  return os_error("keep", path);
}

Result<std::string> read_memory(const FileRef& file, uint64_t max_bytes) {
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() > max_bytes)
    return bad_file(cat("larger than the limit of ", max_bytes, " bytes"), file.name());
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

MappedFile MappedFile::in_memory(const FileRef& file) {
  MappedFile map;
  map.path_ = file.name();
  map.data_ = file.bytes().data();
  map.size_ = file.bytes().size();
  map.owner_ = file.owner();
  return map;
}

Result<std::string> read_file(const FileRef& path, uint64_t max_bytes) {
  if (path.in_memory()) return read_memory(path, max_bytes);
  LOOM_ASSIGN(const OpenFile file, open_regular(path));
  max_bytes = std::min(max_bytes, uint64_t{1} << 62);
  // The size is only a hint: some files (/proc) say 0, others grow while they are read.
  std::string text;
  size_t used = 0;
  while (used <= max_bytes) {
    if (used == text.size()) {
      const uint64_t hint = used == 0 ? file.size + 1 : 2 * uint64_t{used} + 4096;
      text.resize(static_cast<size_t>(std::min<uint64_t>(hint, max_bytes + 1)));
    }
    const ssize_t got = ::read(file.descriptor.get(), text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os_error("read", path);
    if (got == 0) {
      text.resize(used);
      return text;
    }
    used += static_cast<size_t>(got);
  }
  return bad_file(cat("larger than the limit of ", max_bytes, " bytes"), path);
}

bool file_exists(const FileRef& path) {
  struct stat info = {};
  return path.in_memory() || stat(path.name().c_str(), &info) == 0;
}

bool is_directory(const FileRef& path) {
  struct stat info = {};
  return !path.in_memory() && stat(path.name().c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Status make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0 || is_directory(path)) return {};
  return os_error("make the folder", path);
}

Result<MappedFile> MappedFile::open(const FileRef& path) {
  if (path.in_memory()) return in_memory(path);
  LOOM_ASSIGN(const OpenFile file, open_regular(path));
  MappedFile map;
  map.path_ = path.name();
  if (file.size == 0) return map;
  if (file.size > SIZE_MAX) return make_error(Code::out_of_memory, "too large to map", path);
  const auto size = static_cast<size_t>(file.size);
  const std::optional<FileState> before = state_of(file.descriptor.get());
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor.get(), 0);
  if (data == MAP_FAILED) return os_error("map", path);
  map.data_ = static_cast<const std::byte*>(data);
  map.size_ = size;
  map.mapped_ = true;
  if (before) map.owner_ = watch_map(map.path_, file.descriptor.get(), *before, data, size);
  return map;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, false)),
      owner_(std::move(other.owner_)),
      path_(std::move(other.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  std::swap(owner_, other.owner_);
  std::swap(path_, other.path_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!mapped_) return;
  owner_.reset();  // an unused address range is not guarded
  munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(uint64_t offset, uint64_t size) const {
  if (!mapped_ || offset > size_ || size > size_ - offset) return;
  // Only whole pages: the first and the last may hold bytes of a neighbour.
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t first = (offset + page - 1) / page * page;
  const uint64_t end = (offset + size) / page * page;
  if (first >= end) return;
  madvise(const_cast<std::byte*>(data_) + first, static_cast<size_t>(end - first), MADV_DONTNEED);
}

namespace {

// Whether a new file may take this name. A link may be replaced; a rename over a device would
// remove it.
Status check_target(const std::string& path) {
  if (path.empty() || path.find('\0') != std::string::npos) return invalid("not a path", path);
  struct stat old = {};
  if (path.ends_with('/') || (lstat(path.c_str(), &old) == 0 && S_ISDIR(old.st_mode)))
    return invalid("this is a folder; give the name of a file", path);
  if (old.st_mode == 0 || S_ISREG(old.st_mode) || S_ISLNK(old.st_mode)) return {};
  return invalid("this is a device or a pipe; give the name of a file", path);
}

}  // namespace

Result<AtomicFile> AtomicFile::create_beside(const std::string& path) {
  constexpr int kTries = 16;  // another process rarely mistakes a new file for a stale one
  for (int i = 0; i < kTries; ++i) {
    const std::string temporary = temporary_name(path);
    Descriptor out(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
    if (!out.is_open() && errno == ENOENT)
      return make_error(Code::not_found, "the folder for it does not exist; make it first", path);
    if (!out.is_open()) return os_error("create it", path);
    if (hold_temporary(out.get())) return AtomicFile(path, temporary, out.take());
  }
  return make_error(Code::io_error, "cannot create it: others remove what is written there", path);
}

Result<AtomicFile> AtomicFile::create(const FileRef& to) {
  const std::string& path = to.name();
  if (to.in_memory()) {
    AtomicFile file(path, {}, -1);
    file.out_ = to.out();
    return file;
  }
  LOOM_TRY(check_target(path));
  remove_stale_temporaries(path);
  LOOM_ASSIGN(AtomicFile file, create_beside(path));
  struct stat old = {};
  if (stat(path.c_str(), &old) == 0 && S_ISREG(old.st_mode)) {
    // A new file keeps the permissions of its predecessor.
    if (fchmod(file.fd_, old.st_mode & 0777) != 0) return os_error("keep the permissions", path);
  }
  return file;
}

AtomicFile::AtomicFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      out_(std::exchange(other.out_, nullptr)),
      written_(std::move(other.written_)) {}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  if (out_ != nullptr) {
    written_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    size_ += bytes.size();
    return {};
  }
  LOOM_TRY(write_all(bytes, path_, [this](std::span<const std::byte> some) {
    return ::write(fd_, some.data(), some.size());
  }));
  size_ += bytes.size();
  return {};
}

Status AtomicFile::pad(uint64_t alignment) {
  const std::vector<std::byte> zeros(
      static_cast<size_t>((alignment - size_ % alignment) % alignment));
  return write(zeros);
}

Status AtomicFile::rewrite(uint64_t offset, std::span<const std::byte> bytes) {
  if (offset > size_ || bytes.size() > size_ - offset)
    return make_error(Code::internal, "a rewrite beyond the end", path_);
  if (out_ != nullptr) {
    std::copy_n(reinterpret_cast<const char*>(bytes.data()), bytes.size(),
                written_.begin() + static_cast<std::ptrdiff_t>(offset));
    return {};
  }
  const std::byte* start = bytes.data();
  return write_all(bytes, path_, [&](std::span<const std::byte> some) {
    const uint64_t at = offset + static_cast<uint64_t>(some.data() - start);
    return ::pwrite(fd_, some.data(), some.size(), static_cast<off_t>(at));
  });
}

// Both names always refer to complete files: `path_` to the old or the new one, `keep` to its
// former file or the old one. Without hard links there is a moment without `path_`.
Status AtomicFile::replace(const std::string& keep) {
  std::string old;
  if (!keep.empty()) {
    LOOM_ASSIGN(old, link_beside(path_));
    const bool is_kept = !old.empty() || ::rename(path_.c_str(), keep.c_str()) == 0;
    if (!is_kept && errno != ENOENT) return os_error("keep", path_);
  }
  Status done;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) done = os_error("replace", path_);
  if (done.ok()) temporary_.clear();
  if (done.ok() && !old.empty() && ::rename(old.c_str(), keep.c_str()) != 0)
    done = os_error("keep", path_);
  if (!done.ok() && !old.empty()) ::unlink(old.c_str());
  return done;
}

Status AtomicFile::commit(const std::string& keep) {
  if (out_ != nullptr) {
    *out_ = std::move(written_);
    return {};
  }
  if (!sync_file(fd_)) return os_error("sync", path_);
  // After an interrupted close the descriptor is closed, and the bytes are already safe.
  if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) return os_error("close", path_);
  LOOM_TRY(replace(keep));
  return sync_folder(path_);
}

Status write_file_atomic(const FileRef& path, std::span<const std::byte> bytes,
                         const std::string& keep) {
  LOOM_ASSIGN(AtomicFile file, AtomicFile::create(path));
  LOOM_TRY(file.write(bytes));
  return file.commit(keep);
}

}  // namespace loom::core

#endif  // !__wasi__

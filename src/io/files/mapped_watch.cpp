#ifndef __wasi__

#include "io/files/mapped_watch.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <list>
#include <mutex>

namespace loom::core {
namespace {

// The state that a signal handler may access: atomics of static lifetime. Further maps are not
// guarded.
struct Guarded {
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<bool> taken{false}, lost{false};
};
constexpr size_t kMaxGuarded = 1024;
std::array<Guarded, kMaxGuarded> guarded;
struct sigaction handler_before = {};
uintptr_t page_size = 0;

Guarded* take_guard(const void* data, size_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  for (Guarded& one : guarded) {
    if (one.taken.exchange(true)) continue;
    one.lost = false;
    one.end = begin + size;
    one.begin = begin;
    return &one;
  }
  return nullptr;
}

void drop_guard(Guarded* one) {
  if (one == nullptr) return;
  one->begin = one->end = 0;
  one->taken = false;
}

// Maps zeros for the missing page. mmap is not in the POSIX list of signal-safe functions, but it
// is a plain system call on all supported systems.
bool replace_page(uintptr_t address) {
  for (Guarded& one : guarded) {
    if (address < one.begin || address >= one.end) continue;
    one.lost = true;
    void* const page = reinterpret_cast<void*>(address / page_size * page_size);
    return mmap(page, page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page;
  }
  return false;
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  if (replace_page(reinterpret_cast<uintptr_t>(info->si_addr))) return;
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) {
    handler_before.sa_sigaction(signal, info, context);
  } else if (handler_before.sa_handler == SIG_DFL || handler_before.sa_handler == SIG_IGN) {
    sigaction(SIGBUS, &handler_before, nullptr);  // the read is repeated, and ends the process
  } else {
    handler_before.sa_handler(signal);
  }
}

timespec changed_at(const struct stat& info) {
#if defined(__APPLE__)
  return info.st_mtimespec;
#else
  return info.st_mtim;
#endif
}

class Watched;
// Never destroyed: maps of static lifetime end later.
std::mutex& mutex() {
  static auto* const one = new std::mutex;
  return *one;
}
std::list<const Watched*>& all() {
  static auto* const list = new std::list<const Watched*>;
  return *list;
}

std::string& first_changed() {  // of a guarded process; maps that have ended
  static auto* const path = new std::string;
  return *path;
}

class Watched {
 public:
  Watched(std::string path, int fd, const FileState& before, Guarded* guard)
      : path_(std::move(path)), fd_(fd), before_(before), guard_(guard) {
    const std::lock_guard lock(mutex());
    all().push_back(this);
  }
  ~Watched() {
    {
      const std::lock_guard lock(mutex());
      all().remove(this);
      if (page_size != 0 && first_changed().empty() && changed()) first_changed() = path_;
    }
    drop_guard(guard_);
    ::close(fd_);
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  const std::string& path() const { return path_; }
  bool changed() const {
    if (guard_ != nullptr && guard_->lost) return true;
    const std::optional<FileState> now = state_of(fd_);
    return now && *now != before_;
  }

 private:
  std::string path_;
  int fd_;
  FileState before_;
  Guarded* guard_;
};

}  // namespace

std::optional<FileState> state_of(int fd) {
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return std::nullopt;
  const timespec time = changed_at(info);
  return FileState{info.st_size, time.tv_sec, time.tv_nsec};
}

std::shared_ptr<const void> watch_map(const std::string& path, int fd, const FileState& before,
                                      const void* data, size_t size) {
  const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return nullptr;
  return std::make_shared<const Watched>(path, own, before, take_guard(data, size));
}

std::string changed_mapped_file() {
  const std::lock_guard lock(mutex());
  for (const Watched* one : all()) {
    if (one->changed()) return one->path();
  }
  return {};
}

std::string mapped_file_that_changed() {
  {
    const std::lock_guard lock(mutex());
    if (!first_changed().empty()) return first_changed();
  }
  return changed_mapped_file();
}

void guard_mapped_files() {
  static const bool once = [] {
    page_size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &handler_before) == 0;
  }();
  static_cast<void>(once);
}

}  // namespace loom::core

#endif  // !__wasi__

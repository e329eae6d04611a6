// The system calls of saving, as in the C library except for the planned faults: see
// faulty_calls.hpp. Only calls of this program itself are replaced; those inside the C library
// (stdio) are not.
#include "anomaly/faulty_calls.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>

namespace loom::core::test {
namespace {

FaultPlan plan;
bool active = false;
std::atomic<int> count = 0;
int failing[11] = {};  // by Call

// The fate of a call: 0 for none, an errno, or one of the two below.
constexpr int kShort = -1, kDeath = -2;

int fate(Call call) {
  const int always = failing[static_cast<int>(call)];
  if (!active || (call == Call::remove && plan.fault != Fault::death)) return 0;
  const int mine = ++count;
  if (always != 0) return always;
  const bool now = mine == plan.at || (plan.fault == Fault::errors && mine > plan.at);
  if (plan.at == 0 || !now) return 0;
  if (plan.fault == Fault::short_write) return kShort;
  if (plan.fault == Fault::death) return kDeath;
  return plan.error_number;
}

void die() {
  syscall(SYS_kill, getpid(), SIGKILL);
}

// True when the call must not be made: errno is set.
bool fails(int fate) {
  if (fate == kDeath) die();
  if (fate > 0) errno = fate;
  return fate > 0;
}

// Writing with that fate; `write(n)` writes the first n of `size` bytes.
template <class Write>
ssize_t faulty_write(int fate, size_t size, Write&& write) {
  const size_t half = size > 1 ? size / 2 : size;
  if (fate == kDeath) (void)write(half);
  if (fails(fate)) return -1;
  return write(fate == kShort ? half : size);
}

}  // namespace

Faults::Faults(const FaultPlan& p) {
  plan = p;
  count = 0;
  active = true;
}
Faults::~Faults() {
  active = false;
}
int Faults::calls() const {
  return count;
}
bool Faults::happened() const {
  return count >= plan.at;
}

void fail_every(Call call, int error_number) {
  failing[static_cast<int>(call)] = error_number;
}

}  // namespace loom::core::test

using loom::core::test::Call;
using loom::core::test::fails;
using loom::core::test::fate;
using loom::core::test::faulty_write;

extern "C" {

int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list rest;
    va_start(rest, flags);
    mode = static_cast<mode_t>(va_arg(rest, int));
    va_end(rest);
  }
  if (fails(fate(Call::open))) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

ssize_t write(int fd, const void* data, size_t size) {
  return faulty_write(fate(Call::write), size,
                      [&](size_t n) -> ssize_t { return syscall(SYS_write, fd, data, n); });
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  return faulty_write(fate(Call::pwrite), size, [&](size_t n) -> ssize_t {
    return syscall(SYS_pwrite64, fd, data, n, offset);
  });
}

int fsync(int fd) {
  if (fails(fate(Call::fsync))) return -1;
  return static_cast<int>(syscall(SYS_fsync, fd));
}

int close(int fd) {
  const int what = fate(Call::close);
  if (what == loom::core::test::kDeath) loom::core::test::die();
  const auto closed = static_cast<int>(syscall(SYS_close, fd));
  return fails(what) ? -1 : closed;
}

int rename(const char* from, const char* to) noexcept {
  if (fails(fate(Call::rename))) return -1;
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int link(const char* from, const char* to) noexcept {
  if (fails(fate(Call::link))) return -1;
  return static_cast<int>(syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  if (fails(fate(Call::exchange))) return -1;
  return static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (fails(fate(Call::mkdir))) return -1;
  return static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

int unlinkat(int folder, const char* name, int flags) noexcept {
  if (fails(fate(Call::remove))) return -1;
  return static_cast<int>(syscall(SYS_unlinkat, folder, name, flags));
}

int fchmod(int fd, mode_t mode) noexcept {
  if (fails(fate(Call::fchmod))) return -1;
  return static_cast<int>(syscall(SYS_fchmod, fd, mode));
}

}  // extern "C"

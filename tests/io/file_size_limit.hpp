// Simulates a full disk: no file of this process may exceed this size (RLIMIT_FSIZE), for the life
// of the object.
#pragma once

#include <signal.h>
#include <sys/resource.h>

#include <cstdint>

namespace loom::core::test {

class FileSizeLimit {
 public:
  explicit FileSizeLimit(uint64_t bytes) {
    before_ = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit_);
    struct rlimit less = limit_;
    less.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &less);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &limit_);
    signal(SIGXFSZ, before_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*before_)(int) = nullptr;
  struct rlimit limit_ = {};
};

}  // namespace loom::core::test

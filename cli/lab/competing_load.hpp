// CompetingLoad: processes that do nothing but use the last cores, as another program of a busy
// machine does. They end with this object, and with this process however it ends.
#pragma once

#include <sys/types.h>

#include <vector>

#include "loom/result.hpp"

namespace loom::core::cli {

class CompetingLoad {
 public:
  // One process on each of the last `count` cores that this process may use. Start it before any
  // thread. Errors: unsupported where processes cannot be bound to cores, invalid_argument when
  // there are fewer cores.
  static Result<CompetingLoad> start(int count);
  CompetingLoad() = default;
  ~CompetingLoad();
  CompetingLoad(CompetingLoad&& other) noexcept;
  CompetingLoad& operator=(CompetingLoad&&) = delete;

 private:
  std::vector<pid_t> processes_;
};

}  // namespace loom::core::cli

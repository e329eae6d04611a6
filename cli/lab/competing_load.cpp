#include "competing_load.hpp"

#include <fmt/core.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <utility>

namespace loom::core::cli {

#if defined(__linux__)

namespace {

// The cores this process may use, ascending.
std::vector<int> own_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

[[noreturn]] void use_core(int core, pid_t parent) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (sched_setaffinity(0, sizeof(set), &set) != 0 || getppid() != parent) _exit(1);
  for (volatile unsigned turns = 0;;) turns = turns + 1;
}

}  // namespace

Result<CompetingLoad> CompetingLoad::start(int count) {
  const std::vector<int> cores = own_cores();
  if (count < 0 || static_cast<size_t>(count) > cores.size()) {
    return Error{
        Code::invalid_argument,
        fmt::format("--with-load {} needs as many cores; there are {}", count, cores.size()),
        {},
        -1};
  }
  CompetingLoad load;
  const pid_t parent = getpid();
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) use_core(cores[cores.size() - 1 - static_cast<size_t>(i)], parent);
    if (child < 0) return Error{Code::internal, "no process could be started", {}, -1};
    load.processes_.push_back(child);
  }
  return load;
}

#else

Result<CompetingLoad> CompetingLoad::start(int count) {
  if (count == 0) return CompetingLoad();
  return Error{Code::unsupported, "--with-load works on Linux only", {}, -1};
}

#endif

CompetingLoad::CompetingLoad(CompetingLoad&& other) noexcept
    : processes_(std::exchange(other.processes_, {})) {}

CompetingLoad::~CompetingLoad() {
  for (const pid_t process : processes_) {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
}

}  // namespace loom::core::cli

// Runs `loom ARGS`, sends it a signal during its work, and captures its output.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <functional>
#include <string>

#include "base/waits.hpp"
#include "e2e/program.hpp"

namespace loom::core::test {

// Whether a program has computed for a while: far longer than its start takes. Systems other than
// Linux wait a second.
inline bool has_computed(pid_t pid) {
#if defined(__linux__)
  constexpr long kNanoseconds = 200'000'000;
  clockid_t clock{};
  timespec ran{};
  return clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &ran) == 0 &&
         (ran.tv_sec > 0 || ran.tv_nsec > kNanoseconds);
#else
  static_cast<void>(pid);
  sleep(1);
  return true;
#endif
}

inline bool has_ended(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == pid;
}

// `ready`: polled until the signal is sent. `before`: variables of its environment.
inline Ran signalled_loom(const std::string& arguments, int signal,
                          const std::function<bool(pid_t)>& ready = has_computed,
                          const std::string& before = "") {
  const TempFolder folder;
  const std::string command = before + " exec '" + loom_test::program_path() + "' " + arguments +
                              " </dev/null >" + folder.path() + "/out 2>" + folder.path() + "/err";
  const pid_t pid = fork();
  if (pid == 0) {
    ::signal(signal, SIG_DFL);  // nohup and shells in the background have some ignored
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  Ran ran;
  if (pid < 0) return ran;
  wait_until([&] { return has_ended(pid) || ready(pid); });
  ::kill(pid, signal);
  int status = 0;
  waitpid(pid, &status, 0);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ran.out = folder.read("out");
  ran.err = folder.read("err");
  return ran;
}

}  // namespace loom::core::test

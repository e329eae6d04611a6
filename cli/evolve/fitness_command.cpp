#include "fitness_command.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>

#include "../shared/console.hpp"

extern char** environ;

namespace loom::cli {
namespace {

using Clock = std::chrono::steady_clock;

// One output of a program, read without waiting.
class Stream {
 public:
  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read_ = ends[0];
    write_ = ends[1];
    return fcntl(read_, F_SETFL, O_NONBLOCK) == 0;
  }
  ~Stream() {
    close_end(read_);
    close_end(write_);
  }
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int write_end() const { return write_; }
  void started() { close_end(write_); }
  bool ended() const { return read_ < 0; }
  pollfd waits() const { return {read_, POLLIN, 0}; }

  // Reads all available output; keeps the end of it.
  void drain() {
    constexpr size_t kKept = 64 << 10, kMax = 16 * kKept;
    char buffer[8192];
    ssize_t got = 0;
    for (size_t all = 0; read_ >= 0 && all < kMax; all += static_cast<size_t>(got)) {
      got = read(read_, buffer, sizeof buffer);
      if (got == 0) close_end(read_);
      if (got <= 0) return;
      text_.append(buffer, static_cast<size_t>(got));
      if (text_.size() > 2 * kKept) text_.erase(0, text_.size() - kKept);
    }
  }
  std::string take() { return std::move(text_); }

 private:
  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
  int read_ = -1, write_ = -1;
  std::string text_;
};

Error program_error(Code code, std::string message) {
  return Error{code, std::move(message), {}, -1};
}

// In a separate process group, so that all processes it starts can be ended together.
int spawn_shell(const std::string& command, const std::string& argument, const Stream& out,
                const Stream& err, pid_t& child) {
  const std::string line = command + " \"$@\"";
  std::vector<std::string> words = {"sh", "-c", line, "loom", argument};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end(), 1);
  posix_spawn_file_actions_adddup2(&actions, err.write_end(), 2);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&how, 0);
  const int started = posix_spawn(&child, "/bin/sh", &actions, &how, argv.data(), environ);
  posix_spawnattr_destroy(&how);
  posix_spawn_file_actions_destroy(&actions);
  return started;
}

bool has_ended(pid_t child) {
  siginfo_t info = {};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid != 0;
}

void wait_a_little(Stream& out, Stream& err) {
  constexpr int kMilliseconds = 20;
  pollfd ends[] = {out.waits(), err.waits()};  // poll() ignores those that are -1
  if (out.ended() && err.ended()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } else {
    poll(ends, 2, kMilliseconds);
  }
  out.drain();
  err.drain();
}

// The last line that is not blank.
std::string_view last_line(std::string_view text) {
  const auto blank = [](char c) { return c == '\n' || c == '\r' || c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  const size_t start = text.find_last_of("\n\r");
  if (start != std::string_view::npos) text.remove_prefix(start + 1);
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  return text;
}

std::string how_it_ended(const ProgramEnd& end, double seconds) {
  if (end.late) return fmt::format("ran longer than {:g} s (--timeout)", seconds);
  if (end.exit < 0) return fmt::format("was ended by signal {}", end.signal);
  return fmt::format("ended with status {}", end.exit);
}

}  // namespace

Result<ProgramEnd> run_program(const std::string& command, const std::string& argument,
                               double seconds) {
  Stream out, err;
  if (!out.open() || !err.open())
    return program_error(Code::io_error, "cannot start a program: no pipe");
  pid_t child = 0;
  const int started = spawn_shell(command, argument, out, err, child);
  if (started != 0)
    return program_error(Code::io_error,
                         "cannot start a program: " + std::generic_category().message(started));
  out.started();
  err.started();
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  ProgramEnd end;
  bool stopped = false;
  // Its exit counts, not the end of its output: processes that it left running may hold the output
  // open.
  while (!has_ended(child)) {
    stopped = interrupted();
    end.late = Clock::now() >= deadline;
    if (stopped || end.late) break;
    wait_a_little(out, err);
  }
  // Before the child is reaped: until then no other group can have its id.
  kill(-child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  out.drain();
  err.drain();
  if (stopped || interrupted()) return program_error(Code::cancelled, "interrupted");
  end.out = out.take();
  end.err = err.take();
  if (WIFEXITED(status)) end.exit = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

Result<double> fitness_of(const std::string& command, const std::string& network, double seconds) {
  LOOM_ASSIGN(const ProgramEnd end, run_program(command, network, seconds));
  const std::string name = fmt::format("the fitness command '{}'", printable(command));
  if (end.late || end.exit != 0) {
    std::string message = name + " " + how_it_ended(end, seconds);
    const std::string_view output = last_line(end.err);
    if (!output.empty()) message += ": " + printable(output, 200);
    return program_error(Code::io_error, std::move(message));
  }
  const std::string_view line = last_line(end.out);
  double value = 0;
  const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error != std::errc() || rest != line.data() + line.size()) {
    return program_error(Code::io_error,
                         name + (line.empty() ? std::string(" printed nothing; its last line has "
                                                            "to be a number")
                                              : fmt::format(" printed '{}' as its last line, "
                                                            "which has to be a number",
                                                            printable(line))));
  }
  return value;
}

}  // namespace loom::cli

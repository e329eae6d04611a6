#include "console.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "signals.hpp"
#include "terminal.hpp"

namespace loom::cli {
namespace {

SignalFlag caught = 0;   // the signal that requested the stop
SignalFlag gentle = 0;   // Ctrl-C does not end the program
SignalFlag presses = 0;  // of Ctrl-C while one was not taken yet
constexpr int kMaxPresses = 3;

int exit_code_of(int signal) {
  return 128 + signal;
}

void on_stop(int signal) {
  constexpr unsigned kSecondsToStop = 5;  // supervisors kill after 10 and more
  if (caught != 0 && (gentle == 0 || signal != SIGINT || presses >= kMaxPresses))
    _exit(exit_code_of(caught));
  ++presses;
  if (caught != 0 && signal == SIGINT) return;
  caught = signal;
  if (signal != SIGINT) alarm(kSecondsToStop);
}

void on_alarm(int) {
  _exit(exit_code_of(caught));
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // a read that waits for a person returns
  sigaction(signal, &action, nullptr);
}

bool is_ignored(int signal) {
  struct sigaction action = {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

Exit exit_code(Code code) {
  switch (code) {
    case Code::ok: return kDone;
    case Code::invalid_argument:
    case Code::out_of_range: return kUsage;
    case Code::not_found:
    case Code::bad_file: return kBadFile;
    case Code::unsupported: return kUnsupported;
    case Code::cancelled: return kInterrupted;
    case Code::io_error:
    case Code::out_of_memory:
    case Code::internal: return kFailed;
  }
  return kFailed;
}

std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line)
    if (c == '\n' || c == '\r') c = ' ';
  return printable(line, line.size());
}

void drop_line_break(std::string& text) {
  if (!text.empty() && text.back() == '\n') text.pop_back();
  if (!text.empty() && text.back() == '\r') text.pop_back();
}

Error too_long(uint64_t limit, const std::string& where) {
  const bool budget = limit < kMostOfTextFile;
  return Error{budget ? Code::out_of_memory : Code::bad_file,
               fmt::format("a text of more than {}{}", size_text(limit),
                           budget ? ", which is what --memory leaves for it" : ""),
               where, -1};
}

}  // namespace

int fail(Exit code, std::string_view message) {
  fmt::print(stderr, "{} {}\n", styled_err(Style::red, "loom:"), one_line(message));
  return code;
}

int fail(const Error& error) {
  if (error.code == Code::cancelled && interrupted()) return fail_interrupted();
  return fail(exit_code(error.code), error.str());
}

int fail_interrupted(std::string_view then) {
  // A terminal has written ^C, possibly after a bar.
  if (stderr_is_terminal()) std::fputs("\r\x1b[K", stderr);
  if (caught == 0 || caught == SIGINT)
    return fail(kInterrupted, fmt::format("interrupted{}", then));
  fail(kFailed, fmt::format("stopped by {}{}", caught == SIGHUP ? "SIGHUP" : "SIGTERM", then));
  return exit_code_of(caught);
}

void note(std::string_view text) {
  fmt::print(stderr, "{}\n", styled_err(Style::dim, "[" + one_line(text) + "]"));
}

void write_out(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void write_line(std::string_view text) {
  write_out(printable(text, text.size()) + "\n");
}

bool flush_out() {
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

bool stdin_is_terminal() {
  return isatty(STDIN_FILENO) != 0;
}

bool stdout_is_terminal() {
  return isatty(STDOUT_FILENO) != 0;
}

bool stderr_is_terminal() {
  const char* term = std::getenv("TERM");
  if (term != nullptr && std::strcmp(term, "dumb") == 0) return false;
  return std::getenv("CI") == nullptr && isatty(STDERR_FILENO) != 0;
}

void catch_signals() {
  handle(SIGINT, on_stop);
  handle(SIGTERM, on_stop);
  if (!is_ignored(SIGHUP)) handle(SIGHUP, on_stop);  // nohup
  handle(SIGALRM, on_alarm);
  handle(SIGXFSZ, SIG_IGN);
}

void interrupts_stop_replies() {
  gentle = 1;
}

bool take_interrupt() {
  int interrupt = SIGINT;
  if (!caught.compare_exchange_strong(interrupt, 0)) return false;  // another signal stays
  presses = 0;
  return true;
}

bool interrupted() {
  return caught != 0;
}

void stop_without_haste() {
  alarm(0);
}

void keep_running_without_stdout() {
  handle(SIGPIPE, SIG_IGN);
}

// The high-water mark of /proc is of this program only; getrusage's may be of its parent.
int64_t peak_rss_bytes() {
  if (std::FILE* file = std::fopen("/proc/self/status", "r")) {
    std::array<char, 256> line;
    long long kilobytes = -1;
    while (kilobytes < 0 && std::fgets(line.data(), line.size(), file) != nullptr) {
      if (std::sscanf(line.data(), "VmHWM: %lld kB", &kilobytes) != 1) kilobytes = -1;
    }
    std::fclose(file);
    if (kilobytes >= 0) return kilobytes * 1024;
  }
  struct rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

Result<std::string> read_stdin(uint64_t limit) {
  std::string text;
  std::array<char, 65536> block;
  size_t count = 0;
  while ((count = std::fread(block.data(), 1, block.size(), stdin)) > 0) {
    text.append(block.data(), count);
    if (text.size() > limit) return too_long(limit, "stdin");
  }
  if (interrupted()) return Error{Code::cancelled, "interrupted", {}, -1};
  if (std::ferror(stdin) != 0) return Error{Code::io_error, "cannot be read", "stdin", -1};
  drop_line_break(text);
  return text;
}

Result<std::string> read_text(const std::string& path, uint64_t limit) {
  if (path == "-") return read_stdin(limit);
  std::error_code error;
  if (std::filesystem::file_size(path, error) > limit && !error) return too_long(limit, path);
  Result<std::string> text = read_file(path, limit);
  if (text.ok()) drop_line_break(*text);
  return text;
}

Result<std::string> read_filled(const std::string& path, uint64_t limit) {
  LOOM_ASSIGN(std::string text, read_text(path, limit));
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    return Error{Code::bad_file, "is empty", path, -1};
  return text;
}

Error error_in_file(Error error, const std::string& path) {
  if (error.code == Code::invalid_argument || error.code == Code::out_of_range)
    error.code = Code::bad_file;
  if (!error.where.empty()) error.message = fmt::format("{}: {}", error.where, error.message);
  error.where = path;
  return error;
}

std::string shell_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "._-/=,:@%+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  return shell_quoted(word);
}

namespace {
std::vector<std::string>& line_words() {
  static std::vector<std::string> words;
  return words;
}
}  // namespace

void remember_line(int argc, char** argv) {
  line_words().assign(argv, argv + argc);
}

std::string line_with(const std::vector<std::string>& more) {
  std::string line;
  for (const std::vector<std::string>& words : {line_words(), more}) {
    for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  }
  return line;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string list_of(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    if (comma > at) parts.push_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

std::string human_bytes(int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.1f} kB", value / 1e3);
  if (bytes < 10'000'000'000) return fmt::format("{:.1f} MB", value / 1e6);
  return fmt::format("{:.1f} GB", value / 1e9);
}

}  // namespace loom::cli

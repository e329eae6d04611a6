#include "progress.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "console.hpp"

namespace loom::cli {
namespace {

constexpr double kTerminalPause = 0.1;
constexpr double kLinePause = 5.0;
constexpr int kBarWidth = 24;

std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

Progress::Progress(std::string label, std::string unit, bool quiet, double minimum_seconds)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      quiet_(quiet),
      terminal_(stderr_is_terminal()),
      minimum_seconds_(minimum_seconds),
      start_(Clock::now()),
      last_(start_) {}

Progress::~Progress() {
  finish();
}

std::string Progress::line(int64_t done, int64_t total, int64_t fresh, double seconds) const {
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0.0;
  const double rate = seconds > 0 ? static_cast<double>(fresh) / seconds : 0.0;
  const double left = rate > 0 ? static_cast<double>(total - done) / rate : 0.0;
  return fmt::format("{:3.0f} %  {}/{} {}  {:.1f} {}/s  {} left", share * 100, done, total, unit_,
                     rate, unit_, duration(left));
}

void Progress::update(int64_t done, int64_t total, int64_t fresh) {
  if (quiet_) return;
  if (fresh < 0) fresh = done;
  const Clock::time_point now = Clock::now();
  const double since_start = std::chrono::duration<double>(now - start_).count();
  const double since_last = std::chrono::duration<double>(now - last_).count();
  if (since_start < minimum_seconds_) return;
  if (!terminal_) {
    if (since_last < kLinePause) return;
    fmt::print(stderr, "{}: {}\n", label_, line(done, total, fresh, since_start));
  } else {
    if (drawn_ && since_last < kTerminalPause) return;
    const auto filled = static_cast<size_t>(total > 0 ? kBarWidth * done / total : 0);
    const std::string bar = std::string(std::min<size_t>(filled, kBarWidth), '=') +
                            std::string(kBarWidth - std::min<size_t>(filled, kBarWidth), ' ');
    fmt::print(stderr, "\r\x1b[K{} [{}] {}", label_, bar, line(done, total, fresh, since_start));
    std::fflush(stderr);
    drawn_ = true;
  }
  last_ = now;
}

void Progress::finish() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace loom::cli

// Progress on stderr: on a terminal a bar with rate and remaining time, at most 10 times a second;
// elsewhere a line every 5 seconds; nothing if quiet. Never on stdout.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace loom::cli {

class Progress {
 public:
  // `unit`: of the rate: "tokens". `minimum_seconds`: draws nothing before.
  Progress(std::string label, std::string unit, bool quiet, double minimum_seconds = 0.5);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void set_label(std::string label) { label_ = std::move(label); }
  // fresh: the part of `done` since the start, for the rate; -1 means all of it.
  void update(int64_t done, int64_t total, int64_t fresh = -1);
  // Erases the bar, so that later output starts on a clean line.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  std::string line(int64_t done, int64_t total, int64_t fresh, double seconds) const;

  std::string label_, unit_;
  bool quiet_, terminal_;
  double minimum_seconds_;
  Clock::time_point start_, last_;
  bool drawn_ = false;
};

}  // namespace loom::cli

// Progress on stderr: a bar with rate and time left on a terminal, at most 10 times a second; a
// line every 5 seconds elsewhere; nothing when quiet. Never on stdout.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace loom::cli {

class Progress {
 public:
  // `unit` follows the rate: "tokens". `minimum_seconds`: nothing is drawn before that.
  Progress(std::string label, std::string unit, bool quiet, double minimum_seconds = 0.5);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void set_label(std::string label) { label_ = std::move(label); }
  // fresh: of `done`, what came since the beginning, for the rate; -1: all of it.
  void update(int64_t done, int64_t total, int64_t fresh = -1);
  // Wipes the bar, so that what follows starts on a clean line.
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

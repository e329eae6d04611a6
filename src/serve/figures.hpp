// Metrics of a server's generated texts, in Prometheus format.
// https://prometheus.io/docs/instrumenting/exposition_formats/
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace loom::core {

// Counts of durations in seconds up to each bound. Thread-safe.
class Histogram {
 public:
  static constexpr std::array<double, 14> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                     0.25,  0.5,    1,     2.5,  5,     10,   60};
  void add(double seconds);
  // The lines of a histogram, with HELP and TYPE.
  std::string text(std::string_view name, std::string_view help) const;

 private:
  mutable std::mutex mutex_;
  std::array<int64_t, kBounds.size() + 1> counts_{};  // of each bucket alone; the last has no bound
  double sum_ = 0;
};

// Metrics of all texts since the server started.
struct Metrics {
  Histogram first_token;  // from the request to its first piece of text
  Histogram token;        // between two pieces
  Histogram request;      // from the request to the end of its last text
};

// "# HELP", "# TYPE" and the value.
std::string metric(std::string_view name, std::string_view type, std::string_view help,
                   double value);

}  // namespace loom::core

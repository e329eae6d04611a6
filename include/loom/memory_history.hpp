// MemoryHistory: memory use over time while a model is loaded, run or trained. It shows the peak,
// and whether freed memory returned to the system.
//
//   MemoryHistory memory = MemoryHistory::begin(engine, {.every = 0.05}).or_exit();
//   Model model = Model::load("model.gguf", engine).or_exit();
//   memory.mark("loaded");
//   ...
//   write(memory.stop());
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loom/engine.hpp"
#include "loom/export.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

struct MemorySample {
  double seconds = 0;    // since begin()
  std::string label{};   // of mark(); empty for samples by the clock
  MemoryUse use{};       // of the engine
  int64_t resident = 0;  // of the whole process, in bytes; 0 if the system does not report it
  int64_t resident_peak = 0;
};

struct MemoryHistoryOptions {
  // Seconds between samples, which a separate thread takes; 0 means marks only. The history has
  // less than 10,000 samples: when it is full, every other timed sample is dropped and the interval
  // doubles.
  double every = 0;
  std::function<double()> clock{};  // seconds; unset means a monotonic system clock
};

// Functions may be called from several threads at once.
class LOOM_API MemoryHistory {
 public:
  // Takes a first sample, "begin". Errors: invalid_argument (a time that is negative or NaN).
  static Result<MemoryHistory> begin(const Engine& engine,
                                     const MemoryHistoryOptions& options = {});
  MemoryHistory(MemoryHistory&&) noexcept;
  MemoryHistory& operator=(MemoryHistory&&) noexcept;
  ~MemoryHistory();

  void mark(std::string_view label);
  // Takes a last sample, "end", and returns all samples by time.
  std::vector<MemorySample> stop();

 private:
  struct LOOM_LOCAL Impl;
  explicit MemoryHistory(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Noteworthy findings of a history, one line each: the peak and its label; bytes that host and GPU
// held at once, if above 1.05 times the initial amount; weights that the host freed for a GPU;
// growth of the process from its first mark after "begin" to the end.
LOOM_API std::vector<std::string> memory_findings(const std::vector<MemorySample>& samples);
// The largest sum of weights, sessions and training in host memory and GPU buffers, in bytes.
LOOM_API int64_t memory_overlap(const std::vector<MemorySample>& samples);
// {"session": "load", "samples": [{"elapsed_sec": 0.5, "label": "loaded", ...}]}:
// docs/telemetry.md.
LOOM_API std::string memory_json(std::string_view session,
                                 const std::vector<MemorySample>& samples);

}  // namespace loom
#endif

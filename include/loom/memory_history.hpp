// MemoryHistory: what memory held while a model was loaded, ran or was trained, so that one can see
// where the peak is, and whether what was freed went back to the system.
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
  std::string label{};   // of mark(); "": taken by the clock
  MemoryUse use{};       // of the engine
  int64_t resident = 0;  // of the whole process, bytes, as the system says; 0: it does not
  int64_t resident_peak = 0;
};

struct MemoryHistoryOptions {
  // Seconds from one sample to the next, which a thread of its own takes. 0: marks alone. The
  // history stays below 10,000 samples: where it is full, every other one of the clock is dropped
  // and the time between them doubles.
  double every = 0;
  std::function<double()> clock{};  // seconds; unset: a clock of the system that never goes back
};

// Functions may be called from several threads at once.
class LOOM_API MemoryHistory {
 public:
  // Takes a first sample, "begin". Errors: invalid_argument (a time that is negative or no number).
  static Result<MemoryHistory> begin(const Engine& engine,
                                     const MemoryHistoryOptions& options = {});
  MemoryHistory(MemoryHistory&&) noexcept;
  MemoryHistory& operator=(MemoryHistory&&) noexcept;
  ~MemoryHistory();

  void mark(std::string_view label);
  // A last sample, "end"; takes no more, and gives all of them by their time.
  std::vector<MemorySample> stop();

 private:
  struct LOOM_LOCAL Impl;
  explicit MemoryHistory(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// What is worth saying of a history, a line each: the peak and its label; bytes that the host and
// a GPU held at once, where that is more than 1.05 times what there was first; weights that the
// host gave up for a GPU; how far the process grew from its first mark after "begin" to the end.
LOOM_API std::vector<std::string> memory_findings(const std::vector<MemorySample>& samples);
// The largest sum of weights, sessions and training in host memory and of buffers on a GPU, bytes.
LOOM_API int64_t memory_overlap(const std::vector<MemorySample>& samples);
// {"session": "load", "samples": [{"elapsed_sec": 0.5, "label": "loaded", ...}]}:
// docs/telemetry.md.
LOOM_API std::string memory_json(std::string_view session,
                                 const std::vector<MemorySample>& samples);

}  // namespace loom
#endif

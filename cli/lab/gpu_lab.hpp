// What `loom bench gpu` measures with: memory of the device, and a clock around lists of commands.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>

#include "api/impl.hpp"
#include "lab.hpp"

namespace loom::core::cli {

inline double now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// Memory that is on the device as long as this lives.
struct DeviceBuffer {
  static Result<DeviceBuffer> create(const Ops& ops, int64_t bytes) {
    DeviceBuffer b;
    LOOM_ASSIGN(b.memory, allocate_for(ops, bytes));
    const MemoryRange range = range_of(b.memory);
    LOOM_ASSIGN(b.attached, Attached::attach(ops.device, {&range, 1}, MemoryUse::scratch, false));
    return b;
  }
  Tensor matrix(int64_t rows, int64_t cols) const {
    return f32_matrix(reinterpret_cast<float*>(memory.data()), rows, cols);
  }
  Buffer memory;
  Attached attached;
};

class Lab {
 public:
  Lab(const Engine& engine, double seconds, ActivationMode mode = ActivationMode::q8)
      : gpu_(*engine.impl().gpu),
        ops_(*engine.impl().ops),
        recorder_(ops_, engine.impl().pool, mode),
        seconds_(seconds) {}

  webgpu::Backend& gpu() const { return gpu_; }
  const Ops& ops() const { return ops_; }

  // Seconds of one command: the least over several lists of them.
  template <class Args>
  Result<double> time(const Args& args) {
    LOOM_TRY(recorder_.reserve(256, 1, 32768, 16));
    LOOM_ASSIGN(const double first, run(args, 1));
    LOOM_ASSIGN(const double once, run(args, 2));
    const auto count = static_cast<int64_t>(
        std::clamp(seconds_ / 5 / std::max(std::min(first, once), 1e-7), 2.0, 2000.0));
    double least = 1e30;
    for (int i = 0; i < 5; ++i) {
      LOOM_ASSIGN(const double seconds, run(args, count));
      least = std::min(least, seconds);
    }
    return least;
  }

  // Seconds of one command in a list of so many.
  template <class Args>
  Result<double> run(const Args& args, int64_t count) {
    for (int64_t i = 0; i < count; ++i) LOOM_TRY(recorder_.record(args));
    const double start = now();
    LOOM_TRY(recorder_.flush());
    LOOM_TRY(ops_.device->wait());
    return (now() - start) / static_cast<double>(count);
  }

 private:
  webgpu::Backend& gpu_;
  const Ops& ops_;
  Recorder recorder_;
  double seconds_;
};

struct VariantsFlags {
  int64_t size = 4096;
  std::string products, dtypes;
  double seconds = 0.5;
  bool json = false;
};
// A table of products with every variant of their kernel; returns the exit code.
int bench_variants(const Engine& engine, const VariantsFlags& flags);

}  // namespace loom::core::cli

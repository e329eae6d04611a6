// Tools of `loom bench gpu`: device memory, and a clock around lists of commands.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "api/engine/impl.hpp"
#include "lab.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core::cli {

inline double now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// Device memory for the lifetime of this object.
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

// Numbers of -1 .. 1, equal for equal seeds.
inline void fill_random(float* values, int64_t count, uint32_t seed) {
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = static_cast<float>(seed >> 8) * 0x1p-23f - 1.0f;
  }
}

// A matrix of them, packed. Packing takes the host longer than any product, so only `distinct`
// groups of rows are packed, and the others repeat them.
inline void fill_weights(std::byte* to, const R16& geometry, int64_t distinct = INT64_MAX) {
  std::vector<float> rows(static_cast<size_t>(kR16Rows * geometry.cols));
  for (int64_t first = 0; first < geometry.rows; first += kR16Rows) {
    const int64_t count = std::min(kR16Rows, geometry.rows - first), group = first / kR16Rows;
    if (group >= distinct && count == kR16Rows) {
      std::memcpy(to + group * geometry.group_bytes, to + group % distinct * geometry.group_bytes,
                  static_cast<size_t>(geometry.group_bytes));
      continue;
    }
    fill_random(rows.data(), count * geometry.cols, static_cast<uint32_t>(first) + 7);
    const TensorRange range = tensor_range(rows.data(), count * geometry.cols);
    r16_pack(geometry, rows.data(), first, count, ScaleScope::per_row, range, to);
  }
}

inline Status upload(const Ops& ops, const Buffer& memory) {
  const MemoryRange range = range_of(memory);
  return ops.device->upload(range.begin, range.bytes);
}

class Lab {
 public:
  Lab(const Engine& engine, double seconds, ActivationMode mode)
      : gpu_(*engine.impl().gpu),
        ops_(*engine.impl().ops),
        pool_(engine.impl().pool),
        mode_(mode),
        recorder_(ops_, pool_, mode),
        seconds_(seconds) {}

  webgpu::Backend& gpu() const { return gpu_; }
  const Ops& ops() const { return ops_; }

  // Seconds of one command: the median over seven lists.
  template <class Args>
  Result<double> time(const Args& args) {
    return time(std::span<const Args>(&args, 1));
  }
  // The same for alternating commands: if each reads other memory, they miss the caches. The lists
  // repeat, as in a program that decodes or trains, so the host's time to encode them is not
  // included.
  template <class Args>
  Result<double> time(std::span<const Args> turns) {
    constexpr int kTimes = 7;
    LOOM_TRY(recorder_.reserve(256, 1, 32768, 16));
    for (const double begin = now(); now() - begin < warm_up_seconds(&gpu_);)
      LOOM_TRY(run(turns, list_of(turns)));
    LOOM_ASSIGN(const double first, run(turns, 1));
    LOOM_ASSIGN(const double once, run(turns, 2));
    const double most = seconds_ / kTimes / std::max(std::min(first, once), 1e-7);
    auto count = static_cast<int64_t>(std::clamp(most, 2.0, 2000.0));
    if (count > list_of(turns)) count = count / list_of(turns) * list_of(turns);
    Recorder again(ops_, pool_, mode_);
    LOOM_TRY(again.reserve(256, 1, 32768, 16));
    std::vector<double> times;
    for (int i = -2; i < kTimes; ++i) {
      LOOM_ASSIGN(const double seconds, run(again, turns, count));
      if (i >= 0) times.push_back(seconds);
    }
    return median(std::move(times));
  }

  // Seconds of one command in a list of that many.
  template <class Args>
  Result<double> run(const Args& args, int64_t count) {
    return run(std::span<const Args>(&args, 1), count);
  }
  template <class Args>
  Result<double> run(std::span<const Args> turns, int64_t count) {
    return run(recorder_, turns, count);
  }
  template <class Args>
  Result<double> run(Recorder& recorder, std::span<const Args> turns, int64_t count) {
    const double start = now();
    for (int64_t i = 0; i < count; ++i) {
      LOOM_TRY(recorder.record(turns[static_cast<size_t>(i) % turns.size()]));
      // The device works on a list while the host sends the next, as with tokens.
      if ((i + 1) % list_of(turns) == 0) LOOM_TRY(recorder.flush());
    }
    LOOM_TRY(recorder.flush());
    LOOM_TRY(ops_.device->wait());
    return (now() - start) / static_cast<double>(count);
  }

 private:
  // Commands that are encoded together: all lists are equal.
  template <class Args>
  static int64_t list_of(std::span<const Args> turns) {
    const auto size = static_cast<int64_t>(turns.size());
    return size * std::max<int64_t>(64 / size, 1);
  }

  webgpu::Backend& gpu_;
  const Ops& ops_;
  ThreadPool& pool_;
  ActivationMode mode_;
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

// What `loom bench machine` measures: how fast this machine computes and reads at its best, so that
// every other speed can be told as a share of it. The loops are those of the instruction sets
// (backend/cpu/probe.inl). Rates are measured in many short turns: other programs, and a clock that
// changes, show as the distance between the least and the most.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/cpu.hpp"
#include "lab/machine_info.hpp"

namespace loom::core {

enum class PeakKind : uint8_t { fma_f32, fma_f64, dot_int8, read, write, copy };

// "f32 fma", "int8 dot", "read", ...
std::string_view peak_name(PeakKind kind);
// "GFLOP/s", "GOP/s" or "GB/s".
std::string_view peak_unit(PeakKind kind);

// The least, the median and the most of some values; zeros for none. The median of an even number
// of them is the mean of the two in the middle.
struct Spread {
  double least = 0, median = 0, most = 0;
};
Spread spread_of(std::vector<double> values);

// 1, 2, 4, ... and `most`.
std::vector<int> lane_counts(int most);

struct PeakCase {
  PeakKind kind = PeakKind::fma_f32;
  Isa isa = Isa::scalar;
  int threads = 1;
  std::string place;  // of reading and writing: "memory", "L1", "mapped file"
  int64_t bytes = 0;  // there, shared between the threads
};
struct PeakRow {
  PeakCase c;
  Spread rate;  // in the unit of its kind, of all threads together
};

struct MachineBenchOptions {
  int threads = 0;                  // at most; 0: all cores
  std::optional<Isa> isa;           // no other
  double seconds = 8;               // all turns together
  int rounds = 7;                   // turns of each case, after a short one that does not count
  int64_t buffer = 0;               // bytes of memory; 0: of buffer_bytes()
  std::span<const std::byte> file;  // one that is mapped; empty: not measured
  // Called after each turn; returning false stops with `cancelled`.
  std::function<bool(int64_t done, int64_t total)> progress;
};

// Memory that no cache holds a good part of: four times the last caches, at least 256 MiB, and at
// most an eighth of what this process may have.
int64_t buffer_bytes(const MachineInfo& machine);

// All cases: products of every set on every number of lanes, reading and writing with the best set.
// The cases take turns, so that what disturbs the machine for a while disturbs them alike.
// Errors: cancelled, out_of_memory.
Result<std::vector<PeakRow>> bench_machine(const MachineInfo& machine,
                                           const MachineBenchOptions& options);

// One rate alone, in GFLOP/s, GOP/s or GB/s (of main memory): the median of seven turns of
// `seconds` together.
Result<double> measure_peak(PeakKind kind, Isa isa, int threads, double seconds);

}  // namespace loom::core

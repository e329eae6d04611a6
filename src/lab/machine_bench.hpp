// The benchmark of `loom bench machine`: the peak compute and read rates of this machine, so that
// other speeds can be expressed as a share of them. The loops are those of the instruction sets
// (backend/cpu/probe.inl). Rates are measured in many short turns. Other programs and a changing
// clock show as the distance between least and most.
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
// is the mean of the two middle ones.
struct RateSpread {
  double least = 0, median = 0, most = 0;
};
RateSpread spread_of(std::vector<double> values);

// 1, 2, 4, ... and `most`.
std::vector<int> lane_counts(int most);

struct PeakCase {
  PeakKind kind = PeakKind::fma_f32;
  Isa isa = Isa::scalar;
  int threads = 1;
  std::string memory_level;  // for reading and writing: "memory", "L1", "mapped file"
  int64_t bytes = 0;         // in total over the threads
};
struct PeakRow {
  PeakCase c;
  RateSpread rate;  // in the unit of its kind, of all threads together
};

struct MachineBenchOptions {
  int threads = 0;                  // maximum; 0 means all cores
  std::optional<Isa> isa;           // only this one
  double seconds = 8;               // all turns together
  int rounds = 7;                   // turns of each case, after a short one that does not count
  int64_t buffer = 0;               // bytes of memory; 0 means buffer_bytes()
  std::span<const std::byte> file;  // mapped; not measured if empty
  // Called after each turn; false stops with `cancelled`.
  std::function<bool(int64_t done, int64_t total)> progress;
};

// Memory beyond all caches: four times the last caches, at least 256 MiB, and at most an eighth of
// what this process may use.
int64_t buffer_bytes(const MachineInfo& machine);

// All cases: products of every set on every number of lanes, reading and writing with the best set.
// The cases alternate, so that disturbances affect them alike. Errors: cancelled, out_of_memory.
Result<std::vector<PeakRow>> bench_machine(const MachineInfo& machine,
                                           const MachineBenchOptions& options);

// A single rate, in GFLOP/s, GOP/s or GB/s (of main memory): the median of seven turns of `seconds`
// in total.
Result<double> measure_peak(PeakKind kind, Isa isa, int threads, double seconds);

}  // namespace loom::core

#include "lab/machine_bench.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/text.hpp"
#include "base/threads/thread_clock.hpp"
#include "base/threads/thread_pool.hpp"
#include "io/machine_memory.hpp"
#include "tensor/tensor.hpp"

namespace loom::core {
namespace {

struct KindRow {
  std::string_view name, unit;
};
constexpr KindRow kKinds[] = {{"f32 fma", "GFLOP/s"}, {"f64 fma", "GFLOP/s"}, {"int8 dot", "GOP/s"},
                              {"read", "GB/s"},       {"write", "GB/s"},      {"copy", "GB/s"}};

// Work between two clock reads: some microseconds of either kind.
constexpr int64_t kRounds = 2048, kPiece = int64_t{1} << 18;
constexpr int64_t kPage = 4096;
constexpr int64_t kMinBuffer = int64_t{256} << 20;
constexpr double kMinTurn = 0.002;  // seconds

// The work of a lane until the time is over. In memory it continues where the previous turn ended.
struct alignas(128) LaneTurn {
  int64_t at = 0;
  double work = 0, seconds = 0;
  volatile float sink = 0;  // results of the loops, kept so that compilers do not remove them
};

// The memory that a case reads, and may write.
struct Place {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
};

int64_t compute_piece(const IsaProbe& probe, PeakKind kind, LaneTurn& turn) {
  const IsaProbe::Loop& loop = kind == PeakKind::fma_f32   ? probe.fma_f32
                               : kind == PeakKind::fma_f64 ? probe.fma_f64
                                                           : probe.dot_int8;
  turn.sink = loop.run(kRounds);
  return kRounds * loop.ops;
}

// A range that is smaller than a piece is read several times. Copies go from the first half of the
// range to the second; bytes read and written both count.
int64_t memory_piece(const IsaProbe& probe, PeakKind kind, const Place& memory_level,
                     LaneRange range, LaneTurn& turn) {
  const int64_t size = range.end - range.begin;
  const int64_t length = kind == PeakKind::copy ? size / 2 / kProbeStep * kProbeStep : size;
  int64_t done = 0;
  while (done < kPiece && length > 0) {
    if (turn.at >= length) turn.at = 0;
    const int64_t count = std::min(kPiece, length - turn.at), from = range.begin + turn.at;
    if (kind == PeakKind::read) {
      turn.sink = probe.read(memory_level.from + from, count);
    } else if (kind == PeakKind::write) {
      probe.write(memory_level.to + from, count);
    } else {
      probe.copy(memory_level.from + from, memory_level.to + from + length, count);
    }
    turn.at += count;
    done += count;
  }
  return kind == PeakKind::copy ? 2 * done : done;
}

// A case with the threads that run it.
class Meter {
 public:
  Meter(const PeakCase& c, Place memory_level, ThreadPool& pool)
      : c_(c), place_(memory_level), pool_(pool), probe_(cpu_probe(c.isa)), turns_(lanes()) {}

  // Giga-operations or gigabytes per second of all lanes together, each over its own time: a lane
  // that the system delayed counts with its waiting time.
  double turn(double seconds) {
    const auto length = static_cast<int64_t>(seconds * 1e9);
    pool_.run([&](int lane, int count) {
      LaneTurn& mine = turns_[static_cast<size_t>(lane)];
      const LaneRange range = lane_range(c_.bytes, kPage, lane, count);
      int64_t work = 0;
      pool_.barrier(lane);
      const int64_t start = now_ns();
      int64_t end = start;
      for (; end - start < length || work == 0; end = now_ns()) {
        work += c_.bytes > 0 ? memory_piece(probe_, c_.kind, place_, range, mine)
                             : compute_piece(probe_, c_.kind, mine);
        if (c_.bytes > 0 && range.end == range.begin) break;
      }
      mine.work = static_cast<double>(work);
      mine.seconds = static_cast<double>(std::max<int64_t>(end - start, 1)) * 1e-9;
    });
    double rate = 0;
    for (const LaneTurn& t : turns_) rate += t.work / t.seconds * 1e-9;
    return rate;
  }
  const PeakCase& what() const { return c_; }

 private:
  size_t lanes() const { return static_cast<size_t>(pool_.lanes()); }

  PeakCase c_;
  Place place_;
  ThreadPool& pool_;
  IsaProbe probe_;
  std::vector<LaneTurn> turns_;
};

// Fills with non-zero numbers, written by the lanes that read them.
void fill(std::byte* to, int64_t bytes, ThreadPool& pool) {
  const IsaProbe probe = cpu_probe(best_isa());
  pool.run([&](int lane, int lanes) {
    const LaneRange range = lane_range(bytes, kPage, lane, lanes);
    probe.write(to + range.begin, range.end - range.begin);
  });
}

// Shared state of cases: memory, and the threads for each number of lanes.
class Bench {
 public:
  Status allocate(int64_t bytes, int threads) {
    LOOM_ASSIGN(memory_, Buffer::allocate(bytes));
    fill(memory_.data(), bytes, pool(threads));
    return {};
  }
  void add(const PeakCase& c) {
    meters_.emplace_back(c, Place{memory_.data(), memory_.data()}, pool(c.threads));
  }
  void add(const PeakCase& c, std::span<const std::byte> file) {
    meters_.emplace_back(c, Place{file.data(), nullptr}, pool(c.threads));
  }

  Result<std::vector<PeakRow>> run(double seconds, int rounds,
                                   const std::function<bool(int64_t, int64_t)>& progress) {
    const auto count = static_cast<int64_t>(meters_.size());
    const double turn = std::max(seconds / static_cast<double>(count * rounds), kMinTurn);
    std::vector<std::vector<double>> rates(meters_.size());
    for (int round = -1; round < rounds; ++round) {
      for (size_t i = 0; i < meters_.size(); ++i) {
        const double rate = meters_[i].turn(round < 0 ? turn / 4 : turn);
        if (round >= 0) rates[i].push_back(rate);
        const int64_t done = (round + 1) * count + static_cast<int64_t>(i) + 1;
        if (progress && !progress(done, (rounds + 1) * count)) {
          return Error{Code::cancelled, "interrupted", {}, -1};
        }
      }
    }
    std::vector<PeakRow> rows;
    for (size_t i = 0; i < meters_.size(); ++i) {
      rows.push_back({meters_[i].what(), spread_of(std::move(rates[i]))});
    }
    return rows;
  }

 private:
  ThreadPool& pool(int threads) {
    for (const auto& one : pools_) {
      if (one->lanes() == threads) return *one;
    }
    return *pools_.emplace_back(std::make_unique<ThreadPool>(threads, true));
  }

  Buffer memory_;
  std::vector<std::unique_ptr<ThreadPool>> pools_;
  std::vector<Meter> meters_;
};

// The part of a cache to read: half, to leave room for the rest of the process, and a quarter of
// the last level, which is shared. 0 if the previous level would hold it.
int64_t cache_part(const std::vector<CacheInfo>& caches, size_t i) {
  const bool shared = i > 0 && i + 1 == caches.size();
  const int64_t part = caches[i].bytes / (shared ? 4 : 2) / kPage * kPage;
  return i > 0 && part <= caches[i - 1].bytes ? 0 : part;
}

void add_reads(Bench& bench, const MachineInfo& machine, const MachineBenchOptions& options,
               Isa isa, const std::vector<int>& lanes, int64_t buffer) {
  for (size_t i = 0; i < machine.caches.size(); ++i) {
    const int64_t part = std::min(cache_part(machine.caches, i), buffer);
    if (part > 0) bench.add({PeakKind::read, isa, 1, cat("L", machine.caches[i].level), part});
  }
  for (const PeakKind kind : {PeakKind::read, PeakKind::write, PeakKind::copy}) {
    for (const int threads : lanes) bench.add({kind, isa, threads, "memory", buffer});
  }
  const auto mapped = static_cast<int64_t>(options.file.size()) / kPage * kPage;
  if (mapped == 0) return;
  cpu_probe(isa).read(options.file.data(), mapped);  // loads its pages
  for (const int threads : lanes) {
    bench.add({PeakKind::read, isa, threads, "mapped file", mapped}, options.file);
  }
}

}  // namespace

std::string_view peak_name(PeakKind kind) {
  return kKinds[static_cast<size_t>(kind)].name;
}
std::string_view peak_unit(PeakKind kind) {
  return kKinds[static_cast<size_t>(kind)].unit;
}

RateSpread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {values.front(), median, values.back()};
}

std::vector<int> lane_counts(int most) {
  std::vector<int> counts;
  for (int count = 1; count < most; count *= 2) counts.push_back(count);
  counts.push_back(std::max(most, 1));
  return counts;
}

int64_t buffer_bytes(const MachineInfo& machine) {
  int64_t bytes = std::max(kMinBuffer, 4 * last_cache_bytes(machine));
  if (const uint64_t memory = machine_memory(); memory > 0) {
    bytes = std::min(bytes, static_cast<int64_t>(memory / 8));
  }
  return std::max(bytes / kPage * kPage, kPage);
}

Result<std::vector<PeakRow>> bench_machine(const MachineInfo& machine,
                                           const MachineBenchOptions& options) {
  const int cores = ThreadPool::available_cores();
  const int most = options.threads > 0 ? std::min(options.threads, cores) : cores;
  const std::vector<int> lanes = lane_counts(most);
  const int64_t buffer =
      options.buffer > 0 ? std::max(options.buffer / kPage * kPage, kPage) : buffer_bytes(machine);
  Bench bench;
  LOOM_TRY(bench.allocate(buffer, most));
  for (const PeakKind kind : {PeakKind::fma_f32, PeakKind::fma_f64, PeakKind::dot_int8}) {
    for (const Isa isa : available_isas()) {
      if (options.isa.has_value() && isa != *options.isa) continue;
      for (const int threads : lanes) bench.add({kind, isa, threads, {}, 0});
    }
  }
  add_reads(bench, machine, options, options.isa.value_or(best_isa()), lanes, buffer);
  return bench.run(options.seconds, std::max(options.rounds, 1), options.progress);
}

Result<double> measure_peak(PeakKind kind, Isa isa, int threads, double seconds) {
  Bench bench;
  PeakCase c{kind, isa, threads, {}, 0};
  if (kind >= PeakKind::read) {
    c.bytes = buffer_bytes(machine_info());
    LOOM_TRY(bench.allocate(c.bytes, threads));
  }
  bench.add(c);
  LOOM_ASSIGN(const std::vector<PeakRow> rows, bench.run(seconds, 7, {}));
  return rows[0].rate.median;
}

}  // namespace loom::core

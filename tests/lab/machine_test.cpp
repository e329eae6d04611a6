// The description of the machine, and the min, median and max of rates. Its speed is not tested,
// since machines are busy.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/threads/thread_pool.hpp"
#include "e2e/temp_folder.hpp"
#include "lab/machine_bench.hpp"

namespace loom::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(MachineSpread, IsTheLeastTheMedianAndTheMost) {
  struct Case {
    std::vector<double> values;
    double least, median, most;
  };
  const Case cases[] = {{{}, 0, 0, 0},
                        {{3}, 3, 3, 3},
                        {{4, 2}, 2, 3, 4},
                        {{9, 1, 5}, 1, 5, 9},
                        {{8, 2, 4, 100}, 2, 6, 100},
                        {{7, 7, 7, 7, 1}, 1, 7, 7}};
  for (const Case& c : cases) {
    const RateSpread spread = spread_of(c.values);
    EXPECT_EQ(spread.least, c.least);
    EXPECT_EQ(spread.median, c.median);
    EXPECT_EQ(spread.most, c.most);
  }
}

TEST(MachineLanes, ArePowersOfTwoAndAll) {
  EXPECT_THAT(lane_counts(1), ElementsAre(1));
  EXPECT_THAT(lane_counts(2), ElementsAre(1, 2));
  EXPECT_THAT(lane_counts(3), ElementsAre(1, 2, 3));
  EXPECT_THAT(lane_counts(8), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(lane_counts(12), ElementsAre(1, 2, 4, 8, 12));
  EXPECT_THAT(lane_counts(0), ElementsAre(1));
}

// A machine as Linux describes it, in files below a folder.
class MachineFiles : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.path() + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void cache(int cpu, int index, const char* level, const char* type, const char* size,
             const char* sharers) {
    const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index" +
                               std::to_string(index) + "/";
    write(folder + "level", std::string(level) + "\n");
    write(folder + "type", std::string(type) + "\n");
    write(folder + "size", std::string(size) + "\n");
    write(folder + "shared_cpu_list", std::string(sharers) + "\n");
  }
  MachineInfo info() const { return machine_info(folder_.path()); }

  test::TempFolder folder_;
};

TEST_F(MachineFiles, NameTheProcessor) {
  EXPECT_EQ(info().name, "unknown processor");
  write("proc/cpuinfo", "processor\t: 0\nmodel\t\t: 1\nmodel name\t: Some  CPU @ 2 GHz \n");
  EXPECT_EQ(info().name, "Some  CPU @ 2 GHz");
  write("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n");
  EXPECT_EQ(info().name, "ARM processor, implementer 0x41, part 0xd40");
  write("proc/cpuinfo", "model name\t:\n");
  EXPECT_EQ(info().name, "unknown processor");
  write("proc/cpuinfo", "model name");
  EXPECT_EQ(info().name, "unknown processor");
}

TEST_F(MachineFiles, CountASharedCacheOnce) {
  EXPECT_TRUE(info().caches.empty());
  EXPECT_EQ(last_cache_bytes(info()), 0);
  for (int cpu = 0; cpu < 4; ++cpu) {
    const std::string own = std::to_string(cpu);
    cache(cpu, 0, "1", "Data", "48K", own.c_str());
    cache(cpu, 1, "1", "Instruction", "32K", own.c_str());
    cache(cpu, 2, "2", "Unified", "2048K", own.c_str());
    cache(cpu, 3, "3", "Unified", "16M", cpu < 2 ? "0-1" : "2-3");
  }
  const std::vector<CacheInfo> caches = info().caches;
  ASSERT_EQ(caches.size(), 3u);
  EXPECT_EQ(caches[0].level, 1);
  EXPECT_EQ(caches[0].bytes, 48 << 10);
  EXPECT_EQ(caches[0].count, 4);
  EXPECT_EQ(caches[1].bytes, 2 << 20);
  EXPECT_EQ(caches[2].count, 2);
  EXPECT_EQ(last_cache_bytes(info()), 32 << 20);
}

TEST_F(MachineFiles, ThatMakeNoSenseAreNoCaches) {
  cache(0, 0, "x", "Data", "48K", "0");
  cache(0, 1, "1", "Data", "much", "0");
  cache(0, 2, "2", "Unified", "-4K", "0");
  cache(0, 3, "3", "Unified", "99999999999999999999K", "0");
  EXPECT_TRUE(info().caches.empty());
}

TEST(MachineBuffer, IsSeveralTimesTheLastCaches) {
  MachineInfo machine;
  const int64_t least = buffer_bytes(machine);
  EXPECT_GE(least, 4096);
  EXPECT_LE(least, 256 << 20);
  machine.caches = {{3, int64_t{1} << 40, 1}};  // the memory of the machine is the limit
  EXPECT_GE(buffer_bytes(machine), least);
  EXPECT_LT(buffer_bytes(machine), int64_t{1} << 42);
}

TEST(MachineProbe, OfEverySetDoesItsWork) {
  std::vector<std::byte> from(2 * kProbeStep), to(2 * kProbeStep);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 37 + i / 256);
  for (const Isa isa : available_isas()) {
    SCOPED_TRACE(isa_name(isa));
    const IsaProbe probe = cpu_probe(isa);
    for (const IsaProbe::Loop& loop : {probe.fma_f32, probe.fma_f64, probe.dot_int8}) {
      EXPECT_GT(loop.ops, 0);
      EXPECT_TRUE(std::isfinite(loop.run(1000)));
    }
    // Codes times activations cancel in every sum, so their total is the zero they began with.
    EXPECT_EQ(probe.dot_int8.run(1000), 0.0f);
    probe.read(from.data(), static_cast<int64_t>(from.size()));
    std::fill(to.begin(), to.end(), std::byte{0});
    probe.copy(from.data(), to.data(), static_cast<int64_t>(from.size()));
    EXPECT_EQ(from, to);
    probe.write(to.data(), kProbeStep);
    EXPECT_EQ(std::count(to.begin(), to.begin() + kProbeStep, std::byte{0}), 0);
    EXPECT_TRUE(std::equal(to.begin() + kProbeStep, to.end(), from.begin() + kProbeStep));
  }
}

MachineBenchOptions quick_machine() {
  MachineBenchOptions options;
  options.seconds = 0.001;
  options.rounds = 2;
  options.buffer = 1 << 20;
  return options;
}

TEST(MachineBench, MeasuresEverySetOnEveryNumberOfLanes) {
  const std::vector<std::byte> file(size_t{1} << 18, std::byte{7});
  MachineInfo machine;
  machine.caches = {{1, 32 << 10, 2}, {2, 256 << 10, 2}};
  MachineBenchOptions options = quick_machine();
  options.file = file;
  int64_t turns = 0;
  options.progress = [&](int64_t done, int64_t total) {
    EXPECT_EQ(done, ++turns);
    EXPECT_LE(done, total);
    return true;
  };
  const Result<std::vector<PeakRow>> rows = bench_machine(machine, options);
  ASSERT_TRUE(rows.ok()) << rows.error().str();
  EXPECT_EQ(turns, static_cast<int64_t>(rows->size()) * 3);
  int memory = 0, caches = 0, mapped = 0, products = 0;
  for (const PeakRow& row : *rows) {
    EXPECT_GT(row.rate.least, 0) << peak_name(row.c.kind);
    EXPECT_LE(row.rate.least, row.rate.median);
    EXPECT_LE(row.rate.median, row.rate.most);
    memory += row.c.memory_level == "memory";
    mapped += row.c.memory_level == "mapped file";
    caches += row.c.memory_level == "L1" || row.c.memory_level == "L2";
    products += row.c.memory_level.empty();
  }
  const auto lanes = static_cast<int>(lane_counts(ThreadPool::available_cores()).size());
  EXPECT_EQ(memory, 3 * lanes);
  EXPECT_EQ(mapped, lanes);
  EXPECT_EQ(caches, 2);
  EXPECT_EQ(products, 3 * lanes * static_cast<int>(available_isas().size()));
}

TEST(MachineBench, KeepsToOneSetAndToAsManyThreadsAsItIsGiven) {
  MachineBenchOptions options = quick_machine();
  options.threads = 1;
  options.isa = Isa::scalar;
  const Result<std::vector<PeakRow>> rows = bench_machine({}, options);
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->size(), 6u);
  for (const PeakRow& row : *rows) {
    EXPECT_EQ(row.c.isa, Isa::scalar);
    EXPECT_EQ(row.c.threads, 1);
  }
}

TEST(MachineBench, StopsWhenItIsTold) {
  MachineBenchOptions options = quick_machine();
  options.progress = [](int64_t done, int64_t) { return done < 3; };
  const Result<std::vector<PeakRow>> rows = bench_machine({}, options);
  ASSERT_FALSE(rows.ok());
  EXPECT_EQ(rows.error().code, Code::cancelled);
  EXPECT_THAT(rows.error().message, HasSubstr("interrupted"));
}

// One page between more lanes than it has parts: those that get nothing do not hang.
TEST(MachineBench, OfABufferThatIsSmallerThanTheLanes) {
  MachineBenchOptions options = quick_machine();
  options.buffer = 1;
  EXPECT_TRUE(bench_machine({}, options).ok());
}

}  // namespace
}  // namespace loom::core

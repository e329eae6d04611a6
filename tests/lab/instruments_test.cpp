// Tile plans against the tables of the original, and what is read off a made-up machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>

#include "dtype/dtype.hpp"
#include "io/process_memory.hpp"
#include "lab/hardware_audit.hpp"
#include "lab/tile_plan.hpp"

namespace loom::core::test {
namespace {

constexpr int64_t kL1 = 32768;

TEST(TilePlan, IsThatOfTheOriginalForACacheOf32Kilobytes) {
  EXPECT_EQ(attention_tile(kL1, 64, 4).size, 64);
  EXPECT_EQ(attention_tile(kL1, 64, 1).size, 256);
  EXPECT_EQ(attention_tile(kL1, 64, 8).size, 32);
  EXPECT_EQ(attention_tile(kL1, 80, 4).size, 48);
  EXPECT_EQ(attention_tile(kL1, 128, 4).size, 32);
  EXPECT_EQ(dense_tile(kL1, 64, 200, 4).size, 128);
  EXPECT_EQ(dense_tile(kL1, 64, 64, 4).size, 64);
  EXPECT_EQ(dense_tile(kL1, 512, 512, 4).size, 16);
  EXPECT_EQ(dense_tile(kL1, 4096, 4096, 4).size, 8);
  EXPECT_EQ(dense_tile(kL1, 256, 256, 1).size, 128);
  EXPECT_EQ(recurrent_tile(kL1, 64, 64, 4, 1).size, 64);
  EXPECT_EQ(recurrent_tile(kL1, 64, 64, 4, 4).size, 16);
  EXPECT_EQ(
      conv_tile(kL1, {.channels = 3, .filters = 32, .kernel = 3, .padding = 1, .out = 128}, 4).size,
      64);
  EXPECT_EQ(attention_tile(49152, 64, 4).size, 96);
}

TEST(TilePlan, OfAGpuIsThatOfTheOriginal) {
  const int64_t expected[][3] = {{16384, 16, 8}, {32768, 32, 16}, {49152, 48, 24}, {65536, 64, 32}};
  for (const auto& [bytes, narrow, wide] : expected) {
    EXPECT_EQ(gpu_attention_tile({bytes, 256}, 64).size, narrow);
    EXPECT_EQ(gpu_attention_tile({bytes, 256}, 128).size, wide);
  }
  EXPECT_EQ(gpu_attention_tile({}, 64).size, 32);
  EXPECT_EQ(gpu_product_tile({}, 4, false).size, 32);
  EXPECT_EQ(gpu_product_tile({16384, 256}, 4, true).size, 64);
}

TEST(TilePlan, NeverExceedsLimitsForAnyNumberType) {
  std::mt19937 draw(3);
  for (int i = 0; i < 2000; ++i) {
    const auto type = static_cast<DType>(draw() % kReleasedDTypes);
    const int64_t bytes = std::max(1, dtype_info(type).bits / 8);
    const GpuLimits limits{1024 << (draw() % 7), 16 << (draw() % 7)};
    const int64_t head = 8 << (draw() % 6);
    const Tile rows = gpu_attention_tile(limits, head);
    EXPECT_LE(rows.size * head * 8, std::max<int64_t>(limits.workgroup_bytes, head * 8));
    for (const bool large : {false, true})
      EXPECT_LE(gpu_product_tile(limits, bytes, large).size, limits.invocations);
    const int64_t l1 = 16384 << (draw() % 3), l2 = l1 * 16, share = l2 * 4;
    const ProductBlocks b = product_blocks(l1, l2, share, bytes);
    EXPECT_EQ(b.kc % 256, 0);
    EXPECT_EQ(b.mc % 16, 0);
    EXPECT_LE(std::min(b.mc - 16, b.mc) * b.kc * bytes, l2 / 2);
    EXPECT_LE(std::min(b.nc - 16, b.nc) * b.kc * bytes, share);
    EXPECT_FALSE(b.reason.empty());
  }
}

// A folder with files of a system.
class MadeUpSystem {
 public:
  explicit MadeUpSystem(const std::string& name)
      : root_((std::filesystem::path(testing::TempDir()) / (name + std::to_string(getpid())))
                  .string()) {}
  ~MadeUpSystem() { std::filesystem::remove_all(root_); }
  void put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

TEST(HardwareAudits, ReadMemoryTemperaturesClocksAndPower) {
  const MadeUpSystem system("loom_audit");
  system.put("/proc/meminfo", "MemTotal:       16000 kB\nMemFree: 1 kB\nMemAvailable:   8000 kB\n");
  system.put("/proc/self/status", "Name: x\nVmHWM:\t  300 kB\nVmRSS:\t  200 kB\n");
  system.put("/proc/sys/kernel/ostype", "Linux\n");
  system.put("/proc/uptime", "12.5 30\n");
  system.put("/sys/class/thermal/thermal_zone0/type", "cpu\n");
  system.put("/sys/class/thermal/thermal_zone0/temp", "45500\n");
  system.put("/sys/class/power_supply/BAT0/capacity", "80\n");
  system.put("/sys/class/power_supply/BAT0/status", "Discharging\n");
  system.put("/sys/class/powercap/intel-rapl:0/name", "package-0\n");
  system.put("/sys/class/powercap/intel-rapl:0/energy_uj", "2500000\n");
  system.put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  system.put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2400000\n");
  system.put("/sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size", "64\n");
  const HardwareAudit a = audit_hardware(system.root());
  EXPECT_EQ(a.memory_total, 16000 * 1024);
  EXPECT_EQ(a.memory_available, 8000 * 1024);
  EXPECT_EQ(a.resident, 200 * 1024);
  EXPECT_EQ(a.resident_peak, 300 * 1024);
  EXPECT_EQ(a.uptime_seconds, 12.5);
  ASSERT_EQ(a.thermal.size(), 1U);
  EXPECT_EQ(a.thermal[0].celsius, 45.5);
  ASSERT_EQ(a.power.size(), 2U);
  EXPECT_EQ(a.power[0].share, 0.8);
  EXPECT_EQ(a.power[1].joules, 2.5);
  EXPECT_EQ(a.mhz, 2400);
  EXPECT_EQ(a.cache_line, 64);
}

TEST(HardwareAudits, OfASystemThatSaysNothingAreEmpty) {
  const HardwareAudit a = audit_hardware("/there is no such folder");
  EXPECT_EQ(a.memory_total, 0);
  EXPECT_TRUE(a.thermal.empty());
  EXPECT_TRUE(a.power.empty());
}

TEST(ResidentMemory, FallWhenMemoryIsGivenBack) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep memory that was given back";
#endif
  if (resident_memory().now == 0) GTEST_SKIP() << "the system does not say";
  constexpr size_t kBytes = size_t{256} << 20;
  auto held = std::make_unique<char[]>(kBytes);
  std::memset(held.get(), 1, kBytes);
  const int64_t before = resident_memory().now;
  held.reset();
  EXPECT_LT(resident_memory().now, before - static_cast<int64_t>(kBytes / 2));
}

}  // namespace
}  // namespace loom::core::test

// MemoryHistory: its findings for handmade samples, and its samples of a real engine.
#include "loom/memory_history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/waits.hpp"
#include "loom/loom.hpp"

namespace loom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kMega = 1 << 20;

MemorySample sample(const char* label, int64_t host, int64_t device, int64_t resident = 0) {
  MemorySample s;
  s.label = label;
  s.use.weights = s.use.total = host * kMega;
  s.use.device = device * kMega;
  s.resident = resident * kMega;
  return s;
}

TEST(MemoryFindings, TellWhatHostAndGpuHeldAtOnce) {
  const std::vector<MemorySample> samples = {sample("begin", 100, 0), sample("loaded", 100, 50),
                                             sample("end", 0, 100)};
  EXPECT_EQ(memory_overlap(samples), 150 * kMega);
  EXPECT_THAT(memory_findings(samples), ElementsAre("host and GPU held 150.00 MB at once",
                                                    "the host gave up 100.00 MB of weights"));
}

TEST(MemoryFindings, TellThePeakWithWhatCameBeforeItAndHowFarTheProcessGrew) {
  const std::vector<MemorySample> samples = {sample("begin", 0, 0, 10), sample("loaded", 50, 0, 60),
                                             sample("", 50, 0, 200), sample("end", 50, 0, 180)};
  EXPECT_THAT(memory_findings(samples),
              ElementsAre("the process held 200.00 MB at most, after 'loaded'",
                          "the process grew by 120.00 MB after 'loaded'"));
  EXPECT_THAT(memory_findings({}), IsEmpty());
}

TEST(MemoryHistories, SeeWeightsComeAndGo) {
  const Engine engine = Engine::create({.threads = 1}).or_exit();
  double now = 5;
  MemoryHistory history =
      MemoryHistory::begin(engine, {.clock = [&now] { return now++; }}).or_exit();
  {
    const Network net =
        Network::sequential({Dense{.in = 512, .out = 512}}, {.input = {512}, .engine = engine})
            .or_exit();
    history.mark("made");
  }
  const std::vector<MemorySample> samples = history.stop();
  ASSERT_THAT(samples, SizeIs(3));
  EXPECT_EQ(samples[0].use.weights, 0);
  EXPECT_GE(samples[1].use.weights, 512 * 512 * 4);
  EXPECT_EQ(samples[2].use.weights, 0);
  EXPECT_EQ(samples[1].label, "made");
  EXPECT_LT(samples[0].seconds, samples[1].seconds);
  EXPECT_LT(samples[1].seconds, samples[2].seconds);
}

TEST(MemoryHistories, TakeSamplesByTheClockWhereAsked) {
  const Engine engine = Engine::create({.threads = 1}).or_exit();
  if (!engine.info().threads_built_in) GTEST_SKIP() << "a build without threads";
  std::atomic<int64_t> taken{0};
  MemoryHistory history =
      MemoryHistory::begin(
          engine, {.every = 0.001, .clock = [&taken] { return static_cast<double>(taken++); }})
          .or_exit();
  EXPECT_TRUE(core::test::wait_until([&] { return taken > 2; }));  // more than its start and begin
  const std::vector<MemorySample> samples = history.stop();
  const auto by_clock = [&] {
    return std::ranges::count_if(samples, [](const auto& s) { return s.label.empty(); });
  };
  EXPECT_GT(by_clock(), 0);
  EXPECT_TRUE(std::ranges::is_sorted(samples, {}, &MemorySample::seconds));
}

TEST(MemoryHistories, HaveAClockOfTheSystemWhereNoneIsGiven) {
  const Engine engine = Engine::create({.threads = 1}).or_exit();
  MemoryHistory history = MemoryHistory::begin(engine).or_exit();
  history.mark("m");
  const std::vector<MemorySample> samples = history.stop();
  ASSERT_THAT(samples, SizeIs(3));
  EXPECT_GE(samples[0].seconds, 0);
  EXPECT_TRUE(std::ranges::is_sorted(samples, {}, &MemorySample::seconds));
}

TEST(MemoryHistories, StayBelowTenThousandSamplesAndKeepEveryMark) {
  const Engine engine = Engine::create({.threads = 1}).or_exit();
  std::atomic<int64_t> taken{0};  // samples, and one at the start
  MemoryHistory history =
      MemoryHistory::begin(
          engine, {.every = 1e-7, .clock = [&taken] { return static_cast<double>(taken++); }})
          .or_exit();
  // With threads, until more samples were taken than it stores.
  const int64_t enough = engine.info().threads_built_in ? 120 : 0;
  for (int i = 0; i < 100; ++i) {
    history.mark("m");
    EXPECT_TRUE(core::test::wait_until([&] { return taken > enough * i; }));
  }
  const std::vector<MemorySample> samples = history.stop();
  EXPECT_LE(samples.size(), 10'001u);
  EXPECT_EQ(std::ranges::count(samples, "m", &MemorySample::label), 100);
}

TEST(MemoryHistories, RefuseTimesThatCannotBe) {
  const Engine engine = Engine::create({.threads = 1}).or_exit();
  for (const double every : {-1.0, std::nan(""), 1e9}) {
    const auto history = MemoryHistory::begin(engine, {.every = every});
    ASSERT_FALSE(history.ok());
    EXPECT_THAT(history.error().str(), HasSubstr("every is"));
  }
}

TEST(MemoryJson, HasAMemberForEachSeriesInMegabytes) {
  MemorySample s = sample("loaded", 100, 50, 300);
  s.seconds = 0.5;
  EXPECT_EQ(
      memory_json("load", {s}),
      R"({"session":"load","samples":[{"elapsed_sec":0.5,"label":"loaded",)"
      R"("host_weights_mb":100.0,"host_sessions_mb":0.0,"host_training_mb":0.0,"mapped_mb":0.0,)"
      R"("vram_total_mb":50.0,"process_rss_mb":300.0,"process_peak_rss_mb":0.0}]})");
}

}  // namespace
}  // namespace loom

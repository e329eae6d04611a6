// Deviations, spreads, comparisons and adaptation: the cases of the definitions, and random ones
// against sums written down anew.
#include "loom/evaluation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>

namespace loom::test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

int random_cases() {
  const char* setting = std::getenv("LOOM_EVALUATION_CASES");
  return setting != nullptr ? std::atoi(setting) : 200;
}

TEST(Spread, IsThatOfASampleAndLeavesOutWhatIsNotFinite) {
  const double values[] = {1, 2, 4, kNan, kInf};
  const Spread s = spread_of(values);
  EXPECT_EQ(s.count, 3);
  EXPECT_EQ(s.not_finite, 2);
  EXPECT_DOUBLE_EQ(s.mean, 7.0 / 3);
  EXPECT_DOUBLE_EQ(s.median, 2);
  EXPECT_NEAR(s.deviation, std::sqrt(7.0 / 3), 1e-12);
  EXPECT_EQ(spread_of(std::vector<double>{5.0}).deviation, 0);
  EXPECT_EQ(spread_of({}).count, 0);
}

TEST(Deviation, FallsIntoBucketsWhoseUpperBoundBelongsToThem) {
  struct Case {
    double answer, truth;
    const char* bucket;
  };
  const Case cases[] = {{110, 100, "0-10%"},    {110.0001, 100, "10-20%"}, {200, 100, "50-100%"},
                        {200.01, 100, "100%+"}, {kNan, 1, "100%+"},        {kInf, 1, "100%+"},
                        {5e-11, 0, "0-10%"},    {0.3, 0, "20-30%"},        {-1, 1, "100%+"},
                        {1, 1, "0-10%"},        {150.5, 100, "50-100%"},   {150, 100, "40-50%"}};
  for (const Case& c : cases) {
    DeviationMetrics m;
    m.add(c.answer, c.truth);
    for (const DeviationBucket& b : m.buckets())
      EXPECT_EQ(b.samples.size(), b.name == c.bucket ? 1U : 0U)
          << c.answer << " of " << c.truth << " in " << b.name;
  }
}

TEST(Deviation, OfClassesIsAllOrNothing) {
  DeviationMetrics m;
  m.add_class(3, 3);
  m.add_class(2, 3);
  EXPECT_EQ(m.summary().accuracy, 50);
  EXPECT_EQ(m.summary().score, 50);
  EXPECT_EQ(m.summary().failures, 0);
}

TEST(Deviation, CountsWhatIsNoNumberApartAndMayBeAskedTwice) {
  DeviationMetrics m;
  m.add(1, 1);
  m.add(kNan, 1);
  m.add(1.5, 1);
  for (int i = 0; i < 2; ++i) {
    const DeviationSummary s = m.summary();
    EXPECT_EQ(s.samples, 3);
    EXPECT_EQ(s.invalid, 1);
    EXPECT_EQ(s.failures, 1);
    EXPECT_DOUBLE_EQ(s.average, 25);
    EXPECT_DOUBLE_EQ(s.score, 50);
  }
  EXPECT_EQ(DeviationMetrics().summary().samples, 0);
}

TEST(Deviation, ShowsTheWorstFirst) {
  DeviationMetrics m;
  for (const double v : {1.0, 3.0, kNan, 2.0, 3.0}) m.add(v, 1);
  std::vector<int64_t> order;
  for (const auto& s : m.worst(4)) order.push_back(s.index);
  EXPECT_THAT(order, ElementsAre(2, 1, 4, 3));
  EXPECT_EQ(m.in_bucket("0-10%").or_exit().size(), 1U);
  EXPECT_THAT(m.in_bucket("5%").error().message, HasSubstr("50-100%"));
}

TEST(Deviation, ComesBackFromJsonWithTheSameSummary) {
  DeviationMetrics m;
  m.add(1.25, 1);
  m.add(kNan, 1);
  m.add(-kInf, 2);
  m.add_class(1, 2);
  const DeviationMetrics back = DeviationMetrics::from_json(m.json()).or_exit();
  EXPECT_EQ(back.json().find("nan"), std::string::npos);
  EXPECT_EQ(back.summary().score, m.summary().score);
  EXPECT_EQ(back.summary().invalid, m.summary().invalid);
  EXPECT_EQ(back.summary().failures, m.summary().failures);
  EXPECT_EQ(back.summary().accuracy, m.summary().accuracy);
}

TEST(Deviation, RefusesWhatIsNoListOfResults) {
  for (const char* text : {"", "{}", "[]", R"({"results":1})", R"({"results":[{"answer":1}]})",
                           R"({"results":[{"answer":1,"truth":1,"deviation":-1}]})",
                           R"({"results":[{"answer":"1","truth":1,"deviation":1}]})"}) {
    EXPECT_FALSE(DeviationMetrics::from_json(text, "x.json").ok()) << text;
  }
}

TEST(Deviation, AgreesWithSumsWrittenDownAnew) {
  std::mt19937 draw(7);
  std::normal_distribution<double> normal(0, 2);
  for (int c = 0; c < random_cases(); ++c) {
    DeviationMetrics m;
    double score = 0, average = 0;
    int64_t failures = 0;
    const int n = 1 + static_cast<int>(draw() % 40);
    for (int i = 0; i < n; ++i) {
      const double truth = draw() % 5 == 0 ? 0 : normal(draw), answer = normal(draw);
      m.add(answer, truth);
      const double off =
          truth == 0 ? 100 * std::abs(answer) : 100 * std::abs((answer - truth) / truth);
      score += off < 100 ? (100 - off) / n : 0;
      average += off / n;
      failures += off > 100 ? 1 : 0;
    }
    size_t in_buckets = 0;
    for (const DeviationBucket& b : m.buckets()) in_buckets += b.samples.size();
    EXPECT_EQ(in_buckets, static_cast<size_t>(n));
    EXPECT_NEAR(m.summary().score, score, 1e-9);
    EXPECT_NEAR(m.summary().average, average, 1e-9 * std::max(1.0, average));
    EXPECT_EQ(m.summary().failures, failures);
  }
}

TEST(Comparison, TakesTheLeastLossAmongThoseWithinAPointOfTheBest) {
  TrainingComparison all;
  all.add("a", {.seed = 1, .loss = 0.30, .accuracy = 0.905});
  all.add("b", {.seed = 1, .loss = 0.20, .accuracy = 0.897});
  all.add("c", {.seed = 1, .loss = 0.10, .accuracy = 0.880});
  EXPECT_EQ(all.best(), 1U);
  // Values are near to the best of all, not to the one before: no chain leads down.
  all.add("d", {.seed = 1, .loss = 0.05, .accuracy = 0.890});
  EXPECT_EQ(all.best(), 1U);
}

TEST(Comparison, OfNumbersTakesTheLeastLossAndNeverOneThatFailed) {
  TrainingComparison all;
  EXPECT_FALSE(all.best().has_value());
  all.add("a", {.seed = 1, .loss = kNan});
  EXPECT_FALSE(all.best().has_value());
  all.add("b", {.seed = 1, .loss = 2});
  all.add("a", {.seed = 2, .loss = 0.1});
  EXPECT_EQ(all.best(), 1U);
}

TEST(Comparison, SubtractsRunsOfEqualSeeds) {
  TrainingComparison all;
  for (const uint64_t seed : {1, 2, 3})
    all.add("a", {.seed = seed, .loss = 1, .accuracy = 0.1 * static_cast<double>(seed)});
  for (const uint64_t seed : {3, 2, 9})
    all.add("b", {.seed = seed, .loss = 1, .accuracy = 0.1 * static_cast<double>(seed) + 0.05});
  const std::vector<MethodReport> methods = all.methods();
  EXPECT_EQ(methods[1].against_first.count, 2);
  EXPECT_NEAR(methods[1].against_first.mean, 0.05, 1e-12);
  EXPECT_NEAR(methods[1].against_first.deviation, 0, 1e-12);
}

// A tracker whose seconds are set by hand.
struct Hands {
  std::shared_ptr<double> now = std::make_shared<double>(100.0);
  AdaptationTracker tracker(AdaptationOptions o) const {
    o.clock = [now = now] { return *now; };
    return AdaptationTracker::create(o).or_exit();
  }
};

TEST(Adaptation, RecordsEachScheduledChangeOnceWithItsRecovery) {
  const Hands hands;
  AdaptationTracker t = hands.tracker({.duration = 9, .window = 1});
  ASSERT_TRUE(t.schedule(3, 7).ok());
  ASSERT_TRUE(t.schedule(6, 8).ok());
  t.start(5);
  // Right answers of ten in each window: a drop at 3 that takes two windows, and one at 6 that
  // lasts.
  const int right[] = {9, 9, 10, 1, 4, 8, 0, 1, 2};
  for (int w = 0; w < 9; ++w) {
    for (int i = 0; i < 10; ++i) {
      *hands.now = 100 + w + 0.1 * i + 0.01;
      EXPECT_EQ(t.record(i < right[w]), w < 3 ? 5 : w < 6 ? 7 : 8);
    }
  }
  *hands.now = 120;
  EXPECT_TRUE(t.over());
  t.record(true);  // counted nowhere
  const AdaptationReport r = t.report();
  EXPECT_EQ(r.outputs, 90);
  ASSERT_EQ(r.changes.size(), 2U);
  EXPECT_EQ(r.changes[0].from, 5);
  EXPECT_EQ(r.changes[0].to, 7);
  EXPECT_EQ(r.changes[0].window_before, 2);
  EXPECT_EQ(r.changes[0].window_after, 3);
  EXPECT_DOUBLE_EQ(r.changes[0].before, 100);
  EXPECT_DOUBLE_EQ(r.changes[0].after, 10);
  EXPECT_EQ(r.changes[0].recovery_windows, 2);
  EXPECT_DOUBLE_EQ(r.changes[0].recovery_seconds, 2);
  EXPECT_EQ(r.changes[1].recovery_windows, -1);
  EXPECT_DOUBLE_EQ(r.least, 0);
  EXPECT_NEAR(r.average, 100 * 44.0 / 90, 1e-9);
}

TEST(Adaptation, MeasuresRecoveryAgainstWhatWasBeforeIfAsked) {
  for (const bool relative : {false, true}) {
    const Hands hands;
    AdaptationTracker t =
        hands.tracker({.duration = 4, .window = 1, .threshold = 50, .relative = relative});
    ASSERT_TRUE(t.schedule(2, 1).ok());
    t.start(0);
    const int right[] = {6, 6, 2, 4};  // of ten: half of 60 % is 30 %
    for (int w = 0; w < 4; ++w) {
      for (int i = 0; i < 10; ++i) {
        *hands.now = 100.05 + w;
        t.record(i < right[w]);
      }
    }
    EXPECT_EQ(t.report().changes[0].recovery_windows, relative ? 1 : -1);
  }
}

TEST(Adaptation, LeavesWindowsWithoutOutputsOutOfTheMean) {
  const Hands hands;
  AdaptationTracker t = hands.tracker({.duration = 3, .window = 1});
  t.start(0);
  t.record(true);
  *hands.now = 102.5;
  t.record(false);
  const AdaptationReport r = t.report();
  EXPECT_DOUBLE_EQ(r.average, 50);
  EXPECT_DOUBLE_EQ(r.variance, 2500);
  EXPECT_EQ(r.windows[1].outputs, 0);
}

TEST(Adaptation, RunsOnTheClockOfTheSystem) {
  AdaptationTracker t = AdaptationTracker::create({.duration = 0.05, .window = 0.01}).or_exit();
  ASSERT_TRUE(t.schedule(0.02, 1).ok());
  t.start(0);
  int64_t last = 0;
  while (!t.over()) last = t.record(true);
  EXPECT_EQ(last, 1);
  const AdaptationReport r = t.report();
  EXPECT_GT(r.outputs, 0);
  ASSERT_EQ(r.changes.size(), 1U);
}

TEST(Adaptation, RefusesSchedulesAndTimesThatCannotBe) {
  EXPECT_FALSE(AdaptationTracker::create({.duration = 0}).ok());
  EXPECT_FALSE(AdaptationTracker::create({.window = kNan}).ok());
  EXPECT_FALSE(AdaptationTracker::create({.duration = 1e9, .window = 1e-9}).ok());
  EXPECT_FALSE(AdaptationTracker::create({.threshold = 101}).ok());
  AdaptationTracker t = AdaptationTracker::create({.duration = 5}).or_exit();
  EXPECT_FALSE(t.schedule(0, 1).ok());
  EXPECT_TRUE(t.schedule(2, 1).ok());
  EXPECT_FALSE(t.schedule(2, 2).ok());
  EXPECT_FALSE(t.schedule(5, 2).ok());
  t.start(0);
  EXPECT_FALSE(t.schedule(3, 2).ok());
}

TEST(Adaptation, CountsRandomStreamsAsAPlainLoopDoes) {
  std::mt19937 draw(11);
  for (int c = 0; c < random_cases(); ++c) {
    const Hands hands;
    const double window = 0.25 * (1 + static_cast<double>(draw() % 4));
    const double duration = window * (2 + static_cast<double>(draw() % 8));
    AdaptationTracker t = hands.tracker({.duration = duration, .window = window});
    t.start(0);
    const auto count = static_cast<size_t>(duration / window);
    std::vector<int> outputs(count, 0), right(count, 0);
    double now = 0;
    for (int i = 0; i < 60; ++i) {
      now += 0.03 * static_cast<double>(draw() % 5);
      *hands.now = 100 + now;
      const bool good = draw() % 2 == 0;
      t.record(good);
      const double elapsed = *hands.now - 100;  // as the tracker sees it
      const auto w = static_cast<size_t>(elapsed / window);
      if (w >= count) continue;
      ++outputs[w];
      right[w] += good ? 1 : 0;
    }
    const AdaptationReport r = t.report();
    for (size_t w = 0; w < count; ++w) {
      EXPECT_EQ(r.windows[w].outputs, outputs[w]);
      EXPECT_EQ(r.windows[w].right, right[w]);
    }
  }
}

}  // namespace
}  // namespace loom::test

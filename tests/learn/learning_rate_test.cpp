// Every schedule with and without a warm-up: the rates of its formula, where it begins after the
// warm-up, and that it does not jump where it should not.
#include <gtest/gtest.h>

#include <cmath>

#include "learn/spec.hpp"

namespace loom::core {
namespace {

constexpr int64_t kPerEpoch = 10, kEpochs = 12, kTotal = kPerEpoch * kEpochs;
constexpr double kRate = 0.5;

Schedule spec_of(ScheduleKind kind, int64_t warmup) {
  Schedule s;
  s.kind = kind;
  s.floor = 0.1;
  s.gamma = 0.5;
  s.power = 2;
  s.every = 3;
  s.milestones = {4, 9};
  s.warmup = warmup;
  return s;
}

double half(double t) {
  return 0.5 * (1 + std::cos(M_PI * t));
}

// The formulas of learn/spec.hpp: `s` steps of `n` are done, after a warm-up of `w`.
double formula(ScheduleKind kind, int64_t s, int64_t n, int64_t w) {
  const double rate = 0.5, floor = 0.1;
  const double t = static_cast<double>(s) / static_cast<double>(n);
  const int64_t e = s / kPerEpoch, run = (s + w) / kPerEpoch;
  switch (kind) {
    case ScheduleKind::constant:
    case ScheduleKind::plateau: return rate;
    case ScheduleKind::step: return rate * std::pow(0.5, e / 3);
    case ScheduleKind::multi_step: return rate * (run >= 9 ? 0.25 : run >= 4 ? 0.5 : 1.0);
    case ScheduleKind::exponential: return rate * std::pow(0.5, e);
    case ScheduleKind::cosine: return floor + (rate - floor) * half(t);
    case ScheduleKind::cosine_restarts: return floor + (rate - floor) * half((s % 30) / 30.0);
    case ScheduleKind::linear: return rate + (floor - rate) * t;
    case ScheduleKind::polynomial: return floor + (rate - floor) * (1 - t) * (1 - t);
    case ScheduleKind::one_cycle:
      return t < 0.3 ? rate / 25 + (rate - rate / 25) * (1 - half(t / 0.3))
                     : rate / 1e4 + (rate - rate / 1e4) * half((t - 0.3) / 0.7);
  }
  return 0;
}

template <class Body>
void each_schedule(Body body) {
  for (int k = 0; k <= static_cast<int>(ScheduleKind::plateau); ++k) {
    const auto kind = static_cast<ScheduleKind>(k);
    for (const int64_t warmup : {0, 1, 5, 10, 25, 47, 119}) body(kind, warmup);
  }
}

TEST(LearningRate, FollowsTheFormulaCountedFromTheEndOfTheWarmUp) {
  each_schedule([](ScheduleKind kind, int64_t warmup) {
    const Schedule s = spec_of(kind, warmup);
    for (int64_t i = warmup; i < kTotal; ++i) {
      ASSERT_NEAR(learning_rate(s, kRate, i, kTotal, kPerEpoch, 0),
                  formula(kind, i - warmup, kTotal - warmup, warmup), 1e-12)
          << schedule_name(kind) << ", warm-up " << warmup << ", step " << i;
    }
  });
}

TEST(LearningRate, RisesInAStraightLineToWhereTheScheduleBegins) {
  each_schedule([](ScheduleKind kind, int64_t warmup) {
    const Schedule s = spec_of(kind, warmup);
    const double first = learning_rate(s, kRate, warmup, kTotal, kPerEpoch, 0);
    for (int64_t i = 0; i < warmup; ++i) {
      ASSERT_NEAR(learning_rate(s, kRate, i, kTotal, kPerEpoch, 0),
                  first * static_cast<double>(i + 1) / static_cast<double>(warmup), 1e-12)
          << schedule_name(kind) << ", warm-up " << warmup << ", step " << i;
    }
  });
}

// A schedule may lower the rate by the factor gamma. A rate may rise where a cosine restarts, and
// in the first steps of a warm-up or cycle. It rises by no more than those rise in a step.
TEST(LearningRate, JumpsNowhereElse) {
  each_schedule([](ScheduleKind kind, int64_t warmup) {
    const Schedule s = spec_of(kind, warmup);
    for (int64_t i = 1; i < kTotal; ++i) {
      const double before = learning_rate(s, kRate, i - 1, kTotal, kPerEpoch, 0);
      const double here = learning_rate(s, kRate, i, kTotal, kPerEpoch, 0);
      const bool restart =
          kind == ScheduleKind::cosine_restarts && i > warmup && (i - warmup) % 30 == 0;
      const double rise = i < warmup ? 0.5 / static_cast<double>(warmup)
                          : restart  ? 0.4
                          : kind == ScheduleKind::one_cycle
                              ? 0.5 * M_PI / 2 / 0.3 / static_cast<double>(kTotal - warmup)
                              : 0;
      EXPECT_LE(here - before, rise + 1e-12)
          << schedule_name(kind) << ", warm-up " << warmup << ", step " << i;
    }
  });
}

TEST(LearningRate, AWarmUpTakesADropOfThePlateauAlong) {
  const Schedule s = spec_of(ScheduleKind::plateau, 20);
  EXPECT_NEAR(learning_rate(s, kRate, 19, kTotal, kPerEpoch, 1), 0.25, 1e-12);
  EXPECT_NEAR(learning_rate(s, kRate, 20, kTotal, kPerEpoch, 1), 0.25, 1e-12);
}

TEST(LearningRate, AWarmUpLongerThanTheRunIsAllThereIs) {
  const Schedule s = spec_of(ScheduleKind::cosine, 1000);
  EXPECT_NEAR(learning_rate(s, kRate, kTotal - 1, kTotal, kPerEpoch, 0), 0.5 * 0.12, 1e-12);
}

}  // namespace
}  // namespace loom::core

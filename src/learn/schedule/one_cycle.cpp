// Up and down again (Smith and Topin, 2019): from rate / 25 up to rate at t = 0.3, down to
// rate / 10^4 at t = 1, each along a half cosine.
#include "learn/schedule/schedule.hpp"

namespace loom::core {
namespace {

double one_cycle_rate(const Schedule&, const SchedulePoint& at) {
  constexpr double kRise = 0.3, kStart = 1.0 / 25.0, kEnd = 1e-4;
  const double t = at.share;
  if (t < kRise) return at.rate * (1.0 + (kStart - 1.0) * half_cosine(t / kRise));
  return at.rate * (kEnd + (1.0 - kEnd) * half_cosine((t - kRise) / (1.0 - kRise)));
}

}  // namespace

extern const ScheduleDef kOneCycleSchedule;
const ScheduleDef kOneCycleSchedule = {.rate = one_cycle_rate, .needs_total = true};

}  // namespace loom::core

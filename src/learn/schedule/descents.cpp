// Schedules that go from the rate to the floor.
#include <algorithm>

#include "learn/schedule/schedule.hpp"

namespace loom::core {
namespace {

double cosine_rate(const Schedule& s, const SchedulePoint& at) {
  return from_floor(s, at, half_cosine(at.share));
}
double cosine_restarts_rate(const Schedule& s, const SchedulePoint& at) {
  const int64_t period = std::max<int64_t>(s.every, 1) * at.per_epoch;
  return from_floor(
      s, at, half_cosine(static_cast<double>(at.step % period) / static_cast<double>(period)));
}
double linear_rate(const Schedule& s, const SchedulePoint& at) {
  return at.rate + (s.floor - at.rate) * at.share;
}
double polynomial_rate(const Schedule& s, const SchedulePoint& at) {
  return from_floor(s, at, power(1.0 - at.share, s.power));
}

}  // namespace

extern const ScheduleDef kCosineSchedule, kCosineRestartsSchedule, kLinearSchedule,
    kPolynomialSchedule;
const ScheduleDef kCosineSchedule = {.rate = cosine_rate, .needs_total = true};
const ScheduleDef kCosineRestartsSchedule = {cosine_restarts_rate};
const ScheduleDef kLinearSchedule = {.rate = linear_rate, .needs_total = true};
const ScheduleDef kPolynomialSchedule = {.rate = polynomial_rate, .needs_total = true};

}  // namespace loom::core

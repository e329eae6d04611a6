// Schedules that multiply the rate by gamma, and the one that does not change it.
#include <algorithm>

#include "learn/schedule/schedule.hpp"

namespace loom::core {
namespace {

double decayed(const Schedule& s, const SchedulePoint& at, int64_t times) {
  return at.rate * power(s.gamma, static_cast<double>(times));
}

double constant_rate(const Schedule&, const SchedulePoint& at) {
  return at.rate;
}
double step_rate(const Schedule& s, const SchedulePoint& at) {
  return decayed(s, at, at.epoch / std::max<int64_t>(s.every, 1));
}
double multi_step_rate(const Schedule& s, const SchedulePoint& at) {
  return decayed(s, at, std::count_if(s.milestones.begin(), s.milestones.end(), [&](int64_t m) {
                   return at.run_epoch >= m;
                 }));
}
double exponential_rate(const Schedule& s, const SchedulePoint& at) {
  return decayed(s, at, at.epoch);
}
double plateau_rate(const Schedule& s, const SchedulePoint& at) {
  return decayed(s, at, at.drops);
}

}  // namespace

extern const ScheduleDef kConstantSchedule, kStepSchedule, kMultiStepSchedule, kExponentialSchedule,
    kPlateauSchedule;
const ScheduleDef kConstantSchedule = {constant_rate};
const ScheduleDef kStepSchedule = {step_rate};
const ScheduleDef kMultiStepSchedule = {multi_step_rate};
const ScheduleDef kExponentialSchedule = {exponential_rate};
const ScheduleDef kPlateauSchedule = {plateau_rate};

}  // namespace loom::core

// Numbers that follow the step: the learning rate, and the noise of gradients.
#include "learn/schedule/schedule.hpp"

#include <algorithm>

#include "base/numbers/dmath.hpp"

namespace loom::core {

double power(double base, double exponent) {
  if (base <= 0) return exponent == 0 ? 1.0 : 0.0;
  return dmath::exp(exponent * dmath::log(base));
}

double half_cosine(double t) {
  constexpr double kPi = 3.14159265358979323846;
  return 0.5 * (1.0 + dmath::cos(kPi * t));
}

double from_floor(const Schedule& schedule, const SchedulePoint& at, double share) {
  return schedule.floor + (at.rate - schedule.floor) * share;
}

double NoiseSpec::deviation(int64_t t) const {
  return std * power(static_cast<double>(t + 1), -0.5 * fade);
}

double learning_rate(const Schedule& s, double rate, int64_t step, int64_t total, int64_t per_epoch,
                     int64_t plateau_drops) {
  const int64_t after = std::max<int64_t>(step - s.warmup, 0);
  const int64_t span = std::max<int64_t>(total - s.warmup, 1);
  SchedulePoint at;
  at.rate = rate;
  at.per_epoch = std::max<int64_t>(per_epoch, 1);
  at.step = after;
  at.share = std::min(1.0, static_cast<double>(after) / static_cast<double>(span));
  at.epoch = after / at.per_epoch;
  at.run_epoch = std::max(step, s.warmup) / at.per_epoch;
  at.drops = plateau_drops;
  const double scheduled = schedule_def(s.kind).rate(s, at);
  if (step >= s.warmup) return scheduled;
  return scheduled * static_cast<double>(step + 1) / static_cast<double>(s.warmup);
}

}  // namespace loom::core

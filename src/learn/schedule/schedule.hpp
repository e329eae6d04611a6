// Schedules of the learning rate. Each is one row in a file of this folder; registry.cpp, which is
// generated from api/options/training.toml, lists the rows. learn/spec.hpp has all formulas beside
// each other, and learning_rate().
#pragma once

#include "learn/spec.hpp"

namespace loom::core {

// A step of a run, from the end of the warm-up on.
struct SchedulePoint {
  double rate = 0;        // at the start of the schedule
  int64_t step = 0;       // since the warm-up
  double share = 0;       // of the steps after it, 0 to 1
  int64_t epoch = 0;      // full ones since the warm-up
  int64_t run_epoch = 0;  // and since the run began
  int64_t per_epoch = 1;  // steps
  int64_t drops = 0;      // how often the plateau was met
};

struct ScheduleDef {
  double (*rate)(const Schedule& schedule, const SchedulePoint& at);
  bool needs_total = false;  // the rate depends on how long the run is
};

const ScheduleDef& schedule_def(ScheduleKind kind);  // registry.cpp

// base^exponent; 0 of a base that is not above 0, but 1 of the exponent 0.
double power(double base, double exponent);
// (1 + cos(pi t)) / 2: from 1 at 0 to 0 at 1.
double half_cosine(double t);
// A share of the way from the floor to the rate.
double from_floor(const Schedule& schedule, const SchedulePoint& at, double share);

}  // namespace loom::core

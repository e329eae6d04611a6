// LaneRest: decides when a worker that was kept off its core may take part again. It has no clocks
// and threads; the caller passes times, so the rule can be tested alone.
//
// A lane that another program pushes off its core delays every lane at the next barrier. The delay
// is a slice of the system's scheduler (some 3 ms). Two lanes on one core delay each other at every
// barrier. Continuing without the lane costs its share of the speed. So a lane rests if the others
// waited for longer than that. The first rest is four times as long as the wait. A later rest is
// four times as long as the last one, if the lane has not worked for longer than that rest since. A
// run of 0.2 s thus loses three slices. The cost of a busy host falls to a percent or less, and a
// single delay is soon forgotten.
#pragma once

#include <algorithm>
#include <cstdint>

namespace loom::core {

class LaneRest {
 public:
  static constexpr int64_t kFirst = 4;                // a rest, in losses, and in rests
  static constexpr int64_t kLongest = 1'000'000'000;  // nanoseconds

  // Reports that others waited `loss` nanoseconds for lanes that did not run, this one among them,
  // in a region of `lanes` lanes. The region took `length` nanoseconds and ended at `now`. Without
  // the lane they would have been faster if lanes * (length - loss) < (lanes - 1) * length.
  void lost(int64_t loss, int64_t length, int lanes, int64_t now) {
    if (loss * lanes <= length) return;
    const bool soon = worked_ <= length_;
    length_ = std::min(std::max(kFirst * loss, soon ? kFirst * length_ : 0), kLongest);
    until_ = now + length_;
    worked_ = 0;
  }
  // Reports that the lane took part in a region of `length` nanoseconds without delaying others.
  void worked(int64_t length) { worked_ += length; }
  bool resting(int64_t now) const { return now < until_; }

 private:
  int64_t until_ = 0, length_ = 0;  // nanoseconds
  int64_t worked_ = 0;              // since the last rest
};

}  // namespace loom::core

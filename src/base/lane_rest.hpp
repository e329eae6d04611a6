// LaneRest: when a worker of a thread pool that was kept off its core may take part again. What is
// not here: clocks and threads; times come from the caller, so that the rule can be tested by
// itself.
//
// A lane that another program pushes off its core holds up every lane at the next barrier, for a
// slice of the system's scheduler (some 3 ms) at a time; two lanes on one core hold each other up
// at every barrier. Going on without it costs that lane's share of the speed. So a lane rests when
// the others waited for longer than that: four times as long as they did at first, and four times
// as long as the last time when it has not worked for longer than that rest since. A run of 0.2 s
// so loses three slices; what a busy host costs falls to a percent or less, and a single hiccup is
// soon forgotten.
#pragma once

#include <algorithm>
#include <cstdint>

namespace loom::core {

class LaneRest {
 public:
  static constexpr int64_t kFirst = 4;                // a rest, in losses, and in rests
  static constexpr int64_t kLongest = 1'000'000'000;  // nanoseconds

  // Others waited for lanes that did not run, this one among them, for `loss` of the `length`
  // nanoseconds of a region of `lanes` lanes that ended at `now`. Without it they would have been
  // faster if lanes * (length - loss) < (lanes - 1) * length.
  void lost(int64_t loss, int64_t length, int lanes, int64_t now) {
    if (loss * lanes <= length) return;
    const bool soon = worked_ <= length_;
    length_ = std::min(std::max(kFirst * loss, soon ? kFirst * length_ : 0), kLongest);
    until_ = now + length_;
    worked_ = 0;
  }
  // The lane took part in a region of so many nanoseconds without holding anyone up.
  void worked(int64_t length) { worked_ += length; }
  bool resting(int64_t now) const { return now < until_; }

 private:
  int64_t until_ = 0, length_ = 0;  // nanoseconds
  int64_t worked_ = 0;              // since the last rest
};

}  // namespace loom::core

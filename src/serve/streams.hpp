// Streams that a client can take up again when its connection was lost. A request asks for it
// (`resumable`); its events then have numbers, the last ones are kept, and its text goes on for a
// while without a reader. What is kept is bounded in number, bytes and time.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "serve/clock.hpp"
#include "serve/http.hpp"

namespace loom::core {

struct StreamLimits {
  int64_t seconds = 60;            // without a reader, and after the end; 0: nothing is kept
  size_t streams = 64;             // at a time
  size_t bytes = size_t{1} << 20;  // of events, of each of them
};

// Thread-safe.
class Streams {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Streams(const StreamLimits& limits, ServeClock clock = Clock::now)
      : limits_(limits), clock_(std::move(clock)) {}
  const StreamLimits& limits() const { return limits_; }

  // A reply for one stream of events that goes to `reply` as well. Without a reader it is gone()
  // when the time is over or there is no room for more. Null: as many streams are on their way as
  // may; of those that have ended the oldest goes first.
  std::shared_ptr<HttpReply> keep(const std::string& id, std::shared_ptr<HttpReply> reply);

  // The events behind number `after` (-1: all of them), then those to come; whoever read the stream
  // before reads no more. Errors: not_found (no such stream, or the events are no longer kept),
  // invalid_argument (an event that never was).
  Status resume(const std::string& id, int64_t after, std::shared_ptr<HttpReply> reply);
  // Its text ends, and it is forgotten. Errors: not_found.
  Status stop(const std::string& id);

 private:
  struct Kept;
  class Writer;
  Result<std::shared_ptr<Kept>> find(const std::string& id);
  void forget_expired();  // with the lock held

  const StreamLimits limits_;
  const ServeClock clock_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Kept>> kept_;
};

}  // namespace loom::core

// Streams that a client can resume after a lost connection. A request asks for it (`resumable`).
// Its events are then numbered, the last ones are stored, and its text continues for a while
// without a reader. Storage is bounded in number, bytes and time.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "serve/clock.hpp"
#include "serve/http/http.hpp"

namespace loom::core {

struct StreamLimits {
  int64_t seconds = 60;            // without a reader, and after the end; 0 disables storage
  size_t streams = 64;             // at the same time
  size_t bytes = size_t{1} << 20;  // of events, per stream
};

// Thread-safe.
class Streams {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Streams(const StreamLimits& limits, ServeClock clock = Clock::now)
      : limits_(limits), clock_(std::move(clock)) {}
  const StreamLimits& limits() const { return limits_; }

  // A reply for one event stream that also goes to `reply`. Without a reader it is gone() when the
  // time is over or the storage is full. Returns null if too many streams are in progress. The
  // oldest of the ended streams is removed first.
  std::shared_ptr<HttpReply> keep(const std::string& id, std::shared_ptr<HttpReply> reply);

  // Sends the events after number `after` (-1 means all), then those to come; the previous reader
  // is detached. Errors: not_found (no such stream, or the events are no longer stored),
  // invalid_argument (an event that does not exist).
  Status resume(const std::string& id, int64_t after, std::shared_ptr<HttpReply> reply);
  // Ends its text and removes the stream. Errors: not_found.
  Status stop(const std::string& id);

 private:
  struct Kept;
  class Writer;
  Result<std::shared_ptr<Kept>> find(const std::string& id);
  void forget_expired();  // call it with the lock held

  const StreamLimits limits_;
  const ServeClock clock_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Kept>> kept_;
};

}  // namespace loom::core

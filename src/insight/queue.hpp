// RecordQueue: takes records from a run and has a thread of its own write them, so that no sink,
// however slow, holds the run up.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "insight/sink.hpp"

namespace loom::core {

class RecordQueue {
 public:
  // At most `capacity` records wait; what comes then is dropped and counted.
  RecordQueue(std::vector<std::unique_ptr<Sink>> sinks, size_t capacity);
  RecordQueue(RecordQueue&&) noexcept = default;
  ~RecordQueue();  // close(kWait)

  void push(Record record);  // never waits for a sink
  int64_t dropped() const;
  // Nothing is taken any more, and what waits is written, for which it waits `most`. A sink that is
  // not done by then keeps its thread and its memory until it is. Errors: of the first
  // sink that failed, which got nothing after it, or that lost records (Sink::end); the messages of
  // others follow. io_error where records still wait; invalid_argument in a child process (fork),
  // where nothing is taken.
  Status close(std::chrono::milliseconds most = kWait);

  static constexpr std::chrono::milliseconds kWait{5000};

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the thread
};

}  // namespace loom::core

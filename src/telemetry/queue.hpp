// RecordQueue: accepts records from a run; a thread of its own writes them, so that a slow sink
// does not delay the run.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "telemetry/sink.hpp"

namespace loom::core {

class RecordQueue {
 public:
  // At most `capacity` records wait; further ones are dropped and counted.
  RecordQueue(std::vector<std::unique_ptr<Sink>> sinks, size_t capacity);
  RecordQueue(RecordQueue&&) noexcept = default;
  ~RecordQueue();  // close(kWait)

  void push(Record record);  // never waits for a sink
  int64_t dropped() const;
  // Stops accepting records and waits up to `most` until the queue is written. An unfinished sink
  // keeps its thread and its memory until it is done. Errors: the first sink that failed, which got
  // no records after that, or that lost records (Sink::end); messages of others follow. io_error if
  // records still wait; invalid_argument in a child process (fork), which accepts no records.
  Status close(std::chrono::milliseconds most = kWait);

  static constexpr std::chrono::milliseconds kWait{5000};

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the thread
};

}  // namespace loom::core

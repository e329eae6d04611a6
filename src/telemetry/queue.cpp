#include "telemetry/queue.hpp"

#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#if LOOM_THREADS
#include <condition_variable>
#include <thread>
#endif

#include "base/text.hpp"
#include "base/threads/fork_watch.hpp"

namespace loom::core {
namespace {

constexpr std::chrono::milliseconds kGather{200};

}  // namespace

struct RecordQueue::State {
  std::vector<std::unique_ptr<Sink>> sinks;  // used only by the thread, if there is one
  size_t capacity = 0;

  const ForkWatch watch;
  std::mutex mutex;
#if LOOM_THREADS
  std::condition_variable changed;
#endif
  std::deque<Record> waiting;
  int64_t dropped = 0;
  bool closed = false, ended = false;
  std::optional<Error> error;

  void keep(const Status& status) {
    if (status.ok()) return;
    const std::lock_guard<std::mutex> lock(mutex);
    if (!error) {
      error = status.error();
    } else {
      error->message += "; " + status.error().str();
    }
  }

  // A failed sink gets no further records.
  template <class Use>
  void each_sink(Use&& use) {
    for (auto& sink : sinks) {
      if (!sink) continue;
      const Status status = use(*sink);
      keep(status);
      if (!status.ok()) sink.reset();
    }
  }

  void write(const Record& record) {
    each_sink([&](Sink& sink) { return sink.takes(record.kind) ? sink.write(record) : Status(); });
  }
  void flush() {
    each_sink([](Sink& sink) { return sink.flush(); });
  }
  void end() {
    each_sink([](Sink& sink) { return sink.end(); });
  }

#if LOOM_THREADS
  // Records are collected for a while before they are written: a thread that woke for each of them
  // would take a core from a lane of the run.
  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    while (!closed || !waiting.empty()) {
      changed.wait(lock, [this] { return closed || !waiting.empty(); });
      changed.wait_for(lock, kGather, [this] { return closed || waiting.size() * 2 >= capacity; });
      while (!waiting.empty()) {
        const Record record = std::move(waiting.front());
        waiting.pop_front();
        lock.unlock();
        write(record);
        lock.lock();
      }
      lock.unlock();
      flush();
      lock.lock();
    }
    lock.unlock();
    end();
    // Files are closed before the end is signalled.
    sinks.clear();
    lock.lock();
    ended = true;
    changed.notify_all();
  }
#endif
};

RecordQueue::RecordQueue(std::vector<std::unique_ptr<Sink>> sinks, size_t capacity)
    : state_(std::make_shared<State>()) {
  state_->sinks = std::move(sinks);
  state_->capacity = capacity;
#if LOOM_THREADS
  // Detached: callers wait for `ended`, with a time limit.
  std::thread([state = state_] { state->run(); }).detach();
#endif
}

RecordQueue::~RecordQueue() {
  if (state_) (void)close(kWait);
}

// After a fork, the writer thread exists only in the parent, and may hold the mutex.
void RecordQueue::push(Record record) {
#if LOOM_THREADS
  if (state_->watch.forked()) return;
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->closed || state_->waiting.size() >= state_->capacity) {
    ++state_->dropped;
    return;
  }
  state_->waiting.push_back(std::move(record));
  const size_t waiting = state_->waiting.size();
  if (waiting == 1 || waiting * 2 == state_->capacity) state_->changed.notify_all();
#else
  if (state_->closed) {
    ++state_->dropped;
    return;
  }
  state_->write(record);
#endif
}

int64_t RecordQueue::dropped() const {
  if (state_->watch.forked()) return 0;
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->dropped;
}

#if LOOM_THREADS
Status RecordQueue::close(std::chrono::milliseconds most) {
  if (state_->watch.forked())
    return invalid("telemetry: this process is a fork of the one that opened it; open it here too");
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->closed = true;
  state_->changed.notify_all();
  if (!state_->changed.wait_for(lock, most, [this] { return state_->ended; })) {
    const auto left = static_cast<int64_t>(state_->waiting.size());
    state_->dropped += left;
    state_->waiting.clear();
    return make_error(Code::io_error, cat("telemetry: a sink did not end within ", most.count(),
                                          " ms; ", left, " records that waited were dropped"));
  }
  if (state_->error) return *state_->error;
  return {};
}
#else
Status RecordQueue::close(std::chrono::milliseconds) {
  state_->closed = true;
  if (!std::exchange(state_->ended, true)) {
    state_->flush();
    state_->end();
    state_->sinks.clear();
  }
  if (state_->error) return *state_->error;
  return {};
}
#endif

}  // namespace loom::core

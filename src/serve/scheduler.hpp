// Who computes next: texts wait in a bounded queue for one of a few sessions of a model, and those
// that have one take turns, a token each. One thread computes; everything else may be called from
// any thread.
//
// A session keeps what it has read, and the next text that begins with the same tokens goes on from
// there. The tokens of a text do not depend on any of this: not on the session, not on what it held
// before, not on the other texts.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "loom/language_model.hpp"

namespace loom::core {

// A text to be written. Its callbacks are called by the thread that computes and must not wait.
struct Job {
  std::vector<TokenId> prompt;
  GenerateOptions options;         // on_token may be set; prefill_progress is taken
  std::function<bool()> unwanted;  // asked between tokens; true ends it with `cancelled`
  // Last, and once. cached: tokens of the prompt that a session had read already.
  std::function<void(Result<Generation> result, int64_t cached)> done;
};

struct SchedulerOptions {
  int64_t sessions = 4;  // texts that are written at the same time
  int64_t waiting = 64;  // and those that wait for one of them to end
  ModelSessionOptions session;
};

// What a scheduler has done so far.
struct SchedulerCounts {
  int64_t running = 0, waiting = 0;
  int64_t texts = 0, cancelled = 0, failed = 0;
  int64_t prompt_tokens = 0, cached_tokens = 0, written_tokens = 0;
  double prompt_seconds = 0, written_seconds = 0;
};

class Scheduler {
 public:
  // Takes the memory of all sessions. Errors: those of Model::session().
  static Result<std::unique_ptr<Scheduler>> create(const Model& model,
                                                   const SchedulerOptions& options);
  ~Scheduler() { stop(); }
  // Ends what runs or waits with `cancelled`; nothing is taken any more.
  void stop();

  // False: as many wait as may, and the job was not taken.
  bool add(std::unique_ptr<Job> job);
  // All of them or none, for several texts of one request.
  bool add(std::vector<std::unique_ptr<Job>> jobs);
  // Waits until nothing runs or waits; false after so many milliseconds.
  bool drain(int64_t milliseconds);
  SchedulerCounts counts() const;
  int64_t context() const { return context_; }  // positions of a session
  int64_t bytes() const { return bytes_; }      // of all sessions

 private:
  // A session with the text that it writes, or none.
  struct Slot {
    explicit Slot(ModelSession s) : session(std::move(s)) {}
    ModelSession session;
    std::vector<TokenId> fed;  // what it has read, up to its position
    uint64_t used = 0;         // when last
    std::unique_ptr<Job> job;
    std::optional<Generator> generator;
    int64_t cached = 0;
  };

  explicit Scheduler(const SchedulerOptions& options) : options_(options) {}
  void run();
  std::unique_ptr<Job> take_waiting();
  Slot& best_slot(const std::vector<TokenId>& prompt);
  void begin(std::unique_ptr<Job> job);
  void step(Slot& slot);
  void finish(Slot& slot, Result<Generation> result);
  void report(Job& job, Result<Generation> result, int64_t cached);
  bool busy() const;

  const SchedulerOptions options_;
  int64_t context_ = 0, bytes_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;  // of the thread that computes
  uint64_t clock_ = 0;                        // likewise

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Job>> waiting_;
  SchedulerCounts counts_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace loom::core

// Schedules texts: they wait in a bounded queue for one of a few sequences of a model. Running
// texts are generated together, one token each per pass (loom/batch.hpp). One thread computes; all
// other functions may be called from any thread.
//
// The KV cache of sequences is kept while there is memory, and a text with the same first tokens
// reuses it from any sequence. The tokens of a text do not depend on this: not on the sequence, not
// on its earlier contents, not on other texts.
//
// A text ends with an Error if a model file changes in place: results from other bytes are never
// delivered.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "loom/batch.hpp"

namespace loom::core {

// A text to generate. Its callbacks run on the compute thread and must not wait.
struct Job {
  std::vector<TokenId> prompt;
  GenerateOptions options;             // on_token may be set; prefill_progress is used internally
  int64_t sequence = -1;               // sequence to use; -1 means any
  uint64_t salt = 0;                   // Batch::set_salt()
  std::function<bool()> is_cancelled;  // polled between tokens; true ends it with `cancelled`
  // Called first, when the text starts: the sequence that generates it.
  std::function<void(int64_t sequence)> on_start;
  // Called while the prompt is read, the first time before any of it: tokens read, tokens that were
  // cached, and the total.
  std::function<void(int64_t read, int64_t cached, int64_t total)> progress;
  // Called last, and once. cached: tokens of the prompt that were in the KV cache.
  std::function<void(Result<Generation> result, int64_t cached)> done;
};

struct SchedulerOptions {
  int64_t sessions = 4;          // texts at the same time
  int64_t waiting = 64;          // texts in the queue
  int64_t positions = 0;         // cache for all of them (BatchOptions::positions)
  int64_t guesses = 0;           // maximum per text and pass; 0 disables them
  std::optional<Model> draft{};  // draft model
  bool lookup = false;           // also draft from earlier text
  ModelSessionOptions session;
};

// Counters of a scheduler.
struct SchedulerCounts {
  int64_t running = 0, waiting = 0;
  int64_t texts = 0, cancelled = 0, failed = 0;
  int64_t prompt_tokens = 0, cached_tokens = 0, written_tokens = 0;
  double prompt_seconds = 0, written_seconds = 0;
  int64_t passes = 0, pass_texts = 0;  // total texts over all passes
  int64_t longest = 0;                 // tokens of prompt and text
  int64_t guessed = 0, accepted = 0;   // draft tokens; `guesses` are passes with drafts
  int64_t guesses = 0;
};

class Scheduler {
 public:
  // Takes the memory of all sequences. Errors: those of Batch::create().
  static Result<std::unique_ptr<Scheduler>> create(const Model& model,
                                                   const SchedulerOptions& options);
  ~Scheduler() { stop(); }
  // Ends all running and waiting texts with `cancelled`; later jobs are refused.
  void stop();

  // false: the queue is full, and the job was not taken.
  bool add(std::unique_ptr<Job> job);
  // All of them or none, for several texts of one request.
  bool add(std::vector<std::unique_ptr<Job>> jobs);
  // Calls `what` on the compute thread once the sequence has no text, or with an Error if the
  // scheduler stops first. Returns false if too many such calls wait.
  using Idle = std::function<void(Result<Batch*> batch)>;
  bool when_idle(int64_t sequence, Idle what);
  // Waits until nothing runs or waits, including calls of when_idle(); false after this many
  // milliseconds.
  bool drain(int64_t milliseconds);
  SchedulerCounts counts() const;
  // For each sequence, whether it has a running text.
  std::vector<bool> busy_sequences() const;
  // Positions of a sequence, and bytes of all; 0 without sessions.
  int64_t context() const { return batch_ ? batch_->context() : 0; }
  int64_t bytes() const { return batch_ ? batch_->bytes() : 0; }

 private:
  // A sequence of the batch with its text, if any.
  struct Slot {
    int64_t sequence = 0;
    std::unique_ptr<Job> job;
    int64_t cached = 0,
            num_reported = 0;  // cached prompt tokens; last value reported to progress()
  };

  Scheduler(const SchedulerOptions& options, std::optional<Batch> batch)
      : options_(options), batch_(std::move(batch)) {}
  void run();
  void end_all();
  void call_idle();
  Slot* free_slot(const Job& job);
  std::unique_ptr<Job> take_waiting();
  void begin(std::unique_ptr<Job> job);
  Status start(Slot& slot);
  void step();
  bool pass_is_good();
  void end_texts(const Error& why);
  void report_progress(Slot& slot);
  void finish(Slot& slot, Result<Generation> result);
  void report(Job& job, Result<Generation> result, int64_t cached);
  bool busy() const;

  const SchedulerOptions options_;
  std::optional<Batch> batch_;   // used by the compute thread; unset without sessions
  std::vector<Slot> slots_;      // likewise
  std::optional<Status> files_;  // likewise; check_model_files() of this pass, if called

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Job>> waiting_;
  std::deque<std::pair<int64_t, Idle>> idle_;
  std::vector<bool> busy_;
  SchedulerCounts counts_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace loom::core

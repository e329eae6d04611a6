// Who computes next: texts wait in a bounded queue for one of a few sequences of a model, and those
// that have one are written together, a token each in every pass (loom/batch.hpp). One thread
// computes; everything else may be called from any thread.
//
// What sequences have read is kept while there is memory, and a text that begins with the same
// tokens goes on from there, whichever sequence has it. The tokens of a text do not depend on any
// of this: not on the sequence, not on what it held before, not on the other texts.
//
// A text ends with an Error if a model file changes in place: nothing that was computed of other
// bytes is passed on.
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

// A text to be written. Its callbacks are called by the thread that computes and must not wait.
struct Job {
  std::vector<TokenId> prompt;
  GenerateOptions options;         // on_token may be set; prefill_progress is taken
  int64_t sequence = -1;           // that writes it; -1: any
  uint64_t salt = 0;               // Batch::set_salt()
  std::function<bool()> unwanted;  // asked between tokens; true ends it with `cancelled`
  // First, if it comes to that: the sequence that writes it.
  std::function<void(int64_t sequence)> began;
  // While the prompt is read, the first time before any of it: tokens that are read, those among
  // them that a sequence had read already, and how many there are.
  std::function<void(int64_t read, int64_t cached, int64_t total)> progress;
  // Last, and once. cached: tokens of the prompt that a sequence had read already.
  std::function<void(Result<Generation> result, int64_t cached)> done;
};

struct SchedulerOptions {
  int64_t sessions = 4;          // texts that are written at the same time
  int64_t waiting = 64;          // and those that wait for one of them to end
  int64_t positions = 0;         // kept for all of them (BatchOptions::positions)
  int64_t guesses = 0;           // of a text in a pass, at most; 0: none
  std::optional<Model> draft{};  // that guesses them
  bool lookup = false;           // what followed in the text before is guessed as well
  ModelSessionOptions session;
};

// What a scheduler has done so far.
struct SchedulerCounts {
  int64_t running = 0, waiting = 0;
  int64_t texts = 0, cancelled = 0, failed = 0;
  int64_t prompt_tokens = 0, cached_tokens = 0, written_tokens = 0;
  double prompt_seconds = 0, written_seconds = 0;
  int64_t passes = 0, pass_texts = 0;  // and texts in all of them
  int64_t longest = 0;                 // tokens of prompt and text
  int64_t guessed = 0, accepted = 0;   // tokens, and passes that checked some
  int64_t guesses = 0;
};

class Scheduler {
 public:
  // Takes the memory of all sequences. Errors: those of Batch::create().
  static Result<std::unique_ptr<Scheduler>> create(const Model& model,
                                                   const SchedulerOptions& options);
  ~Scheduler() { stop(); }
  // Ends what runs or waits with `cancelled`; nothing is taken any more.
  void stop();

  // False: as many wait as may, and the job was not taken.
  bool add(std::unique_ptr<Job> job);
  // All of them or none, for several texts of one request.
  bool add(std::vector<std::unique_ptr<Job>> jobs);
  // Calls `what` from the thread that computes, as soon as the sequence writes no text; with an
  // Error where the scheduler stops before. False: as many such calls wait as may.
  using Idle = std::function<void(Result<Batch*> batch)>;
  bool when_idle(int64_t sequence, Idle what);
  // Waits until nothing runs or waits, for a sequence neither; false after so many milliseconds.
  bool drain(int64_t milliseconds);
  SchedulerCounts counts() const;
  // Of each sequence, whether it writes a text.
  std::vector<bool> busy_sequences() const;
  // Positions of a sequence, and bytes of all; 0 where there are no sessions.
  int64_t context() const { return batch_ ? batch_->context() : 0; }
  int64_t bytes() const { return batch_ ? batch_->bytes() : 0; }

 private:
  // A sequence of the batch with the text that it writes, or none.
  struct Slot {
    int64_t sequence = 0;
    std::unique_ptr<Job> job;
    int64_t cached = 0, told = 0;  // of the prompt; and what progress() was last told
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
  void tell_progress(Slot& slot);
  void finish(Slot& slot, Result<Generation> result);
  void report(Job& job, Result<Generation> result, int64_t cached);
  bool busy() const;

  const SchedulerOptions options_;
  std::optional<Batch> batch_;   // of the thread that computes; none: no sessions
  std::vector<Slot> slots_;      // likewise
  std::optional<Status> files_;  // likewise; check_model_files() in this pass, if it was asked

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Job>> waiting_;
  std::deque<std::pair<int64_t, Idle>> idle_;
  std::vector<bool> busy_;
  SchedulerCounts counts_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace loom::core

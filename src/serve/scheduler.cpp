#include "serve/scheduler.hpp"

#include <algorithm>
#include <chrono>

#include "base/result.hpp"
#include "base/threads/try_again.hpp"
#include "serve/model_files.hpp"

namespace loom::core {
namespace {

Error no_memory_left() {
  return make_error(Code::out_of_memory, "out of memory; try again in a moment");
}

// Removes jobs again if memory runs out before all of a request are added.
struct Shrink {
  std::deque<std::unique_ptr<Job>>& jobs;
  size_t size;
  ~Shrink() {
    while (jobs.size() > size) jobs.pop_back();
  }
};

}  // namespace

Result<std::unique_ptr<Scheduler>> Scheduler::create(const Model& model,
                                                     const SchedulerOptions& options) {
  std::optional<Batch> batch;
  if (options.sessions > 0) {
    LOOM_ASSIGN(batch, Batch::create(model, {.sequences = options.sessions,
                                             .session = options.session,
                                             .positions = options.positions,
                                             .guesses = options.guesses,
                                             .draft = options.draft ? &*options.draft : nullptr}));
  }
  std::unique_ptr<Scheduler> made(new Scheduler(options, std::move(batch)));
  made->slots_.resize(static_cast<size_t>(options.sessions));
  made->busy_.resize(made->slots_.size());
  for (int64_t i = 0; i < options.sessions; ++i) made->slots_[static_cast<size_t>(i)].sequence = i;
  made->thread_ = std::thread([scheduler = made.get()] { scheduler->run(); });
  return made;
}

void Scheduler::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Scheduler::add(std::unique_ptr<Job> job) {
  std::vector<std::unique_ptr<Job>> one;
  one.push_back(std::move(job));
  return add(std::move(one));
}

// Jobs that a free sequence takes at once do not count as waiting.
bool Scheduler::add(std::vector<std::unique_ptr<Job>> jobs) {
  {
    const std::lock_guard lock(mutex_);
    const int64_t free = options_.sessions - counts_.running;
    const auto all = static_cast<int64_t>(waiting_.size() + jobs.size());
    if (stopping_ || all > options_.waiting + std::max<int64_t>(free, 0)) return false;
    Shrink shrink{waiting_, waiting_.size()};
    for (std::unique_ptr<Job>& job : jobs) waiting_.push_back(std::move(job));
    shrink.size = waiting_.size();
  }
  changed_.notify_all();
  return true;
}

bool Scheduler::when_idle(int64_t sequence, Idle what) {
  {
    const std::lock_guard lock(mutex_);
    const bool room = static_cast<int64_t>(idle_.size()) <= options_.waiting;
    if (stopping_ || !room || sequence < 0 || sequence >= options_.sessions) return false;
    idle_.emplace_back(sequence, std::move(what));
  }
  changed_.notify_all();
  return true;
}

bool Scheduler::drain(int64_t milliseconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] {
    return counts_.running == 0 && waiting_.empty() && idle_.empty();
  });
}

SchedulerCounts Scheduler::counts() const {
  const std::lock_guard lock(mutex_);
  SchedulerCounts out = counts_;
  out.waiting = static_cast<int64_t>(waiting_.size());
  return out;
}

std::vector<bool> Scheduler::busy_sequences() const {
  const std::lock_guard lock(mutex_);
  return busy_;
}

bool Scheduler::busy() const {
  return std::ranges::any_of(slots_, [](const Slot& slot) { return slot.job != nullptr; });
}

// Rounds: free sequences take the first waiting jobs, then one pass runs for all texts.
void Scheduler::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock,
                    [&] { return stopping_ || !waiting_.empty() || !idle_.empty() || busy(); });
      if (stopping_) break;
    }
    call_idle();
    while (std::unique_ptr<Job> job = take_waiting()) begin(std::move(job));
    step();
  }
  end_all();
}

void Scheduler::end_all() {
  for (Slot& slot : slots_) {
    if (slot.job == nullptr) continue;
    batch_->cancel(slot.sequence);
    finish(slot, batch_->take(slot.sequence));
  }
  std::deque<std::pair<int64_t, Idle>> idle;
  {
    const std::lock_guard lock(mutex_);
    idle.swap(idle_);
  }
  for (const auto& [sequence, what] : idle) what(make_error(Code::cancelled, "the server stops"));
  for (;;) {
    std::unique_ptr<Job> job;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
    }
    Generation none;
    none.stop = StopReason::cancelled;
    report(*job, std::move(none), 0);
  }
}

// Runs before texts start, so that a waiting call is not delayed by one text after another.
void Scheduler::call_idle() {
  std::vector<Idle> ready;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(idle_, [&](std::pair<int64_t, Idle>& one) {
      if (slots_[static_cast<size_t>(one.first)].job != nullptr) return false;
      ready.push_back(std::move(one.second));
      return true;
    });
  }
  for (const Idle& what : ready) what(&*batch_);
  if (!ready.empty()) changed_.notify_all();
}

// The sequence that can start this text now, or null.
Scheduler::Slot* Scheduler::free_slot(const Job& job) {
  const auto fits = [&](const Slot& slot) {
    return slot.job == nullptr && (job.sequence < 0 || job.sequence == slot.sequence);
  };
  const auto found = std::ranges::find_if(slots_, fits);
  return found == slots_.end() ? nullptr : &*found;
}

// The first waiting job, if a suitable sequence is free; from here on it counts as running.
std::unique_ptr<Job> Scheduler::take_waiting() {
  const std::lock_guard lock(mutex_);
  if (stopping_) return nullptr;
  const auto found = std::ranges::find_if(
      waiting_, [&](const std::unique_ptr<Job>& job) { return free_slot(*job) != nullptr; });
  if (found == waiting_.end()) return nullptr;
  std::unique_ptr<Job> job = std::move(*found);
  waiting_.erase(found);
  ++counts_.running;
  busy_[static_cast<size_t>(free_slot(*job)->sequence)] = true;
  return job;
}

void Scheduler::begin(std::unique_ptr<Job> job) {
  Slot& slot = *free_slot(*job);
  slot.job = std::move(job);
  slot.cached = slot.num_reported = 0;
  Result<bool> started = true;
  try {
    const Status status = start(slot);
    if (!status.ok()) started = status.error();
  } catch (const std::bad_alloc&) {
    return end_texts(no_memory_left());
  }
  if (!started.ok()) finish(slot, started.error());
}

Status Scheduler::start(Slot& slot) {
  LOOM_TRY(check_model_files());
  if (slot.job->on_start) slot.job->on_start(slot.sequence);
  batch_->set_salt(slot.sequence, slot.job->salt);
  slot.cached = slot.num_reported = batch_->reuse(slot.sequence, slot.job->prompt);
  GenerateOptions options = slot.job->options;
  options.prefill_progress = nullptr;
  options.lookup = options_.lookup;
  options.on_token = [this, report_field = std::move(options.on_token)](const Token& token) {
    return pass_is_good() && (!report_field || report_field(token));
  };
  const std::span<const TokenId> prompt(slot.job->prompt);
  if (slot.job->progress)
    slot.job->progress(slot.cached, slot.cached, static_cast<int64_t>(prompt.size()));
  return batch_->start(slot.sequence, prompt.subspan(static_cast<size_t>(slot.cached)), options);
}

// Called once per pass, before any of its tokens is delivered.
bool Scheduler::pass_is_good() {
  if (!files_) files_ = check_model_files();
  return files_->ok();
}

// Called after a pass with an unknown result: an allocation failed in it, or weights changed. All
// texts end with the error, and their sequences are cleared.
void Scheduler::end_texts(const Error& why) {
  for (Slot& slot : slots_) {
    if (slot.job == nullptr) continue;
    try_again([&] {
      batch_->cancel(slot.sequence);
      (void)batch_->take(slot.sequence);
    });
    try_again([&] { batch_->erase(slot.sequence); });
    try_again([&] { finish(slot, why); });
  }
}

// An Error of the pass applies to every text that it ends.
void Scheduler::step() {
  for (const Slot& slot : slots_) {
    if (slot.job != nullptr && slot.job->is_cancelled && slot.job->is_cancelled())
      batch_->cancel(slot.sequence);
  }
  const int64_t texts = batch_->running();
  files_.reset();
  try {
    (void)batch_->step();
    if (!pass_is_good()) return end_texts(files_->error());
  } catch (const std::bad_alloc&) {
    return end_texts(no_memory_left());
  }
  {
    const std::lock_guard lock(mutex_);
    ++counts_.passes;
    counts_.pass_texts += texts;
  }
  for (Slot& slot : slots_) report_progress(slot);
  for (Slot& slot : slots_) {
    if (slot.job == nullptr || batch_->running(slot.sequence)) continue;
    try {
      finish(slot, batch_->take(slot.sequence));
    } catch (const std::bad_alloc&) {
      return end_texts(no_memory_left());
    }
  }
}

// Reports progress of prompts that take several passes.
void Scheduler::report_progress(Slot& slot) {
  if (slot.job == nullptr || !slot.job->progress) return;
  const int64_t total = static_cast<int64_t>(slot.job->prompt.size());
  const int64_t read = std::min(batch_->position(slot.sequence), total);
  if (read > slot.num_reported) slot.job->progress(read, slot.cached, total);
  slot.num_reported = std::max(slot.num_reported, read);
}

void Scheduler::finish(Slot& slot, Result<Generation> result) {
  const std::unique_ptr<Job> job = std::move(slot.job);
  {
    const std::lock_guard lock(mutex_);
    --counts_.running;
    busy_[static_cast<size_t>(slot.sequence)] = false;
  }
  report(*job, std::move(result), slot.cached);
}

void Scheduler::report(Job& job, Result<Generation> result, int64_t cached) {
  {
    const std::lock_guard lock(mutex_);
    ++counts_.texts;
    counts_.failed += result.ok() ? 0 : 1;
    if (result.ok()) {
      counts_.cancelled += result->stop == StopReason::cancelled ? 1 : 0;
      counts_.cached_tokens += cached;
      counts_.prompt_tokens += cached + result->prompt_tokens;
      counts_.written_tokens += static_cast<int64_t>(result->token_ids.size());
      counts_.guessed += result->guessed;
      counts_.accepted += result->accepted;
      counts_.guesses += result->guess_passes;
      counts_.prompt_seconds += result->prefill_seconds;
      counts_.written_seconds += result->decode_seconds;
      const auto written = static_cast<int64_t>(result->token_ids.size());
      counts_.longest = std::max(counts_.longest, cached + result->prompt_tokens + written);
    }
  }
  if (job.done) job.done(std::move(result), cached);
  changed_.notify_all();
}

}  // namespace loom::core

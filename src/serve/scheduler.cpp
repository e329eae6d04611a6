#include "serve/scheduler.hpp"

#include <algorithm>
#include <chrono>

namespace loom::core {
namespace {

size_t common_prefix(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

Generation stopped() {
  Generation none;
  none.stop = StopReason::cancelled;
  return none;
}

}  // namespace

Result<std::unique_ptr<Scheduler>> Scheduler::create(const Model& model,
                                                     const SchedulerOptions& options) {
  std::unique_ptr<Scheduler> made(new Scheduler(options));
  for (int64_t i = 0; i < options.sessions; ++i) {
    LOOM_ASSIGN(ModelSession session, model.session(options.session));
    made->context_ = session.context();
    made->bytes_ += session.bytes();
    made->slots_.push_back(std::make_unique<Slot>(std::move(session)));
  }
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

// Jobs that a free session will take at once do not wait, so they are not counted as such.
bool Scheduler::add(std::vector<std::unique_ptr<Job>> jobs) {
  {
    const std::lock_guard lock(mutex_);
    const int64_t free = options_.sessions - counts_.running;
    const auto all = static_cast<int64_t>(waiting_.size() + jobs.size());
    if (stopping_ || all > options_.waiting + std::max<int64_t>(free, 0)) return false;
    for (std::unique_ptr<Job>& job : jobs) waiting_.push_back(std::move(job));
  }
  changed_.notify_all();
  return true;
}

bool Scheduler::drain(int64_t milliseconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(milliseconds),
                           [&] { return counts_.running == 0 && waiting_.empty(); });
}

SchedulerCounts Scheduler::counts() const {
  const std::lock_guard lock(mutex_);
  SchedulerCounts out = counts_;
  out.waiting = static_cast<int64_t>(waiting_.size());
  return out;
}

bool Scheduler::busy() const {
  return std::ranges::any_of(slots_, [](const auto& slot) { return slot->job != nullptr; });
}

// Rounds: each text that has a session gets a step; sessions that are free take who waits first.
void Scheduler::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !waiting_.empty() || busy(); });
      if (stopping_) break;
    }
    while (std::unique_ptr<Job> job = take_waiting()) begin(std::move(job));
    for (const auto& slot : slots_) {
      if (slot->job != nullptr) step(*slot);
    }
  }
  for (const auto& slot : slots_) {
    if (slot->job != nullptr) finish(*slot, stopped());
  }
  for (;;) {
    std::unique_ptr<Job> job;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
    }
    report(*job, stopped(), 0);
  }
}

// Who waits first, if a session is free; counted as running from here on.
std::unique_ptr<Job> Scheduler::take_waiting() {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty() || counts_.running >= options_.sessions || stopping_) return nullptr;
  std::unique_ptr<Job> job = std::move(waiting_.front());
  waiting_.pop_front();
  ++counts_.running;
  return job;
}

// The free session that has read most of the prompt; of equals the one not used for longest.
Scheduler::Slot& Scheduler::best_slot(const std::vector<TokenId>& prompt) {
  Slot* best = nullptr;
  size_t most = 0;
  for (const auto& slot : slots_) {
    if (slot->job != nullptr) continue;
    const size_t same = common_prefix(slot->fed, prompt);
    if (best == nullptr || same > most || (same == most && slot->used < best->used)) {
      best = slot.get();
      most = same;
    }
  }
  return *best;
}

void Scheduler::begin(std::unique_ptr<Job> job) {
  Slot& slot = best_slot(job->prompt);
  // The logits of the last token are needed, so it is always read.
  size_t same = common_prefix(slot.fed, job->prompt);
  if (same == job->prompt.size() && same > 0) --same;
  slot.cached = static_cast<int64_t>(same);
  slot.session.rewind(slot.cached);
  slot.fed = job->prompt;
  slot.used = ++clock_;
  slot.job = std::move(job);
  GenerateOptions options = slot.job->options;
  options.prefill_progress = [&slot](int64_t, int64_t) {
    return !slot.job->unwanted || !slot.job->unwanted();
  };
  const std::span<const TokenId> prompt(slot.job->prompt);
  Result<Generator> generator = slot.session.start(prompt.subspan(same), options);
  if (!generator.ok()) return finish(slot, generator.error());
  slot.generator.emplace(std::move(*generator));
}

void Scheduler::step(Slot& slot) {
  if (slot.job->unwanted && slot.job->unwanted()) {
    Generation cut = slot.generator->result();
    cut.stop = StopReason::cancelled;
    return finish(slot, std::move(cut));
  }
  const Result<bool> more = slot.generator->step();
  if (!more.ok()) return finish(slot, more.error());
  if (!*more) finish(slot, slot.generator->result());
}

void Scheduler::finish(Slot& slot, Result<Generation> result) {
  // What the session has read is the prompt and what was drawn, up to where it stands.
  if (slot.generator.has_value()) {
    const std::vector<TokenId>& drawn = slot.generator->result().token_ids;
    slot.fed.insert(slot.fed.end(), drawn.begin(), drawn.end());
  }
  slot.fed.resize(std::min(slot.fed.size(), static_cast<size_t>(slot.session.position())));
  slot.generator.reset();
  const std::unique_ptr<Job> job = std::move(slot.job);
  {
    const std::lock_guard lock(mutex_);
    --counts_.running;
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
      counts_.prompt_seconds += result->prefill_seconds;
      counts_.written_seconds += result->decode_seconds;
    }
  }
  if (job.done) job.done(std::move(result), cached);
  changed_.notify_all();
}

}  // namespace loom::core

#include "serve/models.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "serve/dialects/dialects.hpp"

namespace loom::core {
namespace {

// "stories" of "stories.gguf".
std::string_view stem_of(std::string_view name) {
  for (const std::string_view end : {".gguf", ".entity"}) {
    if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
  }
  return name;
}

void add_counts(SchedulerCounts& to, const SchedulerCounts& more) {
  to.running += more.running;
  to.waiting += more.waiting;
  to.texts += more.texts;
  to.cancelled += more.cancelled;
  to.failed += more.failed;
  to.prompt_tokens += more.prompt_tokens;
  to.cached_tokens += more.cached_tokens;
  to.written_tokens += more.written_tokens;
  to.prompt_seconds += more.prompt_seconds;
  to.written_seconds += more.written_seconds;
  to.passes += more.passes;
  to.pass_texts += more.pass_texts;
  to.longest = std::max(to.longest, more.longest);
  to.guessed += more.guessed;
  to.accepted += more.accepted;
  to.guesses += more.guesses;
}

int64_t bytes_of(const Service& service) {
  return service.model().info().bytes + service.scheduler().bytes();
}

}  // namespace

std::unique_ptr<Models> Models::create(std::vector<ModelEntry> entries,
                                       const ModelsOptions& options, Post post) {
  ModelsOptions own = options;
  own.service.streams = std::make_shared<Streams>(options.service.resume, options.service.clock);
  std::unique_ptr<Models> made(new Models(own, std::move(post)));
  for (ModelEntry& entry : entries) {
    auto slot = std::make_unique<Slot>();
    slot->bytes = entry.bytes;
    slot->entry = std::move(entry);
    made->slots_.push_back(std::move(slot));
  }
  made->loader_ = std::thread([models = made.get()] { models->run(); });
  return made;
}

Models::~Models() {
  stop();
}

Status Models::keep_first(std::optional<Model> model) {
  Slot& slot = *slots_.front();
  if (!model.has_value()) {
    LOOM_ASSIGN(model, slot.entry.load());
  }
  LOOM_ASSIGN(std::unique_ptr<Service> service,
              Service::create(std::move(*model), options_of(slot.entry), request_metrics_));
  const std::lock_guard lock(mutex_);
  slot.bytes = bytes_of(*service);
  slot.service = std::move(service);
  slot.state = State::loaded;
  slot.used = now();
  if (slot.entry.load && options_.keep_seconds >= 0)
    slot.expires = slot.used + std::chrono::seconds(options_.keep_seconds);
  changed_.notify_all();
  return {};
}

ServiceOptions Models::options_of(const ModelEntry& entry) const {
  ServiceOptions options = options_.service;
  options.name = entry.name;
  options.settings = entry.settings;
  if (!entry.settings.defaults.empty()) options.defaults = entry.settings.defaults;
  ModelSessionOptions& session = options.scheduler.session;
  if (entry.settings.context > 0) session.context = entry.settings.context;
  if (entry.settings.chunk > 0) session.chunk = entry.settings.chunk;
  return options;
}

// Finds a model by its name, without ":latest" or the file ending.
Result<Models::Slot*> Models::find(const std::string& name) {
  if (name.empty() || single()) return slots_.front().get();
  std::string_view requested = name;
  if (requested.ends_with(":latest")) requested.remove_suffix(7);
  for (const auto& slot : slots_) {
    const std::vector<std::string>& more = slot->entry.aliases;
    const bool called = std::ranges::find(more, requested) != more.end();
    if (slot->entry.name == requested || called) return slot.get();
  }
  for (const auto& slot : slots_) {
    if (stem_of(slot->entry.name) == stem_of(requested)) return slot.get();
  }
  std::vector<std::string> names;
  for (const auto& slot : slots_) names.push_back(slot->entry.name);
  if (names.size() > 10) names.resize(10), names.emplace_back("...");
  return make_error(Code::not_found,
                    cat("no model ", printable(name), "; there are: ", join(names, ", ")));
}

// Call it with the lock held.
Models::Use Models::use(Slot& slot, bool touch) {
  ++slot.users;
  return Use(slot.service.get(), [this, &slot, touch](Service*) { release(slot, touch); });
}

// The last user decides: the keep-alive time set last applies to all users. While there are users
// the model stays.
void Models::release(Slot& slot, bool touch) {
  const std::lock_guard lock(mutex_);
  slot.touched = slot.touched || touch;
  if (--slot.users > 0) return;
  const int64_t asked = slot.service->take_keep_alive();
  int64_t keep = asked != Service::kUnsaid ? asked : options_.keep_seconds;
  if (!slot.entry.load) keep = -1;
  if (slot.touched || asked != Service::kUnsaid) {
    slot.used = now();
    slot.expires = keep < 0 ? Clock::time_point::max() : slot.used + std::chrono::seconds(keep);
  }
  slot.touched = false;
  changed_.notify_all();
}

void Models::with(const std::string& name, std::function<void(Result<Use>)> then,
                  std::function<bool()> is_cancelled) {
  Result<Use> found = make_error(Code::cancelled, "the server stops");
  {
    const std::lock_guard lock(mutex_);
    const Result<Slot*> slot = find(name);
    if (!slot.ok()) {
      post_([then = std::move(then), error = slot.error()] { then(error); });
      return;
    }
    if ((*slot)->service == nullptr && !stopping_) {
      queue_.push_back({*slot, std::move(then), std::move(is_cancelled)});
      changed_.notify_all();
      return;
    }
    if (!stopping_) found = use(**slot);
  }
  then(std::move(found));
}

Status Models::unload(const std::string& name) {
  const std::lock_guard lock(mutex_);
  LOOM_ASSIGN(Slot * slot, find(name));
  if (!slot->entry.load) return unsupported("this model cannot be loaded again, so it stays");
  slot->expires = now();
  if (slot->service != nullptr) slot->service->keep_alive(0);
  changed_.notify_all();
  return {};
}

std::vector<Models::Row> Models::list() {
  const std::lock_guard lock(mutex_);
  std::vector<Row> out;
  for (const auto& slot : slots_) {
    Row row{
        slot->entry.name, slot->state,         slot->bytes,      -1,
        nullptr,          slot->entry.aliases, slot->entry.tags, slot->entry.settings.parameters};
    if (slot->users == 0 && slot->expires != Clock::time_point::max()) {
      row.expires = unix_seconds() +
                    std::chrono::duration_cast<std::chrono::seconds>(slot->expires - now()).count();
    }
    if (slot->service != nullptr) row.service = use(*slot, false);
    out.push_back(std::move(row));
  }
  return out;
}

JsonValue Models::props_asleep() {
  const std::lock_guard lock(mutex_);
  const Slot& slot = *slots_.front();
  return single() && slot.service == nullptr ? slot.props : JsonValue();
}

Models::Use Models::first_loaded() {
  const std::lock_guard lock(mutex_);
  for (const auto& slot : slots_) {
    if (slot->service != nullptr) return use(*slot, false);
  }
  return nullptr;
}

SchedulerCounts Models::counts() {
  const std::lock_guard lock(mutex_);
  SchedulerCounts out = gone_;
  for (const auto& slot : slots_) {
    if (slot->service != nullptr) add_counts(out, slot->service->scheduler().counts());
  }
  return out;
}

bool Models::drain(int64_t milliseconds) {
  const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
  bool whole = true;
  for (const Row& row : list()) {
    if (row.service == nullptr) continue;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    whole = row.service->scheduler().drain(std::max<int64_t>(left.count(), 0)) && whole;
  }
  return whole;
}

void Models::begin_stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& slot : slots_) {
      if (slot->service != nullptr) slot->service->begin_stop();
    }
  }
  changed_.notify_all();
  if (loader_.joinable()) loader_.join();
}

// Services end their texts while their slots still exist for users that release them.
void Models::stop() {
  begin_stop();
  for (const auto& slot : slots_) {
    if (slot->service != nullptr) slot->service->stop();
  }
  queue_.clear();
}

void Models::run() {
  Lock lock(mutex_);
  while (!stopping_) {
    try {
      run_once(lock);
    } catch (const std::bad_alloc&) {
      if (!lock.owns_lock()) lock.lock();
      changed_.wait_for(lock, std::chrono::milliseconds(10));
    }
  }
  for (const Wanted& one : queue_) {
    try_again([&] {
      post_([then = one.then] { then(make_error(Code::cancelled, "the server stops")); });
    });
  }
  queue_.clear();
}

void Models::run_once(Lock& lock) {
  serve_loaded();
  unload_expired(lock);
  std::erase_if(queue_, [](const Wanted& one) { return one.is_cancelled && one.is_cancelled(); });
  if (!queue_.empty() && queue_.front().slot->service == nullptr) {
    load_next(lock);
  } else if (queue_.empty() && !stopping_) {  // unload_expired() released the lock
    const Clock::time_point next = next_expiry();
    if (next == Clock::time_point::max()) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, next - now());
    }
  }
}

// Each entry leaves the queue after it was posted, so that none is lost if memory runs out.
void Models::serve_loaded() {
  for (auto one = queue_.begin(); one != queue_.end();) {
    if (one->slot->service == nullptr) {
      ++one;
      continue;
    }
    post_([then = one->then, held = use(*one->slot)]() mutable { then(std::move(held)); });
    one = queue_.erase(one);
  }
}

void Models::unload(Slot& slot, Lock& lock) {
  std::unique_ptr<Service> service = std::move(slot.service);
  slot.state = State::unloaded;
  slot.expires = Clock::time_point::max();
  if (single()) slot.props = props_of(*service, true);
  SchedulerCounts counts = service->scheduler().counts();
  counts.running = counts.waiting = 0;
  add_counts(gone_, counts);
  lock.unlock();
  service.reset();
  lock.lock();
}

void Models::unload_expired(Lock& lock) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = *slots_[i];
    if (slot.service != nullptr && slot.users == 0 && slot.expires <= now()) unload(slot, lock);
  }
}

Models::Clock::time_point Models::next_expiry() const {
  Clock::time_point next = Clock::time_point::max();
  for (const auto& slot : slots_) {
    if (slot->service != nullptr && slot->users == 0) next = std::min(next, slot->expires);
  }
  return next;
}

int64_t Models::bytes_in_use() const {
  int64_t sum = 0;
  for (const auto& slot : slots_) sum += slot->service != nullptr ? slot->bytes : 0;
  return sum;
}

// Returns false if all loaded models are in use.
bool Models::make_room(const Slot& requested, Lock& lock) {
  for (;;) {
    const auto loaded =
        std::ranges::count_if(slots_, [](const auto& slot) { return slot->service != nullptr; });
    const bool at_limit = options_.most > 0 && loaded >= options_.most;
    const bool large =
        options_.memory > 0 && loaded > 0 && bytes_in_use() + requested.bytes > options_.memory;
    if (!at_limit && !large) return true;
    Slot* oldest = nullptr;
    for (const auto& slot : slots_) {
      if (slot->service == nullptr || slot->users > 0) continue;
      if (oldest == nullptr || slot->used < oldest->used) oldest = slot.get();
    }
    if (oldest == nullptr) return false;
    unload(*oldest, lock);
  }
}

// Loads the first queued model. Memory beyond the estimate is known after loading.
void Models::load_next(Lock& lock) {
  Slot& slot = *queue_.front().slot;
  const auto too_large = [&] {
    return make_error(
        Code::unsupported,
        cat("the model ", slot.entry.name, " needs ", slot.bytes / 1000000,
            " MB, and models may take ", options_.memory / 1000000, " MB here (--models-memory)"));
  };
  Result<std::unique_ptr<Service>> made = too_large();
  if (options_.memory == 0 || slot.bytes <= options_.memory) {
    if (!make_room(slot, lock)) {
      // A client may disconnect while it waits; this is polled.
      changed_.wait_for(lock, std::chrono::milliseconds(50));
      return;
    }
    slot.state = State::loading;
    lock.unlock();
    const ServiceOptions options = options_of(slot.entry);
    try {
      Result<Model> model = slot.entry.load();
      made = model.ok() ? Service::create(std::move(*model), options, request_metrics_)
                        : Result<std::unique_ptr<Service>>(model.error());
    } catch (const std::bad_alloc&) {
      made = no_memory();
    }
    lock.lock();
    slot.state = State::unloaded;
    if (made.ok()) slot.bytes = bytes_of(**made);
    if (made.ok() && options_.memory > 0 && slot.bytes > options_.memory) made = too_large();
  }
  if (made.ok()) {
    slot.service = std::move(*made);
    slot.state = State::loaded;
    slot.used = now();
    serve_loaded();
    return;
  }
  Error error = made.error();
  if (error.code != Code::unsupported)
    error = make_error(Code::io_error,
                       cat("the model ", slot.entry.name, " cannot be loaded: ", error.str()));
  std::deque<Wanted> others;
  for (Wanted& one : queue_) {
    if (one.slot != &slot) {
      others.push_back(std::move(one));
    } else {
      post_([then = std::move(one.then), error] { then(error); });
    }
  }
  queue_ = std::move(others);
}

Result<int64_t> read_keep_alive(const JsonValue& value, std::string_view name) {
  const auto wrong = [&] {
    return invalid(cat(name, " must be seconds or a time like \"5m\"; got ", value.describe()));
  };
  double seconds = 0;
  if (value.is_number()) {
    LOOM_ASSIGN(seconds, value.as_double(name));
  } else {
    const std::string& text = value.text();
    size_t used = text.starts_with('-') ? 1 : 0;
    double number = 0, position = 1;
    bool point = false, any = false;
    for (; used < text.size() && used < 20; ++used) {
      const char c = text[used];
      if (c == '.' && !point) {
        point = true;
      } else if (c >= '0' && c <= '9') {
        any = true;
        number = number * 10 + (c - '0');
        if (point) position *= 10;
      } else {
        break;
      }
    }
    constexpr std::pair<std::string_view, double> kUnits[] = {
        {"", 1}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
    const std::string_view unit = std::string_view(text).substr(used);
    const auto found = std::ranges::find_if(kUnits, [&](auto& u) { return u.first == unit; });
    if (!value.is_string() || !any || found == std::end(kUnits)) return wrong();
    seconds = number / position * found->second * (text.starts_with('-') ? -1 : 1);
  }
  if (seconds < 0) return int64_t{-1};
  if (!(seconds < 1e9)) return wrong();
  return static_cast<int64_t>(std::ceil(seconds));
}

}  // namespace loom::core

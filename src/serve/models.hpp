// The models of a server: the list, which of them are in memory, and their users. A model is loaded
// on the first request for it. It is unloaded after a time without requests, or when another needs
// its memory: the least recently used one first. A model in use stays.
// A model without ModelEntry::load cannot be loaded again and stays.
//
// One thread loads and unloads. A Service is never destroyed on its own threads, whichever thread
// releases it last.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "serve/service.hpp"

namespace loom::core {

struct ModelEntry {
  std::string name;                     // for clients
  std::function<Result<Model>()> load;  // called on the loading thread
  int64_t bytes = 0;                    // estimated memory, from its file
  std::vector<std::string> aliases{};   // additional names
  std::vector<std::string> tags{};      // labels for clients, without meaning here
  ModelSettings settings{};             // of a Modelfile
};

struct ModelsOptions {
  ServiceOptions service;             // for each; its name is that of the entry
  int64_t most = 3;                   // in memory at the same time; 0 means no limit
  int64_t memory = 0;                 // bytes of weights and sessions together; 0 means no limit
  int64_t keep_seconds = 300;         // after the last request; -1 means forever
  std::optional<Engine> memory_of{};  // its memory limit covers requests
};

class Models {
 public:
  enum class State { unloaded, loading, loaded };
  // While a Use exists, its model stays in memory.
  using Use = std::shared_ptr<Service>;
  struct Row {
    std::string name;
    State state = State::unloaded;
    int64_t bytes = 0;
    int64_t expires = -1;  // seconds since 1970; -1 means never, or in use
    Use service;           // null if not loaded
    std::vector<std::string> aliases{}, tags{};
    std::string parameters{};  // of ModelSettings
  };
  // Posts the continuation after loading to a thread that computes no texts.
  using Post = std::function<void(std::function<void()>)>;

  static std::unique_ptr<Models> create(std::vector<ModelEntry> entries,
                                        const ModelsOptions& options, Post post);
  ~Models();

  // Loads the first entry, if it is not in memory already, and keeps it. For a server of one model.
  // Errors: those of Service::create() and of loading.
  Status keep_first(std::optional<Model> model);

  // Calls `then` with the model of this name: at once if it is in memory, else through `post`. An
  // empty name means the first. A server of one model returns it for any name. `unwanted` is polled
  // during the wait. Errors go to `then`: not_found; out_of_memory (it alone exceeds the limit);
  // those of loading.
  void with(const std::string& name, std::function<void(Result<Use>)> then,
            std::function<bool()> is_cancelled);
  // Unloads it after its last use. Errors: not_found; unsupported (one that cannot be loaded
  // again).
  Status unload(const std::string& name);

  // All of them, in the order of the entries; does not extend their life.
  std::vector<Row> list();
  // The first that is in memory; may be null.
  Use first_loaded();
  const Service* kept() const { return slots_.front()->service.get(); }
  // The last /props reply of the only model if it is not in memory now; otherwise null.
  JsonValue props_asleep();
  bool single() const { return slots_.size() == 1; }
  const ModelsOptions& options() const { return options_; }
  int64_t started() const { return started_; }
  const Metrics& request_metrics() const { return request_metrics_; }
  const std::optional<Engine>& memory() const { return options_.memory_of; }
  Streams& streams() { return *options_.service.streams; }
  // Counts of all texts since the server started, also of unloaded models.
  SchedulerCounts counts();

  // Waits until no text runs or waits; false after this many milliseconds.
  bool drain(int64_t milliseconds);
  // Loads nothing more and sends errors to waiting requests; then texts end.
  void begin_stop();
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Slot {
    ModelEntry entry;
    State state = State::unloaded;
    std::unique_ptr<Service> service;
    int64_t users = 0, bytes = 0;
    JsonValue props;       // of the model that was in memory last
    bool touched = false;  // a user requested a text, not only information
    Clock::time_point used{}, expires = Clock::time_point::max();
  };
  struct Wanted {
    Slot* slot;
    std::function<void(Result<Use>)> then;
    std::function<bool()> is_cancelled;
  };

  Models(const ModelsOptions& options, Post post) : options_(options), post_(std::move(post)) {}
  Result<Slot*> find(const std::string& name);
  Use use(Slot& slot, bool touch = true);
  void release(Slot& slot, bool touch);
  using Lock = std::unique_lock<std::recursive_mutex>;
  void run();
  void run_once(Lock& lock);
  // The functions below are called with the lock held; they release it while they load or unload.
  void serve_loaded();
  void unload_expired(Lock& lock);
  void unload(Slot& slot, Lock& lock);
  bool make_room(const Slot& requested, Lock& lock);
  Clock::time_point now() const { return options_.service.clock(); }
  ServiceOptions options_of(const ModelEntry& entry) const;
  void load_next(Lock& lock);
  Clock::time_point next_expiry() const;
  int64_t bytes_in_use() const;

  const ModelsOptions options_;
  const Post post_;
  const int64_t started_ = unix_seconds();
  Metrics request_metrics_;
  std::vector<std::unique_ptr<Slot>> slots_;  // guarded by the mutex
  // Recursive: if an allocation fails, their owner releases uses.
  std::recursive_mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Wanted> queue_;
  SchedulerCounts gone_;
  bool stopping_ = false;
  std::thread loader_;
};

// Ollama's keep_alive: "5m", "1.5h", "300ms", "30", or a number of seconds; negative means forever
// (-1). Errors: invalid_argument, naming the field.
Result<int64_t> read_keep_alive(const JsonValue& value, std::string_view name);

}  // namespace loom::core

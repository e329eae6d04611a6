// The models of a server: which there are, which of them are in memory, and who uses them. A model
// is loaded when a request asks for it and unloaded when nobody has for a while, or when another
// needs its place: the one that was not used for longest goes first. A model in use stays.
//
// One thread loads and unloads. No Service is destroyed by a thread of its own, whoever lets go of
// it last.
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
  std::function<Result<Model>()> load;  // called by the thread that loads
  int64_t bytes = 0;                    // that it will take, as far as can be told: of its file
  std::vector<std::string> aliases{};   // more names by which clients may ask for it
  std::vector<std::string> tags{};      // words about it, which are told and mean nothing here
};

struct ModelsOptions {
  ServiceOptions service;      // of each; its name is that of the entry
  int64_t most = 3;            // in memory at a time; 0: any number
  int64_t memory = 0;          // bytes of weights and sessions together; 0: any
  int64_t keep_seconds = 300;  // after the last request for it; -1: for ever
  // The same for the only model of a server, which can be loaded again; -1: it stays.
  int64_t sleep_seconds = -1;
  MemoryBudget budget{};  // that requests are charged to
};

class Models {
 public:
  enum class State { unloaded, loading, loaded };
  // Who holds it uses the model, which stays in memory.
  using Use = std::shared_ptr<Service>;
  struct Row {
    std::string name;
    State state = State::unloaded;
    int64_t bytes = 0;
    int64_t expires = -1;  // seconds since 1970; -1: never, or it is in use
    Use service;           // null: not loaded
    std::vector<std::string> aliases{}, tags{};
  };
  // Where what waited for a model goes on: a thread that computes no texts.
  using Post = std::function<void(std::function<void()>)>;

  static std::unique_ptr<Models> create(std::vector<ModelEntry> entries,
                                        const ModelsOptions& options, Post post);
  ~Models();

  // The first entry, which is in memory already or is loaded now, and stays. For a server of one
  // model. Errors: those of Service::create() and of loading.
  Status keep_first(std::optional<Model> model);

  // Calls `then` with the model of this name: at once where it is in memory, and else from `post`.
  // "": the first. A server of one model gives that for any name. Errors go to `then`: not_found,
  // out_of_memory (it alone needs more than the bound), those of loading. `unwanted`: asked while
  // it waits.
  void with(const std::string& name, std::function<void(Result<Use>)> then,
            std::function<bool()> unwanted);
  // It goes as soon as nobody uses it. Errors: not_found; unsupported (the only one, which stays).
  Status unload(const std::string& name);

  // All of them, in the order of the entries; looking does not keep them.
  std::vector<Row> list();
  // The first that is in memory; null: none.
  Use first_loaded();
  const Service* kept() const { return slots_.front()->service.get(); }
  // What /props told last of the only model, where that is not in memory now; null: it is.
  JsonValue props_asleep();
  bool single() const { return slots_.size() == 1; }
  const ModelsOptions& options() const { return options_; }
  int64_t started() const { return started_; }
  const Figures& figures() const { return figures_; }
  const MemoryBudget& memory() const { return options_.budget; }
  Streams& streams() { return *options_.service.streams; }
  // Of all texts since the server began, of models that went too.
  SchedulerCounts counts();

  // Waits until no text runs or waits; false after so many milliseconds.
  bool drain(int64_t milliseconds);
  // Nothing is loaded any more, and what waits for it is told so; then texts end.
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
    bool touched = false;  // one of the users asked for a text, and did not only look
    Clock::time_point used{}, expires = Clock::time_point::max();
  };
  struct Wanted {
    Slot* slot;
    std::function<void(Result<Use>)> then;
    std::function<bool()> unwanted;
  };

  Models(const ModelsOptions& options, Post post) : options_(options), post_(std::move(post)) {}
  Result<Slot*> find(const std::string& name);
  Use use(Slot& slot, bool touch = true);
  void release(Slot& slot, bool touch);
  using Lock = std::unique_lock<std::recursive_mutex>;
  void run();
  void run_once(Lock& lock);
  // Those below are called with the lock held, and give it back while they load or unload.
  void serve_loaded();
  void unload_expired(Lock& lock);
  void unload(Slot& slot, Lock& lock);
  bool make_room(const Slot& wanted, Lock& lock);
  Clock::time_point now() const { return options_.service.clock(); }
  int64_t seconds_kept() const { return single() ? options_.sleep_seconds : options_.keep_seconds; }
  void load_next(Lock& lock);
  Clock::time_point next_expiry() const;
  int64_t bytes_in_use() const;

  const ModelsOptions options_;
  const Post post_;
  const int64_t started_ = unix_seconds();
  Figures figures_;
  std::vector<std::unique_ptr<Slot>> slots_;  // whose members the mutex guards
  // Recursive: if an allocation fails, uses are released by who holds it.
  std::recursive_mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Wanted> queue_;
  SchedulerCounts gone_;
  bool stopping_ = false;
  std::thread loader_;
};

// "5m", "1.5h", "300ms", "30", or a number of seconds, as Ollama has keep_alive; negative: for
// ever (-1). Errors: invalid_argument, naming the field.
Result<int64_t> read_keep_alive(const JsonValue& value, std::string_view name);

}  // namespace loom::core

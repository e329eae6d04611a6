#include "loom/memory_history.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <utility>

#include "api/engine/impl.hpp"
#include "base/text.hpp"
#include "base/threads/fork_watch.hpp"
#include "io/json/json.hpp"
#include "io/process_memory.hpp"

#if LOOM_THREADS
#include <condition_variable>
#include <thread>
#endif

namespace loom {
namespace {

constexpr size_t kMaxSamples = 10'000;
constexpr double kMegabyte = 1 << 20;

double steady_seconds() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

int64_t host_and_device(const MemorySample& s) {
  return s.use.total + s.use.device;
}

std::string megabytes(int64_t bytes) {
  const auto hundredths = static_cast<int64_t>(std::llround(bytes / kMegabyte * 100));
  const int64_t part = std::abs(hundredths % 100);
  return core::cat(hundredths / 100, part < 10 ? ".0" : ".", part, " MB");
}

}  // namespace

struct MemoryHistory::Impl {
  Impl(const Engine& of, const MemoryHistoryOptions& how)
      : engine(of), clock(how.clock ? how.clock : steady_seconds), every(how.every) {
    start = clock();
    take("begin");
#if LOOM_THREADS
    if (every > 0) watcher = std::thread([this] { watch(); });
#endif
  }
  ~Impl() {
    end();
  }

  void take(std::string_view label) {
    MemorySample sample;
    sample.label = label;
    sample.use = engine.memory();
    const core::ResidentMemory process = core::resident_memory();
    sample.resident = process.now;
    sample.resident_peak = process.peak;
    const std::lock_guard lock(mutex);
    sample.seconds = clock() - start;
    samples.push_back(std::move(sample));
    if (samples.size() >= kMaxSamples) thin();
  }

  // Drops every other timed sample; marks stay.
  void thin() {
    bool drop = false;
    std::erase_if(samples, [&](const MemorySample& s) {
      if (!s.label.empty()) return false;
      drop = !drop;
      return drop;
    });
    every *= 2;
  }

#if LOOM_THREADS
  void watch() {
    std::unique_lock lock(mutex);
    while (!stopped) {
      if (wake.wait_for(lock, std::chrono::duration<double>(every), [&] { return stopped; })) break;
      lock.unlock();
      take("");
      lock.lock();
    }
  }

  void end() {
    if (watch_of_forks.forked()) {  // the watcher is in the parent, and may have held the mutex
      static_cast<void>(new std::thread(std::move(watcher)));
      return;
    }
    {
      const std::lock_guard lock(mutex);
      stopped = true;
    }
    wake.notify_all();
    if (watcher.joinable()) watcher.join();
  }

  std::condition_variable wake;
  bool stopped = false;
  const core::ForkWatch watch_of_forks;
  std::thread watcher;
#else
  void end() {}
#endif

  Engine engine;
  std::function<double()> clock;
  double every, start = 0;
  std::mutex mutex;
  std::vector<MemorySample> samples;
};

MemoryHistory::MemoryHistory(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MemoryHistory::MemoryHistory(MemoryHistory&&) noexcept = default;
MemoryHistory& MemoryHistory::operator=(MemoryHistory&&) noexcept = default;
MemoryHistory::~MemoryHistory() = default;

Result<MemoryHistory> MemoryHistory::begin(const Engine& engine,
                                           const MemoryHistoryOptions& options) {
  constexpr double kDay = 86'400;
  if (!(options.every >= 0 && options.every <= kDay))
    return core::invalid(
        core::cat("every is ", options.every, ", must be 0 to ", kDay, " seconds"));
  return MemoryHistory(std::make_unique<Impl>(engine, options));
}

void MemoryHistory::mark(std::string_view label) {
  impl_->take(label.empty() ? "mark" : label);
}

std::vector<MemorySample> MemoryHistory::stop() {
  impl_->end();
  impl_->take("end");
  return std::exchange(impl_->samples, {});
}

int64_t memory_overlap(const std::vector<MemorySample>& samples) {
  int64_t most = 0;
  for (const MemorySample& s : samples) most = std::max(most, host_and_device(s));
  return most;
}

std::vector<std::string> memory_findings(const std::vector<MemorySample>& samples) {
  constexpr double kOverlap = 1.05;
  constexpr int64_t kReleased = 1 << 19, kGrown = 50 << 20;
  std::vector<std::string> out;
  if (samples.empty()) return out;
  const auto highest = std::ranges::max_element(samples, {}, &MemorySample::resident);
  if (highest->resident > 0) {
    const auto named = std::find_if(std::make_reverse_iterator(highest + 1), samples.rend(),
                                    [](const MemorySample& s) { return !s.label.empty(); });
    out.push_back(core::cat("the process held ", megabytes(highest->resident), " at most, after '",
                            named == samples.rend() ? std::string() : named->label, "'"));
  }
  const bool device = std::ranges::any_of(samples, [](const auto& s) { return s.use.device > 0; });
  const int64_t overlap = memory_overlap(samples);
  if (device && static_cast<double>(overlap) > kOverlap * host_and_device(samples.front()))
    out.push_back(core::cat("host and GPU held ", megabytes(overlap), " at once"));
  const auto weights =
      std::ranges::max_element(samples, {}, [](const MemorySample& s) { return s.use.weights; });
  const int64_t released = weights->use.weights - samples.back().use.weights;
  if (device && released > kReleased)
    out.push_back(core::cat("the host gave up ", megabytes(released), " of weights"));
  const auto first = std::find_if(samples.begin() + 1, samples.end(),
                                  [](const auto& s) { return !s.label.empty(); });
  if (first != samples.end() && samples.back().resident - first->resident > kGrown)
    out.push_back(core::cat("the process grew by ",
                            megabytes(samples.back().resident - first->resident), " after '",
                            first->label, "'"));
  return out;
}

std::string memory_json(std::string_view session, const std::vector<MemorySample>& samples) {
  using core::JsonValue;
  JsonValue list = JsonValue::array();
  for (const MemorySample& s : samples) {
    JsonValue one = JsonValue::object();
    one.add("elapsed_sec", JsonValue::real(s.seconds));
    one.add("label", JsonValue::string(s.label));
    const auto add = [&](const char* name, int64_t bytes) {
      one.add(name, JsonValue::real(bytes / kMegabyte));
    };
    add("host_weights_mb", s.use.weights);
    add("host_sessions_mb", s.use.sessions);
    add("host_training_mb", s.use.training);
    add("mapped_mb", s.use.mapped);
    add("vram_total_mb", s.use.device);
    add("process_rss_mb", s.resident);
    add("process_peak_rss_mb", s.resident_peak);
    list.push(std::move(one));
  }
  JsonValue out = JsonValue::object();
  out.add("session", JsonValue::string(std::string(session)));
  out.add("samples", std::move(list));
  return core::dump_json(out);
}

}  // namespace loom

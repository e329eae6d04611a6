#include "capi/training/observers.hpp"

#include <algorithm>

#include "capi/json_text.hpp"
#include "loom/telemetry.hpp"

namespace loom::capi {
#ifdef __wasm__  // modules for browsers leave it out: TypeScript has no functions for it

Result<std::shared_ptr<void>> observe(const loom_fit_options& from, FitOptions& to) {
  (void)to;
  if (from.observer == nullptr && from.telemetry == nullptr) return std::shared_ptr<void>();
  return Error{Code::unsupported, "this module has neither observers nor telemetry", {}};
}

#else
namespace {

constexpr std::string_view kEvents[] = {"layer", "pass", "link", "begin"};

void add_cell(JsonText& json, const Coord& at, std::string_view type) {
  json.open('[', "at");
  for (const int64_t part : {at.z, at.y, at.x, at.l}) json.add("", part);
  json.close(']');
  json.add("type", type);
}

std::string text_of(const LayerStats& s) {
  JsonText json;
  json.open('{');
  json.add("epoch", s.epoch);
  add_cell(json, s.at, s.type);
  json.add("backward", static_cast<int>(s.backward));
  json.add("mean", s.mean);
  json.add("std", s.std);
  json.add("min", s.min);
  json.add("max", s.max);
  json.add("active", s.active);
  json.add("total", s.total);
  json.close('}');
  return json.text();
}

std::string text_of(const LayerPass& pass) {
  JsonText json;
  json.open('{');
  add_cell(json, pass.at, pass.type);
  json.add("backward", static_cast<int>(pass.backward));
  json.add("begin_ns", pass.begin_ns);
  json.add("end_ns", pass.end_ns);
  json.open('[', "shape");
  for (const int64_t extent : pass.shape) json.add("", extent);
  json.close(']');
  json.close('}');
  return json.text();
}

std::string text_of(const LinkStats& s) {
  JsonText json;
  json.open('{');
  json.add("epoch", s.epoch);
  add_cell(json, s.at, s.type);
  json.add("budget", s.budget);
  json.add("gap", s.gap);
  json.add("closed", s.closed);
  json.add("cosine", s.cosine);
  json.add("size", s.size);
  json.close('}');
  return json.text();
}

std::string begin_text(const std::string& path, int64_t epochs, int64_t planned) {
  JsonText json;
  json.open('{');
  json.add("path", path);
  json.add("epochs", epochs);
  json.add("planned", planned);
  json.close('}');
  return json.text();
}

// Which of kEvents are asked for, in their order.
Result<std::vector<bool>> events_of(std::string_view text) {
  std::vector<bool> events(std::size(kEvents));
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, comma);
    const auto* const found = std::find(std::begin(kEvents), std::end(kEvents), word);
    if (found == std::end(kEvents))
      return invalid("there is no event '" + std::string(word) +
                     "' to observe; choose from layer, pass, link, begin");
    events[static_cast<size_t>(found - std::begin(kEvents))] = true;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return events;
}

// Calls of the observer, of which one may have asked to end the training.
class Observer {
 public:
  Observer(loom_observer_fn call, void* user) : call_(call), user_(user) {}

  void notify(const char* name, const std::string& json) {
    if (!ended_ && !stopped_ && call_(user_, name, json.c_str()) != 0) stopped_ = true;
  }
  bool stopped() const { return stopped_ && !ended_; }
  void end() { ended_ = true; }

 private:
  loom_observer_fn call_;
  void* user_;
  bool stopped_ = false, ended_ = false;
};

template <class Event>
std::function<void(const Event&)> teller(std::shared_ptr<Observer> observer, const char* name) {
  return [observer, name](const Event& event) { observer->notify(name, text_of(event)); };
}

Result<std::shared_ptr<void>> add_observer(const loom_fit_options& from, FitOptions& to) {
  LOOM_ASSIGN(const std::vector<bool> events, events_of(text_or(from.observe, "layer,link,begin")));
  auto observer = std::make_shared<Observer>(from.observer, from.user);
  if (events[0]) to.on_layer = teller<LayerStats>(observer, "layer");
  if (events[1]) to.on_pass = teller<LayerPass>(observer, "pass");
  if (events[2]) to.on_link = teller<LinkStats>(observer, "link");
  if (events[3]) {
    to.on_begin = [observer](const std::string& path, int64_t epochs, int64_t planned) {
      observer->notify("begin", begin_text(path, epochs, planned));
    };
  }
  to.on_batch = [observer, inner = to.on_batch](int64_t done, int64_t steps, double loss) {
    return !observer->stopped() && (!inner || inner(done, steps, loss));
  };
  // Events come after the last batch of an epoch, too.
  to.on_epoch = [observer, inner = to.on_epoch](const Epoch& epoch) {
    return !observer->stopped() && (!inner || inner(epoch));
  };
  return std::shared_ptr<void>(observer.get(), [observer](void*) { observer->end(); });
}

Status add_telemetry(const loom_fit_options& from, FitOptions& to) {
  LOOM_ASSIGN(const std::shared_ptr<Telemetry>* object, object_of(from.telemetry));
  const std::shared_ptr<Telemetry> sink = *object;
  to.on_epoch = [sink, inner = to.on_epoch](const Epoch& epoch) {
    sink->epoch(epoch);
    return !inner || inner(epoch);
  };
  to.on_pass = [sink, inner = to.on_pass](const LayerPass& pass) {
    sink->pass(pass);
    if (inner) inner(pass);
  };
  return {};
}

}  // namespace

Result<std::shared_ptr<void>> observe(const loom_fit_options& from, FitOptions& to) {
  std::shared_ptr<void> observed;
  if (from.observer != nullptr) {
    LOOM_ASSIGN(observed, add_observer(from, to));
  }
  if (from.telemetry != nullptr) LOOM_TRY(add_telemetry(from, to));
  return observed;
}

#endif
}  // namespace loom::capi

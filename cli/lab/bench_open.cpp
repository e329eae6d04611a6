// loom bench open: the time until a model file can compute, and its memory use at that time.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "api/engine/impl.hpp"
#include "bridge/entity_network.hpp"
#include "convert/language_model.hpp"
#include "formats/entity/model.hpp"
#include "grid/session.hpp"
#include "io/process_memory.hpp"
#include "lab.hpp"

namespace loom::core::cli {
namespace {

struct OpenFlags {
  EngineFlags engine;
  std::string model;
  int reps = 5;
  bool json = false;
};

double milliseconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double, std::milli>(Clock::now().time_since_epoch()).count();
}

struct Opened {
  double open = 0, first = 0, token = 0;                        // ms from the start
  int64_t before = 0, at_open = 0, at_first = 0, at_token = 0;  // resident bytes
};

Result<Opened> measure(const OpenFlags& f, const Engine& engine) {
  Engine::Impl& impl = engine.impl();
  Opened o;
  o.before = resident_memory().now;
  const double start = milliseconds();
  LOOM_ASSIGN(const LanguageModel model, load_language_model(f.model, {}, impl.pool));
  o.open = milliseconds() - start;
  o.at_open = resident_memory().now;
  SessionOptions options;
  options.max_positions = 16;
  LOOM_ASSIGN(Session session,
              Session::create(model.network(), *impl.ops, impl.pool, Shape{1, 1}, options));
  int32_t id = 0;
  Tensor x;
  x.dtype = DType::i32;
  x.shape = Shape{1, 1};
  x.row_stride = 1;
  x.data = reinterpret_cast<std::byte*>(&id);
  LOOM_ASSIGN(const Tensor hidden, session.forward(x, 0, 2));
  o.first = milliseconds() - start;
  o.at_first = resident_memory().now;
  LOOM_TRY(session.forward(hidden, 2, model.network().cells().size()));
  o.token = milliseconds() - start;
  o.at_token = resident_memory().now;
  return o;
}

int run(const OpenFlags& f) {
  const Result<Engine> engine = f.engine.create();
  if (!engine.ok()) return fail(engine.error());
  std::vector<Opened> all;
  for (int i = 0; i < f.reps; ++i) {
    const Result<Opened> one = measure(f, *engine);
    if (!one.ok()) return fail(one.error());
    all.push_back(*one);
  }
  // Memory is that of the first time, when nothing had been touched; times are medians.
  const Opened first = all.front();
  const auto median = [&](double Opened::*member) {
    std::vector<double> values;
    for (const Opened& o : all) values.push_back(o.*member);
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  const int64_t grown[] = {first.at_open - first.before, first.at_first - first.before,
                           first.at_token - first.before};
  if (f.json) {
    JsonObject()
        .set("model", f.model)
        .set("reps", f.reps)
        .set("open_ms", median(&Opened::open))
        .set("first_layer_ms", median(&Opened::first))
        .set("first_token_ms", median(&Opened::token))
        .set("open_bytes", grown[0])
        .set("first_layer_bytes", grown[1])
        .set("first_token_bytes", grown[2])
        .set("peak_rss_bytes", peak_rss_bytes())
        .print();
    return kDone;
  }
  write_out(fmt::format("opened           {:>8.2f} ms  {:>10} of memory more\n",
                        median(&Opened::open), human_bytes(grown[0])));
  write_out(fmt::format("first layer done {:>8.2f} ms  {:>10}\n", median(&Opened::first),
                        human_bytes(grown[1])));
  write_out(fmt::format("all layers done  {:>8.2f} ms  {:>10}\n", median(&Opened::token),
                        human_bytes(grown[2])));
  return kDone;
}

}  // namespace

Verb add_bench_open(Command app) {
  auto f = std::make_shared<OpenFlags>();
  const Command verb = app.find("bench").command(
      "open",
      "Time until a language model is open, its first layer has run, and all have; memory "
      "it takes.");
  verb.examples(
      "  loom bench open models/stories.entity --json\n"
      "  loom bench open random.entity     # of loom convert --shape smollm2-135m -o "
      "random.entity");
  verb.option("MODEL", f->model, "File or folder").names_model().required();
  verb.option("--reps", f->reps, "Times it is opened; the median counts").range(1, 1000);
  verb.flag("--json", f->json, "One JSON object instead of text");
  f->engine.add_lanes(verb);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::core::cli

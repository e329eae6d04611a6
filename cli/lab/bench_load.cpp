// loom bench load: the efficiency of threads on a machine with other load. The same work runs on
// one lane, always on all lanes, and on as many as the engine chooses, while other processes use
// some cores. The share is the engine's speed over the better of the other two.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>

#include "api/engine/impl.hpp"
#include "competing_load.hpp"
#include "lab.hpp"
#include "lab/layer_bench.hpp"
#include "lab/logits_hash.hpp"

namespace loom::core::cli {
namespace {

struct LoadFlags {
  int with_load = 1, rounds = 20, threads = 0;
  double seconds = 0.3, floor = 0.8;
  std::string filter;
  bool json = false;
};

// Three ways to use threads, and how often they alternate in a round.
enum Way { kOne, kAll, kChosen, kWays };
constexpr int kTurns = 5;

// One run of a case: a token, a forward pass, a training step.
using Work = std::function<Status()>;
using MakeWork = std::function<Result<Work>(ThreadPool& pool, Engine& engine)>;

struct Case {
  std::string name;
  MakeWork make;
};

struct Outcome {
  std::vector<double> rates[kWays];  // runs per second, per round
  std::vector<double> shares;        // per round
};

double now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// One token of a language model with random weights, within `context` positions.
Case decode_case(const std::string& shape) {
  const auto make = [shape](ThreadPool&, Engine& engine) -> Result<Work> {
    constexpr int64_t kContext = 64;
    LOOM_ASSIGN(Model model, Model::random(engine, shape, loom::DType::q4_0, 1));
    LlmSessionOptions options;
    options.context = kContext;
    LOOM_ASSIGN(LlmSession made, make_session(model, options));
    auto session = std::make_shared<LlmSession>(std::move(made));
    const int64_t vocab = model.info().vocab;
    return Work([model, session, vocab, position = int64_t{0}]() mutable -> Status {
      if (position == kContext) session->rewind(position = 0);
      const TokenId id = decode_token(position++, vocab);
      return session->feed({&id, 1});
    });
  };
  return {fmt::format("decode {} q4_0", shape), make};
}

Case layer_case(const LayerCase& c) {
  const auto make = [&c](ThreadPool& pool, Engine& engine) -> Result<Work> {
    LOOM_ASSIGN(LayerRun made,
                LayerRun::create(c, DType::f32, ActivationMode::f32, *engine.impl().ops, pool));
    auto run = std::make_shared<LayerRun>(std::move(made));
    return Work([run] { return run->run(); });
  };
  return {c.name, make};
}

std::vector<Case> cases() {
  std::vector<Case> all = {decode_case("tiny"), decode_case("shakespeare"),
                           decode_case("smollm2-135m")};
  for (const LayerCase& c : layer_cases()) {
    if (c.suite == "load") all.push_back(layer_case(c));
  }
  return all;
}

// The work of one way in a round.
struct Done {
  int64_t runs = 0;
  double seconds = 0;
  double rate() const { return static_cast<double>(runs) / seconds; }
};

Status go_on(const Work& work, double seconds, Done& done) {
  const double start = now();
  double end = start;
  for (; end - start < seconds; end = now()) {
    LOOM_TRY(work());
    ++done.runs;
    if (interrupted()) return Error{Code::cancelled, "interrupted", {}, -1};
  }
  done.seconds += end - start;
  return {};
}

Result<Outcome> measure(const Case& c, const LoadFlags& f) {
  std::vector<Engine> engines;
  std::vector<Work> works;
  for (int way = 0; way < kWays; ++way) {
    EngineOptions options;
    options.threads = way == kOne ? 1 : f.threads;
    options.exact_threads = way == kAll;
    if (way == kAll && f.threads == 0) options.threads = engines[kOne].info().cores;
    LOOM_ASSIGN(Engine engine, Engine::create(options));
    engines.push_back(engine);
    LOOM_ASSIGN(Work work, c.make(engine.impl().pool, engines.back()));
    LOOM_TRY(work());
    works.push_back(std::move(work));
  }
  Outcome outcome;
  for (int round = 0; round < f.rounds; ++round) {
    // Alternates, so that other load affects all ways.
    Done done[kWays];
    for (int turn = 0; turn < kTurns; ++turn) {
      for (size_t way = 0; way < kWays; ++way)
        LOOM_TRY(go_on(works[way], f.seconds / kTurns, done[way]));
    }
    for (size_t way = 0; way < kWays; ++way) outcome.rates[way].push_back(done[way].rate());
    const double best = std::max(outcome.rates[kOne].back(), outcome.rates[kAll].back());
    outcome.shares.push_back(outcome.rates[kChosen].back() / best);
  }
  return outcome;
}

Json json_row(const Case& c, const Outcome& o) {
  Json row = Json::object();
  row.add("name", Json::string(c.name));
  row.add("one_lane_per_s", Json::real(median(o.rates[kOne])));
  row.add("all_lanes_per_s", Json::real(median(o.rates[kAll])));
  row.add("chosen_per_s", Json::real(median(o.rates[kChosen])));
  Json shares = Json::array();
  for (const double share : o.shares) shares.push(Json::real(share));
  row.add("shares", std::move(shares));
  return row;
}

int run(const LoadFlags& f) {
  const Result<CompetingLoad> load = CompetingLoad::start(f.with_load);
  if (!load.ok()) return fail(load.error());
  Json rows = Json::array();
  int held = 0, rounds = 0;
  if (!f.json) {
    write_out(fmt::format(
        "{} other processes; runs per second, medians of {} rounds\n{:40} {:>10} "
        "{:>10} {:>10} {:>7} {:>7}  held\n",
        f.with_load, f.rounds, "", "one lane", "all lanes", "chosen", "share", "least"));
  }
  for (const Case& c : cases()) {
    if (c.name.find(f.filter) == std::string::npos) continue;
    const Result<Outcome> outcome = measure(c, f);
    if (!outcome.ok()) return fail(outcome.error());
    const Outcome& o = *outcome;
    const auto good =
        std::count_if(o.shares.begin(), o.shares.end(), [&](double s) { return s >= f.floor; });
    held += static_cast<int>(good);
    rounds += f.rounds;
    if (f.json) {
      rows.push(json_row(c, o));
      continue;
    }
    write_out(fmt::format("{:40} {:10.1f} {:10.1f} {:10.1f} {:7.2f} {:7.2f}  {} of {}\n", c.name,
                          median(o.rates[kOne]), median(o.rates[kAll]), median(o.rates[kChosen]),
                          median(o.shares), *std::min_element(o.shares.begin(), o.shares.end()),
                          good, f.rounds));
  }
  if (rounds == 0) return fail(kUsage, fmt::format("no case has '{}' in its name", f.filter));
  if (f.json) write_out(rows.pretty() + "\n");
  return held == rounds ? kDone : kMismatch;
}

}  // namespace

Verb add_bench_load(Command app) {
  auto f = std::make_shared<LoadFlags>();
  const Command verb = app.find("bench").command(
      "load",
      "Speed while other processes use some cores; exit code 5 where it falls below a floor.");
  verb.examples(
      "  loom bench load\n"
      "  loom bench load --with-load 0 --rounds 5\n"
      "  loom bench load --filter decode --json");
  verb.option("--with-load", f->with_load, "Other processes, each on a core of its own")
      .range(0, 4096)
      .show_default();
  verb.option("--rounds", f->rounds, "Rounds of each case").range(1, 1000000).show_default();
  verb.option("--seconds", f->seconds,
              "Length of one measurement, in five turns; a round has three")
      .range(0.001, 3600.0)
      .show_default();
  verb.option("--floor", f->floor, "Least share of the better of one lane and all lanes")
      .range(0.0, 10.0)
      .show_default();
  verb.option("--threads", f->threads, "Lanes of 'all' and 'chosen'; 0: all cores").range(0, 4096);
  verb.option("--filter", f->filter, "Only cases with this text in their name");
  verb.flag("--json", f->json, "A JSON array instead of text");
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::core::cli

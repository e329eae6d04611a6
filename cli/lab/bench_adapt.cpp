// loom bench adapt: how fast learning rules adapt to a task that changes at run time.
#include <fmt/core.h>

#include <cmath>
#include <memory>
#include <optional>

#include "../plots/spread_picture.hpp"
#include "../shared/outputs.hpp"
#include "../shared/progress.hpp"
#include "backend/cpu/cpu.hpp"
#include "base/threads/thread_pool.hpp"
#include "lab.hpp"
#include "lab/tasks/pursuit.hpp"

namespace loom::core::cli {
namespace {

struct AdaptFlags {
  std::string task = "chase", svg;
  std::vector<std::string> rules;
  bool force = false;
  int64_t seeds = 10, first_seed = 1, per_second = 1000;
  double duration = 15, rate = 0;
  bool real_clock = false, json = false, quiet = false;
};

// One rule over all seeds.
struct AdaptRow {
  std::string name;
  double rate = 0;
  std::vector<PursuitRun> runs;

  template <class F>
  Spread spread(F&& of) const {
    std::vector<double> values;
    for (const PursuitRun& r : runs) values.push_back(of(r));
    return spread_of(values);
  }
  int64_t broken_links() const {
    int64_t count = 0;
    for (const PursuitRun& r : runs) count += r.not_finite > 0 ? 1 : 0;
    return count;
  }
};

// Rules by name; "none" does not learn.
Result<std::vector<std::optional<Rule>>> adapt_rules(const AdaptFlags& f) {
  std::vector<std::string> names = f.rules;
  if (names.empty()) {
    names = {"none"};
    for (int i = 0; i <= static_cast<int>(Rule::fixed_dtp); ++i)
      names.emplace_back(rule_name(static_cast<Rule>(i)));
  }
  std::vector<std::optional<Rule>> out;
  for (const std::string& name : names) {
    if (name == "none") {
      out.emplace_back();
      continue;
    }
    LOOM_ASSIGN(const Rule kind, parse_rule(name));
    out.emplace_back(kind);
  }
  return out;
}

Result<AdaptRow> adapt_row(const AdaptFlags& f, std::optional<Rule> rule, const Ops& ops,
                           ThreadPool& pool, Progress& bar) {
  AdaptRow row;
  row.name = rule ? std::string(rule_name(*rule)) : "none";
  row.rate = !rule ? 0.0 : f.rate > 0 ? f.rate : pursuit_rate(*rule);
  bar.set_label(row.name);
  for (int64_t i = 0; i < f.seeds; ++i) {
    PursuitSpec spec;
    spec.rule = rule;
    spec.rate = row.rate;
    spec.knows_task = f.task == "chase";
    spec.seed = static_cast<uint64_t>(f.first_seed + i);
    spec.duration = f.duration;
    spec.window = f.duration / 15;
    spec.per_second = f.real_clock ? 0 : f.per_second;
    LOOM_ASSIGN(PursuitRun run, run_pursuit(spec, ops, pool));
    row.runs.push_back(std::move(run));
    bar.update(i + 1, f.seeds);
    if (interrupted()) return Error{Code::cancelled, "interrupted", {}, -1};
  }
  bar.finish();
  return row;
}

// The mean time to recovery over runs that recovered, and their number.
std::string recovery_text(const AdaptRow& row, size_t change) {
  std::vector<double> seconds;
  for (const PursuitRun& r : row.runs) {
    const TaskChange& c = r.report.changes[change];
    if (c.recovery_windows >= 0) seconds.push_back(c.recovery_seconds);
  }
  if (seconds.empty()) return fmt::format("never, 0/{}", row.runs.size());
  return fmt::format("{:.1f} s {}/{}", spread_of(seconds).mean, seconds.size(), row.runs.size());
}

void print_adapt_table(const AdaptFlags& f, const std::vector<AdaptRow>& rows) {
  write_out(fmt::format("{:<17}{:>6}  {:>13}{:>7}  {:>15}{:>14}  {:>15}{:>14}{:>9}{:>5}\n", "rule",
                        "rate", "accuracy %", "least", "1st switch", "recovered", "2nd switch",
                        "recovered", "steps/s", "NaN"));
  for (const AdaptRow& row : rows) {
    const Spread average = row.spread([](const PursuitRun& r) { return r.report.average; });
    const Spread least = row.spread([](const PursuitRun& r) { return r.report.least; });
    std::string line = fmt::format("{:<17}{:>6.3g}  {:>5.1f} +- {:<4.1f}{:>7.1f}", row.name,
                                   row.rate, average.mean, average.deviation, least.mean);
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const Spread before =
          row.spread([&](const PursuitRun& r) { return r.report.changes[i].before; });
      const Spread after =
          row.spread([&](const PursuitRun& r) { return r.report.changes[i].after; });
      line += fmt::format("  {:>5.1f} -> {:>5.1f}{:>15}", before.mean, after.mean,
                          recovery_text(row, i));
    }
    const Spread speed = row.spread([](const PursuitRun& r) {
      return static_cast<double>(r.report.outputs) / std::max(r.seconds, 1e-9);
    });
    write_out(line + fmt::format("{:>9.0f}{:>5}\n", speed.median, row.broken_links()));
  }
  write_out(fmt::format("{} runs of {} s, {}; chance is 25 %\n", f.seeds, f.duration,
                        f.real_clock ? std::string("by the clock of the system")
                                     : fmt::format("{} steps a second", f.per_second)));
}

Json adapt_json(const AdaptRow& row) {
  Json runs = Json::array();
  for (const PursuitRun& r : row.runs) {
    Json windows = Json::array(), changes = Json::array();
    for (const AdaptationWindow& w : r.report.windows) windows.push(Json::real(w.accuracy));
    for (const TaskChange& c : r.report.changes) {
      changes.push(JsonObject()
                       .set("at", c.at)
                       .set("before", c.before)
                       .set("after", c.after)
                       .set("recovery_windows", c.recovery_windows)
                       .set("recovery_seconds", c.recovery_seconds)
                       .value());
    }
    runs.push(JsonObject()
                  .set("accuracy", r.report.average)
                  .set("least", r.report.least)
                  .set("not_finite", r.not_finite)
                  .set("outputs", r.report.outputs)
                  .set("windows", windows)
                  .set("changes", changes)
                  .value());
  }
  return JsonObject().set("rule", row.name).set("rate", row.rate).set("runs", runs).value();
}

std::vector<SpreadCurve> adapt_curves(const std::vector<AdaptRow>& rows) {
  std::vector<SpreadCurve> curves;
  for (const AdaptRow& row : rows) {
    SpreadCurve c{row.name, {}, {}, {}};
    for (size_t w = 0; w < row.runs[0].report.windows.size(); ++w) {
      const Spread s =
          row.spread([&](const PursuitRun& r) { return r.report.windows[w].accuracy; });
      c.mean.push_back(s.mean);
      c.low.push_back(s.min);
      c.high.push_back(s.max);
    }
    curves.push_back(std::move(c));
  }
  return curves;
}

int show_adapt(const AdaptFlags& f, const std::vector<AdaptRow>& rows) {
  const CurveAxes axes{f.task == "chase" ? "Chase, avoid, chase: the task is seen"
                                         : "Chase, avoid, chase: the task is not seen",
                       "window",
                       "accuracy in %",
                       0,
                       100,
                       {5, 10}};
  if (!f.svg.empty()) {
    const Status saved = write_file(f.svg, spread_curves_svg(adapt_curves(rows), axes));
    if (!saved.ok()) return fail(saved.error());
  }
  if (f.json) {
    Json all = Json::array();
    for (const AdaptRow& row : rows) all.push(adapt_json(row));
    JsonObject().set("task", f.task).set("rules", all).print();
    return kDone;
  }
  print_adapt_table(f, rows);
  if (!f.quiet) write_out(spread_curves_text(adapt_curves(rows), axes));
  return kDone;
}

int run_adapt(const AdaptFlags& f) {
  if (f.task != "chase" && f.task != "switch")
    return fail(kUsage, "--task " + loom::printable(f.task) + ": choose chase or switch");
  const Status writable =
      Outputs(f.force).file("--svg", f.svg, {".svg"}, "accuracy over time as SVG").check();
  if (!writable.ok()) return fail(writable.error());
  const auto rules = adapt_rules(f);
  if (!rules.ok()) return fail(rules.error());
  ThreadPool pool(1);
  const Ops& ops = cpu_ops(best_isa());
  Progress bar("adapting", "runs", f.quiet || f.json);
  std::vector<AdaptRow> rows;
  for (const std::optional<Rule>& rule : *rules) {
    Result<AdaptRow> row = adapt_row(f, rule, ops, pool, bar);
    if (!row.ok())
      return row.error().code == Code::cancelled ? fail_interrupted() : fail(row.error());
    rows.push_back(std::move(*row));
  }
  return show_adapt(f, rows);
}

}  // namespace

Verb add_bench_adapt(Command app) {
  auto f = std::make_shared<AdaptFlags>();
  const Command verb = app.find("bench").command(
      "adapt", "How learning rules take to a task that changes while they run.");
  verb.examples(
      "  loom bench adapt --svg adapt.svg\n"
      "  loom bench adapt --task switch --rules back-propagation,dfa --seeds 3\n"
      "  loom bench adapt --real-clock --rules diff-project --seeds 1");
  verb.option("--task", f->task,
              "chase: the agent sees whether it shall chase or avoid; switch: it does not, and "
              "learns anew after every change")
      .show_default();
  verb.option("--rules", f->rules, "Learning rules, none among them (default: all)").split_at(',');
  verb.option("--seeds", f->seeds, "Runs of each").range(1, 10000).show_default();
  verb.option("--first-seed", f->first_seed, "Seed of the first run")
      .range(0, 1 << 30)
      .show_default();
  verb.option("--rate", f->rate, "Learning rate of all (default: what did best for each)")
      .range(0.0, 100.0);
  verb.option("--duration", f->duration, "Seconds, in 15 windows").range(0.15, 1e5).show_default();
  verb.option("--per-second", f->per_second, "Steps in a second of the counted clock")
      .range(1, 1 << 24)
      .show_default();
  verb.flag("--real-clock", f->real_clock, "Seconds of the system: as many steps as it can");
  verb.option("--svg", f->svg, "Draw accuracy over time");
  add_force(verb, f->force);
  verb.flag("--json", f->json, "All windows and changes as JSON");
  verb.flag("--quiet", f->quiet, "The table alone");
  return {verb, [f] { return run_adapt(*f); }};
}

}  // namespace loom::core::cli

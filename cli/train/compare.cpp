// loom compare: several networks, rules, optimizers and rates side by side, over several seeds.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <set>

#include "../plots/spread_picture.hpp"
#include "../shared/outputs.hpp"
#include "../shared/progress.hpp"
#include "train_flags.hpp"

namespace loom::cli {
namespace {

struct CompareFlags {
  TrainFlags base;  // what all have in common
  std::vector<std::string> networks, rules, optimizers, rates, losses;
  std::string svg;
  int64_t seeds = 5;
  double target = NAN;
  bool fresh = false;
};

// One column of the table: what it differs in from the others.
struct Method {
  std::string name;
  TrainFlags flags;
};

std::string file_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

// The product of all lists; a list of one says nothing in the names.
Result<std::vector<Method>> methods_of(const CompareFlags& f) {
  std::vector<Method> all = {{"", f.base}};
  const auto multiply = [&](const std::vector<std::string>& words, auto&& put) -> Status {
    if (words.empty()) return {};
    std::vector<Method> next;
    for (const Method& m : all) {
      for (const std::string& word : words) {
        Method one = m;
        LOOM_TRY(put(one.flags, word));
        if (words.size() > 1) one.name += (one.name.empty() ? "" : " ") + file_name(word);
        next.push_back(std::move(one));
      }
    }
    all = std::move(next);
    return {};
  };
  LOOM_TRY(multiply(f.networks, [](TrainFlags& t, const std::string& word) -> Status {
    t.network = word;
    return {};
  }));
  LOOM_TRY(multiply(f.rules, [](TrainFlags& t, const std::string& word) -> Status {
    t.method.set("rule", {word});
    return {};
  }));
  LOOM_TRY(multiply(f.optimizers, [](TrainFlags& t, const std::string& word) -> Status {
    t.method.set("optimizer", {word});
    return {};
  }));
  LOOM_TRY(multiply(f.losses, [](TrainFlags& t, const std::string& word) -> Status {
    t.method.set("loss", {word});
    return {};
  }));
  LOOM_TRY(multiply(f.rates, [](TrainFlags& t, const std::string& word) -> Status {
    t.method.set("rate", {word});
    return {};
  }));
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].name.empty()) all[i].name = file_name(all[i].flags.network);
    for (size_t k = 0; k < i; ++k) {
      if (all[k].name == all[i].name) all[i].name = fmt::format("{} ({})", all[i].name, i + 1);
    }
  }
  return all;
}

class Comparing {
 public:
  Comparing(const CompareFlags& f, std::vector<Method> methods, const Engine& engine)
      : f_(f),
        methods_(std::move(methods)),
        engine_(engine),
        bar_("comparing", "runs", f.base.quiet || f.base.json) {}

  Status run();
  Status save() const;
  void print() const;

 private:
  Status check() const;
  Result<TrainingRun> train(const Method& method, uint64_t seed);
  std::vector<SpreadRow> rows() const;
  void print_json() const;

  const CompareFlags& f_;
  std::vector<Method> methods_;
  const Engine& engine_;
  Progress bar_;
  TrainingComparison all_;
  bool classes_ = false;  // accuracy is compared, else loss
};

// Everything that can be wrong with any of them is said before the first run.
Status Comparing::check() const {
  std::set<std::string> idle;
  for (const Method& m : methods_) {
    LOOM_ASSIGN(const TrainerOptions options, m.flags.options());
    for (std::string& line : idle_options(options)) idle.insert(std::move(line));
    LOOM_ASSIGN(const Network network, m.flags.open(engine_));
    LOOM_ASSIGN(const DatasetOptions how, m.flags.reading(m.flags.data, network.info()));
    LOOM_ASSIGN(const Dataset data, read_samples(m.flags.data.path, network, how));
    LOOM_ASSIGN(const Trainer trainer, Trainer::create(network, options));
  }
  for (const std::string& line : idle) note(line);
  return {};
}

// The clock runs during training, and pauses during scoring.
Result<TrainingRun> Comparing::train(const Method& method, uint64_t seed) {
  TrainFlags flags = method.flags;
  flags.seed = seed;
  LOOM_ASSIGN(const TrainerOptions options, flags.options());
  LOOM_ASSIGN(Network network, flags.open(engine_));
  if (f_.fresh) {
    LoadOptions anew{.seed = seed, .engine = engine_};
    LOOM_ASSIGN(network, Network::from_json(network.json(), anew));
  }
  LOOM_ASSIGN(const DatasetOptions how, flags.reading(flags.data, network.info()));
  LOOM_ASSIGN(const Dataset data, read_samples(flags.data.path, network, how));
  LOOM_ASSIGN(const Dataset::Parts parts, data.split(flags.split, {seed, true}));
  LOOM_ASSIGN(Trainer trainer, Trainer::create(network, options));
  TrainingRun run{.seed = seed, .parameters = network.info().parameters};
  FitOptions fit = flags.run;
  fit.on_batch = [&](int64_t, int64_t, double) {
    ++run.steps;
    return !interrupted();
  };
  fit.on_validation = [](int64_t, int64_t) { return !interrupted(); };
  fit.on_epoch = [&](const Epoch& e) {
    if (e.samples_per_second > 0)
      run.seconds += static_cast<double>(parts.first.samples()) / e.samples_per_second;
    const double value = e.validation_accuracy.value_or(e.validation_loss.value_or(NAN));
    run.curve.push_back(value);
    if (!run.to_target && std::isfinite(f_.target) &&
        (e.validation_accuracy ? value >= f_.target : value <= f_.target))
      run.to_target = run.seconds;
    return true;
  };
  if (flags.run.epochs > 0) {
    const Result<loom::History> history = trainer.fit(parts.first, parts.second, fit);
    // A loss that is not finite is a result of the method, not of the comparison.
    if (!history.ok() && history.error().code != Code::internal) return history.error();
    if (!history.ok()) {
      run.loss = NAN;
      return run;
    }
  }
  LOOM_ASSIGN(const Evaluation scores, trainer.evaluate(parts.second));
  run.loss = scores.loss;
  run.accuracy = scores.accuracy;
  return run;
}

// Seeds outside, methods inside: a machine that slows down slows all methods down, and the order
// turns with the seed, so that none is always the first.
Status Comparing::run() {
  LOOM_TRY(check());
  const auto total = f_.seeds * static_cast<int64_t>(methods_.size());
  std::vector<std::vector<TrainingRun>> runs(methods_.size());
  int64_t done = 0;
  for (int64_t s = 0; s < f_.seeds; ++s) {
    for (size_t k = 0; k < methods_.size(); ++k) {
      const size_t at = (k + static_cast<size_t>(s)) % methods_.size();
      bar_.set_label(methods_[at].name);
      LOOM_ASSIGN(TrainingRun run, train(methods_[at], f_.base.seed + static_cast<uint64_t>(s)));
      classes_ = classes_ || run.accuracy.has_value();
      runs[at].push_back(std::move(run));
      bar_.update(++done, total);
    }
  }
  bar_.finish();
  for (size_t k = 0; k < methods_.size(); ++k) {
    for (TrainingRun& run : runs[k]) all_.add(methods_[k].name, std::move(run));
  }
  return {};
}

std::vector<SpreadRow> Comparing::rows() const {
  std::vector<SpreadRow> out;
  for (const MethodReport& m : all_.methods()) {
    SpreadRow row{m.name, {}};
    for (const TrainingRun& r : m.runs) {
      if (!classes_) row.values.push_back(r.loss);
      if (classes_ && r.accuracy) row.values.push_back(*r.accuracy);
    }
    out.push_back(std::move(row));
  }
  return out;
}

Status Comparing::save() const {
  if (f_.svg.empty()) return {};
  const std::string title =
      fmt::format("{} runs each on {}", f_.seeds, file_name(f_.base.data.path));
  return write_file(f_.svg, spread_rows_svg(rows(), printable(title, title.size()),
                                            classes_ ? "accuracy, held out" : "loss, held out"));
}

std::string spread_text(const Spread& s, bool share) {
  if (s.count == 0) return fmt::format("{:>16}", "-");
  const double unit = share ? 100 : 1;
  return share ? fmt::format("{:>8.2f} +- {:<4.2f}", unit * s.mean, unit * s.deviation)
               : fmt::format("{:>8.4f} +- {:<.4f}", s.mean, s.deviation);
}

void Comparing::print() const {
  if (f_.base.json) return print_json();
  const std::vector<MethodReport> methods = all_.methods();
  const std::optional<size_t> best = all_.best();
  size_t width = 8;
  for (const MethodReport& m : methods) width = std::max(width, m.name.size() + 2);
  const bool targeted = std::isfinite(f_.target);
  std::string head = fmt::format("{:<{}}{:>10}", "method", width, "weights");
  if (classes_) head += fmt::format("{:>16}", "accuracy %");
  head += fmt::format("{:>19}{:>19}{:>10}", "loss", "against the first", "seconds");
  if (targeted) head += fmt::format("{:>19}", fmt::format("to {:g}", f_.target));
  write_line(head);
  for (size_t i = 0; i < methods.size(); ++i) {
    const MethodReport& m = methods[i];
    std::string line = fmt::format("{:<{}}{:>10}", m.name + (best == i ? " *" : ""), width,
                                   m.runs.empty() ? 0 : m.runs[0].parameters);
    if (classes_) line += spread_text(m.accuracy, true);
    line += fmt::format("{:>19}", spread_text(m.loss, false));
    line += fmt::format("{:>19}", i == 0 ? "" : spread_text(m.against_first, classes_));
    line += fmt::format("{:>10.3f}", m.seconds.median);
    if (targeted)
      line += fmt::format("{:>19}", m.to_target.count == 0
                                        ? fmt::format("0/{}", m.runs.size())
                                        : fmt::format("{:.3f} s, {}/{}", m.to_target.mean,
                                                      m.to_target.count, m.runs.size()));
    if (m.loss.not_finite > 0) line += fmt::format("  {} not finite", m.loss.not_finite);
    write_line(line);
  }
  if (!f_.base.quiet)
    write_line(
        "* best: most accuracy, within a point of it the least loss; mean +- deviation over "
        "runs; seconds of training, median");
  if (!f_.base.quiet) write_out(spread_rows_text(rows(), classes_ ? "accuracy" : "loss"));
}

Json spread_json(const Spread& s) {
  return JsonObject()
      .set("count", s.count)
      .set("mean", s.mean)
      .set("std", s.deviation)
      .set("min", s.min)
      .set("max", s.max)
      .set("median", s.median)
      .value();
}

void Comparing::print_json() const {
  Json list = Json::array();
  for (const MethodReport& m : all_.methods()) {
    Json runs = Json::array();
    for (const TrainingRun& r : m.runs) {
      Json curve = Json::array();
      for (const double v : r.curve) curve.push(Json::real(v));
      JsonObject one;
      one.set("seed", static_cast<int64_t>(r.seed)).set("loss", r.loss).set("steps", r.steps);
      if (r.accuracy) one.set("accuracy", *r.accuracy);
      one.set("seconds", r.seconds);
      if (r.to_target) one.set("seconds_to_target", *r.to_target);
      runs.push(one.set("curve", curve).value());
    }
    JsonObject method;
    method.set("name", m.name)
        .set("parameters", m.runs.empty() ? int64_t{0} : m.runs[0].parameters)
        .set("loss", spread_json(m.loss));
    if (m.accuracy.count > 0) method.set("accuracy", spread_json(m.accuracy));
    method.set("seconds", spread_json(m.seconds))
        .set("against_first", spread_json(m.against_first))
        .set("not_finite", m.loss.not_finite)
        .set("runs", runs);
    list.push(method.value());
  }
  JsonObject out;
  out.set("methods", list);
  const std::optional<size_t> best = all_.best();
  if (best) out.set("best", all_.methods()[*best].name);
  out.print();
}

int run_compare(CompareFlags& f) {
  const Status settled = f.base.apply_defaults();
  if (!settled.ok()) return fail(settled.error());
  if (f.networks.empty()) return fail(kUsage, "give DATA and at least one NETWORK to train");
  for (const std::string& network : f.networks) {
    const Status order = refuse_table(network, "loom compare DATA NETWORK...");
    if (!order.ok()) return fail(order.error());
    const Status writable = Outputs(f.base.force)
                                .input("NETWORK", network)
                                .input("DATA", f.base.data.path)
                                .file("--svg", f.svg, {".svg"}, "the runs as SVG")
                                .check();
    if (!writable.ok()) return fail(writable.error());
  }
  Result<std::vector<Method>> methods = methods_of(f);
  if (!methods.ok()) return fail(methods.error());
  const Result<Engine> engine = f.base.engine.create(f.base.memory);
  if (!engine.ok()) return fail(engine.error());
  Comparing comparing(f, std::move(*methods), *engine);
  const Status trained = comparing.run();
  if (!trained.ok())
    return trained.error().code == Code::cancelled ? fail_interrupted() : fail(trained.error());
  const Status saved = comparing.save();
  comparing.print();
  return saved.ok() ? kDone : fail(saved.error());
}

void add_compare_options(const Command& verb, CompareFlags& f) {
  constexpr int64_t kMax = 1 << 24;
  verb.option("--rules", f.rules, "Learning rules to compare: back-propagation,dfa,...")
      .split_at(',');
  verb.option("--optimizers", f.optimizers, "Optimizers to compare: adam,sgd,...").split_at(',');
  verb.option("--losses", f.losses, "Losses to compare: softmax_ce,focal,...").split_at(',');
  verb.option("--rates", f.rates, "Learning rates to compare: 0.001,0.01").split_at(',');
  verb.option("--seeds", f.seeds,
              "Runs of each, with seeds from --seed on: of weights, split, order")
      .range(1, 1000)
      .show_default();
  verb.option("--seed", f.base.seed, "The first of them").range(0, INT32_MAX).show_default();
  verb.option("--epochs", f.base.run.epochs,
              "Times all samples are seen; 0: score files as they are")
      .range(0, kMax)
      .show_default();
  verb.flag("--fresh", f.fresh,
            "Files with weights start from new ones: what is compared is the form");
  verb.option("--split", f.base.split, "Share of the samples that trains; the rest is scored")
      .range(0.01, 0.99)
      .show_default();
  verb.option("--target", f.target,
              "Accuracy from 0 to 1, or loss where there is none; how long it took is shown")
      .range(0.0, 1e9);
  f.base.add_options(verb);
}

}  // namespace

Verb add_compare(Command app) {
  auto f = std::make_shared<CompareFlags>();
  f->base.split = 0.8;
  const Command verb =
      app.command("compare", "Train networks over several seeds and compare their results.");
  verb.examples(
      "  loom compare table.csv small.json large.json --seeds 10 --svg runs.svg\n"
      "  loom compare table.csv net.json --rules back-propagation,dfa,drtp --epochs 20\n"
      "  loom compare table.csv net.json --optimizers adam,sgd --rates 0.001,0.01 --target 0.9\n"
      "  loom compare table.csv a.entity b.entity --epochs 0\n"
      "Lists are multiplied. Runs of one seed share samples, split and order, so the column\n"
      "\"against the first\" is a difference of pairs.");
  f->base.data.add(verb);
  verb.option("NETWORK", f->networks, "Networks, trained or not, as loom train takes them");
  add_compare_options(verb, *f);
  verb.option("--svg", f->svg, "Draw every run, mean and deviation");
  f->base.engine.add_lanes(verb);
  f->base.memory.add(verb);
  add_force(verb, f->base.force);
  verb.flag("--json", f->base.json, "All runs as JSON");
  verb.flag("--quiet", f->base.quiet, "The table alone");
  return {verb, [f] { return run_compare(*f); }};
}

}  // namespace loom::cli

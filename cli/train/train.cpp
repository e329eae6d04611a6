// loom train: trains a described network on samples from a file. One line per epoch, a curve at the
// end; checkpoints after each epoch, from which --resume goes on with the same bits.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "../evolve/link_report.hpp"
#include "../plots/learning.hpp"
#include "../plots/plot.hpp"
#include "../shared/outputs.hpp"
#include "../shared/progress.hpp"
#include "train_flags.hpp"
#include "train_folds.hpp"

namespace loom::cli {
namespace {

// Everything a run needs, checked.
struct Prepared {
  Network network;
  Dataset train;
  std::optional<Dataset> validation;
  std::vector<std::string> notes;  // on how the files were read
};

// Holds samples out, or reads them from a file of their own.
Status add_validation(const TrainFlags& f, const NetworkInfo& info, Prepared& p) {
  if (f.split > 0) {
    LOOM_ASSIGN(const TrainerOptions options, f.options());
    const SplitOptions how{f.seed, options.shuffle};
    LOOM_ASSIGN(Dataset::Parts parts, std::move(p.train).split(f.split, how));
    p.train = std::move(parts.first);
    p.validation = std::move(parts.second);
    const std::vector<std::string>& told = p.train.notes();
    p.notes.insert(p.notes.end(), told.begin(), told.end());
    if (f.quiet || f.json) return {};
    const std::string drawn = !parts.drawn     ? "the first train, the last validate"
                              : parts.by_class ? fmt::format("drawn by class with seed {}", f.seed)
                                               : fmt::format("drawn with seed {}", f.seed);
    note(fmt::format("{} samples train, {} validate: {}", p.train.samples(),
                     p.validation->samples(), drawn));
  } else if (!f.validation.empty()) {
    DataFlags other = f.data;
    other.labels = f.validation_labels;
    LOOM_ASSIGN(DatasetOptions how, f.reading(other, info));
    how.names = p.train.classes();
    if (p.network.info().plan.empty()) how.columns = p.train.columns();
    how.table.reset();
    LOOM_ASSIGN(p.validation, read_samples(f.validation, p.network, how));
    const std::vector<std::string>& notes = p.validation->notes();
    p.notes.insert(p.notes.end(), notes.begin(), notes.end());
  }
  return {};
}

Result<Prepared> prepare(TrainFlags& f, const Engine& engine) {
  std::vector<std::string> told;
  LOOM_ASSIGN(Network network, f.open_or_plan(engine, told));
  const NetworkInfo info = network.info();
  LOOM_ASSIGN(const DatasetOptions how, f.reading(f.data, info));
  LOOM_ASSIGN(Dataset data, read_samples(f.data.path, network, how));
  LOOM_TRY(f.check_classes(info, data));
  std::vector<std::string> notes = std::move(told);
  for (const std::string& text : data.notes()) {
    if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(text);
  }
  Prepared p{std::move(network), std::move(data), {}, std::move(notes)};
  LOOM_TRY(add_validation(f, info, p));
  const bool scaled = !info.target_scale.empty();
  LOOM_ASSIGN(p.network, f.scaled(std::move(p.network), p.train, engine));
  if (!scaled && !p.network.info().target_scale.empty())
    p.notes.emplace_back("training standardizes the targets; --no-target-scale disables this");
  if (!info.fresh && !f.quiet && !f.run.resume)
    note(fmt::format("starting from the weights in {}", f.network));
  return p;
}

std::string epoch_line(const Epoch& e, int64_t epochs, const NetworkInfo& info) {
  std::string text = fmt::format("epoch {}/{}  loss {:.5f}", e.number, epochs, e.train_loss);
  text += in_unit(e.train_loss, info);
  if (e.validation_loss)
    text +=
        fmt::format("  validation {:.5f}", *e.validation_loss) + in_unit(*e.validation_loss, info);
  if (e.validation_accuracy) text += fmt::format("  accuracy {}", percent(*e.validation_accuracy));
  for (const Metric& m : e.validation_metrics) text += fmt::format("  {} {:.4f}", m.name, m.value);
  text += fmt::format("  rate {:.3g}  {:.0f} samples/s", e.rate, e.samples_per_second);
  if (e.dropped > 0) text += fmt::format("  {} updates dropped (not finite)", e.dropped);
  return text + "\n";
}

// The settings that differ from the defaults of the library, as set_option() reads them.
Json options_json(const TrainerOptions& options) {
  JsonObject out;
  const std::vector<OptionInfo> usual = list_options(TrainerOptions{});
  const std::vector<OptionInfo> now = list_options(options);
  for (size_t i = 0; i < now.size(); ++i) {
    if (now[i].text != usual[i].text) out.set(now[i].name, now[i].text);
  }
  return out.value();
}

class Training {
 public:
  Training(const TrainFlags& f, TrainerOptions options, Prepared p, Trainer trainer,
           std::optional<Telemetry> telemetry)
      : f_(f),
        options_(std::move(options)),
        p_(std::move(p)),
        trainer_(std::move(trainer)),
        telemetry_(std::move(telemetry)),
        bar_(std::make_unique<Progress>("training", "samples", f.quiet)) {}

  Status run();
  // Saves all that was asked for, whatever fails; the error is that of the first save that did.
  Status save();
  Status print(const EngineInfo& engine);
  // The exit code after an error of run(). A run that a signal stopped is saved.
  int stopped(const Error& error) const;

 private:
  FitOptions callbacks();
  void begin_epoch(int64_t number);
  bool on_epoch(const Epoch& e);
  void report(const Epoch& e);
  void end_telling();
  void on_begin(const std::string& path, int64_t epochs, int64_t planned);
  Curves curves() const;
  void save_text(const std::string& path, const std::string& text);
  // Samples per second of this process.
  double rate() const { return seconds_ > 0 ? static_cast<double>(samples_) / seconds_ : 0.0; }

  const TrainFlags& f_;
  TrainerOptions options_;
  Prepared p_;
  Trainer trainer_;
  std::optional<Telemetry> telemetry_;
  std::unique_ptr<Progress> bar_;
  std::vector<Epoch> epochs_;
  Keeper keeper_;
  double seconds_ = 0;
  int64_t samples_ = 0, planned_ = 0;  // trained by this process, and to be
  int64_t epoch_ = 1;                  // that runs
  std::string stopped_in_;             // the checkpoint that was written after a signal
  std::vector<LinkStats> links_;
  std::string layer_stats_ = "epoch,cell,layer,pass,mean,std,min,max,active,total\n";
};

std::string stats_line(const LayerStats& s) {
  return fmt::format("{},\"({}, {}, {}, {})\",{},{},{},{},{},{},{},{}\n", s.epoch, s.at.z, s.at.y,
                     s.at.x, s.at.l, s.type, s.backward ? "backward" : "forward", s.mean, s.std,
                     s.min, s.max, s.active, s.total);
}

void Training::on_begin(const std::string& path, int64_t epochs, int64_t planned) {
  for (size_t i = 0; i < p_.notes.size() && !f_.quiet; ++i) note(p_.notes[i]);
  if (f_.run.resume && !f_.quiet) {
    note(path.empty() ? fmt::format("{} is not there yet: from the start", f_.run.checkpoint)
                      : fmt::format("{}: {} epochs are done", path, epochs));
  }
  if (planned > 0 && !f_.quiet) {
    note(
        fmt::format("the run was planned for {} epochs; from here on the rate follows a new "
                    "schedule for {}",
                    planned, f_.run.epochs));
  }
  planned_ = (f_.run.epochs - epochs) * p_.train.samples();
  begin_epoch(epochs + 1);
}

void Training::begin_epoch(int64_t number) {
  epoch_ = number;
  bar_->set_label(fmt::format("epoch {}/{}", number, f_.run.epochs));
}

// Histograms of the weights are for TensorBoard alone; lines would be long.
void Training::report(const Epoch& e) {
  if (!telemetry_) return;
  telemetry_->epoch(e);
  if (f_.tensorboard.empty()) return;
  const Status spread = telemetry_->weights(e.number, p_.network);
  if (!spread.ok()) note(spread.error().str());
}

// A failed report is printed and does not end the run: the weights are its result.
void Training::end_telling() {
  if (!telemetry_) return;
  const Status telemetry = telemetry_->close();
  if (!telemetry.ok()) note(telemetry.error().str());
  if (telemetry_->dropped() > 0)
    note(fmt::format("telemetry: {} records were dropped; their sink is slow",
                     telemetry_->dropped()));
}

bool Training::on_epoch(const Epoch& e) {
  report(e);
  samples_ += p_.train.samples();
  if (e.samples_per_second > 0)
    seconds_ += static_cast<double>(p_.train.samples()) / e.samples_per_second;
  bar_->finish();
  if (!f_.json && !f_.quiet) write_out(epoch_line(e, f_.run.epochs, p_.network.info()));
  begin_epoch(e.number + 1);
  return e.number == f_.run.epochs || !interrupted();
}

FitOptions Training::callbacks() {
  FitOptions o = f_.run;
  const int64_t batch = f_.batch();
  o.on_batch = [this, batch](int64_t done, int64_t steps, double loss) {
    if (telemetry_) telemetry_->scalar("loss/batch", (epoch_ - 1) * steps + done, loss);
    bar_->update(samples_ + std::min(done * batch, p_.train.samples()), planned_);
    return !interrupted();
  };
  o.on_validation = [](int64_t, int64_t) { return !interrupted(); };
  o.on_epoch = [this](const Epoch& e) { return on_epoch(e); };
  if (o.checkpoint.empty()) o.checkpoint = f_.saved_at_stop;
  o.on_begin = [this](const std::string& path, int64_t epochs, int64_t planned) {
    on_begin(path, epochs, planned);
  };
  if (!f_.layer_stats.empty())
    o.on_layer = [this](const LayerStats& s) { layer_stats_ += stats_line(s); };
  if (telemetry_ && f_.tells_passes())
    o.on_pass = [this](const LayerPass& p) { telemetry_->pass(p); };
  if (!f_.rule_stats.empty()) o.on_link = [this](const LinkStats& s) { links_.push_back(s); };
  o.keep = [this](const std::string& path, const Keeper::Save& save) {
    const bool stop = interrupted();
    if (path == f_.saved_at_stop && !stop) return Status();
    keeper_.save(path, save);
    if (stop && path != f_.run.best && file_exists(path)) stopped_in_ = path;
    return Status();
  };
  return o;
}

Status Training::run() {
  if (telemetry_ && (!f_.tensorboard.empty() || f_.tells_passes())) telemetry_->picture(p_.network);
  if (telemetry_) telemetry_->begin_run(f_.network);
  Result<History> history = p_.validation ? trainer_.fit(p_.train, *p_.validation, callbacks())
                                          : trainer_.fit(p_.train, callbacks());
  end_telling();
  if (!history.ok()) return history.error();
  epochs_ = std::move(history->epochs);
  return {};
}

int Training::stopped(const Error& error) const {
  if (error.code != Code::cancelled || !interrupted() || stopped_in_.empty()) return fail(error);
  std::vector<std::string> more;
  if (f_.run.checkpoint.empty()) more = {"--checkpoint", stopped_in_};
  if (!f_.run.resume) more.emplace_back("--resume");
  return fail_interrupted(
      fmt::format(" in epoch {} of {}; go on with: {}", epoch_, f_.run.epochs, line_with(more)));
}

Curves Training::curves() const {
  Curves c;
  for (const Epoch& e : epochs_) {
    c.train.push_back(e.train_loss);
    if (e.validation_loss) c.validation.push_back(*e.validation_loss);
  }
  return c;
}

void Training::save_text(const std::string& path, const std::string& text) {
  keeper_.save(path, [&](const std::string& name) { return write_file(name, text); });
}

Status Training::save() {
  keeper_.begin_end();
  if (!f_.output.empty()) {
    keeper_.save(f_.output,
                 [this](const std::string& name) { return trainer_.save_weights(name); });
  }
  if (!f_.layer_stats.empty()) save_text(f_.layer_stats, layer_stats_);
  if (!f_.rule_stats.empty()) save_text(f_.rule_stats, link_report(f_.rule_stats, links_));
  if (!f_.plot.empty()) {
    const std::string title =
        fmt::format("{} on {}", f_.network.empty() ? "a network" : f_.network, f_.data.path);
    save_text(f_.plot, svg_plot(curves(), printable(title, title.size())));
  }
  return keeper_.finish();
}

// Each metric by epoch: {"auc": [0.8, 0.9]}.
Json metrics_json(const std::vector<Epoch>& epochs) {
  Json all = Json::object();
  const size_t count = epochs.back().validation_metrics.size();
  for (size_t i = 0; i < count; ++i) {
    Json values = Json::array();
    for (const Epoch& e : epochs) {
      if (i < e.validation_metrics.size()) values.push(Json::real(e.validation_metrics[i].value));
    }
    all.add(epochs.back().validation_metrics[i].name, std::move(values));
  }
  return all;
}

JsonObject curves_json(const std::vector<Epoch>& epochs) {
  Json losses = Json::array(), validation = Json::array(), accuracies = Json::array();
  std::optional<double> accuracy;
  for (const Epoch& e : epochs) {
    losses.push(Json::real(e.train_loss));
    if (e.validation_loss) validation.push(Json::real(*e.validation_loss));
    if (!e.validation_accuracy) continue;
    accuracy = e.validation_accuracy;
    accuracies.push(Json::real(*accuracy));
  }
  JsonObject out;
  out.set("epochs", epochs.empty() ? int64_t{0} : epochs.back().number)
      .set("losses", losses)
      .set("validation_losses", validation);
  if (accuracy) out.set("accuracies", accuracies).set("accuracy", *accuracy);
  if (!epochs.empty() && !epochs.back().validation_metrics.empty())
    out.set("metrics", metrics_json(epochs));
  return out;
}

Status Training::print(const EngineInfo& engine) {
  LOOM_ASSIGN(const std::string hash, trainer_.weights_hash());
  const NetworkInfo info = p_.network.info();
  const std::string dtype(dtype_name(info.dtype));
  LOOM_ASSIGN(const int64_t frozen, trainer_.frozen());
  if (!f_.json) {
    if (f_.quiet) return {};
    write_out(braille_plot(curves()));
    const std::string kept = frozen > 0 ? fmt::format(" ({} frozen)", frozen) : "";
    write_out(fmt::format("{} parameters{}, {}, {:.1f} s, {:.0f} samples/s, weights {}\n",
                          info.parameters, kept, dtype, seconds_, rate(), hash));
    return {};
  }
  curves_json(epochs_)
      .set("seconds", seconds_)
      .set("samples_per_s", rate())
      .set("train_samples", p_.train.samples())
      .set("validation_samples", p_.validation ? p_.validation->samples() : 0)
      .set("parameters", info.parameters)
      .set("frozen_parameters", frozen)
      .set("loss", info.loss)
      .set("dtype", dtype)
      .set("isa", engine.isa)
      .set("threads", engine.threads)
      .set("seed", static_cast<int64_t>(f_.seed))
      .set("options", options_json(options_))
      .set("output", f_.output)
      .set("weights_hash", hash)
      .set("peak_rss_bytes", peak_rss_bytes())
      .print();
  return {};
}

Result<Training> start(TrainFlags& f, const Engine& engine) {
  LOOM_ASSIGN(const TrainerOptions options, f.options());
  for (const std::string& idle : idle_options(options)) note(idle);
  LOOM_ASSIGN(Prepared prepared, prepare(f, engine));
  LOOM_ASSIGN(Trainer trainer, Trainer::create(prepared.network, options));
  LOOM_ASSIGN(std::optional<Telemetry> telemetry, f.make_telemetry());
  return Training(f, options, std::move(prepared), std::move(trainer), std::move(telemetry));
}

int run(TrainFlags& f) {
  Status settled = f.apply_defaults();
  if (settled.ok()) settled = f.settle_table();
  if (!settled.ok()) return fail(settled.error());
  const Status writable = f.check_outputs();
  if (!writable.ok()) return fail(writable.error());
  keep_running_without_stdout();
  const Result<Engine> engine = f.engine.create(f.memory);
  if (!engine.ok()) return fail(engine.error());
  f.memory_report.begin(*engine);
  if (f.folds > 0) return train_in_folds(f, *engine);
  Result<Training> training = start(f, *engine);
  if (!training.ok()) return fail(training.error());
  f.memory_report.mark("ready");
  const Status trained = training->run();
  if (!trained.ok()) return training->stopped(trained.error());
  f.memory_report.mark("trained");
  const Status saved = training->save();
  const Status remembered = f.memory_report.finish("train", f.quiet || f.json);
  const Status printed = training->print(engine->info());
  if (saved.ok() && f.names_output && !f.quiet && !f.json)
    note(fmt::format("the network is saved as {}", f.output));
  if (!saved.ok()) return fail(saved.error());
  if (!remembered.ok()) return fail(remembered.error());
  return printed.ok() ? kDone : fail(printed.error());
}

}  // namespace

Verb add_train(Command app) {
  auto f = std::make_shared<TrainFlags>();
  const Command verb = app.command("train", "Train a network on samples from a file.");
  verb.examples(
      "  loom train houses.csv --target price --split 0.8 -o houses.entity\n"
      "  loom train mlp.json images.idx.gz --labels labels.idx.gz --split 0.8\n"
      "  loom train net.json table.csv --split 0.9 --normalize standard -o net.entity\n"
      "  loom train net.json table.csv --tensorboard runs --telemetry run.jsonl\n"
      "  loom train net.json data.npz --dtype int8 --checkpoint run.safetensors --resume\n"
      "  loom train net.entity more.csv --rate 0.0005 -o tuned.entity\n"
      "  loom train cnn.json photos --split 0.8 --augment flip,crop:4 -o photos.entity\n"
      "  loom train net.onnx more.csv --freeze '(0, 0, 0, 0)/*' --rate-for '*/bias=2' -o t.entity");
  f->add(verb);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli

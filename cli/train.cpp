// loom train: trains a described network on samples from a file. One line per epoch, a curve at the
// end; checkpoints after each epoch, from which --resume goes on with the same bits.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <span>

#include "bridge/network_json.hpp"
#include "engine/file_memory.hpp"
#include "engine/impl.hpp"
#include "io/file.hpp"
#include "learning.hpp"
#include "plot.hpp"
#include "progress.hpp"
#include "train_flags.hpp"

namespace loom::cli {
namespace {

// Everything a run needs, checked.
struct Prepared {
  TrainedModel model;
  TrainerOptions options;
  Dataset train, validation;
  MemoryShare train_memory, validation_memory;
  std::vector<std::string> notes;  // on how the files were read
};

Result<Prepared> prepare(const TrainFlags& f) {
  LOOM_ASSIGN(TrainerOptions options, f.options());
  LOOM_ASSIGN(const NormalizeKind kind, parse_normalize(f.normalize));
  LOOM_ASSIGN(const MemoryBudget memory, f.memory.create());
  LOOM_TRY(check_opening(f.network, memory));
  LOOM_ASSIGN(NetworkSpec network, load_network(f.network));
  LOOM_TRY(check_parameters(network, 4, memory, f.network));
  const bool classes = f.loss.empty() || options.step.loss.kind == LossKind::softmax_ce;
  LOOM_ASSIGN(const DatasetOptions reading, f.data.options(memory, classes, {}, f.heads));
  LOOM_ASSIGN(LoadedDataset loaded, load_dataset(f.data.path, network, reading));
  if (f.loss.empty())
    options.step.loss.kind = loaded.data.has_labels() ? LossKind::softmax_ce : LossKind::mse;
  Prepared p{{std::move(network), options.dtype, options.step.loss, loaded.names, {}},
             options,
             std::move(loaded.data),
             {},
             std::move(loaded.memory),
             {},
             std::move(loaded.notes)};
  if (f.split > 0) {
    LOOM_ASSIGN(SplitDataset parts, split_dataset(std::move(p.train), f.split));
    p.train = std::move(parts.train);
    p.validation = std::move(parts.validation);
  } else if (!f.validation.empty()) {
    DataFlags other = f.data;
    other.labels = f.validation_labels;
    LOOM_ASSIGN(const DatasetOptions how, other.options(memory, classes, p.model.names, f.heads));
    LOOM_ASSIGN(loaded, load_dataset(f.validation, p.model.network, how));
    p.notes.insert(p.notes.end(), loaded.notes.begin(), loaded.notes.end());
    p.validation = std::move(loaded.data);
    p.validation_memory = std::move(loaded.memory);
  }
  p.model.normalization = find_normalization(p.train, kind);
  LOOM_TRY(normalize(p.train, p.model.normalization));
  if (p.validation.samples > 0) LOOM_TRY(normalize(p.validation, p.model.normalization));
  return p;
}

std::string epoch_line(const EpochReport& r, int64_t epochs, double samples_per_s) {
  std::string text = fmt::format("epoch {}/{}  loss {:.5f}", r.epoch, epochs, r.train_loss);
  if (r.validation) text += fmt::format("  validation {:.5f}", r.validation->loss);
  if (r.validation && r.validation->accuracy)
    text += fmt::format("  accuracy {}", percent(*r.validation->accuracy));
  text += fmt::format("  rate {:.3g}  {:.0f} samples/s", r.learning_rate, samples_per_s);
  if (r.dropped > 0) text += fmt::format("  {} updates dropped (not finite)", r.dropped);
  return text + "\n";
}

class Training {
 public:
  Training(const TrainFlags& f, Prepared p, Engine engine)
      : f_(f), p_(std::move(p)), engine_(std::move(engine)) {}

  Status run();
  Status save() const;
  Status print() const;

 private:
  Status resume();
  Status epoch(Progress& bar);
  void watch_layers();
  bool finished() const;
  Curves curves() const;

  const TrainFlags& f_;
  Prepared p_;
  Engine engine_;
  std::optional<Trainer> trainer_;
  TrainingRun run_;
  double seconds_ = 0;
  int64_t samples_ = 0, planned_ = 0;  // trained by this process, and to be
  bool last_step_ = false;             // of an epoch
  std::string layer_stats_ = "epoch,cell,layer,pass,mean,std,min,max,active,total\n";
};

bool Training::finished() const {
  const TrainerProgress& at = trainer_->progress();
  return at.epoch >= p_.options.epochs ||
         (p_.options.early_stop > 0 && at.stale >= p_.options.early_stop);
}

Status Training::resume() {
  if (!f_.resume) return {};
  if (!file_exists(f_.checkpoint) && !file_exists(f_.checkpoint + ".previous")) {
    if (!f_.quiet) fmt::print(stderr, "[{} is not there yet: from the start]\n", f_.checkpoint);
    return {};
  }
  LOOM_ASSIGN(const std::string from, load_checkpoint(f_.checkpoint, p_.model, *trainer_, run_));
  if (!f_.quiet) fmt::print(stderr, "[{}: {} epochs are done]\n", from, trainer_->progress().epoch);
  return {};
}

Status Training::epoch(Progress& bar) {
  using Clock = std::chrono::steady_clock;
  const int64_t number = trainer_->progress().epoch + 1;
  bar.set_label(fmt::format("epoch {}/{}", number, p_.options.epochs));
  const Clock::time_point start = Clock::now();
  last_step_ = p_.train.samples <= p_.options.batch;
  const auto on_step = [&](int64_t done, int64_t steps, double) {
    last_step_ = done + 1 == steps;
    bar.update(samples_ + std::min(done * p_.options.batch, p_.train.samples), planned_);
    return !interrupted();
  };
  LOOM_ASSIGN(const EpochReport report, trainer_->epoch(p_.train, p_.validation, on_step));
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  seconds_ += seconds;
  samples_ += p_.train.samples;
  run_.history.push_back(report);
  bar.finish();
  const double rate = static_cast<double>(p_.train.samples) / std::max(seconds, 1e-9);
  if (!f_.json && !f_.quiet) write_out(epoch_line(report, p_.options.epochs, rate));
  if (!std::isfinite(report.train_loss)) {
    return Error{Code::internal,
                 fmt::format("the loss is not finite after epoch {}; lower --rate or set --clip",
                             report.epoch),
                 {},
                 -1};
  }
  if (report.best && !f_.best.empty()) LOOM_TRY(save_weights(f_.best, p_.model, *trainer_));
  if (!f_.checkpoint.empty()) LOOM_TRY(save_checkpoint(f_.checkpoint, p_.model, *trainer_, run_));
  return {};
}

// What every layer gives and gets back in the last step of each epoch.
void Training::watch_layers() {
  trainer_->step().observe([this](const LayerEvent& e) {
    if (!last_step_) return;
    const LayerStats s = layer_stats(e.values);
    layer_stats_ += fmt::format(
        "{},\"{}\",{},{},{},{},{},{},{},{}\n", trainer_->progress().epoch + 1, e.at.str(), e.kind,
        e.backward ? "backward" : "forward", s.mean, s.std, s.min, s.max, s.active, s.total);
  });
}

Status Training::run() {
  Engine::Impl& engine = engine_.impl();
  LOOM_ASSIGN(trainer_, Trainer::create(p_.model.network.grid, p_.train, p_.options, *engine.ops,
                                        engine.pool));
  run_.options = run_options(p_.options, p_.train, p_.validation);
  LOOM_TRY(resume());
  for (size_t i = 0; i < p_.notes.size() && !f_.quiet; ++i)
    fmt::print(stderr, "[{}]\n", p_.notes[i]);
  if (!f_.layer_stats.empty()) watch_layers();
  planned_ = (p_.options.epochs - trainer_->progress().epoch) * p_.train.samples;
  Progress bar("training", "samples", f_.quiet);
  while (!finished()) LOOM_TRY(epoch(bar));
  return {};
}

Curves Training::curves() const {
  Curves c;
  for (const EpochReport& r : run_.history) {
    c.train.push_back(r.train_loss);
    if (r.validation) c.validation.push_back(r.validation->loss);
  }
  return c;
}

Status Training::save() const {
  if (!f_.output.empty())
    LOOM_TRY(save_weights(f_.output, p_.model, const_cast<Trainer&>(*trainer_)));
  if (!f_.layer_stats.empty()) {
    LOOM_TRY(write_file_atomic(f_.layer_stats, std::as_bytes(std::span(layer_stats_))));
  }
  if (f_.plot.empty()) return {};
  const std::string svg = svg_plot(curves(), fmt::format("{} on {}", f_.network, f_.data.path));
  return write_file_atomic(f_.plot, std::as_bytes(std::span(svg)));
}

Status Training::print() const {
  Trainer& trainer = const_cast<Trainer&>(*trainer_);
  const double rate = seconds_ > 0 ? static_cast<double>(samples_) / seconds_ : 0.0;
  LOOM_ASSIGN(const std::string hash, hash_weights(trainer));
  if (!f_.json) {
    if (f_.quiet) return {};
    write_out(braille_plot(curves()));
    write_out(fmt::format("{} parameters, {}, {:.1f} s, {:.0f} samples/s, weights {}\n",
                          trainer.network().param_count(), dtype_name(p_.model.dtype), seconds_,
                          rate, hash));
    return {};
  }
  JsonValue losses = JsonValue::array(), validation = JsonValue::array(),
            accuracies = JsonValue::array();
  for (const EpochReport& r : run_.history) {
    losses.push(JsonValue::real(r.train_loss));
    if (r.validation) validation.push(JsonValue::real(r.validation->loss));
    if (r.validation && r.validation->accuracy)
      accuracies.push(JsonValue::real(*r.validation->accuracy));
  }
  JsonObject out;
  out.set("epochs", trainer.progress().epoch)
      .set("losses", std::move(losses))
      .set("validation_losses", std::move(validation));
  if (!accuracies.elements().empty()) {
    const JsonValue last = accuracies.elements().back();
    out.set("accuracies", std::move(accuracies)).set("accuracy", last);
  }
  out.set("seconds", seconds_)
      .set("samples_per_s", rate)
      .set("train_samples", p_.train.samples)
      .set("validation_samples", p_.validation.samples)
      .set("parameters", trainer.network().param_count())
      .set("loss", loss_name(p_.model.loss.kind))
      .set("dtype", dtype_name(p_.model.dtype))
      .set("isa", engine_.info().isa)
      .set("threads", engine_.info().threads)
      .set("seed", static_cast<int64_t>(p_.options.seed))
      .set("weights_hash", hash)
      .set("peak_rss_bytes", peak_rss_bytes())
      .print();
  return {};
}

int run(const TrainFlags& f) {
  const Result<Engine> engine = f.engine.create();
  if (!engine.ok()) return fail(engine.error());
  Result<Prepared> prepared = prepare(f);
  if (!prepared.ok()) return fail(prepared.error());
  Training training(f, std::move(*prepared), *engine);
  const Status trained = training.run();
  if (!trained.ok()) return fail(trained.error());
  const Status saved = training.save();
  if (!saved.ok()) return fail(saved.error());
  const Status printed = training.print();
  return printed.ok() ? kDone : fail(printed.error());
}

}  // namespace

Verb add_train(Command app) {
  auto f = std::make_shared<TrainFlags>();
  const Command verb = app.command("train", "Train a network on samples from a file.");
  verb.examples(
      "  loom train mlp.json images.idx.gz --labels labels.idx.gz --split 0.8\n"
      "  loom train net.json table.csv --split 0.9 --normalize standard -o net.entity\n"
      "  loom train net.json data.npz --dtype int8 --checkpoint run.safetensors --resume");
  f->add(verb);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli

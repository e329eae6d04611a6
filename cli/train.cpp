// loom train: trains a described network on samples from a file. One line per epoch, a curve at the
// end; checkpoints after each epoch, from which --resume goes on with the same bits.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <span>

#include "base/text.hpp"
#include "engine/convert.hpp"
#include "engine/file_memory.hpp"
#include "engine/impl.hpp"
#include "io/file.hpp"
#include "learning.hpp"
#include "outputs.hpp"
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
  std::unique_ptr<NetworkSource> start;  // weights to start from; null: fresh ones
  MemoryShare train_memory, validation_memory;
  std::vector<std::string> notes;  // on how the files were read
};

// What NETWORK was trained for holds on where no option says otherwise.
void take_over(const TrainFlags& f, const TrainedModel& known, TrainerOptions& options) {
  if (f.dtype.empty()) options.dtype = known.dtype;
  if (f.loss.empty()) options.step.loss.kind = known.loss.kind;
  if (f.heads.empty()) options.step.loss.heads = known.loss.heads;
}

// Holds samples out, or reads them from a file of their own.
Status add_validation(const TrainFlags& f, const MemoryBudget& memory, bool classes, Prepared& p) {
  if (f.split > 0) {
    const SplitSpec spec{f.split, f.seed, !f.no_shuffle};
    p.model.split = SplitRecord{spec, hash_dataset(p.train)};
    LOOM_ASSIGN(SplitDataset parts, split_dataset(p.train, spec));
    p.train = std::move(parts.train);
    p.validation = std::move(parts.validation);
    if (!f.quiet && !f.json) {
      const std::string how = !spec.shuffle    ? "the first train, the last validate"
                              : parts.by_class ? fmt::format("drawn by class with seed {}", f.seed)
                                               : fmt::format("drawn with seed {}", f.seed);
      note(fmt::format("{} samples train, {} validate: {}", p.train.samples, p.validation.samples,
                       how));
    }
  } else if (!f.validation.empty()) {
    DataFlags other = f.data;
    other.labels = f.validation_labels;
    LOOM_ASSIGN(const DatasetOptions how,
                other.options(memory, classes, p.model.names, p.model.loss.heads));
    LOOM_ASSIGN(LoadedDataset loaded, load_dataset(f.validation, p.model.network, how));
    p.notes.insert(p.notes.end(), loaded.notes.begin(), loaded.notes.end());
    p.validation = std::move(loaded.data);
    p.validation_memory = std::move(loaded.memory);
  }
  return {};
}

// The inputs' shift and scale: as asked, or as the weights are used to.
Status normalize_inputs(const TrainFlags& f, const Normalization& known, Prepared& p) {
  LOOM_ASSIGN(const NormalizeKind kind,
              parse_normalize(f.normalize.empty() ? "none" : f.normalize));
  p.model.normalization = f.normalize.empty() ? known : find_normalization(p.train, kind);
  LOOM_TRY(normalize(p.train, p.model.normalization));
  return p.validation.samples > 0 ? normalize(p.validation, p.model.normalization) : Status{};
}

Result<Prepared> prepare(const TrainFlags& f) {
  LOOM_ASSIGN(TrainerOptions options, f.options());
  LOOM_TRY(parse_normalize(f.normalize.empty() ? "none" : f.normalize));
  LOOM_ASSIGN(const MemoryBudget memory, f.memory.create());
  LOOM_TRY(check_opening(f.network, memory));
  LOOM_ASSIGN(OpenedModel opened, open_network(f.network));
  LOOM_TRY(check_parameters(opened.network->spec, 4, memory, f.network));
  LOOM_ASSIGN(TrainedModel known, model_of(*opened.network));
  const bool trained = opened.network->sections.find("model") != nullptr;
  if (trained) take_over(f, known, options);
  const bool open_loss = f.loss.empty() && !trained;
  const bool classes = open_loss || options.step.loss.kind == LossKind::softmax_ce;
  LOOM_ASSIGN(const DatasetOptions reading,
              f.data.options(memory, classes, known.names, options.step.loss.heads));
  LOOM_ASSIGN(LoadedDataset loaded, load_dataset(f.data.path, known.network, reading));
  if (open_loss)
    options.step.loss.kind = loaded.data.has_labels() ? LossKind::softmax_ce : LossKind::mse;
  Prepared p{{std::move(known.network), options.dtype, options.step.loss, loaded.names, {}},
             options,
             std::move(loaded.data),
             {},
             {},
             std::move(loaded.memory),
             {},
             std::move(loaded.notes)};
  LOOM_TRY(add_validation(f, memory, classes, p));
  LOOM_TRY(normalize_inputs(f, known.normalization, p));
  if (f.batch == 0 && options.step.optimizer.lbfgs()) p.options.batch = p.train.samples;
  if (!opened.fresh) p.start = std::move(opened.network);
  if (p.start != nullptr && !f.quiet && !f.resume)
    note(fmt::format("starting from the weights in {}", f.network));
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
  // Saves all that was asked for, whatever fails; the error is that of the first save that did.
  Status save();
  Status print() const;

 private:
  Status resume();
  Status epoch(Progress& bar);
  void watch_layers();
  bool finished() const;
  Curves curves() const;
  void save_trained(const std::string& path);
  void save_text(const std::string& path, const std::string& text);

  const TrainFlags& f_;
  Prepared p_;
  Engine engine_;
  std::optional<Trainer> trainer_;
  TrainingRun run_;
  Keeper keeper_;
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
    if (!f_.quiet) note(fmt::format("{} is not there yet: from the start", f_.checkpoint));
    return {};
  }
  LOOM_ASSIGN(const std::string from, load_checkpoint(f_.checkpoint, p_.model, *trainer_, run_));
  if (!f_.quiet) note(fmt::format("{}: {} epochs are done", from, trainer_->progress().epoch));
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
  if (report.best && !f_.best.empty()) save_trained(f_.best);
  if (f_.checkpoint.empty()) return {};
  keeper_.save(f_.checkpoint, [this](const std::string& path) {
    return save_checkpoint(path, p_.model, *trainer_, run_);
  });
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
  if (p_.start != nullptr) LOOM_TRY(load_weights(*p_.start, *trainer_));
  run_.options = run_options(p_.options, p_.train, p_.validation);
  LOOM_TRY(resume());
  for (size_t i = 0; i < p_.notes.size() && !f_.quiet; ++i) note(p_.notes[i]);
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

void Training::save_trained(const std::string& path) {
  keeper_.save(path,
               [this](const std::string& name) { return save_weights(name, p_.model, *trainer_); });
}

void Training::save_text(const std::string& path, const std::string& text) {
  keeper_.save(path, [&](const std::string& name) {
    return write_file_atomic(name, std::as_bytes(std::span(text)));
  });
}

Status Training::save() {
  keeper_.begin_end();
  if (!f_.output.empty()) save_trained(f_.output);
  if (!f_.layer_stats.empty()) save_text(f_.layer_stats, layer_stats_);
  if (!f_.plot.empty()) {
    const std::string title = fmt::format("{} on {}", f_.network, f_.data.path);
    save_text(f_.plot, svg_plot(curves(), printable(title, title.size())));
  }
  return keeper_.finish();
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
  const Status writable = f.check_outputs();
  if (!writable.ok()) return fail(writable.error());
  keep_running_without_stdout();
  const Result<Engine> engine = f.engine.create();
  if (!engine.ok()) return fail(engine.error());
  Result<Prepared> prepared = prepare(f);
  if (!prepared.ok()) return fail(prepared.error());
  Training training(f, std::move(*prepared), *engine);
  const Status trained = training.run();
  if (!trained.ok()) return fail(trained.error());
  const Status saved = training.save();
  const Status printed = training.print();
  if (!saved.ok()) return fail(saved.error());
  return printed.ok() ? kDone : fail(printed.error());
}

}  // namespace

Verb add_train(Command app) {
  auto f = std::make_shared<TrainFlags>();
  const Command verb = app.command("train", "Train a network on samples from a file.");
  verb.examples(
      "  loom train mlp.json images.idx.gz --labels labels.idx.gz --split 0.8\n"
      "  loom train net.json table.csv --split 0.9 --normalize standard -o net.entity\n"
      "  loom train net.json data.npz --dtype int8 --checkpoint run.safetensors --resume\n"
      "  loom train net.entity more.csv --rate 0.0005 -o tuned.entity");
  f->add(verb);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli

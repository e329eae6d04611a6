// loom eval: loss and accuracy of trained weights on samples from a file.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "../plots/learning.hpp"
#include "../shared/outputs.hpp"
#include "scores.hpp"

namespace loom::cli {
namespace {

struct EvalFlags {
  EngineFlags engine;
  DataFlags data;
  MemoryFlags memory;
  WeightFlags weight_flags;
  std::string model, weights, dtype, loss, calibrate, calibrate_labels, rows, plot;
  bool force = false;
  std::vector<std::string> metrics;
  double split = 0;
  int64_t batch = 64, seed = -1;
  bool classes = false, json = false, no_shuffle = false, carry_feedback = false;
};

// Which samples of DATA are scored, and those of training if known.
struct Rows {
  Dataset scored;
  std::optional<Dataset> train;
  std::string which = "all";
  TrainingSplit spec{};
};

// The requested split; else that of training, if DATA is the training data.
Result<std::optional<TrainingSplit>> split_of(const EvalFlags& f, const NetworkInfo& info,
                                              const Dataset& data) {
  std::optional<TrainingSplit> spec;
  if (info.split && info.split->data_hash == data.hash()) spec = info.split;
  if (f.split > 0) spec = TrainingSplit{f.split, spec ? spec->seed : 1, !f.no_shuffle, {}};
  if (f.seed >= 0 && spec) spec->seed = static_cast<uint64_t>(f.seed);
  if (spec || (f.rows != "train" && f.rows != "validation")) return spec;
  return Error{Code::invalid_argument,
               fmt::format("--rows {}: the weights do not say how these samples were split; give "
                           "--split and --seed as in training",
                           f.rows),
               f.data.path, -1};
}

Result<Rows> choose_rows(const EvalFlags& f, const NetworkInfo& info, Dataset data) {
  if (!f.rows.empty() && f.rows != "all" && f.rows != "train" && f.rows != "validation") {
    return Error{Code::invalid_argument,
                 fmt::format("--rows {}: choose from all, train, validation", f.rows),
                 {},
                 -1};
  }
  LOOM_ASSIGN(const std::optional<TrainingSplit> spec, split_of(f, info, data));
  if (f.rows == "all" || !spec) return Rows{data, {}};
  const SplitOptions how{spec->seed, spec->shuffle};
  LOOM_ASSIGN(const Dataset::Parts parts, spec->folds > 0
                                              ? data.fold(spec->fold, spec->folds, how)
                                              : std::move(data).split(spec->share, how));
  const std::string which = f.rows.empty() ? "validation" : f.rows;
  return Rows{which == "train" ? parts.first : parts.second, parts.first, which, *spec};
}

struct Measured {
  Evaluation evaluation;
  std::vector<std::pair<float, float>> points;  // target and output, for --plot
  std::vector<RangeReport> ranges;
  std::string dtype, hash, which;
  int64_t of = 0, parameters = 0;
  TrainingSplit spec;
  double seconds = 0;
  std::string in_unit;  // the loss, in the unit of the target
};

// Narrows ranges with the samples of --calibrate. If only a part of the samples is scored, it uses
// those of training.
Status calibrate(const EvalFlags& f, const Network& network, bool classes,
                 const std::string& scored_data, const Rows& rows, Trainer& trainer, Measured& m) {
  DataFlags other = f.data;
  other.labels = f.calibrate_labels;
  LOOM_ASSIGN(const DatasetOptions how, other.options(classes));
  LOOM_ASSIGN(Dataset samples, read_samples(f.calibrate, network, how));
  if (rows.train && samples.hash() == scored_data) samples = *rows.train;
  LOOM_ASSIGN(m.ranges, trainer.calibrate(samples));
  if (!m.ranges.empty()) return {};
  return Error{Code::invalid_argument,
               fmt::format("--calibrate: no matrix is below 16 bits in {}; give --dtype",
                           dtype_name(network.info().dtype)),
               {},
               -1};
}

// Maximum points of a plot; of more, every n-th is shown.
constexpr int64_t kMaxPoints = 4000;

void add_points(const Tensor& targets, int64_t first, const Tensor& outputs, Measured& m) {
  const std::span<const float> all = targets.values<float>().or_exit();
  const std::span<const float> given = outputs.values<float>().or_exit();
  const size_t each = all.size() / static_cast<size_t>(targets.shape()[0]);
  const size_t every = all.size() / kMaxPoints + 1;
  const size_t begin = static_cast<size_t>(first) * each;
  for (size_t i = 0; i < given.size(); ++i) {
    if ((begin + i) % every == 0) m.points.emplace_back(all[begin + i], given[i]);
  }
}

Status score(const EvalFlags& f, const Dataset& data, Trainer& trainer, Measured& m) {
  Trainer::OnOutputs on_outputs;
  const Tensor targets = data.y();
  if (!f.plot.empty() && data.has_targets()) {
    on_outputs = [&](int64_t first, int64_t, const Tensor& outputs) {
      add_points(targets, first, outputs, m);
    };
  }
  const auto start = std::chrono::steady_clock::now();
  const auto go_on = [](int64_t, int64_t) { return !interrupted(); };
  LOOM_ASSIGN(m.evaluation, trainer.evaluate(data, on_outputs, go_on));
  m.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return {};
}

// MODEL, or if it is a description, the one with --weights.
Result<Network> open(const EvalFlags& f, const Engine& engine) {
  LoadOptions load{.weights = f.weights,
                   .for_training = false,
                   .allow_nonfinite = f.weight_flags.allow_nonfinite,
                   .state_dict = f.weight_flags.answers,
                   .engine = engine};
  if (!f.dtype.empty()) {
    LOOM_ASSIGN(load.dtype, parse_dtype(f.dtype));
  }
  LOOM_ASSIGN(Network network, Network::load(f.model, load));
  if (!network.info().fresh) return network;
  return Error{Code::invalid_argument,
               "this is a description; give its weights with --weights FILE", f.model, -1};
}

Result<Measured> measure(const EvalFlags& f, const Engine& engine) {
  LOOM_ASSIGN(const Network network, open(f, engine));
  NetworkInfo info = network.info();
  TrainerOptions options;
  options.loss = Loss::cross_entropy;
  if (!f.loss.empty()) {
    LOOM_ASSIGN(options.loss, parse_loss(f.loss));
  } else if (info.trained) {
    options.loss = Loss::automatic;
  }
  const LossInfo loss =
      options.loss == Loss::automatic ? info_of_loss(info.loss) : loss_info(options.loss);
  LOOM_ASSIGN(DatasetOptions how, f.data.options(loss.classes));
  how.embeddings = loss.embeddings;
  LOOM_ASSIGN(Dataset data, read_samples(f.data.path, network, how));
  const std::string hash = f.calibrate.empty() ? "" : data.hash();
  for (const std::string& text : data.notes()) note(text);
  Measured m;
  m.of = data.samples();
  LOOM_ASSIGN(const Rows rows, choose_rows(f, info, std::move(data)));
  options.optimizer.kind = OptimizerKind::sgd;  // has no state
  options.carry_feedback = f.carry_feedback;
  options.batch = std::min(f.batch, rows.scored.samples());
  options.metrics = f.metrics;
  LOOM_ASSIGN(Trainer trainer, Trainer::create(network, options));
  if (!f.calibrate.empty()) LOOM_TRY(calibrate(f, network, loss.classes, hash, rows, trainer, m));
  LOOM_TRY(score(f, rows.scored, trainer, m));
  m.which = rows.which;
  m.spec = rows.spec;
  m.in_unit = in_unit(m.evaluation.loss, network.info());
  m.dtype = dtype_name(info.dtype);
  LOOM_ASSIGN(m.hash, trainer.weights_hash());
  m.parameters = info.parameters;
  return m;
}

// "60 samples", or "60 validation samples of 300 (--split 0.8 --seed 1)".
std::string rows_text(const Measured& m) {
  if (m.which == "all") return fmt::format("{} samples", m.evaluation.samples);
  const std::string how = m.spec.shuffle ? fmt::format("--seed {}", m.spec.seed) : "--no-shuffle";
  const std::string part = m.spec.folds > 0
                               ? fmt::format("fold {} of {},", m.spec.fold + 1, m.spec.folds)
                               : fmt::format("--split {}", m.spec.share);
  return fmt::format("{} {} samples of {} ({} {})", m.evaluation.samples, m.which, m.of, part, how);
}

int save_plot(const EvalFlags& f, const Measured& m) {
  if (f.plot.empty()) return kDone;
  const std::string title = printable(fmt::format("{} on {}", f.model, f.data.path),
                                      f.model.size() + f.data.path.size() + 4);
  const std::string svg = m.evaluation.classes.empty() ? scatter_svg(m.points, title)
                                                       : confusion_svg(m.evaluation, title);
  const Status saved = write_file(f.plot, svg);
  return saved.ok() ? kDone : fail(saved.error());
}

double rate_of(const Measured& m) {
  return static_cast<double>(m.evaluation.samples) / std::max(m.seconds, 1e-9);
}

void print_text(const EvalFlags& f, const Measured& m) {
  const Evaluation& e = m.evaluation;
  std::string text = fmt::format("loss {:.5f}", e.loss);
  if (e.accuracy) text += "  accuracy " + percent(*e.accuracy);
  for (const RangeReport& c : m.ranges) {
    write_out(fmt::format("{}  error of products {:.3f} % -> {:.3f} %, {:.0f} % of the range\n",
                          c.name, c.plain * 100, c.error * 100, c.kept * 100));
  }
  text += m.in_unit;
  if (e.r2) text += fmt::format("  R2 {:.5f}", *e.r2);
  if (e.mean_absolute_error)
    text += fmt::format("  mean absolute error {:.5g}", *e.mean_absolute_error);
  for (const Metric& metric : e.metrics)
    text += fmt::format("  {} {:.5f}", metric.name, metric.value);
  write_out(fmt::format("{}  {}, {}, {:.0f} samples/s\n", text, rows_text(m), m.dtype, rate_of(m)));
  if (f.classes) write_out(classes_table(e) + confusion_table(e));
}

Json ranges_json(const Measured& m) {
  Json list = Json::array();
  for (const RangeReport& c : m.ranges) {
    list.push(JsonObject()
                  .set("path", c.name)
                  .set("plain_error", c.plain)
                  .set("error", c.error)
                  .set("kept", c.kept)
                  .value());
  }
  return list;
}

void print_json(const EvalFlags& f, const Measured& m, const EngineInfo& engine) {
  const Evaluation& e = m.evaluation;
  JsonObject out;
  out.set("loss", e.loss);
  if (e.accuracy) out.set("accuracy", *e.accuracy);
  if (!f.calibrate.empty()) out.set("calibration", ranges_json(m));
  if (e.r2) out.set("r2", *e.r2);
  if (e.mean_absolute_error) out.set("mean_absolute_error", *e.mean_absolute_error);
  Json metrics = Json::object();
  for (const Metric& metric : e.metrics) metrics.add(metric.name, Json::real(metric.value));
  if (!e.metrics.empty()) out.set("metrics", metrics);
  if (!e.classes.empty()) out.set("classes", classes_json(e)).set("confusion", confusion_json(e));
  out.set("samples", e.samples)
      .set("rows", m.which)
      .set("of", m.of)
      .set("seconds", m.seconds)
      .set("samples_per_s", rate_of(m))
      .set("parameters", m.parameters)
      .set("dtype", m.dtype)
      .set("isa", engine.isa)
      .set("threads", engine.threads)
      .set("weights_hash", m.hash)
      .print();
}

int run(const EvalFlags& f) {
  const Status order = refuse_table(f.model, "loom eval MODEL DATA");
  if (!order.ok()) return fail(order.error());
  const Status writable = Outputs(f.force)
                              .input("MODEL", f.model)
                              .input("DATA", f.data.path)
                              .file("--plot", f.plot, {".svg"}, "a plot of the scores as SVG")
                              .check();
  if (!writable.ok()) return fail(writable.error());
  const Result<Engine> engine = f.engine.create(f.memory);
  if (!engine.ok()) return fail(engine.error());
  const Result<Measured> measured = measure(f, *engine);
  if (!measured.ok()) return fail(measured.error());
  if (f.json) {
    print_json(f, *measured, engine->info());
  } else {
    print_text(f, *measured);
  }
  return save_plot(f, *measured);
}

}  // namespace

Verb add_eval(Command app) {
  auto f = std::make_shared<EvalFlags>();
  const Command verb = app.command("eval", "Measure a trained network on samples from a file.");
  verb.examples(
      "  loom eval net.entity test.csv\n"
      "  loom eval net.entity test.csv --classes --plot confusion.svg\n"
      "  loom eval net.entity test.csv --metrics macro_f1,auc,ece\n"
      "  loom eval net.entity train.csv --rows train\n"
      "  loom eval net.safetensors test.csv --dtype int4 --calibrate train.csv\n"
      "  loom eval net.json data.npz --weights net.safetensors --dtype int8 --json");
  verb.option("MODEL", f->model,
              "A network with weights, of any format, or a description with --weights")
      .required();
  f->data.add(verb);
  const Command model = verb.group("Model"), rows = verb.group("Held-out samples"),
                scores = verb.group("Scores"), output = verb.group("Output");
  model.option("--weights", f->weights, "Weights for MODEL: .safetensors, .npz, .entity, .json");
  model.option("--dtype", f->dtype, "Number type of the matrices (default: as trained)");
  const Option calibrate =
      model.option("--calibrate", f->calibrate,
                   "Samples (as DATA) to choose the ranges of quantized matrices with");
  model.option("--calibrate-labels", f->calibrate_labels, "Their labels, as --labels")
      .needs(calibrate);
  const Option share =
      rows.option("--split", f->split,
                  "Score the samples that training with this --split held out (default: as in "
                  "training, where DATA is the same)")
          .range(0.0, 1.0);
  rows.option("--seed", f->seed, "Seed of that split (default: as in training, else 1)")
      .range(0, INT64_MAX);
  rows.flag("--no-shuffle", f->no_shuffle, "The split of training with --no-shuffle").needs(share);
  rows.option("--rows", f->rows,
              "Score all, train or validation (default: validation where a split is known)");
  scores
      .option("--metrics", f->metrics,
              "Besides the loss: accuracy,top3,macro_f1,auc,ece of classes; accuracy,auc,ece,bce "
              "of targets 0 and 1; mae,r2 of numbers")
      .split_at(',');
  scores.option("--loss", f->loss, "Another loss than the one of training");
  scores.flag("--classes", f->classes,
              "Precision, recall and F1 of every class, and which are taken for each other");
  scores.flag("--carry-feedback", f->carry_feedback,
              "Feedback links read what the batch before gave, not zeros");
  scores.option("--batch", f->batch, "Samples at a time").range(1, 1 << 20).show_default();
  output.option("--plot", f->plot,
                "Picture (.svg): classes taken for each other, or outputs against targets");
  add_force(output, f->force);
  output.flag("--json", f->json, "One JSON object instead of text");
  f->engine.add_lanes(verb);
  f->engine.add_device(verb);
  f->memory.add(verb);
  f->weight_flags.add(verb);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli

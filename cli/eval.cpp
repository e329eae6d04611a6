// loom eval: loss and accuracy of trained weights on samples from a file.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "engine/convert.hpp"
#include "engine/file_memory.hpp"
#include "engine/impl.hpp"
#include "learning.hpp"

namespace loom::cli {
namespace {

struct EvalFlags {
  EngineFlags engine;
  DataFlags data;
  MemoryFlags memory;
  std::string model, weights, dtype, loss, calibrate, calibrate_labels, rows;
  double split = 0;
  int64_t batch = 64, seed = -1;
  bool json = false, no_shuffle = false, carry_feedback = false;
};

struct Trained {
  TrainedModel model;
  std::unique_ptr<NetworkSource> weights;
};

// MODEL, or where it is a description, that with --weights. What the network was trained for is
// what the weights say, else what MODEL says.
Result<Trained> open(const EvalFlags& f, const MemoryBudget& memory) {
  LOOM_TRY(check_opening(f.model, memory));
  LOOM_TRY(check_opening(f.weights, memory));
  LOOM_ASSIGN(OpenedModel described, open_network(f.model));
  Trained t{{described.network->spec, DType::f32, {}, {}, {}}, {}};
  if (!f.weights.empty()) {
    LOOM_ASSIGN(t.weights, open_network_weights(f.weights, described.network->spec));
  } else if (described.fresh) {
    return Error{Code::invalid_argument,
                 "this is a description; give its weights with --weights FILE", f.model, -1};
  }
  const bool told = t.weights != nullptr && t.weights->sections.find("model") != nullptr;
  LOOM_ASSIGN(t.model, model_of(told ? *t.weights : *described.network));
  t.model.network = described.network->spec;
  if (t.weights == nullptr) t.weights = std::move(described.network);
  return t;
}

// Which samples of DATA are scored, and those that training saw where it is known.
struct Rows {
  Dataset scored, train;
  std::string which = "all";
  int64_t of = 0;
  SplitSpec spec;
};

// The split that is asked for; else that of training, where DATA is what it was trained on.
Result<std::optional<SplitSpec>> split_of(const EvalFlags& f, const TrainedModel& model,
                                          const Dataset& data) {
  std::optional<SplitSpec> spec;
  if (model.split && model.split->data == hash_dataset(data)) spec = model.split->spec;
  if (f.split > 0) spec = SplitSpec{f.split, spec ? spec->seed : 1, !f.no_shuffle};
  if (f.seed >= 0 && spec) spec->seed = static_cast<uint64_t>(f.seed);
  if (spec || (f.rows != "train" && f.rows != "validation")) return spec;
  return Error{Code::invalid_argument,
               fmt::format("--rows {}: the weights do not say how these samples were split; give "
                           "--split and --seed as in training",
                           f.rows),
               f.data.path, -1};
}

Result<Rows> choose_rows(const EvalFlags& f, const TrainedModel& model, Dataset data) {
  if (!f.rows.empty() && f.rows != "all" && f.rows != "train" && f.rows != "validation") {
    return Error{Code::invalid_argument,
                 fmt::format("--rows {}: choose from all, train, validation", f.rows),
                 {},
                 -1};
  }
  LOOM_ASSIGN(const std::optional<SplitSpec> spec, split_of(f, model, data));
  Rows rows;
  rows.of = data.samples;
  if (f.rows == "all" || !spec) {
    rows.scored = std::move(data);
    return rows;
  }
  LOOM_ASSIGN(SplitDataset parts, split_dataset(data, *spec));
  rows.spec = *spec;
  rows.which = f.rows.empty() ? "validation" : f.rows;
  rows.scored = rows.which == "train" ? parts.train : std::move(parts.validation);
  rows.train = std::move(parts.train);
  return rows;
}

struct Measured {
  Evaluation evaluation;
  std::vector<ClipReport> clips;
  std::string dtype, hash, which;
  int64_t samples = 0, of = 0, parameters = 0;
  SplitSpec spec;
  double seconds = 0;
};

// Narrows ranges with the samples of --calibrate; of the samples that are scored in part, only
// those that training saw.
Status calibrate(const EvalFlags& f, const MemoryBudget& memory, const TrainedModel& model,
                 const std::string& scored_data, const Rows& rows, Trainer& trainer, Measured& m) {
  DataFlags other = f.data;
  other.labels = f.calibrate_labels;
  LOOM_ASSIGN(const DatasetOptions how,
              other.options(memory, model.loss.kind == LossKind::softmax_ce, model.names,
                            model.loss.heads));
  LOOM_ASSIGN(LoadedDataset samples, load_dataset(f.calibrate, model.network, how));
  if (rows.train.samples > 0 && hash_dataset(samples.data) == scored_data)
    samples.data = rows.train;
  LOOM_TRY(normalize(samples.data, model.normalization));
  LOOM_ASSIGN(m.clips, trainer.calibrate(samples.data));
  if (!m.clips.empty()) return {};
  return Error{Code::invalid_argument,
               fmt::format("--calibrate: no matrix is below 16 bits in {}; give --dtype",
                           dtype_name(model.dtype)),
               {},
               -1};
}

Result<Measured> measure(const EvalFlags& f, const Engine& engine) {
  LOOM_ASSIGN(const MemoryBudget memory, f.memory.create());
  LOOM_ASSIGN(Trained trained, open(f, memory));
  TrainedModel& model = trained.model;
  LOOM_TRY(check_parameters(model.network, 2, memory, f.model));
  if (!f.dtype.empty()) {
    LOOM_ASSIGN(model.dtype, parse_dtype(f.dtype));
  }
  if (!f.loss.empty()) {
    LOOM_ASSIGN(model.loss.kind, parse_loss(f.loss));
  }
  const bool classes = model.loss.kind == LossKind::softmax_ce;
  LOOM_ASSIGN(const DatasetOptions reading,
              f.data.options(memory, classes, model.names, model.loss.heads));
  LOOM_ASSIGN(LoadedDataset loaded, load_dataset(f.data.path, model.network, reading));
  for (const std::string& text : loaded.notes) note(text);
  const std::string data = hash_dataset(loaded.data);
  LOOM_ASSIGN(Rows rows, choose_rows(f, model, std::move(loaded.data)));
  LOOM_TRY(normalize(rows.scored, model.normalization));
  TrainerOptions options;
  options.dtype = model.dtype;
  options.step.loss = model.loss;
  options.step.optimizer.kind = OptimizerKind::sgd;  // keeps no state
  options.step.carry_feedback = f.carry_feedback;
  options.batch = std::min(f.batch, rows.scored.samples);
  Engine::Impl& impl = engine.impl();
  LOOM_ASSIGN(Trainer trainer,
              Trainer::create(model.network.grid, rows.scored, options, *impl.ops, impl.pool));
  LOOM_TRY(load_weights(*trained.weights, trainer));
  Measured m;
  if (!f.calibrate.empty()) LOOM_TRY(calibrate(f, memory, model, data, rows, trainer, m));
  const auto start = std::chrono::steady_clock::now();
  LOOM_ASSIGN(m.evaluation, trainer.evaluate(rows.scored));
  m.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  m.samples = rows.scored.samples;
  m.of = rows.of;
  m.which = rows.which;
  m.spec = rows.spec;
  m.dtype = dtype_name(model.dtype);
  LOOM_ASSIGN(m.hash, hash_weights(trainer));
  m.parameters = trainer.network().param_count();
  return m;
}

// "60 samples", or "60 validation samples of 300 (--split 0.8 --seed 1)".
std::string rows_text(const Measured& m) {
  if (m.which == "all") return fmt::format("{} samples", m.samples);
  const std::string how = m.spec.shuffle ? fmt::format("--seed {}", m.spec.seed) : "--no-shuffle";
  return fmt::format("{} {} samples of {} (--split {} {})", m.samples, m.which, m.of, m.spec.share,
                     how);
}

int run(const EvalFlags& f) {
  const Result<Engine> engine = f.engine.create();
  if (!engine.ok()) return fail(engine.error());
  const Result<Measured> measured = measure(f, *engine);
  if (!measured.ok()) return fail(measured.error());
  const Measured& m = *measured;
  const double rate = static_cast<double>(m.samples) / std::max(m.seconds, 1e-9);
  if (!f.json) {
    std::string text = fmt::format("loss {:.5f}", m.evaluation.loss);
    if (m.evaluation.accuracy) text += "  accuracy " + percent(*m.evaluation.accuracy);
    for (const ClipReport& c : m.clips) {
      write_out(fmt::format("{}  error of products {:.3f} % -> {:.3f} %, {:.0f} % of the range\n",
                            c.path, c.plain * 100, c.error * 100, c.kept * 100));
    }
    write_out(fmt::format("{}  {}, {}, {:.0f} samples/s\n", text, rows_text(m), m.dtype, rate));
    return kDone;
  }
  JsonObject out;
  out.set("loss", m.evaluation.loss);
  if (m.evaluation.accuracy) out.set("accuracy", *m.evaluation.accuracy);
  if (!f.calibrate.empty()) {
    JsonValue list = JsonValue::array();
    for (const ClipReport& c : m.clips) {
      JsonValue item = JsonValue::object();
      item.add("path", JsonValue::string(c.path));
      item.add("plain_error", JsonValue::real(c.plain));
      item.add("error", JsonValue::real(c.error));
      item.add("kept", JsonValue::real(c.kept));
      list.push(std::move(item));
    }
    out.set("calibration", std::move(list));
  }
  out.set("samples", m.samples)
      .set("rows", m.which)
      .set("of", m.of)
      .set("seconds", m.seconds)
      .set("samples_per_s", rate)
      .set("parameters", m.parameters)
      .set("dtype", m.dtype)
      .set("isa", engine->info().isa)
      .set("threads", engine->info().threads)
      .set("weights_hash", m.hash)
      .print();
  return kDone;
}

}  // namespace

Verb add_eval(Command app) {
  auto f = std::make_shared<EvalFlags>();
  const Command verb = app.command("eval", "Measure trained weights on samples from a file.");
  verb.examples(
      "  loom eval net.entity test.csv\n"
      "  loom eval net.entity train.csv --rows train\n"
      "  loom eval net.safetensors test.csv --dtype int4 --calibrate train.csv\n"
      "  loom eval net.json data.npz --weights net.safetensors --dtype int8 --json");
  verb.option("MODEL", f->model,
              "A network with weights, of any format, or a description with --weights")
      .required();
  f->data.add(verb);
  verb.option("--weights", f->weights, "Weights for MODEL: .safetensors, .npz, .entity, .json");
  const Option share =
      verb.option("--split", f->split,
                  "Score the samples that training with this --split held out (default: as in "
                  "training, where DATA is the same)")
          .range(0.0, 1.0);
  verb.option("--seed", f->seed, "Of that split (default: as in training, else 1)")
      .range(0, INT64_MAX);
  verb.flag("--no-shuffle", f->no_shuffle, "The split of training with --no-shuffle").needs(share);
  verb.option("--rows", f->rows,
              "Score all, train or validation (default: validation where a split is known)");
  verb.option("--dtype", f->dtype, "Number type of the matrices (default: as trained)");
  const Option calibrate =
      verb.option("--calibrate", f->calibrate,
                  "Samples (as DATA) to choose the ranges of quantised matrices with");
  verb.option("--calibrate-labels", f->calibrate_labels, "Their labels, as --labels")
      .needs(calibrate);
  verb.option("--loss", f->loss, "Another loss than the one of training");
  verb.option("--batch", f->batch, "Samples at a time").range(1, 1 << 20).show_default();
  verb.flag("--carry-feedback", f->carry_feedback,
            "Feedback links read what the batch before gave, not zeros");
  f->engine.add_lanes(verb);
  f->engine.add_device(verb);
  f->memory.add(verb);
  verb.flag("--json", f->json, "One JSON object instead of text");
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli

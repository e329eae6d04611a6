// loom eval: loss and accuracy of trained weights on samples from a file.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "bridge/network_json.hpp"
#include "engine/file_memory.hpp"
#include "engine/impl.hpp"
#include "learning.hpp"

namespace loom::cli {
namespace {

struct EvalFlags {
  EngineFlags engine;
  DataFlags data;
  MemoryFlags memory;
  std::string model, weights, dtype, loss, calibrate, calibrate_labels;
  int64_t batch = 64;
  bool json = false;
};

// The model that the metadata of the weights describe; a description of its own takes the place of
// the network in it.
Result<TrainedModel> read(const EvalFlags& f, const WeightsFile& file) {
  if (f.weights.empty()) return read_model(file);
  LOOM_ASSIGN(NetworkSpec network, load_network(f.model));
  Result<TrainedModel> known = read_model(file);
  TrainedModel model{std::move(network), DType::f32, {}, {}, {}};
  if (known.ok()) {
    known->network = std::move(model.network);
    return known;
  }
  model.loss.kind = LossKind::softmax_ce;
  return model;
}

struct Measured {
  Evaluation evaluation;
  std::vector<ClipReport> clips;
  std::string dtype, hash;
  int64_t samples = 0, parameters = 0;
  double seconds = 0;
};

Result<Measured> measure(const EvalFlags& f, const Engine& engine) {
  LOOM_ASSIGN(const MemoryBudget memory, f.memory.create());
  LOOM_TRY(check_opening(f.model, memory));
  LOOM_TRY(check_opening(f.weights, memory));
  const bool description = !holds_weights(f.model);
  if (description && f.weights.empty()) {
    LOOM_TRY(load_network(f.model));
    return Error{Code::invalid_argument,
                 "this is a description; give its weights with --weights FILE", f.model, -1};
  }
  LOOM_ASSIGN(const WeightsFile file, open_weights(description ? f.weights : f.model));
  LOOM_ASSIGN(TrainedModel model, read(f, file));
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
  for (const std::string& note : loaded.notes) fmt::print(stderr, "[{}]\n", note);
  LOOM_TRY(normalize(loaded.data, model.normalization));
  TrainerOptions options;
  options.dtype = model.dtype;
  options.step.loss = model.loss;
  options.step.optimizer.kind = OptimizerKind::sgd;  // keeps no state
  options.batch = std::min(f.batch, loaded.data.samples);
  Engine::Impl& impl = engine.impl();
  LOOM_ASSIGN(Trainer trainer,
              Trainer::create(model.network.grid, loaded.data, options, *impl.ops, impl.pool));
  LOOM_TRY(load_weights(file, trainer));
  Measured m;
  if (!f.calibrate.empty()) {
    DataFlags other = f.data;
    other.labels = f.calibrate_labels;
    LOOM_ASSIGN(const DatasetOptions how,
                other.options(memory, classes, model.names, model.loss.heads));
    LOOM_ASSIGN(LoadedDataset samples, load_dataset(f.calibrate, model.network, how));
    LOOM_TRY(normalize(samples.data, model.normalization));
    LOOM_ASSIGN(m.clips, trainer.calibrate(samples.data));
    if (m.clips.empty()) {
      return Error{Code::invalid_argument,
                   fmt::format("--calibrate: no matrix is below 16 bits in {}; give --dtype",
                               dtype_name(model.dtype)),
                   {},
                   -1};
    }
  }
  const auto start = std::chrono::steady_clock::now();
  LOOM_ASSIGN(m.evaluation, trainer.evaluate(loaded.data));
  m.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  m.samples = loaded.data.samples;
  m.dtype = dtype_name(model.dtype);
  LOOM_ASSIGN(m.hash, hash_weights(trainer));
  m.parameters = trainer.network().param_count();
  return m;
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
    write_out(
        fmt::format("{}  {} samples, {}, {:.0f} samples/s\n", text, m.samples, m.dtype, rate));
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
      "  loom eval net.safetensors test.csv --dtype int4 --calibrate train.csv\n"
      "  loom eval net.json data.npz --weights net.safetensors --dtype int8 --json");
  verb.option("MODEL", f->model, "Weights written by loom train, or a description").required();
  f->data.add(verb);
  verb.option("--weights", f->weights, "Weights, where MODEL is a description");
  verb.option("--dtype", f->dtype, "Number type of the matrices (default: as trained)");
  const Option calibrate =
      verb.option("--calibrate", f->calibrate,
                  "Samples (as DATA) to choose the ranges of quantised matrices with");
  verb.option("--calibrate-labels", f->calibrate_labels, "Their labels, as --labels")
      .needs(calibrate);
  verb.option("--loss", f->loss, "Another loss than the one of training");
  verb.option("--batch", f->batch, "Samples at a time").range(1, 1 << 20).show_default();
  f->engine.add_lanes(verb);
  f->engine.add_device(verb);
  f->memory.add(verb);
  verb.flag("--json", f->json, "One JSON object instead of text");
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli

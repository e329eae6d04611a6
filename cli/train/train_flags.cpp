#include "train_flags.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "../shared/console.hpp"
#include "../shared/outputs.hpp"
#include "train_folds.hpp"

namespace loom::cli {
namespace {

constexpr int64_t kMany = int64_t{1} << 40;

// The settings of a run without options.
TrainerOptions usual() {
  TrainerOptions o;
  o.schedule.kind = ScheduleKind::cosine;
  o.rate = 2e-3;
  return o;
}

// A small network on few rows memorizes them without decay (docs/tables.md has the measurements).
constexpr float kTableDecay = 1.0F;

// A flag whose value held two options in earlier versions: "--clip norm:1".
struct Joined {
  std::string_view flag;
  char separator;
  std::string_view second;
};
constexpr Joined kJoined[] = {{"clip", ':', "clip-limit"},
                              {"lookahead", ',', "lookahead-share"},
                              {"gradient-noise", ',', "gradient-noise-fade"}};

// "net-trained.entity" next to "net.json"; "net-trained-2.entity" if it exists.
std::string result_name(const std::string& network) {
  namespace fs = std::filesystem;
  fs::path path(network);
  if (!path.has_filename()) path = path.parent_path();  // "folder/"
  std::string stem = network == "-" ? "table" : path.stem().string();
  if (stem.ends_with(".csv") || stem.ends_with(".tsv")) stem.resize(stem.size() - 4);  // of .gz
  const size_t before = stem.rfind("-trained");
  if (before != std::string::npos &&
      stem.find_first_not_of("-0123456789", before + 8) == std::string::npos)
    stem.resize(before);
  return unused_name((path.parent_path() / (stem + "-trained.entity")).string());
}

// "net-trained.stopped.entity" for "net-trained.entity".
std::string stopped_name(const std::string& output) {
  const std::filesystem::path path(output);
  return unused_name((path.parent_path() / (path.stem().string() + ".stopped.entity")).string());
}

// Reads flags as earlier versions had them, with a note.
void take_apart(OptionFlags& flags, const std::string& triplets) {
  for (const Joined& joined : kJoined) {
    const std::string value = flags.text(joined.flag);
    const size_t at = value.find(joined.separator);
    if (at == std::string::npos) continue;
    flags.set(joined.flag, {value.substr(0, at)});
    flags.set(joined.second, {value.substr(at + 1)});
    note(fmt::format("--{} {} is now --{} {} --{} {}", joined.flag, value, joined.flag,
                     value.substr(0, at), joined.second, value.substr(at + 1)));
  }
  if (flags.text("class-weights") == "balanced") {
    flags.set("class-weights", {});
    flags.set("balanced-weights", {"true"});
    note("--class-weights balanced is now --balanced-weights");
  }
  if (triplets.empty()) return;
  flags.set("all-triplets", {triplets == "all" ? "true" : triplets == "hard" ? "false" : triplets});
  note("--triplets all is now --all-triplets");
}

}  // namespace

void TrainFlags::add_files(Command verb) {
  verb.option("NETWORK", network,
              "Description written by loom new; or a network with weights, to go on from those. A "
              "table (.csv, .tsv, -) alone gets a network that fits it")
      .required();
  data.add(verb.group("Data"), false);
  table.add(verb);
  const Command held_out = verb.group("Held-out samples"), files = verb.group("Files"),
                reports = verb.group("Reports");
  const Option share =
      held_out
          .option("--split", split,
                  "Share of the samples that trains, 0.8; drawn by --seed, of each class alike, "
                  "or with --no-shuffle the first ones")
          .range(0.0, 1.0);
  const Option held =
      held_out.option("--validation", validation, "Samples to validate with, instead of --split");
  held.excludes(share);
  const Option parts =
      held_out
          .option("--folds", folds,
                  "Cross-validation: train so many times, each time without another part of the "
                  "samples, of each class alike, and print a table; -o and --best write a file "
                  "for each: net.fold1.entity")
          .range(2, kMany);
  parts.excludes(share).excludes(held);
  held_out.option("--validation-labels", validation_labels, "Their labels, as --labels");
  files.option("-o,--output", output,
               "Write the trained weights: .entity as they are packed, or .safetensors (default: "
               "NETWORK-trained.entity, with a number if it exists); none: write nothing");
  run_line.add(verb, list_options(FitOptions()));
  const Option file = run_line.option("checkpoint");
  parts.excludes(file);
  run_line.option("checkpoint-every").needs(file);
  run_line.option("resume").needs(file);
  reports.option("--plot", plot, "Write the loss curve: .svg").excludes(parts);
  reports
      .option("--layer-stats", layer_stats,
              "Write mean, deviation and range of every layer and its gradient per epoch: .csv")
      .excludes(parts);
  reports
      .option("--rule-stats", rule_stats,
              "Write budget, gap, closed gates and the cosine with the gradient of every layer per "
              "epoch: .csv, or the cosines as curves: .svg")
      .excludes(parts);
  reports
      .option("--telemetry", telemetry,
              "Tell losses, metrics and speed while it runs: FILE.jsonl gets a line for each,\n"
              "FILE.prom the last values for Prometheus, http://HOST:PORT/PATH posts of lines,\n"
              "udp://HOST:PORT a datagram each, tanhi://HOST:PORT one for each layer that a batch\n"
              "goes through, for viewers of the grid; several are separated by commas")
      .split_at(',')
      .excludes(parts);
  reports
      .option("--tensorboard", tensorboard,
              "The same, histograms of the weights and the network, in a folder for TensorBoard")
      .excludes(parts);
  memory_report.add(reports);
}

void TrainFlags::add_method(Command verb) {
  const Command group = verb.group("Run");
  group.option("--dtype", dtype,
               "Number type the matrices are trained for (default: f32, or that of NETWORK)");
  group.option("--seed", seed, "Seed of the starting weights, the split and the order of samples")
      .range(0, INT64_MAX)
      .show_default();
  add_options(verb);
  verb.group("Parameters")
      .option("--trainable", trainable,
              "Initializers of an ONNX file that train although their names read as those of "
              "constants (docs/onnx.md); patterns; may be repeated")
      .one_at_a_time();
}

void TrainFlags::add_options(Command verb) {
  method.add(verb, list_options(usual()), {"seed"});
  verb.option("--triplets", triplets, "").hidden();
  verb.group("Batches and samples")
      .option("--augment", augment,
              "Change training samples anew in every epoch, by --seed: flip:SHARE, flip_vertical,\n"
              "crop:PIXELS, rotate:DEGREES, scale:SHARE, brightness:SHARE, contrast, saturation,\n"
              "mixup:ALPHA, cutmix:ALPHA; as crop:2,rotate:10 (docs/training.md)");
}

void TrainFlags::add(Command verb) {
  add_files(verb);
  add_method(verb);
  engine.add_lanes(verb);
  engine.add_device(verb);
  memory.add(verb);
  weight_flags.add(verb);
  add_force(verb, force);
  verb.flag("--json", json, "One JSON object instead of text");
  verb.flag("--quiet", quiet, "No progress, no lines per epoch");
}

Result<std::optional<Telemetry>> TrainFlags::make_telemetry() const {
  if (telemetry.empty() && tensorboard.empty()) return std::optional<Telemetry>();
  TelemetryOptions o;
  o.tensorboard = tensorboard;
  for (const std::string& path : telemetry) {
    const size_t scheme = path.find("://");
    const std::string rest = scheme == std::string::npos ? path : path.substr(scheme + 3);
    if (path.starts_with("http://"))
      o.http = path;
    else if (path.starts_with("udp://"))
      o.udp = rest;
    else if (path.starts_with("tanhi://"))
      o.tanhi = rest;
    else
      (path.ends_with(".prom") ? o.prometheus : o.json_lines) = path;
  }
  LOOM_ASSIGN(Telemetry telling, Telemetry::open(o));
  return std::optional<Telemetry>(std::move(telling));
}

bool TrainFlags::tells_passes() const {
  return std::any_of(telemetry.begin(), telemetry.end(),
                     [](const std::string& path) { return path.starts_with("tanhi://"); });
}

Status TrainFlags::check_outputs() const {
  const std::vector<std::string_view> weights = {".entity", ".safetensors"};
  const std::string before = run.checkpoint.empty() ? "" : run.checkpoint + ".previous";
  Outputs outputs(force);
  for (const std::string& path : telemetry) {
    if (path.starts_with("http://") || path.starts_with("udp://") || path.starts_with("tanhi://"))
      continue;
    const auto same = [&](const std::string& other) {
      return other.find("://") == std::string::npos &&
             other.ends_with(".prom") == path.ends_with(".prom");
    };
    if (std::count_if(telemetry.begin(), telemetry.end(), same) > 1) {
      return Error{Code::invalid_argument, "--telemetry writes one file of each kind", path, -1};
    }
    const std::vector<std::string_view> endings = {".jsonl", ".prom"};
    if (run.resume) outputs.state("--telemetry", path, endings, "telemetry");
    if (!run.resume) outputs.file("--telemetry", path, endings, "telemetry");
  }
  memory_report.add_to(outputs);
  constexpr int64_t kMaxFolds = 1000;  // names to check; more are not typed by people
  for (int64_t fold = 1; fold <= std::min(folds, kMaxFolds); ++fold) {
    outputs.file("-o", fold_name(output, fold), weights, "trained weights");
    outputs.file("--best", fold_name(run.best, fold), weights, "trained weights");
  }
  const std::string whole = folds == 0 ? output : std::string();
  const std::string whole_best = folds == 0 ? run.best : std::string();
  outputs.file("-o", whole, weights, "trained weights");
  if (run.resume) outputs.state("--best", whole_best, weights, "trained weights");
  if (!run.resume) outputs.file("--best", whole_best, weights, "trained weights");
  return outputs.input("NETWORK", network)
      .input("DATA", data.path)
      .input("--labels", data.labels)
      .input("--validation", validation)
      .input("--validation-labels", validation_labels)
      .state("--checkpoint", run.checkpoint, weights, "the state of a run")
      .state("--checkpoint (its .previous)", before, {".previous"}, "")
      .file("--plot", plot, {".svg"}, "the loss curve as SVG")
      .file("--layer-stats", layer_stats, {".csv"}, "a table of layers")
      .file("--rule-stats", rule_stats, {".csv", ".svg"}, "budgets of layers, a table or curves")
      .check();
}

Status TrainFlags::apply_defaults() {
  LOOM_TRY(method.note_earlier_flags());
  LOOM_TRY(run_line.read(run));
  take_apart(method, triplets);
  if (output.empty() && folds == 0) {
    names_output = true;
    output = result_name(network);
  }
  if (folds == 0 && run.checkpoint.empty())
    saved_at_stop = stopped_name(output == "none" ? result_name(network) : output);
  if (output == "none") output.clear();
  return {};
}

void TrainFlags::set_for_table(TrainerOptions& o) const {
  for (const std::string& flag : method.given()) {
    if (flag == "optimizer" || flag == "weight-decay" || flag == "rule") return;
  }
  o.optimizer.kind = OptimizerKind::adamw;
  o.optimizer.weight_decay = kTableDecay;
}

Result<TrainerOptions> TrainFlags::options() const {
  TrainerOptions o = usual();
  if (network.empty()) set_for_table(o);
  LOOM_TRY(method.read(o));
  Result<Augment> changes = parse_augment(augment);
  if (!changes.ok())
    return Error{Code::invalid_argument, "--augment: " + changes.error().str(), {}, -1};
  o.augment = *changes;
  o.seed = seed;
  return o;
}

// Epochs of a network for a table: some thousand updates.
static int64_t epochs_for(int64_t samples) {
  constexpr int64_t kUpdates = 4000, kBatch = 32, kMin = 10, kMax = 200;
  return std::clamp(kUpdates * kBatch / std::max<int64_t>(samples, 1), kMin, kMax);
}

Status TrainFlags::settle_table() {
  if (data.path.empty()) {
    if (!names_table(network)) {
      return Error{Code::invalid_argument,
                   "DATA is missing: loom train NETWORK DATA, or a table alone: loom train "
                   "table.csv --target NAME",
                   network, -1};
    }
    data.path = network;
    network.clear();
  }
  if (names_table(network)) {
    return Error{Code::invalid_argument,
                 "a table is DATA, which follows NETWORK: loom train NETWORK DATA", network, -1};
  }
  of_table = names_table(data.path);
  if (network.empty() && folds > 0)
    return Error{Code::invalid_argument,
                 "--folds needs NETWORK; loom new --for writes one for a table", data.path, -1};
  if (network.empty() && data.columns_by_order && !quiet)
    note("--columns-by-order has no effect on a new table: its plan names the columns");
  return {};
}

Result<LoadOptions> TrainFlags::loading(const Engine& on) const {
  LoadOptions load{.seed = seed,
                   .for_training = true,
                   .trainable = trainable,
                   .allow_nonfinite = weight_flags.allow_nonfinite,
                   .state_dict = weight_flags.answers,
                   .engine = on};
  if (!dtype.empty()) {
    LOOM_ASSIGN(load.dtype, parse_dtype(dtype));
  }
  return load;
}

Result<Network> TrainFlags::open(const Engine& on) const {
  LOOM_ASSIGN(const LoadOptions load, loading(on));
  return Network::load(network, load);
}

Result<Network> TrainFlags::scaled(Network net, const Dataset& train, const Engine& on) const {
  LOOM_ASSIGN(const TableOptions plan, table.options());
  if (!of_table || !plan.scale_target || !net.info().fresh) return net;
  LOOM_ASSIGN(const LoadOptions load, loading(on));
  LOOM_ASSIGN(const TrainerOptions o, options());
  return with_target_scale(net, train, o.loss, load);
}

Result<Network> TrainFlags::open_or_plan(const Engine& on, std::vector<std::string>& told) {
  if (!network.empty()) return open(on);
  LOOM_ASSIGN(const LoadOptions load, loading(on));
  LOOM_ASSIGN(const TrainerOptions o, options());
  LOOM_ASSIGN(DatasetOptions how, reading(data, {}));
  LOOM_ASSIGN(how.table, planning(o));
  LOOM_ASSIGN(TableNetwork made, plan_samples(data.path, how, load));
  told.push_back(made.description);
  told.insert(told.end(), made.notes.begin(), made.notes.end());
  if (!run_line.option("epochs").given()) run.epochs = epochs_for(made.samples);
  std::string recipe = fmt::format("the training: --epochs {} --rate {}", run.epochs, o.rate);
  if (o.optimizer.kind == OptimizerKind::adamw && o.optimizer.weight_decay)
    recipe += fmt::format(" --optimizer adamw --weight-decay {}", *o.optimizer.weight_decay);
  told.push_back(std::move(recipe));
  return std::move(made.network);
}

Result<TableOptions> TrainFlags::planning(const TrainerOptions& o) const {
  LOOM_ASSIGN(TableOptions out, table.options());
  out.share = split;
  out.seed = seed;
  out.shuffle = o.shuffle;
  out.scale_target = out.scale_target && loss_info(o.loss).numbers;
  return out;
}

Result<DatasetOptions> TrainFlags::reading(const DataFlags& from, const NetworkInfo& info) const {
  LOOM_ASSIGN(const TrainerOptions o, options());
  const bool learned = o.loss == Loss::automatic && info.trained && !info.loss.empty();
  const LossInfo loss = learned ? info_of_loss(info.loss) : loss_info(o.loss);
  LOOM_ASSIGN(DatasetOptions how, from.options(loss.labels));
  how.heads = o.heads;
  if (network.empty() && !info.plan.empty()) how.weights.clear();  // the plan has the column
  if (!network.empty() && table.any()) {
    LOOM_ASSIGN(how.table, planning(o));
  }
  how.sequences = loss.sequences;
  how.embeddings = loss.embeddings;
  return how;
}

Status TrainFlags::check_classes(const NetworkInfo& info, const Dataset& samples) const {
  LOOM_ASSIGN(const DatasetOptions how, reading(data, info));
  const auto classes = static_cast<int64_t>(samples.classes().size());
  const int64_t outputs = info.output.empty() ? 1 : info.output.back();
  if (!info.fresh || classes == 0 || outputs <= classes || !how.classes || how.sequences ||
      how.embeddings || !how.heads.empty())
    return {};
  return Error{Code::invalid_argument,
               fmt::format("has {} classes, but the network has {} outputs; make it with --out {}",
                           classes, outputs, classes),
               this->data.path, -1};
}

int64_t TrainFlags::batch() const {
  const Result<TrainerOptions> o = options();
  return o.ok() ? o->batch.value_or(32) : 32;
}

}  // namespace loom::cli

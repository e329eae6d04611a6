#include "train_flags.hpp"

#include <fmt/core.h>

#include <charconv>

#include "outputs.hpp"

namespace loom::cli {
namespace {

constexpr int64_t kMany = int64_t{1} << 40;

// "norm:1", "value:0.5", "none".
Status parse_clip_flag(const std::string& text, TrainerOptions& options) {
  const size_t colon = text.find(':');
  LOOM_ASSIGN(options.clip, parse_clip(text.substr(0, colon)));
  if (colon == std::string::npos) return {};
  const char* first = text.data() + colon + 1;
  const char* last = text.data() + text.size();
  const auto [end, code] = std::from_chars(first, last, options.clip_limit);
  if (code == std::errc() && end == last && options.clip_limit > 0) return {};
  return Error{Code::invalid_argument,
               fmt::format("--clip {}: the limit must be a number above 0", text),
               {},
               -1};
}

// "balanced", or "1,2.5,1".
Status parse_class_weights(const std::string& text, TrainerOptions& options) {
  options.balanced_weights = text == "balanced";
  if (text.empty() || options.balanced_weights) return {};
  const char* at = text.data();
  const char* const last = at + text.size();
  while (true) {
    float weight = 0;
    const auto [end, code] = std::from_chars(at, last, weight);
    if (code != std::errc() || (end != last && *end != ',')) break;
    options.class_weights.push_back(weight);
    if (end == last) return {};
    at = end + 1;
  }
  return Error{
      Code::invalid_argument,
      fmt::format("--class-weights {}: give balanced, or a number for each class: 1,2.5,1", text),
      {},
      -1};
}

// "(0, 0, 0, *)=0.1".
Result<RateFor> parse_rate_for(const std::string& text) {
  const size_t equals = text.rfind('=');
  RateFor rule;
  if (equals != std::string::npos) {
    rule.pattern = text.substr(0, equals);
    const char* last = text.data() + text.size();
    const auto [end, code] = std::from_chars(text.data() + equals + 1, last, rule.factor);
    if (code == std::errc() && end == last) return rule;
  }
  return Error{Code::invalid_argument,
               fmt::format("--rate-for {}: give PATTERN=FACTOR, as '(0, 0, 0, 0)/*=0.1'", text),
               {},
               -1};
}

// "5", "5,0.8": numbers at the commas, at most `to.size()`; those that are not there stay.
Status parse_numbers(std::string_view flag, const std::string& text, std::string_view usage,
                     std::initializer_list<double*> to) {
  const char* at = text.data();
  const char* const last = at + text.size();
  for (double* const value : to) {
    const auto [end, code] = std::from_chars(at, last, *value);
    if (code != std::errc() || (end != last && *end != ',')) break;
    if (end == last) return {};
    at = end + 1;
  }
  return Error{Code::invalid_argument, fmt::format("{} {}: give {}", flag, text, usage), {}, -1};
}

Status parse_averages(const TrainFlags& f, TrainerOptions& o) {
  o.ema = f.ema;
  o.swa_from = f.swa;
  if (!f.lookahead.empty()) {
    double every = 0;
    LOOM_TRY(parse_numbers("--lookahead", f.lookahead, "STEPS,SHARE, as 5,0.5",
                           {&every, &o.lookahead_share}));
    o.lookahead = static_cast<int64_t>(every);
    if (every < 1 || every > 1e9 || static_cast<double>(o.lookahead) != every) {
      return Error{
          Code::invalid_argument,
          fmt::format("--lookahead {}: the steps must be a whole number from 1", f.lookahead),
          {},
          -1};
    }
  }
  if (f.gradient_noise.empty()) return {};
  return parse_numbers("--gradient-noise", f.gradient_noise, "DEVIATION or DEVIATION,FADE",
                       {&o.gradient_noise, &o.gradient_noise_fade});
}

}  // namespace

void TrainFlags::add_files(Command verb) {
  verb.option("NETWORK", network,
              "Description written by loom new; or a network with weights, to go on from those")
      .required();
  data.add(verb);
  const Option share =
      verb.option("--split", split,
                  "Share of the samples that trains, 0.8; drawn by --seed, of each class alike, "
                  "or with --no-shuffle the first ones")
          .range(0.0, 1.0);
  const Option held =
      verb.option("--validation", validation, "Samples to validate with, instead of --split");
  held.excludes(share);
  const Option parts =
      verb.option("--folds", folds,
                  "Cross-validation: train so many times, each time without another part of the "
                  "samples, of each class alike, and print a table; -o and --best write a file "
                  "for each: net.fold1.entity")
          .range(2, kMany);
  parts.excludes(share).excludes(held);
  verb.option("--validation-labels", validation_labels, "Their labels, as --labels");
  verb.option("--normalize", normalize,
              "Inputs: none, standard, range (default: none, or as the weights of NETWORK)");
  verb.option("-o,--output", output,
              "Write the trained weights: .entity as they are packed, or .safetensors");
  verb.option("--best", best, "Write the weights after each epoch that is the best so far");
  const Option file =
      verb.option("--checkpoint", checkpoint,
                  "Save the run after each epoch: .entity (with hashes), or .safetensors");
  parts.excludes(file);
  verb.option("--checkpoint-every", checkpoint_every,
              "Save it after so many batches within an epoch too")
      .range(1, kMany)
      .needs(file);
  verb.flag("--resume", resume, "Go on from the checkpoint").needs(file);
  verb.option("--plot", plot, "Write the loss curve: .svg").excludes(parts);
  verb.option("--layer-stats", layer_stats,
              "Write mean, deviation and range of every layer and its gradient per epoch: .csv")
      .excludes(parts);
  verb.option("--rule-stats", rule_stats,
              "Write budget, gap, closed gates and the cosine with the gradient of every layer per "
              "epoch: .csv, or the cosines as curves: .svg")
      .excludes(parts);
  verb.option("--telemetry", telemetry,
              "Tell losses, metrics and speed while it runs: FILE.jsonl gets a line for each,\n"
              "FILE.prom the last values for Prometheus, http://HOST:PORT/PATH posts of lines,\n"
              "udp://HOST:PORT a datagram each, tanhi://HOST:PORT one for each layer that a batch\n"
              "goes through, for viewers of the grid; several are separated by commas")
      .split_at(',')
      .excludes(parts);
  verb.option("--tensorboard", tensorboard,
              "The same, histograms of the weights and the network, in a folder for TensorBoard")
      .excludes(parts);
  memory_report.add(verb);
}

void TrainFlags::add_method(Command verb) {
  verb.option("--epochs", epochs, "Times all samples are seen").range(1, kMany).show_default();
  verb.option("--batch", batch, "Samples per step (default: 32; for lbfgs all of them)")
      .range(1, 1 << 20);
  verb.option(
          "--accumulate", accumulate,
          "Batches whose mean gradient makes one update; the last of an epoch takes what is left")
      .range(1, 1 << 20)
      .show_default();
  verb.option("--loss", loss,
              "mse, mae, huber, softmax_ce, bce, kl, cosine, focal, quantile, poisson, log_cosh, "
              "hinge, ctc; of embeddings by labels triplet, contrastive, infonce (default: "
              "softmax_ce for labels, else mse)");
  verb.option("--margin", margin, "triplet, contrastive: how far apart others should be")
      .range(1e-6, 1e6)
      .show_default();
  verb.option("--triplets", triplets,
              "hard: the farthest of a label and the nearest other of each sample; all: the mean")
      .show_default();
  verb.option("--temperature", temperature, "infonce: what cosines are divided by")
      .range(1e-4, 1e4)
      .show_default();
  verb.flag("--pairs-across", pairs_across,
            "Embeddings: rows of a sample are compared with other rows alone, as in CLIP");
  verb.option("--blank", blank, "ctc: the class that says nothing")
      .range(0, 1 << 24)
      .show_default();
  verb.option("--smoothing", smoothing, "softmax_ce: share of a target spread over all classes")
      .range(0.0, 1.0);
  verb.option("--delta", delta, "huber: where it turns linear").range(1e-6, 1e6).show_default();
  verb.option("--focal-gamma", gamma_focal, "focal: how much values that are right count less")
      .range(0.0, 100.0)
      .show_default();
  verb.option("--focal-alpha", alpha, "focal: weight of targets 1, those of 0 have the rest")
      .range(0.0, 1.0);
  verb.option("--quantile", quantile, "quantile: share of the targets below the prediction")
      .range(1e-6, 1 - 1e-6)
      .show_default();
  verb.option("--heads", heads,
              "softmax_ce: widths of several predictions side by side, each with a label: 10,4")
      .split_at(',');
  verb.option("--optimizer", optimizer,
              "sgd, momentum, nesterov, rmsprop, adam, adamw, lion, adagrad, adadelta, nadam, "
              "adamax, radam, lbfgs (full batches), lamb, adafactor, muon, kfac, sophia")
      .show_default();
  verb.option("--damping", damping, "kfac: what is added to the curvature").range(1e-9, 1e6);
  verb.option("--trust", trust, "kfac: how far one update may change the prediction; 0: any")
      .range(0.0, 1e6);
  verb.option("--inverse-every", inverse_every,
              "kfac, sophia: updates from one look at the curvature to the next")
      .range(1, 1 << 20);
  verb.option("--sophia-gamma", sophia_gamma,
              "sophia: what share of the curvature stops a step (default: 0.05)")
      .range(1e-9, 1e6);
  verb.option("--decay", decay, "Weight decay (default: the optimizer's)").range(0.0, 1e3);
  verb.option("--clip", clip, "none, norm:LIMIT, layer:LIMIT, value:LIMIT").show_default();
  verb.option("--early-stop", early_stop, "Stop after this many epochs without a better loss")
      .range(0, kMany);
  verb.option("--dtype", dtype,
              "Number type the matrices are trained for (default: f32, or that of NETWORK)");
  verb.option("--metrics", metrics,
              "Of the validation, besides the loss: accuracy,top3,macro_f1,auc,ece of classes; "
              "accuracy,auc,ece,bce of targets 0 and 1; mae,r2 of numbers")
      .split_at(',');
  verb.option("--class-weights", class_weights,
              "What each class counts in the loss: 1,2.5,1; or balanced, by how rare it is");
  verb.flag("--balance", balance, "Show every class equally often in an epoch, by --seed");
  verb.option("--augment", augment,
              "Change training samples anew in every epoch, by --seed: flip:SHARE, flip_vertical,\n"
              "crop:PIXELS, rotate:DEGREES, scale:SHARE, brightness:SHARE, contrast, saturation,\n"
              "mixup:ALPHA, cutmix:ALPHA; as crop:2,rotate:10 (docs/training.md)");
  verb.option("--freeze", freeze,
              "Parameters that keep their values, by the paths that loom info shows; * is any "
              "text: '(0, 0, 0, *)/weight'; may be repeated")
      .one_at_a_time();
  verb.option("--unfreeze", unfreeze,
              "Parameters that train although the model freezes them, as its constants; patterns "
              "as --freeze has them; may be repeated")
      .one_at_a_time();
  verb.option("--trainable", trainable,
              "Initializers of an ONNX file that train although their names read as those of "
              "constants (docs/onnx.md); patterns; may be repeated")
      .one_at_a_time();
  verb.option("--rate-for", rate_for,
              "PATTERN=FACTOR: these parameters learn at FACTOR times the rate; may be repeated")
      .one_at_a_time();
  add_averages(verb);
  verb.flag("--native", native, "No f32 masters: round updates stochastically into --dtype");
  verb.option("--grad-checkpoint", grad_checkpoint,
              "Keep activations of every Nth cell only, compute the others again: less memory")
      .range(0, kMany);
  verb.option("--seed", seed, "Of the starting weights, the split and the order of samples")
      .range(0, INT64_MAX)
      .show_default();
  verb.flag("--no-shuffle", no_shuffle, "Keep the order of the samples");
  verb.flag("--carry-feedback", carry_feedback,
            "Feedback links read what the batch before gave, not zeros");
}

void TrainFlags::add_averages(Command verb) {
  const Option mean = verb.option("--swa", swa,
                                  "Evaluate and save the mean of the weights at the ends of the "
                                  "epochs from this one on")
                          .range(1, kMany);
  verb.option("--ema", ema,
              "Evaluate and save an average of the weights that keeps this share at every update: "
              "0.999")
      .range(0.0, 1.0)
      .excludes(mean);
  verb.option("--rule", signal_rule,
              "What layers learn from: back-propagation, dfa, drtp, diff-project, fixed-dtp, "
              "chain, dtp, forward-forward, hebb (docs/rules.md)")
      .show_default();
  verb.option("--rule-beta", rule_beta,
              "diff-project, fixed-dtp, dtp: share of the way from the prediction to the target")
      .range(0.001, 1.0)
      .show_default();
  verb.option("--rule-gate", rule_gate,
              "Layers whose budget is below it learn nothing in that step, others by their budget; "
              "0: no budgets (default: 0.2 of chain, else 0)")
      .range(0.0, 0.999);
  verb.option("--rule-noise", rule_noise, "dtp: deviation of what inverses learn to take away")
      .range(0.0, 1e3)
      .show_default();
  verb.option("--rule-inverse-rate", rule_inverse_rate, "dtp: learning rate of the inverses")
      .range(0.0, 1e3)
      .show_default();
  verb.option("--rule-threshold", rule_threshold,
              "forward-forward: goodness that parts right labels from wrong ones")
      .range(0.0, 1e6)
      .show_default();
  verb.option("--rule-label-scale", rule_label_scale,
              "forward-forward: deviation of the pattern that a label adds to the input")
      .range(0.0, 1e6)
      .show_default();
  verb.option(
          "--rule-temperature", rule_temperature,
          "forward-forward: what goodness is divided by, as a sum of squares; 0: the numbers of "
          "a layer, so that it is their mean")
      .range(0.0, 1e6)
      .show_default();
  verb.option("--lookahead", lookahead,
              "STEPS,SHARE, as 5,0.5: after so many updates back to slow weights, which moved by "
              "that share");
  verb.option("--gradient-noise", gradient_noise,
              "DEVIATION of normal noise on gradients; DEVIATION,FADE: falling with the update t "
              "as (1 + t)^(-FADE / 2)");
}

void TrainFlags::add_schedule(Command verb) {
  verb.option("--rate", rate, "Learning rate").range(0.0, 1e3).show_default();
  verb.option("--schedule", schedule,
              "constant, step, multi_step, exponential, cosine, cosine_restarts, linear, "
              "polynomial, one_cycle, plateau")
      .show_default();
  verb.option("--warmup", warmup, "Updates in which the rate rises to where the schedule begins")
      .range(0, kMany);
  verb.option("--floor", floor, "cosine, linear, polynomial: the last rate").range(0.0, 1e3);
  verb.option("--gamma", gamma, "step, multi_step, exponential, plateau: factor")
      .range(0.0, 1.0)
      .show_default();
  verb.option("--power", power, "polynomial").range(0.0, 16.0);
  verb.option("--every", every, "step, cosine_restarts: epochs, from the end of --warmup")
      .range(1, kMany)
      .show_default();
  verb.option("--milestones", milestones, "multi_step: epochs").split_at(',');
  verb.option("--patience", patience, "plateau: epochs").range(0, kMany).show_default();
}

void TrainFlags::add(Command verb) {
  add_files(verb);
  add_method(verb);
  add_schedule(verb);
  engine.add_lanes(verb);
  engine.add_device(verb);
  memory.add(verb);
  weight_flags.add(verb);
  verb.flag("--json", json, "One JSON object instead of text");
  verb.flag("--quiet", quiet, "No progress, no lines per epoch");
}

Result<std::optional<Telemetry>> TrainFlags::told() const {
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
  const std::string before = checkpoint.empty() ? "" : checkpoint + ".previous";
  Outputs outputs;
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
    outputs.file("--telemetry", path, {".jsonl", ".prom"}, "telemetry");
  }
  memory_report.add_to(outputs);
  return outputs.input("NETWORK", network)
      .input("DATA", data.path)
      .input("--labels", data.labels)
      .input("--validation", validation)
      .input("--validation-labels", validation_labels)
      .file("-o", output, weights, "trained weights")
      .file("--best", best, weights, "trained weights")
      .file("--checkpoint", checkpoint, weights, "the state of a run")
      .file("--checkpoint (its .previous)", before, {".previous"}, "")
      .file("--plot", plot, {".svg"}, "the loss curve as SVG")
      .file("--layer-stats", layer_stats, {".csv"}, "a table of layers")
      .file("--rule-stats", rule_stats, {".csv", ".svg"}, "budgets of layers, a table or curves")
      .check();
}

Result<TrainerOptions> TrainFlags::options() const {
  TrainerOptions o;
  if (!loss.empty()) {
    LOOM_ASSIGN(o.loss, parse_loss(loss));
  }
  o.label_smoothing = static_cast<float>(smoothing);
  o.huber_delta = static_cast<float>(delta);
  o.heads = heads;
  o.focal_gamma = static_cast<float>(gamma_focal);
  if (alpha >= 0) o.focal_alpha = static_cast<float>(alpha);
  o.quantile = static_cast<float>(quantile);
  o.blank = blank;
  o.margin = static_cast<float>(margin);
  o.temperature = static_cast<float>(temperature);
  if (triplets != "hard" && triplets != "all")
    return Error{Code::invalid_argument, "--triplets is hard or all, not " + triplets, "", -1};
  o.all_triplets = triplets == "all";
  o.pairs_across = pairs_across;
  LOOM_ASSIGN(o.optimizer.kind, parse_optimizer(optimizer));
  if (damping >= 0) o.optimizer.damping = static_cast<float>(damping);
  if (trust >= 0) o.optimizer.trust = static_cast<float>(trust);
  if (sophia_gamma > 0) o.optimizer.gamma = static_cast<float>(sophia_gamma);
  if (inverse_every > 0) o.optimizer.inverse_every = inverse_every;
  if (decay >= 0) o.optimizer.weight_decay = static_cast<float>(decay);
  LOOM_TRY(parse_clip_flag(clip, o));
  LOOM_ASSIGN(o.rule, parse_rule(signal_rule));
  o.rule_beta = rule_beta;
  if (rule_gate >= 0) o.rule_gate = rule_gate;
  o.rule_noise = rule_noise;
  o.rule_inverse_rate = rule_inverse_rate;
  o.rule_threshold = rule_threshold;
  o.rule_label_scale = rule_label_scale;
  o.rule_temperature = rule_temperature;
  LOOM_ASSIGN(o.schedule.kind, parse_schedule(schedule));
  o.schedule.floor = floor;
  o.schedule.gamma = gamma;
  o.schedule.power = power;
  o.schedule.every = every;
  o.schedule.milestones = milestones;
  o.schedule.warmup = warmup;
  o.schedule.patience = patience;
  o.rate = rate;
  if (batch > 0) o.batch = batch;
  o.accumulate = accumulate;
  if (!normalize.empty()) {
    LOOM_ASSIGN(o.normalize, parse_normalize(normalize));
  }
  LOOM_TRY(parse_class_weights(class_weights, o));
  o.balance = balance;
  LOOM_ASSIGN(o.augment, parse_augment(augment));
  o.metrics = metrics;
  o.freeze = freeze;
  o.unfreeze = unfreeze;
  for (const std::string& rule : rate_for) {
    LOOM_ASSIGN(RateFor parsed, parse_rate_for(rule));
    o.rate_for.push_back(std::move(parsed));
  }
  LOOM_TRY(parse_averages(*this, o));
  o.native = native;
  o.carry_feedback = carry_feedback;
  o.checkpoint_cells = grad_checkpoint;
  o.shuffle = !no_shuffle;
  o.seed = seed;
  return o;
}

Result<Network> TrainFlags::open(const Engine& on) const {
  LoadOptions load{.seed = seed,
                   .for_training = true,
                   .trainable = trainable,
                   .allow_nonfinite = weight_flags.allow_nonfinite,
                   .state_dict = weight_flags.answers,
                   .engine = on};
  if (!dtype.empty()) {
    LOOM_ASSIGN(load.dtype, parse_dtype(dtype));
  }
  return Network::load(network, load);
}

Result<DatasetOptions> TrainFlags::reading(const DataFlags& from, const NetworkInfo& info) const {
  const std::string_view known = info.trained ? std::string_view(info.loss) : std::string_view();
  std::string_view kind = known;
  if (!loss.empty()) {
    LOOM_ASSIGN(const Loss wanted, parse_loss(loss));
    kind = loss_name(wanted);
  }
  const bool sequences = kind == loss_name(Loss::ctc), embeddings = is_of_embeddings(kind);
  const bool classes =
      kind.empty() || sequences || embeddings || kind == loss_name(Loss::cross_entropy);
  LOOM_ASSIGN(DatasetOptions how, from.options(classes));
  how.heads = heads;
  how.sequences = sequences;
  how.embeddings = embeddings;
  return how;
}

FitOptions TrainFlags::fitting() const {
  FitOptions o;
  o.epochs = epochs;
  o.early_stop = early_stop;
  o.checkpoint = checkpoint;
  o.checkpoint_every = checkpoint_every;
  o.resume = resume;
  o.best = best;
  return o;
}

}  // namespace loom::cli

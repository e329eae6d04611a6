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
  verb.option("--validation", validation, "Samples to validate with, instead of --split")
      .excludes(share);
  verb.option("--validation-labels", validation_labels, "Their labels, as --labels");
  verb.option("--normalize", normalize,
              "Inputs: none, standard, range (default: none, or as the weights of NETWORK)");
  verb.option("-o,--output", output,
              "Write the trained weights: .entity as they are packed, or .safetensors");
  verb.option("--best", best, "Write the weights after each epoch that is the best so far");
  const Option file =
      verb.option("--checkpoint", checkpoint,
                  "Save the run after each epoch: .entity (with hashes), or .safetensors");
  verb.flag("--resume", resume, "Go on from the checkpoint").needs(file);
  verb.option("--plot", plot, "Write the loss curve: .svg");
  verb.option("--layer-stats", layer_stats,
              "Write mean, deviation and range of every layer and its gradient per epoch: .csv");
}

void TrainFlags::add_method(Command verb) {
  verb.option("--epochs", epochs, "Times all samples are seen").range(1, kMany).show_default();
  verb.option("--batch", batch, "Samples per step (default: 32; for lbfgs all of them)")
      .range(1, 1 << 20);
  verb.option("--accumulate", accumulate, "Steps whose gradients make one update")
      .range(1, 1 << 20)
      .show_default();
  verb.option("--loss", loss,
              "mse, mae, huber, softmax_ce, bce, kl, cosine (default: softmax_ce for labels, "
              "else mse)");
  verb.option("--smoothing", smoothing, "softmax_ce: share of a target spread over all classes")
      .range(0.0, 1.0);
  verb.option("--delta", delta, "huber: where it turns linear").range(1e-6, 1e6).show_default();
  verb.option("--heads", heads,
              "softmax_ce: widths of several predictions side by side, each with a label: 10,4")
      .split_at(',');
  verb.option("--optimizer", optimizer,
              "sgd, momentum, nesterov, rmsprop, adam, adamw, lion, lbfgs (full batches)")
      .show_default();
  verb.option("--decay", decay, "Weight decay (default: the optimizer's)").range(0.0, 1e3);
  verb.option("--clip", clip, "none, norm:LIMIT, layer:LIMIT, value:LIMIT").show_default();
  verb.option("--early-stop", early_stop, "Stop after this many epochs without a better loss")
      .range(0, kMany);
  verb.option("--dtype", dtype,
              "Number type the matrices are trained for (default: f32, or that of NETWORK)");
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

void TrainFlags::add_schedule(Command verb) {
  verb.option("--rate", rate, "Learning rate").range(0.0, 1e3).show_default();
  verb.option("--schedule", schedule,
              "constant, step, multi_step, exponential, cosine, cosine_restarts, linear, "
              "polynomial, one_cycle, plateau")
      .show_default();
  verb.option("--warmup", warmup, "Steps in which the rate rises to where the schedule begins")
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
  verb.flag("--json", json, "One JSON object instead of text");
  verb.flag("--quiet", quiet, "No progress, no lines per epoch");
}

Status TrainFlags::check_outputs() const {
  const std::vector<std::string_view> weights = {".entity", ".safetensors"};
  const std::string before = checkpoint.empty() ? "" : checkpoint + ".previous";
  return Outputs()
      .input("NETWORK", network)
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
  LOOM_ASSIGN(o.optimizer.kind, parse_optimizer(optimizer));
  if (decay >= 0) o.optimizer.weight_decay = static_cast<float>(decay);
  LOOM_TRY(parse_clip_flag(clip, o));
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
  o.native = native;
  o.carry_feedback = carry_feedback;
  o.checkpoint_cells = grad_checkpoint;
  o.shuffle = !no_shuffle;
  o.seed = seed;
  return o;
}

FitOptions TrainFlags::fitting() const {
  FitOptions o;
  o.epochs = epochs;
  o.early_stop = early_stop;
  o.checkpoint = checkpoint;
  o.resume = resume;
  o.best = best;
  return o;
}

}  // namespace loom::cli

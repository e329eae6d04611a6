#include "train_flags.hpp"

#include <fmt/core.h>

#include <charconv>

namespace loom::cli {
namespace {

constexpr int64_t kMany = int64_t{1} << 40;

// "norm:1", "value:0.5", "none".
Result<ClipSpec> parse_clip_flag(const std::string& text) {
  ClipSpec clip;
  const size_t colon = text.find(':');
  LOOM_ASSIGN(clip.kind, parse_clip(text.substr(0, colon)));
  if (colon == std::string::npos) return clip;
  const char* first = text.data() + colon + 1;
  const char* last = text.data() + text.size();
  const auto [end, code] = std::from_chars(first, last, clip.limit);
  if (code == std::errc() && end == last && clip.limit > 0) return clip;
  return Error{Code::invalid_argument,
               fmt::format("--clip {}: the limit must be a number above 0", text),
               {},
               -1};
}

}  // namespace

void TrainFlags::add_files(CLI::App& verb) {
  verb.add_option("NETWORK", network, "Description written by loom new")->required();
  data.add(verb);
  CLI::Option* share =
      verb.add_option("--split", split, "Share of the samples that trains, from the front: 0.8")
          ->check(CLI::Range(0.0, 1.0));
  verb.add_option("--validation", validation, "Samples to validate with, instead of --split")
      ->excludes(share);
  verb.add_option("--validation-labels", validation_labels, "Their labels, as --labels");
  verb.add_option("--normalize", normalize, "Inputs: none, standard, range")->capture_default_str();
  verb.add_option("-o,--output", output, "Write the trained weights (safetensors)");
  CLI::Option* file = verb.add_option("--checkpoint", checkpoint, "Save the run after each epoch");
  verb.add_flag("--resume", resume, "Go on from the checkpoint")->needs(file);
  verb.add_option("--plot", plot, "Write the loss curve (SVG)");
}

void TrainFlags::add_method(CLI::App& verb) {
  verb.add_option("--epochs", epochs, "Times all samples are seen")
      ->check(CLI::Range(int64_t{1}, kMany))
      ->capture_default_str();
  verb.add_option("--batch", batch, "Samples per step")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  verb.add_option("--accumulate", accumulate, "Steps whose gradients make one update")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  verb.add_option("--loss", loss,
                  "mse, mae, huber, softmax_ce, bce, kl, cosine (default: softmax_ce for labels, "
                  "else mse)");
  verb.add_option("--smoothing", smoothing, "softmax_ce: share of a target spread over all classes")
      ->check(CLI::Range(0.0, 1.0));
  verb.add_option("--delta", delta, "huber: where it turns linear")
      ->check(CLI::Range(1e-6, 1e6))
      ->capture_default_str();
  verb.add_option("--optimizer", optimizer, "sgd, momentum, nesterov, rmsprop, adam, adamw, lion")
      ->capture_default_str();
  verb.add_option("--decay", decay, "Weight decay (default: the optimizer's)")
      ->check(CLI::Range(0.0, 1e3));
  verb.add_option("--clip", clip, "none, norm:LIMIT, layer:LIMIT, value:LIMIT")
      ->capture_default_str();
  verb.add_option("--early-stop", early_stop, "Stop after this many epochs without a better loss")
      ->check(CLI::Range(int64_t{0}, kMany));
  verb.add_option("--dtype", dtype, "Number type the matrices are trained for")
      ->capture_default_str();
  verb.add_option("--seed", seed, "Of the starting weights and the order of samples")
      ->check(CLI::Range(uint64_t{0}, uint64_t{INT64_MAX}))
      ->capture_default_str();
  verb.add_flag("--no-shuffle", no_shuffle, "Keep the order of the samples");
}

void TrainFlags::add_schedule(CLI::App& verb) {
  verb.add_option("--rate", rate, "Learning rate")
      ->check(CLI::Range(0.0, 1e3))
      ->capture_default_str();
  verb.add_option("--schedule", schedule,
                  "constant, step, multi_step, exponential, cosine, cosine_restarts, linear, "
                  "polynomial, one_cycle, plateau")
      ->capture_default_str();
  verb.add_option("--warmup", warmup, "Steps in which the rate rises")
      ->check(CLI::Range(int64_t{0}, kMany));
  verb.add_option("--floor", floor, "cosine, linear, polynomial: the last rate")
      ->check(CLI::Range(0.0, 1e3));
  verb.add_option("--gamma", gamma, "step, multi_step, exponential, plateau: factor")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  verb.add_option("--power", power, "polynomial")->check(CLI::Range(0.0, 16.0));
  verb.add_option("--every", every, "step, cosine_restarts: epochs")
      ->check(CLI::Range(int64_t{1}, kMany))
      ->capture_default_str();
  verb.add_option("--milestones", milestones, "multi_step: epochs")->delimiter(',');
  verb.add_option("--patience", patience, "plateau: epochs")
      ->check(CLI::Range(int64_t{0}, kMany))
      ->capture_default_str();
}

void TrainFlags::add(CLI::App& verb) {
  add_files(verb);
  add_method(verb);
  add_schedule(verb);
  engine.add_lanes(verb);
  verb.add_flag("--json", json, "One JSON object instead of text");
  verb.add_flag("--quiet", quiet, "No progress, no lines per epoch");
}

Result<TrainerOptions> TrainFlags::options() const {
  TrainerOptions o;
  if (!loss.empty()) {
    LOOM_ASSIGN(o.step.loss.kind, parse_loss(loss));
  }
  o.step.loss.smoothing = static_cast<float>(smoothing);
  o.step.loss.delta = static_cast<float>(delta);
  LOOM_ASSIGN(o.step.optimizer, parse_optimizer(optimizer));
  if (decay >= 0) o.step.optimizer.decay = static_cast<float>(decay);
  LOOM_ASSIGN(o.step.clip, parse_clip_flag(clip));
  LOOM_ASSIGN(o.schedule.kind, parse_schedule(schedule));
  LOOM_ASSIGN(o.dtype, parse_dtype(dtype));
  o.step.accumulate = static_cast<int>(accumulate);
  o.step.seed = seed;
  o.schedule.rate = rate;
  o.schedule.floor = floor;
  o.schedule.gamma = gamma;
  o.schedule.power = power;
  o.schedule.every = every;
  o.schedule.milestones = milestones;
  o.schedule.warmup = warmup;
  o.schedule.patience = patience;
  o.epochs = epochs;
  o.batch = batch;
  o.early_stop = early_stop;
  o.shuffle = !no_shuffle;
  o.seed = seed;
  return o;
}

}  // namespace loom::cli

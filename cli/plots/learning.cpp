#include "learning.hpp"

#include <fmt/core.h>

#include <cmath>

namespace loom::cli {

void MediaFlags::add(Command verb) {
  constexpr double kMaxHz = 1 << 23;
  verb = verb.default_group("Images and sound");
  verb.option("--fit", fit,
              "Pictures of other proportions than the input: crop, stretch, pad with black "
              "(default: as trained, else crop)");
  verb.option("--mel", mel,
              "Sound as the mel spectrogram of librosa or torchaudio (default: as trained, else "
              "librosa)");
  verb.option("--sound-rate", rate,
              "Samples per second that sound is brought to (default: as trained, else 16000)")
      .range(1, 1 << 24);
  verb.option("--mel-window", window, "Samples of a frame (default: as trained, else 400)")
      .range(2, 1 << 16);
  verb.option("--mel-hop", hop, "Samples from frame to frame (default: as trained, else 160)")
      .range(1, 1 << 16);
  verb.option("--mel-low", low, "Hz of the lowest band (default: as trained, else 0)")
      .range(0.0, kMaxHz);
  verb.option("--mel-high", high, "Hz of the highest band; 0: half the rate").range(0.0, kMaxHz);
  verb.flag("--mel-time-first", time_first,
            "The input is [frames, bands], as recurrent layers take it");
}

Status MediaFlags::set(DatasetOptions& options) const {
  if (!fit.empty()) {
    LOOM_ASSIGN(options.fit, parse_picture_fit(fit));
  }
  options.sound.mel = mel;
  options.sound.rate = rate;
  options.sound.window = window;
  options.sound.hop = hop;
  if (low >= 0) options.sound.low = low;
  if (high >= 0) options.sound.high = high;
  if (time_first) options.sound.time_first = true;
  return {};
}

void DataFlags::add(Command verb, bool required) {
  verb.option("DATA", path,
              "CSV, NPY, NPZ, IDX (also .gz) or safetensors; or a folder "
              "that has a folder of images or sounds for each class")
      .required(required);
  verb = verb.default_group("Data");
  verb.option("--labels", labels, "Labels or targets, where DATA holds the inputs alone");
  media.add(verb);
  verb.option("--x", x, "Name of the inputs in an NPZ or safetensors file").show_default();
  verb.option("--y", y, "Name of the targets in it").show_default();
  verb.option("--targets", targets, "CSV: how many of the last columns are the target")
      .range(1, 1 << 24)
      .show_default();
  verb.option(
      "--sample-weights", weights,
      "The weight of each sample in the loss: a column of the CSV, by name or number from 1, "
      "or an array of the file");
  verb.option("--lengths", lengths,
              "How many positions of each sample are real, named as --sample-weights is; what "
              "follows is padding");
  verb.option("--ignore-label", ignored, "Labels of this value count nothing, as -100")
      .range(INT32_MIN, INT32_MAX);
  verb.option("--header", header,
              "CSV: is the first row a header: yes, no, auto (yes where it has no number and "
              "is above numbers)")
      .show_default();
  verb.flag("--columns-by-order", columns_by_order, kColumnsByOrder);
  text.add(verb);
}

Result<DatasetOptions> DataFlags::options(bool classes) const {
  DatasetOptions options;
  LOOM_ASSIGN(options.header, parse_csv_header(header));
  LOOM_TRY(media.set(options));
  text.set(options);
  options.labels = labels;
  options.x = x;
  options.y = y;
  options.targets = targets;
  options.weights = weights;
  options.lengths = lengths;
  if (ignored != INT64_MIN) options.ignore_label = static_cast<int32_t>(ignored);
  options.classes = classes;
  options.columns_by_order = columns_by_order;
  return options;
}

LossInfo info_of_loss(std::string_view name) {
  const Result<Loss> loss = parse_loss(name);
  return loss.ok() ? loss_info(*loss) : LossInfo();
}

std::string in_unit(double loss, const NetworkInfo& network) {
  if (network.target_scale.size() != 1 || network.loss_degree == 0) return {};
  const bool squared = network.loss_degree == 2;
  const double value = (squared ? std::sqrt(loss) : loss) * network.target_scale[0];
  return fmt::format(" ({} {:.5g})", squared ? "rmse" : "error", value);
}

std::string percent(double share) {
  return fmt::format("{:.2f} %", share * 100);
}

}  // namespace loom::cli

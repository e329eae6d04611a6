// Dataset: samples in memory, from arrays or files: inputs, and targets or class labels.
//
//   Dataset data = Dataset::from_file("digits.npz", net).or_exit();
//   auto [train, test] = data.split(0.8).or_exit();
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "loom/export.hpp"
#include "loom/network.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

// How a picture of other proportions meets an input: it fills it, and what is over is cut off on
// both sides; its proportions change; all of it is shown, between black bars.
enum class PictureFit : uint8_t { crop, stretch, pad };
// "crop", "stretch", "pad".
LOOM_API Result<PictureFit> parse_picture_fit(std::string_view name);

// How recordings become the values of an input: of [bands, frames] or [1, bands, frames] a
// mel spectrogram in decibels, of [samples] or [1, samples] the sound itself. What is cut off,
// silence and formulas: docs/pictures-and-sound.md. Unset or 0: as the network was trained, or the
// default.
struct SoundOptions {
  std::string mel{};                    // "librosa" (the default) or "torchaudio": whose formula
  int64_t rate = 0;                     // samples per second (16000)
  int64_t window = 0;                   // samples of a frame, an even number (400)
  int64_t hop = 0;                      // samples from one frame to the next (160)
  std::optional<double> low{}, high{};  // Hz: the lowest and highest band (0; 0: half the rate)
  std::optional<bool> time_first{};     // inputs are [frames, bands], as recurrent layers take them
};

// An array of a file that is an input besides those of the network, as a port of a mesh.
struct InputArray {
  std::string name;
  Shape shape;  // of one sample
};

struct DatasetOptions {
  std::string labels{};          // file of labels or targets, where the first file holds one array
  std::string x = "x", y = "y";  // names of arrays (.npz, .safetensors)
  int64_t targets = 1;           // .csv: the last columns
  bool classes = true;           // whole-number targets are class labels where the network has more
                                 // outputs than there are targets
  // .npz, .safetensors: further inputs besides those that the network has. Integers are ids.
  std::vector<InputArray> inputs{};
  std::vector<int64_t> heads{};      // widths of the parts of an output, a label for each; empty:
                                     // as the network was trained
  std::vector<std::string> names{};  // of classes, by text labels; empty: as trained, or new ones
  // What each sample counts in the loss: the name of an array, or of a CSV column (or its number,
  // from 1), which is neither input nor target.
  std::string weights{};
  // Samples of different lengths: how many positions of each are real, named as `weights` is.
  // Arrays hold them padded at the end, [n, positions, ..], or packed, [all positions, ..]; targets
  // of positions likewise. Cells of a .csv behind the end may be empty. docs/data-files.md
  std::string lengths{};
  std::optional<int32_t> ignore_label{};  // labels of this value count nothing, as -100
  bool sequences = false;  // any number of labels per sample, padded with ignore_label or else -1
  // For losses of embeddings: labels are any whole numbers, one per sample or per row of an output.
  bool embeddings = false;
  bool inputs_only = false;  // the file has no targets: for predictions
  enum class Header : uint8_t { automatic, yes, no } header = Header::automatic;  // .csv
  // .csv with a header: names of the inputs in the order of the network, then of the targets, which
  // may be left out. Empty: those of its training. Inputs are found by name; one that is missing is
  // an error.
  std::vector<std::string> columns{};
  bool columns_by_order = false;  // .csv: columns are not matched by name
  // Folders of pictures and sound; unset: as the network was trained, else crop.
  std::optional<PictureFit> fit{};
  SoundOptions sound{};
  // .csv: rows taken and in all, folders: files; false stops with Code::cancelled. Other files are
  // not parsed.
  std::function<bool(int64_t done, int64_t total)> progress{};
};

// "yes", "no", "auto".
LOOM_API std::string_view csv_header_name(DatasetOptions::Header header);
LOOM_API Result<DatasetOptions::Header> parse_csv_header(std::string_view name);

struct ArrayOptions {
  Tensor weights{};  // [n]: what each sample counts in the loss; empty: 1
  // [n]: how many positions of each sample, [positions, ..], are real; what stands behind them is
  // padding, which layers that look along the positions, losses and metrics leave out. Empty: all.
  Tensor lengths{};
  std::optional<int32_t> ignore_label{};  // labels of this value count nothing, as -100
};

struct SplitOptions {
  uint64_t seed = 1;
  bool shuffle = true;  // false: the first samples are the first part
};

// A handle: copies mean the same samples, which never change.
class LOOM_API Dataset {
 public:
  // x: [n, sample]; integers of 32 and 64 bits are ids for an Embedding, other types are numbers.
  // y: class labels as integers, [n] or [n, places]; or targets as floats, [n, outputs]; or empty.
  // Values are copied. Errors: invalid_argument, naming the sample.
  static Result<Dataset> from_arrays(const Tensor& x, const Tensor& y,
                                     const ArrayOptions& options = {});
  // .csv, .npz, .npy, .safetensors, .idx, each also as .gz, read as `network` takes its inputs.
  // A folder: a sample per .png, .jpg or .jpeg, or per sound in it, whose class is the folder that
  // it stands in (docs/data-files.md); without classes, or one file, for predictions. Text labels
  // become class labels: those the network knows, or new ones. Errors: not_found, bad_file, naming
  // line and column or array, out_of_memory.
  static Result<Dataset> from_file(const std::string& path, const Network& network,
                                   const DatasetOptions& options = {});

  // The same of a file in memory; options.labels stays the name of a file.
  static Result<Dataset> from_file(const FileBytes& file, const Network& network,
                                   const DatasetOptions& options = {});

  int64_t samples() const;
  Shape sample() const;  // of one input
  bool has_labels() const;
  bool has_targets() const;                         // numbers
  const std::vector<std::string>& classes() const;  // names, where labels were text
  // Of a .csv with a header: names of the inputs in the order of the network, then of the targets;
  // else empty.
  std::vector<std::string> columns() const;
  const std::vector<std::string>& notes() const;  // on how the file was read
  // The file of each sample, where a folder was read whole; parts of a split have none.
  const std::vector<std::string>& files() const;
  int64_t bytes() const;     // that its values take
  std::string hash() const;  // XXH3-128 of everything in it, whatever files it came from
  // [n, sample], float32 or int32; lives as long as the dataset. Where the samples are not in
  // memory they are read for it, and it is empty where that fails.
  Tensor x() const;
  // Samples [first, first + count) of that. Errors: those of reading files again.
  Result<Tensor> inputs(int64_t first, int64_t count) const;
  // false: a folder whose values would take more than half of the memory that is left; files are
  // read anew whenever a batch asks for them.
  bool in_memory() const;
  Tensor y() const;  // labels int32 [n, places] or targets float32 [n, outputs]; may be empty

  Tensor lengths() const;  // int32 [n], where samples have them; else empty

  // The same samples with a further input of networks that have several (NetworkInfo::inputs), by
  // its name there. values: [n, sample], ids or numbers as x is. Errors: invalid_argument.
  Result<Dataset> with_input(const std::string& name, const Tensor& values) const;
  std::vector<std::string> further_inputs() const;  // their names
  // Samples [first, first + count) of one of them. Errors: not_found.
  Result<Tensor> input(const std::string& name, int64_t first, int64_t count) const;

  struct Parts;
  // round(share * n) samples, and the rest; drawn by class where every sample has one label.
  // Errors: invalid_argument (a part without samples).
  Result<Parts> split(double share, const SplitOptions& options = {}) const&;
  // std::move(data).split(0.8): the first part stays where it is, if no other handle holds the
  // samples, so that memory is taken for the second alone.
  Result<Parts> split(double share, const SplitOptions& options = {}) &&;

  // Cross-validation: all samples but those of fold `number`, from 0, of `count`, and those of it.
  // Folds are alike, and of each class alike where every sample has one label, within one sample.
  // Errors: invalid_argument (fewer than 2 folds, more than samples).
  Result<Parts> fold(int64_t number, int64_t count, const SplitOptions& options = {}) const;

  struct LOOM_LOCAL Impl;
  const Impl& impl() const { return *impl_; }
  explicit Dataset(std::shared_ptr<Impl> impl);

 private:
  std::shared_ptr<Impl> impl_;
};

struct Dataset::Parts {
  Dataset first, second;
  bool by_class = false;  // every class is in both in the same share, as far as it can be
};

}  // namespace loom
#endif

// Dataset: samples in memory, from arrays or files, with inputs and targets or class labels.
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
#include "loom/picture_fit.hpp"
#include "loom/table_options.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

// How recordings become input values. An input [bands, frames] or [1, bands, frames] is a mel
// spectrogram in decibels; [samples] or [1, samples] is the sound itself.
// docs/pictures-and-sound.md has cuts, silence and formulas. Unset or 0 means as in training, or
// else the default.
struct SoundOptions {
  std::string mel{};                    // formula: "librosa" (the default) or "torchaudio"
  int64_t rate = 0;                     // samples per second (16000)
  int64_t window = 0;                   // samples of a frame, an even number (400)
  int64_t hop = 0;                      // samples from one frame to the next (160)
  std::optional<double> low{}, high{};  // Hz: lowest and highest band (0; 0 means half the rate)
  std::optional<bool> time_first{};     // inputs are [frames, bands], as for recurrent layers
};

// An array of a file that is an additional input, such as a port of a mesh.
struct InputArray {
  std::string name;
  Shape shape;  // of one sample
};

struct DatasetOptions {
  std::string labels{};          // labels or targets, if the first file has only one array
  std::string x = "x", y = "y";  // names of arrays (.npz, .safetensors)
  int64_t targets = 1;           // .csv: the last columns
  bool classes = true;  // integer targets are labels if there are more outputs than targets
  // .npz, .safetensors: additional inputs besides those of the network. Integers are ids.
  std::vector<InputArray> inputs{};
  std::vector<int64_t> heads{};      // widths of an output's parts, a label each; empty: as trained
  std::vector<std::string> names{};  // class names of text labels; empty: as in training, or new
  // The weight of each sample in the loss: the name of an array, or of a CSV column (or its number,
  // from 1). The column is neither input nor target.
  std::string weights{};
  // Samples of different lengths: the number of valid positions of each, named like `weights`.
  // Arrays are padded at the end, [n, positions, ..], or packed, [all positions, ..]; so are
  // targets of positions. Cells of a .csv after the end may be empty. docs/data-files.md
  std::string lengths{};
  std::optional<int32_t> ignore_label{};  // labels of this value are ignored, like -100
  bool sequences = false;  // any number of labels per sample, padded with ignore_label or else -1
  // For losses of embeddings: labels are any integers, one per sample or per row of an output.
  bool embeddings = false;
  bool inputs_only = false;  // the file has no targets; for predictions
  enum class Header : uint8_t { automatic, yes, no } header = Header::automatic;  // .csv
  // .csv with a header: names of the inputs in the network's order, then of the targets, which are
  // optional. Empty means the columns of its training. Inputs are matched by name; a missing one is
  // an error.
  std::vector<std::string> columns{};
  bool columns_by_order = false;  // .csv: columns are not matched by name
  // .csv: makes a plan of the table for a network without one (loom/table.hpp), which then has it.
  std::optional<TableOptions> table{};
  // Tables with a plan: one character or "tab"; "." or ","; one of . , ' space, or "none"; utf-8,
  // utf-16, utf-16be, latin-1. Empty means detected.
  std::string separator{}, decimal{}, thousands{}, encoding{};
  // For folders of images and sound. Unset means as in training, or else crop.
  std::optional<PictureFit> fit{};
  SoundOptions sound{};
  // Progress in rows of a .csv or files of a folder, done and total; false stops with
  // Code::cancelled. Other files do not report progress.
  std::function<bool(int64_t done, int64_t total)> progress{};
};

// "yes", "no", "auto".
LOOM_API std::string_view csv_header_name(DatasetOptions::Header header);
LOOM_API Result<DatasetOptions::Header> parse_csv_header(std::string_view name);

struct ArrayOptions {
  Tensor weights{};  // [n]: weight of each sample in the loss; empty means 1
  // [n]: the number of valid positions of each sample [positions, ..]; the rest is padding. Layers
  // over positions, losses and metrics ignore padding. Empty means all are valid.
  Tensor lengths{};
  std::optional<int32_t> ignore_label{};  // labels of this value are ignored, like -100
};

struct SplitOptions {
  uint64_t seed = 1;
  bool shuffle = true;  // false: the first samples are the first part
};

// A handle: copies share the samples, which never change.
class LOOM_API Dataset {
 public:
  // x: [n, sample]; 32-bit and 64-bit integers are ids for an Embedding, other types are numbers.
  // y: class labels as integers, [n] or [n, positions]; or targets as floats, [n, outputs]; or
  // empty. Values are copied. Errors: invalid_argument, naming the sample.
  static Result<Dataset> from_arrays(const Tensor& x, const Tensor& y,
                                     const ArrayOptions& options = {});
  // Reads .csv, .npz, .npy, .safetensors or .idx, each also as .gz, in the layout of the network's
  // inputs. In a folder, each .png, .jpg, .jpeg or sound file is a sample, and its subfolder is its
  // class (docs/data-files.md). A folder without classes, or a single file, is for predictions.
  // Text labels become class labels: those of the network, or new ones. Errors: not_found, bad_file
  // (naming line and column, or the array), out_of_memory.
  static Result<Dataset> from_file(const std::string& path, const Network& network,
                                   const DatasetOptions& options = {});

  // Reads a file in memory; options.labels is still the name of a file.
  static Result<Dataset> from_file(const FileBytes& file, const Network& network,
                                   const DatasetOptions& options = {});

  int64_t samples() const;
  Shape sample() const;  // of one input
  bool has_labels() const;
  bool has_targets() const;                         // numeric targets
  const std::vector<std::string>& classes() const;  // names, if labels were text
  // For a .csv with a header: names of the inputs in the network's order, then of the targets.
  // Otherwise empty.
  std::vector<std::string> columns() const;
  const std::vector<std::string>& notes() const;  // remarks on how the file was read
  // The file of each sample, if a folder was read whole. Parts of a split have none.
  const std::vector<std::string>& files() const;
  int64_t bytes() const;     // size of its values
  std::string hash() const;  // XXH3-128 of the contents, independent of the files
  // [n, sample], float32 or int32; lives as long as the dataset. Samples that are not in memory are
  // read first; the tensor is empty if that fails.
  Tensor x() const;
  // Samples [first, first + count) of x(). Errors: those of reading files again.
  Result<Tensor> inputs(int64_t first, int64_t count) const;
  // false for a folder whose values would take more than half of the free memory. Its files are
  // then read again for each batch.
  bool in_memory() const;
  Tensor y() const;  // int32 labels [n, positions] or float32 targets [n, outputs]; may be empty

  Tensor lengths() const;  // int32 [n], or empty if samples have no lengths

  // The same samples with an additional input for networks with several (NetworkInfo::inputs).
  // `name` is the name of that input. values: [n, sample], ids or numbers like x. Errors:
  // invalid_argument.
  Result<Dataset> with_input(const std::string& name, const Tensor& values) const;
  // The same samples with names of their classes: label i has names[i]. Errors: invalid_argument
  // (no labels, or a label without a name).
  Result<Dataset> with_classes(const std::vector<std::string>& names) const;
  std::vector<std::string> further_inputs() const;  // names of the additional inputs
  // Samples [first, first + count) of an additional input. Errors: not_found.
  Result<Tensor> input(const std::string& name, int64_t first, int64_t count) const;

  struct Parts;
  // Splits into round(share * n) samples, and the rest; stratified by class if every sample has one
  // label. Errors: invalid_argument (an empty part).
  Result<Parts> split(double share, const SplitOptions& options = {}) const&;
  // std::move(data).split(0.8) keeps the first part in place if no other handle holds the samples.
  // Then only the second part takes memory.
  Result<Parts> split(double share, const SplitOptions& options = {}) &&;

  // Cross-validation: training samples without fold `number` (from 0) of `count`, and the fold
  // itself. Fold sizes differ by one sample at most; so do their class counts if every sample has
  // one label. Errors: invalid_argument (fewer than 2 folds, more folds than samples).
  Result<Parts> fold(int64_t number, int64_t count, const SplitOptions& options = {}) const;

  struct LOOM_LOCAL Impl;
  const Impl& impl() const { return *impl_; }
  explicit Dataset(std::shared_ptr<Impl> impl);

 private:
  std::shared_ptr<Impl> impl_;
};

struct Dataset::Parts {
  Dataset first, second;
  bool by_class = false;  // every class has the same share in both parts, as far as possible
  bool drawn = false;     // false: the first samples are the first part
};

}  // namespace loom
#endif

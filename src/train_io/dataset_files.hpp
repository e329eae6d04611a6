// Data sets from files, in the form that a network needs. Sources are CSV, arrays x and y of an NPZ
// or safetensors file, and a pair of NPY or IDX files. Each may be gzip. Folders of images are a
// source too (media_files.hpp). Everything is checked here, so an Error names the file and the
// position in it.
// The results pass Dataset::check.
#pragma once

#include <string>
#include <vector>

#include "base/memory_budget.hpp"
#include "base/threads/thread_pool.hpp"
#include "bridge/normalization.hpp"
#include "grid/builders.hpp"
#include "io/arrays/csv.hpp"
#include "io/files/file_ref.hpp"
#include "learn/data/dataset.hpp"
#include "loom/training_kinds.hpp"
#include "table/dialect.hpp"
#include "train_io/media_reading.hpp"
#include "train_io/table_columns.hpp"

namespace loom::core {

struct DatasetOptions {
  std::string labels;            // file of labels or targets, where `path` holds one array
  std::string x = "x", y = "y";  // names of arrays
  int64_t targets = 1;           // CSV: the last columns
  bool classes = true;           // whole-number targets are class labels, when the network's output
                                 // is wider than the targets
  std::vector<InputSpec> inputs;  // besides those of the network; `ids` is what the array says
  std::vector<int64_t> heads;     // widths of the heads of softmax_ce, a label for each; empty: one
  std::vector<std::string> names;  // classes of text labels, known from training; empty: new ones
  // Weights of samples: the name of an array, or of a CSV column, or that column's number from 1.
  std::string weights;
  // For samples of different lengths: how many positions of each are real, named as `weights` is.
  // Arrays store them padded or packed (sequences.hpp). Cells of a CSV after the end may be empty.
  std::string lengths;
  std::optional<int32_t> ignored;  // labels of this value count nothing
  // Samples have any number of labels (ctc), padded with `ignored`, or else with -1.
  bool sequences = false;
  // The network returns embeddings (LossSpec::pairs()). Labels are any integers, one per sample or
  // one per row of its prediction.
  bool embeddings = false;
  // The inputs alone, for predictions: targets may be absent, and are left out where they are not.
  bool inputs_only = false;
  CsvHeader header = CsvHeader::automatic;  // CSV: is the first row one?
  TableColumns columns;    // CSV: those of training, which are matched by name; empty: by order
  DialectOptions dialect;  // tables with a plan (TableColumns::plan)
  bool by_order = false;   // the same: columns are not found by name
  MediaReading reading;    // folders of images and sound
  // CSV: rows, folders: files; false: cancelled.
  std::function<bool(int64_t done, int64_t total)> progress;
  ThreadPool* pool = nullptr;  // that files of a folder are read with; null: one after the other
  MemoryBudget memory;         // of the values, and of what is unpacked on the way to them
};

struct LoadedDataset {
  Dataset data;
  std::vector<std::string> names;     // of the classes, where labels were text
  std::vector<std::string> notes;     // for a person: what was taken as a header
  TableColumns columns;               // CSV: names of inputs and targets, if there is a header
  std::vector<std::string> files;     // of the samples, where each is a file of its own
  std::optional<MediaReading> media;  // how they were read
  MemoryShare memory;                 // what `data` takes of the budget
};

// The inputs get the shape of the network's (sizes must agree); IDX bytes are scaled to [0, 1]. The
// memory of the values is reserved before any of them is read.
Result<LoadedDataset> load_dataset(const FileRef& path, const NetworkSpec& network,
                                   const DatasetOptions& options);

// Errors: those of reading samples that are not in memory.
Result<Normalization> find_normalization(const Dataset& data, Normalize kind);
// Errors: another number of values per sample; ids, which cannot be scaled.
Status normalize(Dataset& data, const Normalization& normalization);

// XXH3-128 of everything in it: equal for equal samples, whatever files they came from.
std::string hash_dataset(const Dataset& data);

}  // namespace loom::core

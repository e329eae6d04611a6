// Options and steps that `loom train` and `loom eval` share.
#pragma once

#include "../shared/verbs.hpp"
#include "../train/table_flags.hpp"

namespace loom::cli {

// How images and sound are read; unset options are as in training.
struct MediaFlags {
  std::string fit, mel;
  int64_t rate = 0, window = 0, hop = 0;
  double low = -1, high = -1;
  bool time_first = false;

  void add(Command verb);
  Status set(DatasetOptions& options) const;
};

constexpr const char* kColumnsByOrder =
    "CSV: take the columns in the order of training, whatever their names (default: a header's "
    "columns are found by their names in training)";

// Where the samples come from.
struct DataFlags {
  std::string path, labels, x = "x", y = "y", header = "auto";
  MediaFlags media;
  TableTextFlags text;
  int64_t targets = 1, ignored = INT64_MIN;
  std::string weights, lengths;
  bool columns_by_order = false;

  // `required`: DATA must be given.
  void add(Command verb, bool required = true);
  // `classes`: integers are labels.
  Result<DatasetOptions> options(bool classes) const;
};

// Facts of a loss by its name. All are false if it is unknown or empty.
LossInfo info_of_loss(std::string_view name);

// " (rmse 1234)": a loss of one standardized target in its own unit; empty for other losses.
std::string in_unit(double loss, const NetworkInfo& network);

// "97.35 %"
std::string percent(double share);

}  // namespace loom::cli

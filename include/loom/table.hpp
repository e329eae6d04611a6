// Tables as people have them: a network and a plan for the columns of a CSV file. The plan says
// which column is an input or the target, and how its cells become values: numbers are
// standardized, gaps filled, categories one-hot encoded, dates split into parts. It is stored with
// the network. Dataset::from_file() applies it to every later table, by column names.
//
//   const TableOptions table{.target = {"price"}};
//   TableNetwork made = network_for_table("houses.csv", {.table = table}).or_exit();
//   Dataset data = Dataset::from_file("houses.csv", made.network).or_exit();
#pragma once

#include <string>
#include <vector>

#include "loom/dataset.hpp"
#include "loom/training_kinds.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

struct TableNetwork {
  Network network;                   // not trained
  std::string json;                  // its description, with the plan
  std::string description;           // "8 columns: 5 numbers, ...; target price, a number"
  std::vector<std::string> notes{};  // columns that are not inputs, and why
  int64_t samples = 0;               // rows with a target
};

// Reads the table by header, separator, decimal, encoding and table of `reading`. Errors:
// not_found, bad_file (naming row and column), invalid_argument (no such column).
LOOM_API Result<TableNetwork> network_for_table(const std::string& path,
                                                const DatasetOptions& reading = {},
                                                const LoadOptions& options = {});
// The same for a file in memory.
LOOM_API Result<TableNetwork> network_for_table(const FileBytes& file,
                                                const DatasetOptions& reading = {},
                                                const LoadOptions& options = {});

// A copy of a network that was not trained, with an output stage for numeric targets: training
// standardizes them by the mean and deviation of those of `train`, and outputs are in their unit.
// `options` are those the network was loaded with; starting weights are the same. It returns the
// network itself if it has a stage, or does not end in a Dense without an activation. The same
// holds for targets that are not numbers, in `train` or by the loss.
LOOM_API Result<Network> with_target_scale(const Network& network, const Dataset& train,
                                           Loss loss = Loss::automatic,
                                           const LoadOptions& options = {});

}  // namespace loom
#endif

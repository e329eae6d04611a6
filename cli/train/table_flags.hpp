// Options of tables: how a CSV file is read, and how its columns become inputs and targets.
#pragma once

#include "../shared/verbs.hpp"
#include "option_flags.hpp"

namespace loom::cli {

// How the text of a table is read.
struct TableTextFlags {
  std::string separator, decimal, thousands, encoding;

  void add(Command verb);
  void set(DatasetOptions& options) const;
};

// The plan of a table.
struct TableFlags {
  OptionFlags method;

  void add(Command verb);
  // Whether an option asks for a plan. Numeric tables without one are read as they are.
  bool any() const;
  // Errors: those of set_flag().
  Result<TableOptions> options() const;
};

// Whether the name is that of a table: -, .csv, .tsv, .txt, also .gz.
bool names_table(const std::string& path);
// An error if the name is that of a table, where a network is needed. `usage`: "loom eval MODEL
// DATA".
Status refuse_table(const std::string& path, std::string_view usage);

// Dataset::from_file() and network_for_table(), also of standard input (-) and of pipes, whose
// bytes stay in memory.
Result<Dataset> read_samples(const std::string& path, const Network& network,
                             const DatasetOptions& how);
Result<TableNetwork> plan_samples(const std::string& path, const DatasetOptions& how,
                                  const LoadOptions& load = {});

}  // namespace loom::cli

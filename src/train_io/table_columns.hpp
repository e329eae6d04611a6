// Which column of a table is which input or target of a network: by the names that it was trained
// with, or by order.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace loom::core {

// Names of the columns that a network was trained with, in its own order. Empty if the table had no
// header, or two columns of one name. With a plan, inputs and targets are columns of the table.
struct TableColumns {
  std::vector<std::string> inputs, targets;
  std::string plan = {};  // how they become values, as JSON (table/plan.hpp); empty: as they are
  bool empty() const { return inputs.empty() && plan.empty(); }
  // Inputs, then targets.
  std::vector<std::string> all() const {
    std::vector<std::string> out = inputs;
    out.insert(out.end(), targets.begin(), targets.end());
    return out;
  }
  bool operator==(const TableColumns&) const = default;
};

// Names as all() lists them, of which the first `inputs` are inputs.
TableColumns split_columns(const std::vector<std::string>& all, int64_t inputs);

struct TableLayout {
  std::vector<std::string> header;  // of the file; empty: it has none
  int64_t columns = 0, inputs = 0, targets = 0;
  std::vector<int64_t> others;  // columns that are neither input nor target
};

// The place of each column: inputs from 0, targets from layout.inputs, -1 for others. Inputs are
// found by the names of `known`, unless it or the header is empty. So are targets, if all of their
// names are there; else what is left is taken in order. Errors: bad_file, naming `path` and the
// column that is missing or there twice.
Result<std::vector<int64_t>> places_of_columns(const TableLayout& layout, const TableColumns& known,
                                               const std::string& path);

// The names of the columns at their places.
TableColumns names_of_columns(const TableLayout& layout, const std::vector<int64_t>& column_index);

}  // namespace loom::core

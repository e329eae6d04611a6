// Rows of a table as samples of a network, by a plan.
#pragma once

#include "table/plan.hpp"

namespace loom::core {

struct EncodedTable {
  int64_t samples = 0;
  std::vector<float> inputs;   // [samples][window][width]
  std::vector<float> targets;  // [samples][targets]; empty for classes
  std::vector<int32_t> labels;
  std::vector<float> weights;
  // The row of the table that each sample, or the last row of its window, is.
  std::vector<int64_t> rows;
  std::vector<std::string> notes;
};

// The columns of the table are those of types_of(plan), in any order. Rows without a target are
// left out, with a note. with_targets: false leaves targets out and keeps every row. Errors:
// bad_file (a class that training did not have; fewer rows than a window).
Result<EncodedTable> encode_table(const Table& table, const TablePlan& plan, bool with_targets);

// The rows that samples have a target in, and the labels of their classes, before a plan is fitted:
// what a split depends on.
std::vector<int64_t> rows_with_targets(const Table& table, const TablePlan& plan);

}  // namespace loom::core

// Plans for tables (table/plan.hpp), data sets by a plan, and networks that fit one.
#pragma once

#include "grid/builders.hpp"
#include "learn/data/split.hpp"
#include "table/plan.hpp"
#include "train_io/dataset_files.hpp"
#include "train_io/wanted.hpp"

namespace loom::core {

struct PlanRequest {
  PlanOptions plan;
  DialectOptions dialect;
  // Statistics are those of the samples that this split trains; unset: of all.
  std::optional<SplitSpec> split;
  MemoryBudget memory;
};

struct PlannedTable {
  TablePlan plan;
  int64_t samples = 0;  // with a target
  std::vector<std::string> notes;
};

// Errors: those of reading, and of roles_of().
Result<PlannedTable> plan_table(const FileRef& path, const PlanRequest& request);

// Names of the columns, and the plan as text.
TableColumns columns_of(const TablePlan& plan);

// Tells that the statistics of a plan are not those of the samples that a split trains; else empty.
std::string note_on_split(const TableColumns& columns, const SplitSpec& spec);

// Whether the first bytes may be a table in UTF-16.
bool may_be_wide(std::span<const std::byte> head);
// The samples of a file by options.columns.plan, which is not empty. Errors: the network takes or
// gives another number of values.
Result<LoadedDataset> load_table(ByteSource source, const InputSchema& network,
                                 const DatasetOptions& options);

// A description for the plan: dense layers, or a recurrent one first for windows, as wide as
// `samples` allow. Numeric targets get an output stage (target_scale.hpp) if the plan says so.
Result<std::string> describe_network(const TablePlan& plan, int64_t samples);

}  // namespace loom::core

// Public options of tables as those of lower rooms. Private to the room.
#pragma once

#include "loom/dataset.hpp"
#include "train_io/table_dataset.hpp"

namespace loom::core {

// Sets what `how` has for a table: the dialect, and the plan of options.table, with notes on it.
// Errors: those of plan_table(); invalid_argument (an option that has no effect, a second plan).
Status settle_table(const loom::DatasetOptions& options, const FileRef& path,
                    const MemoryBudget& memory, DatasetOptions& how,
                    std::vector<std::string>& notes);

}  // namespace loom::core

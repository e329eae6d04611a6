// Reads points from a file, without a network that describes it.
#pragma once

#include <string>
#include <vector>

#include "base/memory_budget.hpp"

namespace loom::core {

struct FilePoints {
  int64_t n = 0, d = 0;
  std::vector<float> values;  // [n][d]
};
// .csv: the columns whose first value is a number; other files: `array`, its axes after the first
// as one. Errors: not_found, bad_file, out_of_memory.
Result<FilePoints> read_points(const std::string& path, const std::string& array,
                               const MemoryBudget& memory);

}  // namespace loom::core

// Memory use of a command: a file of samples or a plot, and on a terminal a small chart with
// findings.
#pragma once

#include <memory>
#include <string>

#include "flags.hpp"
#include "loom/memory_history.hpp"
#include "outputs.hpp"

namespace loom::cli {

class MemoryReport {
 public:
  void add(const Command& verb);
  // Checks whether the file can be written. Does nothing if none was requested.
  Status check(Outputs outputs) const;
  void add_to(Outputs& outputs) const;
  void begin(const Engine& engine);
  void mark(std::string_view label) const;
  // Writes the file; draws the chart unless quiet.
  Status finish(std::string_view session, bool quiet);

 private:
  std::string path_;
  std::shared_ptr<MemoryHistory> history_;  // null if it was not requested
};

}  // namespace loom::cli

// What memory held while a command ran: a file of samples or a picture, and on a terminal a small
// chart with what is worth saying.
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
  // Can the file be written? Nothing where none was asked for.
  Status check(Outputs outputs = {}) const;
  void add_to(Outputs& outputs) const;
  void begin(const Engine& engine);
  void mark(std::string_view label) const;
  // Writes the file; draws, unless it is to be quiet.
  Status finish(std::string_view session, bool quiet);

 private:
  std::string path_;
  std::shared_ptr<MemoryHistory> history_;  // null: nothing was asked for
};

}  // namespace loom::cli

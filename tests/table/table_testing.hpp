// Tables from text, for the tests of the room.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>

#include "table/encoder.hpp"

namespace loom::core {

inline ByteSource text_source(const std::string& text) {
  return ByteSource::own(text, "t.csv");
}

inline Result<Table> table_of(const std::string& text, const TableReading& options = {}) {
  return read_table(text_source(text), options);
}

// A plan of the text, fitted to the rows of `trains`, and the notes on it.
struct Planned {
  TablePlan plan;
  std::vector<std::string> notes;
};
inline Result<Planned> plan_of(const std::string& text, const PlanOptions& options = {},
                               const std::vector<bool>& trains = {}) {
  Planned out;
  TableReading how;
  how.dialect.names = options.target;
  LOOM_ASSIGN(const Table table, table_of(text, how));
  LOOM_ASSIGN(out.plan, roles_of(table, options, out.notes));
  LOOM_TRY(fit_plan(table, trains, options.one_hot_limit, out.plan, out.notes));
  return out;
}

// The text by a plan.
inline Result<EncodedTable> encode(const std::string& text, const TablePlan& plan,
                                   bool with_targets = true) {
  TableReading how;
  how.types = types_of(plan, with_targets);
  LOOM_ASSIGN(const Table table, table_of(text, how));
  return encode_table(table, plan, with_targets);
}

inline bool mentions(const std::vector<std::string>& notes, std::string_view part) {
  return std::ranges::any_of(notes,
                             [&](const std::string& note) { return note.find(part) != note.npos; });
}

}  // namespace loom::core

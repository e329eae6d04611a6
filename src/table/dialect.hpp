// The dialect of a table of text: separator, quotes, comments, decimal mark, marks of thousands,
// and whether the first row is a header. It is found from the first piece of the text. Each part
// can be set instead.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/arrays/csv_scan.hpp"
#include "table/cells.hpp"

namespace loom::core {

struct DialectOptions {
  std::string encoding{};   // of decode_text()
  std::string separator{};  // one character, or "tab"; empty means detected
  std::string decimal{};    // "." or ","; empty means detected
  std::string thousands{};  // one of . , ' space, or "none"; empty means detected
  std::optional<bool> header{};
  // How training wrote numbers; taken if the text has no number that only one form reads.
  std::optional<NumberForm> usual{};
  // Columns that the caller names. A first row that has one of them is a header.
  std::vector<std::string> names{};
};

struct Dialect {
  CsvForm form;
  NumberForm numbers;
  bool header = true;
};

// The dialect of `sample`, the beginning of a text; `whole` says whether it is all of it. Errors:
// invalid_argument (an option has another value).
Result<Dialect> find_dialect(std::string_view sample, bool whole, const DialectOptions& options);

}  // namespace loom::core

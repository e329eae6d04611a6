// CSV (RFC 4180, and its variants with ; or tabs), read as a stream. A first pass counts the rows,
// finds a header, and checks that all rows have the same number of cells. Later passes return the
// cells of the data. Only the first row is stored. Quoted fields may hold separators, line breaks
// and doubled quotes; empty lines are skipped.
//
// The first row is a header if it has no number, and a text above a number. A row without numbers
// above only text is data. If text or an empty cell is among numbers, the column decides: it is
// text data if the column continues as text. Otherwise the case is ambiguous, and the Error asks
// for --header.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/bytes/byte_source.hpp"

namespace loom::core {

enum class CsvHeader : uint8_t { automatic, yes, no };

// One cell; its text is valid until the callback returns.
struct CsvCell {
  int64_t row = 0, col = 0;  // of the data, without the header
  std::string_view text;
  uint64_t offset = 0;
};

class CsvFile {
 public:
  // The first pass. Stops at a first row of more than `max_cols` cells: cols() is then one more.
  // Errors: bad_file, with row, column and byte; out_of_memory when the values, four bytes each,
  // are more than the budget of the source has left.
  static Result<CsvFile> open(ByteSource source, int64_t max_cols,
                              CsvHeader header = CsvHeader::automatic);

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  const std::vector<std::string>& header() const { return header_; }  // empty: none
  // Every row ended with a separator: the empty column after it is left out.
  bool trailing_separator() const { return trailing_; }
  // Is every cell of the last column a number?
  bool last_is_numeric() const { return last_is_numeric_; }

  using Use = std::function<Status(const CsvCell&)>;
  // Calls `use` for every cell of the data, row by row; ends with its first Error.
  Status read(const Use& use);

  // The number in a cell, rounded to f32; the Error names row and column.
  Result<float> number(const CsvCell& cell) const;
  Error error(const CsvCell& cell, std::string_view message) const;

 private:
  struct Survey;
  Status survey(int64_t max_cols, CsvHeader header);

  ByteSource source_;
  char separator_ = ',';
  std::vector<std::string> header_;
  int64_t rows_ = 0, cols_ = 0;
  bool last_is_numeric_ = true, trailing_ = false;
};

}  // namespace loom::core

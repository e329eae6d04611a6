// CSV (RFC 4180, and its cousins with ; or tabs), read in a stream: a first pass learns how many
// rows there are, whether the first is a header, and that every row has as many cells; later passes
// hand out the cells of the data. Nothing is kept but the first row. Quoted fields may hold
// separators, line breaks and doubled quotes; empty lines are skipped.
//
// Which first row is a header: one that has no number, and a text above a number. One without
// numbers above text alone is data. Text or nothing among numbers is text data when the column goes
// on as text; else nobody can tell, and the Error asks for --header.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/byte_source.hpp"

namespace loom::core {

enum class CsvHeader : uint8_t { automatic, yes, no };

// One cell; its text is good until the function it was given to returns.
struct CsvCell {
  int64_t row = 0, col = 0;  // of the data: the header is no row
  std::string_view text;
  uint64_t offset = 0;
};

class CsvFile {
 public:
  // The first pass. Stops at a first row of more than `most_cols` cells: cols() is then one more.
  // Errors: bad_file, with row, column and byte; out_of_memory when the values, four bytes each,
  // are more than the budget of the source has left.
  static Result<CsvFile> open(ByteSource source, int64_t most_cols,
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
  Status survey(int64_t most_cols, CsvHeader header);

  ByteSource source_;
  char separator_ = ',';
  std::vector<std::string> header_;
  int64_t rows_ = 0, cols_ = 0;
  bool last_is_numeric_ = true, trailing_ = false;
};

}  // namespace loom::core

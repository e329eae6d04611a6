// The grammar of CSV over a stream: cells in order, each a view that is valid until the next.
// csv.hpp and the room `table` interpret the rows.
#pragma once

#include <string>
#include <string_view>

#include "io/bytes/byte_source.hpp"

namespace loom::core {

// The dialect of a file. Rows end in \n, \r\n, or \r alone.
struct CsvForm {
  char separator = ',';
  char comment = '\0';      // lines that begin with it are skipped; 0 means none
  bool skips_line = false;  // the first line, which is "sep=;" as spreadsheets write it
  bool backslash = false;   // \" is a quote inside a quoted field, besides ""
};

// The most frequent of , ; tab in the first line.
char find_csv_separator(std::string_view text);

class CsvScanner {
 public:
  CsvScanner(ByteSource& source, const CsvForm& form);

  struct Cell {
    std::string_view text;
    uint64_t offset = 0;
    bool first = false;  // of its row
    bool last = false;
  };
  // False at the end of the text, or if status() is an Error: bad_file (quotes, a field of more
  // than kMaxField bytes, too many empty lines), or an error of the source.
  bool next(Cell& cell);
  const Status& status() const { return failed_; }

  static constexpr size_t kMaxField = size_t{1} << 20;
  static constexpr int64_t kMaxEmptyLines = int64_t{1} << 20;

 private:
  bool next_slowly(Cell& cell);
  bool at_end();  // whether there is no further byte; loads the next piece
  uint64_t offset() const { return base_ + pos_; }
  char here() const { return text_[pos_]; }
  void plain(Cell& cell);
  bool quoted(Cell& cell);
  bool skip_empty_lines();
  void skip_comment();
  bool end_field(Cell& cell, bool was_quoted);
  bool fail(std::string message, uint64_t offset);  // returns false

  ByteSource& source_;
  bool stops_[256] = {};  // bytes that end a plain field
  CsvForm form_;
  char break_ = '\n';
  std::string_view text_;  // the piece
  size_t pos_ = 0;         // in it
  uint64_t base_ = 0;      // offset of the piece
  std::string joined_;     // a field that is not one run of bytes in one piece
  bool row_start_ = true;
  bool ends_in_separator_ = false;  // the text does, so one more cell follows
  Status failed_;
};

}  // namespace loom::core

// CSV (RFC 4180, and its cousins with ; or tabs): a table of text cells. Quoted fields may hold
// separators, line breaks and doubled quotes. Every row must have as many cells as the first. A
// first row that holds a name above a column of numbers is the header.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loom {

class CsvTable {
 public:
  // `text` must outlive the table. Separator: the one of , ; tab that the first line has most of.
  static Result<CsvTable> parse(std::string_view text, std::string where);

  int64_t rows() const { return cols_ == 0 ? 0 : static_cast<int64_t>(cells_.size()) / cols_; }
  int64_t cols() const { return cols_; }
  const std::vector<std::string>& header() const { return header_; }  // empty: none
  std::string_view cell(int64_t row, int64_t col) const { return at(row, col).text; }
  // Is every cell of the column a number?
  bool is_numeric(int64_t col) const;
  // The number in a cell; the Error names row and column.
  Result<float> number(int64_t row, int64_t col) const;
  Error error(int64_t row, int64_t col, std::string_view message) const;

 private:
  struct Cell {
    std::string_view text;
    uint64_t offset = 0;
  };
  const Cell& at(int64_t row, int64_t col) const {
    return cells_[static_cast<size_t>(row * cols_ + col)];
  }
  Result<Cell> quoted(std::string_view text, size_t& pos, char separator);
  Status read_rows(std::string_view text, size_t pos, char separator);
  void take_header();

  std::string where_;
  std::vector<std::string> header_;
  std::vector<Cell> cells_;
  std::deque<std::string> unescaped_;  // quoted fields that held doubled quotes
  int64_t cols_ = 0;
};

}  // namespace loom

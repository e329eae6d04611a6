// Puzzles of coloured grids as in the Abstraction and Reasoning Corpus (Chollet, "On the measure of
// intelligence", 2019): a few pairs show a rule, which is then applied to more inputs. The file
// format is the public one: {"train": [{"input": [[0, 1]], "output": [[1, 0]]}], "test": [...]}.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loom::core {

constexpr int kMaxPuzzleSide = 30, kPuzzleColours = 10;

// Colours 0 to 9, row by row; 0 is the background. May be empty.
struct PuzzleGrid {
  int rows = 0, cols = 0;
  std::vector<uint8_t> cells;

  PuzzleGrid() = default;
  PuzzleGrid(int r, int c, uint8_t colour = 0)
      : rows(r), cols(c), cells(static_cast<size_t>(r) * static_cast<size_t>(c), colour) {}
  uint8_t& at(int r, int c) { return cells[static_cast<size_t>(r * cols + c)]; }
  uint8_t at(int r, int c) const { return cells[static_cast<size_t>(r * cols + c)]; }
  bool inside(int r, int c) const { return r >= 0 && r < rows && c >= 0 && c < cols; }
  bool empty() const { return cells.empty(); }
  bool operator==(const PuzzleGrid&) const = default;
};

struct PuzzlePair {
  PuzzleGrid in, out;  // out: empty if the answer of a test is hidden
  bool operator==(const PuzzlePair&) const = default;
};

struct Puzzle {
  std::string name;
  std::vector<PuzzlePair> train, test;  // at least one of each, at most 64
};

// Grids have 1 to 30 rows and columns, colours 0 to 9; a text has at most 4 MB. Other members are
// ignored. Errors: bad_file, naming the pair and the row.
Result<Puzzle> parse_puzzle(std::string_view text, std::string_view where);
Result<Puzzle> load_puzzle(const std::string& path);
std::string puzzle_json(const Puzzle& puzzle);

// Share of right cells, 0 to 1; grids of different sizes get less than 0.2.
double likeness(const PuzzleGrid& a, const PuzzleGrid& b);

}  // namespace loom::core

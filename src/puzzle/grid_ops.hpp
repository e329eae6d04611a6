// One-step operations on a coloured grid, of which programs for puzzles consist
// (puzzle/program.hpp). A step is a pure function; if it cannot be applied, the result is empty.
#pragma once

#include <string>

#include "puzzle/puzzle.hpp"

namespace loom::core {

enum class GridOp : uint8_t {
  flip_sides,  // left and right change places
  flip_ends,   // top and bottom
  transpose,
  transpose_other,  // over the other diagonal
  turn_right,
  turn_around,
  turn_left,
  shift_left,  // by one cell, cyclic
  shift_right,
  shift_up,
  shift_down,
  fall_down,  // coloured cells drop onto each other or the border
  fall_up,
  fall_left,
  fall_right,
  crop,          // to the cells that are not background
  keep_largest,  // the largest connected object; all else becomes background
  drop_largest,
  crop_largest,
  outline,  // in every coloured area, cells with only coloured neighbours become background
  double_size,
  triple_size,
  tile_twice,     // 2 x 2 copies
  mirror_beside,  // the grid, and its mirror image to the right
  mirror_below,
  left_half,
  right_half,
  top_half,
  bottom_half,
  complete_sides,  // background takes the colour of the cell across the upright axis
  complete_ends,
  complete_turn,  // of the cell at a half rotation
  lines_across,   // every coloured cell colours its row's background
  lines_down,
  recolour,     // colour a becomes b
  swap,         // a and b change places
  fill_inside,  // background without a path to the border becomes a
  keep,         // everything except a becomes background
  paint,        // everything except background becomes a
  kCount
};
constexpr int kGridOps = static_cast<int>(GridOp::kCount);

// How many of the colours a and b a step needs: 0, 1 or 2.
int colours_of(GridOp op);

struct GridStep {
  GridOp op = GridOp::flip_sides;
  uint8_t a = 0, b = 0;
  bool operator==(const GridStep&) const = default;
};
std::string step_text(const GridStep& step);  // "recolour 2 5"

// Empty if a side would exceed 30, or nothing is left.
PuzzleGrid apply(const GridStep& step, const PuzzleGrid& grid);

}  // namespace loom::core

// Programs for puzzles: a sequence of a few steps, found by trying all short ones or by evolution.
// A program explains a puzzle if it gives every shown output; the tests of the puzzle decide
// whether it generalizes.
#pragma once

#include <optional>

#include "puzzle/grid_ops.hpp"

namespace loom::core {

using GridProgram = std::vector<GridStep>;

PuzzleGrid run_program(const GridProgram& program, PuzzleGrid grid);
std::string program_text(const GridProgram& program);  // "crop, flip_ends"

// Every step with every choice of the colours that the puzzle shows.
std::vector<GridStep> steps_for(const Puzzle& puzzle);

struct ProgramSearch {
  std::optional<GridProgram> program;  // gives every shown output
  int64_t evaluations = 0;             // programs that were run
  double fitness = 0;                  // of the best: mean likeness(), 1 is all
};

// The baseline: all programs of one step, then of two.
ProgramSearch search_programs(const Puzzle& puzzle);

struct ProgramEvolution {
  int64_t population = 300, generations = 120;
  size_t longest = 4;  // steps of a program
  uint64_t seed = 1;
};
// Evolves programs by mutation and crossover. Parents are those that do best on the pairs in a
// random order (lexicase selection: Spector, 2012), so that a program with one right pair survives.
ProgramSearch evolve_program(const Puzzle& puzzle, const ProgramEvolution& how);

}  // namespace loom::core

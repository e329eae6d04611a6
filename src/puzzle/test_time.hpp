// Test-time training: for every puzzle a small network is trained on the shown pairs, mirrored,
// rotated and recoloured, and then answers the tests. It computes each cell's colour from its
// surroundings, so it applies to puzzles whose grids keep their size.
#pragma once

#include "learn/step/train_step.hpp"
#include "puzzle/puzzle.hpp"

namespace loom::core {

struct TestTimeOptions {
  int64_t steps = 400, batch = 128;
  double rate = 3e-3;  // of Adam
  int64_t hidden = 64;
  uint64_t seed = 1;
};

struct TestTimeAnswer {
  bool applies = false;             // all pairs keep their size
  double shown = 0;                 // share of right cells in the shown pairs
  std::vector<PuzzleGrid> answers;  // to the tests
};
// Errors: those of a training step.
Result<TestTimeAnswer> train_at_test_time(const Puzzle& puzzle, const TestTimeOptions& how,
                                          const Ops& ops, ThreadPool& pool);

}  // namespace loom::core

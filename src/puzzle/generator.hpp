// Puzzles of our own, in the manner of those of puzzle.hpp: a rule is drawn, and pairs that show
// it. The same seed gives the same puzzles everywhere. Rules of the last families have no word in
// grid_ops.hpp, so that no program of a few steps says them.
#pragma once

#include "puzzle/puzzle.hpp"

namespace loom::core {

enum class PuzzleFamily : uint8_t {
  symmetry,    // a turn or a mirror image
  colours,     // recolouring, swapping, keeping one
  motion,      // shifts and falling
  things,      // the largest thing, outlines, insides
  sizes,       // cropping, enlarging, tiling, halves
  completion,  // lines and mirror images that fill the background
  two_steps,   // one of the above after another
  neighbours,  // a cell's new colour follows from those around it: one word for each of many rules
  counting,    // as many cells as there are things
  kCount
};
constexpr int kPuzzleFamilies = static_cast<int>(PuzzleFamily::kCount);
const char* family_name(PuzzleFamily family);

// Puzzle `index` of a family: three or four pairs and one or two tests, none of which the rule
// leaves as it is, and no two alike.
Puzzle make_puzzle(PuzzleFamily family, uint64_t seed, int64_t index);

}  // namespace loom::core

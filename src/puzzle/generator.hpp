// Loom's own puzzles in the style of puzzle.hpp: a random rule, and pairs that show it. The same
// seed gives the same puzzles everywhere. Rules of the last families have no op in grid_ops.hpp, so
// no short program expresses them.
#pragma once

#include "puzzle/puzzle.hpp"

namespace loom::core {

enum class PuzzleFamily : uint8_t {
  symmetry,    // a rotation or a mirror image
  colours,     // recolouring, swapping, keeping one
  motion,      // shifts and falling
  things,      // the largest object, outlines, insides
  sizes,       // cropping, enlarging, tiling, halves
  completion,  // lines and mirror images that fill the background
  two_steps,   // one of the above after another
  neighbours,  // a cell's new colour follows from its neighbours; one op for many rules
  counting,    // one cell per object
  kCount
};
constexpr int kPuzzleFamilies = static_cast<int>(PuzzleFamily::kCount);
const char* family_name(PuzzleFamily family);

// Puzzle `index` of a family: three or four pairs and one or two tests, all different; the rule
// changes each of them.
Puzzle make_puzzle(PuzzleFamily family, uint64_t seed, int64_t index);

}  // namespace loom::core

#include "puzzle/generator.hpp"

#include <algorithm>
#include <functional>

#include "base/text.hpp"
#include "evolve/draws.hpp"
#include "puzzle/program.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kPuzzleStream = uint64_t{1} << 56;
constexpr const char* kFamilyNames[] = {"symmetry",   "colours",   "motion",     "things",  "sizes",
                                        "completion", "two_steps", "neighbours", "counting"};
static_assert(std::size(kFamilyNames) == kPuzzleFamilies);

using PuzzleRule = std::function<PuzzleGrid(const PuzzleGrid&)>;

class PuzzleMaker {
 public:
  PuzzleMaker(PuzzleFamily family, uint64_t seed, int64_t index)
      : family_(family),
        draws_(seed, kPuzzleStream + (static_cast<uint64_t>(family) << 40) +
                         static_cast<uint64_t>(index)) {
    for (uint8_t c = 1; c < kPuzzleColours; ++c) palette_.push_back(c);
    for (size_t i = palette_.size(); i > 1; --i)
      std::swap(palette_[i - 1], palette_[draws_.below(i)]);
  }

  // A rule that leaves nearly every grid unchanged is rejected; then another one is drawn.
  Puzzle make() {
    Puzzle puzzle;
    while (!fill(puzzle)) puzzle = {};
    return puzzle;
  }

 private:
  bool fill(Puzzle& puzzle) {
    const PuzzleRule rule = draw_rule();
    const size_t train = 3 + draws_.below(2), all = train + 1 + draws_.below(2);
    std::vector<PuzzlePair> pairs;
    for (int tries = 0; tries < 60 && pairs.size() < all; ++tries) {
      PuzzlePair pair;
      pair.in = draw_grid();
      pair.out = rule(pair.in);
      const bool fresh = std::ranges::find(pairs, pair) == pairs.end();
      if (fresh && !pair.out.empty() && !(pair.out == pair.in)) pairs.push_back(std::move(pair));
    }
    if (pairs.size() < all) return false;
    const auto middle = pairs.begin() + static_cast<std::ptrdiff_t>(train);
    puzzle.train.assign(pairs.begin(), middle);
    puzzle.test.assign(middle, pairs.end());
    return true;
  }

  GridOp one_of(GridOp first, GridOp last) {
    const auto low = static_cast<size_t>(first);
    return static_cast<GridOp>(low + draws_.below(static_cast<size_t>(last) - low + 1));
  }
  GridStep step(GridOp op) const { return {op, palette_[0], palette_[1]}; }

  GridStep draw_step() {
    switch (draws_.below(6)) {
      case 0: return step(one_of(GridOp::flip_sides, GridOp::turn_left));
      case 1: return step(one_of(GridOp::recolour, GridOp::swap));
      case 2: return step(one_of(GridOp::shift_left, GridOp::fall_right));
      case 3: return step(one_of(GridOp::keep_largest, GridOp::outline));
      case 4: return step(one_of(GridOp::left_half, GridOp::bottom_half));
      default: return step(one_of(GridOp::complete_sides, GridOp::lines_down));
    }
  }

  PuzzleRule draw_rule() {
    const auto program = [](GridProgram p) -> PuzzleRule {
      return [p](const PuzzleGrid& g) { return run_program(p, g); };
    };
    switch (family_) {
      case PuzzleFamily::symmetry:
        return program({step(one_of(GridOp::flip_sides, GridOp::turn_left))});
      case PuzzleFamily::colours:
        return program({step(draws_.chance(0.5) ? one_of(GridOp::recolour, GridOp::swap)
                                                : one_of(GridOp::keep, GridOp::paint))});
      case PuzzleFamily::motion:
        return program({step(one_of(GridOp::shift_left, GridOp::fall_right))});
      case PuzzleFamily::things:
        return program({step(draws_.chance(0.25) ? GridOp::fill_inside
                                                 : one_of(GridOp::keep_largest, GridOp::outline))});
      case PuzzleFamily::sizes:
        return program({step(
            draws_.chance(0.2) ? GridOp::crop : one_of(GridOp::double_size, GridOp::bottom_half))});
      case PuzzleFamily::completion:
        return program({step(one_of(GridOp::complete_sides, GridOp::lines_down))});
      case PuzzleFamily::two_steps: return program({draw_step(), draw_step()});
      case PuzzleFamily::neighbours: return neighbour_rule();
      default: return counting_rule();
    }
  }

  // Background with that many coloured neighbours takes a colour; or coloured cells do.
  PuzzleRule neighbour_rule() {
    const auto count = static_cast<int>(1 + draws_.below(3));
    const bool corners = draws_.chance(0.5), exactly = draws_.chance(0.5);
    const bool background = draws_.chance(0.7);
    const uint8_t colour = palette_[5];
    return [=](const PuzzleGrid& g) {
      PuzzleGrid out = g;
      for (int r = 0; r < g.rows; ++r) {
        for (int c = 0; c < g.cols; ++c) {
          int near = 0;
          for (int i = -1; i <= 1; ++i) {
            for (int j = -1; j <= 1; ++j) {
              const bool corner = i != 0 && j != 0;
              if ((i == 0 && j == 0) || (corner && !corners) || !g.inside(r + i, c + j)) continue;
              near += g.at(r + i, c + j) != 0 ? 1 : 0;
            }
          }
          const bool chosen = exactly ? near == count : near >= count;
          if ((g.at(r, c) == 0) == background && chosen) out.at(r, c) = colour;
        }
      }
      return out;
    };
  }

  // A row with one cell per object, in the colour of the puzzle.
  PuzzleRule counting_rule() {
    const uint8_t colour = palette_[5];
    const bool upright = draws_.chance(0.5);
    return [=](const PuzzleGrid& g) {
      PuzzleGrid rest = g;
      int things = 0;
      for (;;) {
        const PuzzleGrid next = apply({GridOp::drop_largest}, rest);
        if (next.empty()) break;
        rest = next;
        ++things;
      }
      if (things == 0 || things > kMaxPuzzleSide) return PuzzleGrid();
      return upright ? PuzzleGrid(things, 1, colour) : PuzzleGrid(1, things, colour);
    };
  }

  // Rectangles, rings and points in a few colours.
  PuzzleGrid draw_grid() {
    const bool small = family_ == PuzzleFamily::sizes;
    const auto side = [&] { return static_cast<int>(3 + draws_.below(small ? 6 : 10)); };
    PuzzleGrid g(side() + (small ? 0 : 2), side() + (small ? 0 : 2));
    const size_t things = 2 + draws_.below(4);
    for (size_t i = 0; i < things; ++i) {
      const uint8_t colour = palette_[i < 2 ? i : draws_.below(4)];
      draw_thing(g, colour);
    }
    return g;
  }

  void draw_thing(PuzzleGrid& g, uint8_t colour) {
    const auto within = [&](int n) {
      return static_cast<int>(draws_.below(static_cast<size_t>(n)));
    };
    const int height = 1 + within(std::min(5, g.rows)), width = 1 + within(std::min(5, g.cols));
    const int top = within(g.rows - height + 1), left = within(g.cols - width + 1);
    const size_t shape = draws_.below(3);
    for (int r = 0; r < height; ++r) {
      for (int c = 0; c < width; ++c) {
        const bool edge = r == 0 || c == 0 || r + 1 == height || c + 1 == width;
        const bool drawn = shape == 0 || (shape == 1 ? edge : draws_.chance(0.5));
        if (drawn) g.at(top + r, left + c) = colour;
      }
    }
  }

  PuzzleFamily family_;
  Draws draws_;
  std::vector<uint8_t> palette_;
};

}  // namespace

const char* family_name(PuzzleFamily family) {
  return kFamilyNames[static_cast<size_t>(family)];
}

Puzzle make_puzzle(PuzzleFamily family, uint64_t seed, int64_t index) {
  Puzzle out = PuzzleMaker(family, seed, index).make();
  out.name = cat(family_name(family), "-", index);
  return out;
}

}  // namespace loom::core

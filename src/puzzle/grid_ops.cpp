#include "puzzle/grid_ops.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "base/text.hpp"

namespace loom::core {
namespace {

// A grid whose cell (r, c) is that of `from` at place(r, c).
template <class Place>
PuzzleGrid placed(const PuzzleGrid& from, int rows, int cols, Place&& map_position) {
  if (rows < 1 || cols < 1 || rows > kMaxPuzzleSide || cols > kMaxPuzzleSide) return {};
  PuzzleGrid out(rows, cols);
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < cols; ++c) {
      const auto [i, j] = map_position(r, c);
      out.at(r, c) = from.at(i, j);
    }
  }
  return out;
}

using Spot = std::pair<int, int>;

PuzzleGrid rotated(const PuzzleGrid& g, GridOp op) {
  const int n = g.rows, m = g.cols;
  switch (op) {
    case GridOp::flip_sides:
      return placed(g, n, m, [&](int r, int c) { return Spot(r, m - 1 - c); });
    case GridOp::flip_ends:
      return placed(g, n, m, [&](int r, int c) { return Spot(n - 1 - r, c); });
    case GridOp::transpose: return placed(g, m, n, [&](int r, int c) { return Spot(c, r); });
    case GridOp::transpose_other:
      return placed(g, m, n, [&](int r, int c) { return Spot(n - 1 - c, m - 1 - r); });
    case GridOp::turn_right:
      return placed(g, m, n, [&](int r, int c) { return Spot(n - 1 - c, r); });
    case GridOp::turn_around:
      return placed(g, n, m, [&](int r, int c) { return Spot(n - 1 - r, m - 1 - c); });
    default: return placed(g, m, n, [&](int r, int c) { return Spot(c, m - 1 - r); });
  }
}

PuzzleGrid shifted(const PuzzleGrid& g, int down, int right) {
  return placed(g, g.rows, g.cols, [&](int r, int c) {
    return Spot((r - down + g.rows) % g.rows, (c - right + g.cols) % g.cols);
  });
}

PuzzleGrid fallen_down(const PuzzleGrid& g) {
  PuzzleGrid out(g.rows, g.cols);
  for (int c = 0; c < g.cols; ++c) {
    int to = g.rows - 1;
    for (int r = g.rows - 1; r >= 0; --r) {
      if (g.at(r, c) != 0) out.at(to--, c) = g.at(r, c);
    }
  }
  return out;
}

PuzzleGrid fallen(const PuzzleGrid& g, GridOp op) {
  switch (op) {
    case GridOp::fall_down: return fallen_down(g);
    case GridOp::fall_up:
      return rotated(fallen_down(rotated(g, GridOp::flip_ends)), GridOp::flip_ends);
    case GridOp::fall_left:
      return rotated(fallen_down(rotated(g, GridOp::turn_left)), GridOp::turn_right);
    default: return rotated(fallen_down(rotated(g, GridOp::turn_right)), GridOp::turn_left);
  }
}

PuzzleGrid cropped(const PuzzleGrid& g) {
  int top = g.rows, left = g.cols, bottom = -1, right = -1;
  for (int r = 0; r < g.rows; ++r) {
    for (int c = 0; c < g.cols; ++c) {
      if (g.at(r, c) == 0) continue;
      top = std::min(top, r);
      bottom = std::max(bottom, r);
      left = std::min(left, c);
      right = std::max(right, c);
    }
  }
  return placed(g, bottom - top + 1, right - left + 1,
                [&](int r, int c) { return Spot(top + r, left + c); });
}

constexpr std::array<Spot, 4> kNear = {Spot(0, 1), Spot(1, 0), Spot(0, -1), Spot(-1, 0)};

// Area numbers of cells, from 1; 0 if `belongs` returns false.
std::vector<int> areas(const PuzzleGrid& g, const std::function<bool(int, int)>& belongs,
                       std::vector<int>& sizes) {
  std::vector<int> label(g.cells.size(), 0);
  sizes.assign(1, 0);
  std::vector<Spot> todo;
  for (int r = 0; r < g.rows; ++r) {
    for (int c = 0; c < g.cols; ++c) {
      if (!belongs(r, c) || label[static_cast<size_t>(r * g.cols + c)] != 0) continue;
      const auto id = static_cast<int>(sizes.size());
      sizes.push_back(0);
      todo.assign(1, {r, c});
      label[static_cast<size_t>(r * g.cols + c)] = id;
      while (!todo.empty()) {
        const auto [i, j] = todo.back();
        todo.pop_back();
        ++sizes.back();
        for (const auto& [di, dj] : kNear) {
          const int y = i + di, x = j + dj;
          if (!g.inside(y, x) || !belongs(y, x)) continue;
          int& next = label[static_cast<size_t>(y * g.cols + x)];
          if (next != 0) continue;
          next = id;
          todo.emplace_back(y, x);
        }
      }
    }
  }
  return label;
}

// Keeps only the largest object, or all but it; the first of equals.
PuzzleGrid largest(const PuzzleGrid& g, bool kept) {
  std::vector<int> sizes;
  const std::vector<int> label = areas(
      g, [&](int r, int c) { return g.at(r, c) != 0; }, sizes);
  if (sizes.size() < 2) return {};
  const auto id = static_cast<int>(std::max_element(sizes.begin(), sizes.end()) - sizes.begin());
  PuzzleGrid out = g;
  for (size_t i = 0; i < label.size(); ++i) {
    if ((label[i] == id) != kept) out.cells[i] = 0;
  }
  return out;
}

PuzzleGrid outlined(const PuzzleGrid& g) {
  PuzzleGrid out = g;
  for (int r = 0; r < g.rows; ++r) {
    for (int c = 0; c < g.cols; ++c) {
      const bool within = std::all_of(kNear.begin(), kNear.end(), [&](const Spot& d) {
        return g.inside(r + d.first, c + d.second) && g.at(r + d.first, c + d.second) != 0;
      });
      if (within) out.at(r, c) = 0;
    }
  }
  return out;
}

PuzzleGrid filled_inside(const PuzzleGrid& g, uint8_t colour) {
  std::vector<int> sizes;
  const std::vector<int> label = areas(
      g, [&](int r, int c) { return g.at(r, c) == 0; }, sizes);
  std::vector<bool> open(sizes.size(), false);
  for (int r = 0; r < g.rows; ++r) {
    for (int c = 0; c < g.cols; ++c) {
      const bool border = r == 0 || c == 0 || r + 1 == g.rows || c + 1 == g.cols;
      if (border) open[static_cast<size_t>(label[static_cast<size_t>(r * g.cols + c)])] = true;
    }
  }
  PuzzleGrid out = g;
  for (size_t i = 0; i < label.size(); ++i) {
    if (label[i] != 0 && !open[static_cast<size_t>(label[i])]) out.cells[i] = colour;
  }
  return out;
}

PuzzleGrid enlarged(const PuzzleGrid& g, int by) {
  return placed(g, g.rows * by, g.cols * by, [&](int r, int c) { return Spot(r / by, c / by); });
}

PuzzleGrid repeated(const PuzzleGrid& g, GridOp op) {
  const int n = g.rows, m = g.cols;
  if (op == GridOp::tile_twice)
    return placed(g, 2 * n, 2 * m, [&](int r, int c) { return Spot(r % n, c % m); });
  if (op == GridOp::mirror_beside)
    return placed(g, n, 2 * m, [&](int r, int c) { return Spot(r, c < m ? c : 2 * m - 1 - c); });
  return placed(g, 2 * n, m, [&](int r, int c) { return Spot(r < n ? r : 2 * n - 1 - r, c); });
}

PuzzleGrid half(const PuzzleGrid& g, GridOp op) {
  const int n = g.rows / 2, m = g.cols / 2;
  switch (op) {
    case GridOp::left_half: return placed(g, g.rows, m, [](int r, int c) { return Spot(r, c); });
    case GridOp::right_half:
      return placed(g, g.rows, m, [&](int r, int c) { return Spot(r, g.cols - m + c); });
    case GridOp::top_half: return placed(g, n, g.cols, [](int r, int c) { return Spot(r, c); });
    default: return placed(g, n, g.cols, [&](int r, int c) { return Spot(g.rows - n + r, c); });
  }
}

PuzzleGrid completed(const PuzzleGrid& g, GridOp op) {
  const GridOp mirror = op == GridOp::complete_sides  ? GridOp::flip_sides
                        : op == GridOp::complete_ends ? GridOp::flip_ends
                                                      : GridOp::turn_around;
  const PuzzleGrid other = rotated(g, mirror);
  PuzzleGrid out = g;
  for (size_t i = 0; i < out.cells.size(); ++i) {
    if (out.cells[i] == 0) out.cells[i] = other.cells[i];
  }
  return out;
}

// The first coloured cell of a row gives its colour to the background of the row.
PuzzleGrid lined(const PuzzleGrid& g) {
  PuzzleGrid out = g;
  for (int r = 0; r < g.rows; ++r) {
    uint8_t colour = 0;
    for (int c = 0; c < g.cols && colour == 0; ++c) colour = g.at(r, c);
    for (int c = 0; c < g.cols; ++c) {
      if (out.at(r, c) == 0) out.at(r, c) = colour;
    }
  }
  return out;
}

PuzzleGrid coloured(const GridStep& s, PuzzleGrid g) {
  for (uint8_t& v : g.cells) {
    switch (s.op) {
      case GridOp::recolour: v = v == s.a ? s.b : v; break;
      case GridOp::swap: v = v == s.a ? s.b : v == s.b ? s.a : v; break;
      case GridOp::keep: v = v == s.a ? v : uint8_t{0}; break;
      default: v = v == 0 ? v : s.a; break;
    }
  }
  return g;
}

constexpr const char* kGridOpNames[] = {
    "flip_sides",   "flip_ends",      "transpose",     "transpose_other",
    "turn_right",   "turn_around",    "turn_left",     "shift_left",
    "shift_right",  "shift_up",       "shift_down",    "fall_down",
    "fall_up",      "fall_left",      "fall_right",    "crop",
    "keep_largest", "drop_largest",   "crop_largest",  "outline",
    "double_size",  "triple_size",    "tile_twice",    "mirror_beside",
    "mirror_below", "left_half",      "right_half",    "top_half",
    "bottom_half",  "complete_sides", "complete_ends", "complete_turn",
    "lines_across", "lines_down",     "recolour",      "swap",
    "fill_inside",  "keep",           "paint"};
static_assert(std::size(kGridOpNames) == kGridOps);

}  // namespace

int colours_of(GridOp op) {
  if (op < GridOp::recolour) return 0;
  return op <= GridOp::swap ? 2 : 1;
}

std::string step_text(const GridStep& s) {
  std::string text = kGridOpNames[static_cast<size_t>(s.op)];
  if (colours_of(s.op) > 0) text += cat(" ", int{s.a});
  if (colours_of(s.op) > 1) text += cat(" ", int{s.b});
  return text;
}

PuzzleGrid apply(const GridStep& s, const PuzzleGrid& g) {
  if (g.empty()) return {};
  switch (s.op) {
    case GridOp::shift_left: return shifted(g, 0, -1);
    case GridOp::shift_right: return shifted(g, 0, 1);
    case GridOp::shift_up: return shifted(g, -1, 0);
    case GridOp::shift_down: return shifted(g, 1, 0);
    case GridOp::crop: return cropped(g);
    case GridOp::keep_largest: return largest(g, true);
    case GridOp::drop_largest: return largest(g, false);
    case GridOp::crop_largest: {
      const PuzzleGrid kept = largest(g, true);
      return kept.empty() ? kept : cropped(kept);
    }
    case GridOp::outline: return outlined(g);
    case GridOp::double_size: return enlarged(g, 2);
    case GridOp::triple_size: return enlarged(g, 3);
    case GridOp::lines_across: return lined(g);
    case GridOp::lines_down:
      return rotated(lined(rotated(g, GridOp::transpose)), GridOp::transpose);
    case GridOp::fill_inside: return filled_inside(g, s.a);
    default: break;
  }
  if (s.op <= GridOp::turn_left) return rotated(g, s.op);
  if (s.op <= GridOp::fall_right) return fallen(g, s.op);
  if (s.op <= GridOp::mirror_below) return repeated(g, s.op);
  if (s.op <= GridOp::bottom_half) return half(g, s.op);
  if (s.op <= GridOp::complete_turn) return completed(g, s.op);
  return coloured(s, g);
}

}  // namespace loom::core

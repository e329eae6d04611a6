#!/usr/bin/env python3
"""Steps on coloured grids for tests/puzzle, computed by this file alone.

  tools/goldens/puzzle_steps.py > tests/puzzle/golden/steps.txt

It follows src/puzzle/grid_ops.hpp and shares no code with Loom. A line is a step, a grid, and the
grid after the step: rows of digits at slashes, "-" if there is none.
"""

import random

GRIDS = ("102/030", "5", "0120/0000", "5550/5051/5550", "044/100/002", "1100/1100/0002/0302",
         "000/000", "11111/10001/10401/10001/11111")  # fmt: skip
LARGEST_SIDE = 30
NEAR = ((0, 1), (1, 0), (0, -1), (-1, 0))


def parse(text):
    return [[int(c) for c in row] for row in text.split("/")]


def shown(grid):
    return "/".join("".join(map(str, row)) for row in grid) if grid else "-"


def cells(grid):
    return [(r, c) for r in range(len(grid)) for c in range(len(grid[0]))]


def flip_sides(g):
    return [row[::-1] for row in g]


def flip_ends(g):
    return g[::-1]


def transpose(g):
    return [list(row) for row in zip(*g, strict=True)]


def turn_right(g):
    return transpose(flip_ends(g))


def turn_left(g):
    return flip_ends(transpose(g))


def turn_around(g):
    return flip_ends(flip_sides(g))


def fall_right(g):
    rows = [[v for v in row if v] for row in g]
    return [[0] * (len(g[0]) - len(row)) + row for row in rows]


def fall_left(g):
    return flip_sides(fall_right(flip_sides(g)))


def crop(g):
    at = [(r, c) for r, c in cells(g) if g[r][c]]
    if not at:
        return None
    rows, cols = [r for r, _ in at], [c for _, c in at]
    return [row[min(cols) : max(cols) + 1] for row in g[min(rows) : max(rows) + 1]]


def areas(g, belongs):
    """Connected areas, each a set of cells, by their first cell."""
    found, seen = [], set()
    for start in cells(g):
        if start in seen or not belongs(*start):
            continue
        area, todo = {start}, [start]
        while todo:
            r, c = todo.pop()
            for y, x in ((r + i, c + j) for i, j in NEAR):
                inside = 0 <= y < len(g) and 0 <= x < len(g[0])
                if inside and (y, x) not in area and belongs(y, x):
                    area.add((y, x))
                    todo.append((y, x))
        seen |= area
        found.append(area)
    return found


def largest(g, keep):
    objects = areas(g, lambda r, c: g[r][c] != 0)
    if not objects:
        return None
    most = max(objects, key=len)  # the first of equals
    return [[v if ((r, c) in most) == keep else 0 for c, v in enumerate(row)]
            for r, row in enumerate(g)]  # fmt: skip


def outline(g):
    def within(r, c):
        around = [(r + i, c + j) for i, j in NEAR]
        return all(0 <= y < len(g) and 0 <= x < len(g[0]) and g[y][x] for y, x in around)

    return [[0 if within(r, c) else v for c, v in enumerate(row)] for r, row in enumerate(g)]


def fill_inside(g, colour):
    closed = set()
    for area in areas(g, lambda r, c: g[r][c] == 0):
        if not any(r in (0, len(g) - 1) or c in (0, len(g[0]) - 1) for r, c in area):
            closed |= area
    return [[colour if (r, c) in closed else v for c, v in enumerate(row)]
            for r, row in enumerate(g)]  # fmt: skip


def enlarge(g, by):
    return [[v for v in row for _ in range(by)] for row in g for _ in range(by)]


def complete(g, other):
    return [[a or b for a, b in zip(x, y, strict=True)] for x, y in zip(g, other, strict=True)]


def lines_across(g):
    return [[v or next((w for w in row if w), 0) for v in row] for row in g]


def halves(g):
    n, m = len(g) // 2, len(g[0]) // 2
    return {"left_half": [row[:m] for row in g] if m else None,
            "right_half": [row[-m:] for row in g] if m else None,
            "top_half": g[:n] or None, "bottom_half": g[-n:] if n else None}  # fmt: skip


def each(g, change):
    return [[change(v) for v in row] for row in g]


def crop_largest(g):
    most = largest(g, True)
    return most and crop(most)


STEPS = {
    "flip_sides": flip_sides, "flip_ends": flip_ends, "transpose": transpose,
    "transpose_other": lambda g: turn_around(transpose(g)), "turn_right": turn_right,
    "turn_around": turn_around, "turn_left": turn_left,
    "shift_left": lambda g: [row[1:] + row[:1] for row in g],
    "shift_right": lambda g: [row[-1:] + row[:-1] for row in g],
    "shift_up": lambda g: g[1:] + g[:1], "shift_down": lambda g: g[-1:] + g[:-1],
    "fall_down": lambda g: transpose(fall_right(transpose(g))),
    "fall_up": lambda g: transpose(fall_left(transpose(g))),
    "fall_left": fall_left, "fall_right": fall_right, "crop": crop,
    "keep_largest": lambda g: largest(g, True), "drop_largest": lambda g: largest(g, False),
    "crop_largest": crop_largest, "outline": outline,
    "double_size": lambda g: enlarge(g, 2), "triple_size": lambda g: enlarge(g, 3),
    "tile_twice": lambda g: [row * 2 for row in g] * 2,
    "mirror_beside": lambda g: [row + row[::-1] for row in g],
    "mirror_below": lambda g: g + g[::-1],
    "left_half": lambda g: halves(g)["left_half"], "right_half": lambda g: halves(g)["right_half"],
    "top_half": lambda g: halves(g)["top_half"], "bottom_half": lambda g: halves(g)["bottom_half"],
    "complete_sides": lambda g: complete(g, flip_sides(g)),
    "complete_ends": lambda g: complete(g, flip_ends(g)),
    "complete_turn": lambda g: complete(g, turn_around(g)),
    "lines_across": lines_across,
    "lines_down": lambda g: transpose(lines_across(transpose(g))),
    "recolour 1 7": lambda g: each(g, lambda v: 7 if v == 1 else v),
    "swap 1 2": lambda g: each(g, lambda v: {1: 2, 2: 1}.get(v, v)),
    "fill_inside 6": lambda g: fill_inside(g, 6),
    "keep 1": lambda g: each(g, lambda v: v if v == 1 else 0),
    "paint 8": lambda g: each(g, lambda v: v and 8),
}  # fmt: skip


def main():
    draw = random.Random(5)
    rows, cols = 6, 7
    drawn = ["/".join("".join(str(draw.choice((0, 0, 1, 2, 3))) for _ in range(cols))
                      for _ in range(rows)) for _ in range(2)]  # fmt: skip
    wide = "1" * 16
    for name, step in STEPS.items():
        for text in (*GRIDS, *drawn, wide):
            after = step(parse(text))
            if after and (len(after) > LARGEST_SIDE or len(after[0]) > LARGEST_SIDE):
                after = None
            print(name, text, shown(after))


if __name__ == "__main__":
    main()

"""Digits as a hand might write them: strokes of our own, bent, turned and thickened at random.

Standard library only. It uses no font and no other data set. Points are (x, y) in a unit square, y
downwards; a glyph is a list of strokes, a stroke a list of points.
"""

import math
import random

SIDE = 28  # pixels of a row and of a column
LEVELS = 16  # of gray: few enough that the file stays small
_BOX = 18.0  # pixels that a digit without distortion spans


def _arc(x, y, rx, ry, begin, end, points=14):
    """Part of an ellipse; angles in degrees, 0 to the right, 90 downwards."""
    angles = [math.radians(begin + (end - begin) * i / (points - 1)) for i in range(points)]
    return [(x + rx * math.cos(a), y + ry * math.sin(a)) for a in angles]


# Each digit in the forms that are common.
GLYPHS = {
    0: [[_arc(0.5, 0.5, 0.34, 0.5, -100, 260, 22)], [_arc(0.5, 0.5, 0.26, 0.5, -80, 280, 22)]],
    1: [
        [[(0.5, 0.0), (0.5, 1.0)]],
        [[(0.3, 0.22), (0.55, 0.0), (0.55, 1.0)]],
        [[(0.3, 0.22), (0.52, 0.0), (0.52, 1.0)], [(0.28, 1.0), (0.76, 1.0)]],
    ],
    2: [
        [_arc(0.5, 0.28, 0.32, 0.28, -170, 40) + [(0.15, 1.0), (0.87, 1.0)]],
        [_arc(0.5, 0.28, 0.3, 0.28, -160, 50) + _arc(0.28, 0.88, 0.12, 0.1, 60, 300, 8)
         + [(0.5, 0.9), (0.7, 1.0), (0.9, 0.9)]],
    ],
    3: [
        [_arc(0.45, 0.25, 0.33, 0.25, -150, 90) + _arc(0.45, 0.74, 0.37, 0.26, -90, 150)],
        [[(0.15, 0.0), (0.8, 0.0), (0.42, 0.4)] + _arc(0.42, 0.7, 0.38, 0.3, -90, 150)],
    ],
    4: [
        [[(0.68, 1.0), (0.68, 0.0), (0.1, 0.66), (0.92, 0.66)]],
        [[(0.2, 0.0), (0.14, 0.52), (0.85, 0.52)], [(0.72, 0.1), (0.66, 1.0)]],
    ],
    5: [
        [[(0.82, 0.0), (0.25, 0.0), (0.2, 0.44)] + _arc(0.45, 0.68, 0.36, 0.32, -130, 150)],
        [[(0.25, 0.02), (0.2, 0.45)] + _arc(0.45, 0.7, 0.33, 0.3, -130, 150),
         [(0.25, 0.02), (0.85, 0.0)]],
    ],
    6: [
        [[(0.72, 0.0), (0.4, 0.22)] + _arc(0.5, 0.7, 0.33, 0.3, 200, 200 - 360, 20)],
        [_arc(0.62, 0.5, 0.45, 0.5, -80, -170, 8) + _arc(0.5, 0.7, 0.3, 0.29, 180, -180, 20)],
    ],
    7: [
        [[(0.12, 0.0), (0.86, 0.0), (0.4, 1.0)]],
        [[(0.12, 0.05), (0.86, 0.0), (0.42, 1.0)], [(0.3, 0.5), (0.8, 0.5)]],
    ],
    8: [
        [_arc(0.5, 0.24, 0.27, 0.24, 90, 450, 18), _arc(0.5, 0.74, 0.33, 0.26, -90, 270, 18)],
        [_arc(0.5, 0.25, 0.25, 0.25, -60, -270, 12) + _arc(0.5, 0.75, 0.3, 0.25, -90, 270, 18)
         + _arc(0.5, 0.25, 0.25, 0.25, 90, -60, 12)],
    ],
    9: [
        [_arc(0.5, 0.3, 0.3, 0.3, 0, -360, 20) + [(0.8, 0.3), (0.7, 1.0)]],
        [_arc(0.48, 0.3, 0.3, 0.3, -20, -380, 20) + _arc(0.4, 0.6, 0.4, 0.4, -20, 110, 8)],
    ],
}  # fmt: skip


def _bend(rng):
    """A random map from the unit square to pixels: a wave, a slant, a turn, a size and a place."""
    turn, slant = rng.gauss(0, 0.13), rng.gauss(0, 0.16)
    width, height = rng.uniform(0.72, 1.1) * _BOX, rng.uniform(0.85, 1.1) * _BOX
    right, down = SIDE / 2 + rng.uniform(-1.6, 1.6), SIDE / 2 + rng.uniform(-1.6, 1.6)
    depth, phase = rng.gauss(0, 0.045), rng.uniform(0, 2 * math.pi)

    def moved(point):
        x, y = point[0] - 0.5, point[1] - 0.5
        x += depth * math.sin(5 * y + phase) - slant * y
        y += depth * math.sin(5 * x + phase)
        x, y = x * width, y * height
        return (
            x * math.cos(turn) - y * math.sin(turn) + right,
            x * math.sin(turn) + y * math.cos(turn) + down,
        )

    return moved


def _draw(pixels, a, b, radius):
    """Raises each pixel to how much of it a round pen covers on its way from `a` to `b`."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    length = dx * dx + dy * dy or 1.0
    # Only the pixels that the pen can reach.
    low = [max(0, int(min(a[i], b[i]) - radius - 1)) for i in (0, 1)]
    high = [min(SIDE, int(max(a[i], b[i]) + radius + 1) + 1) for i in (0, 1)]
    for row in range(low[1], high[1]):
        for column in range(low[0], high[0]):
            x, y = column + 0.5 - a[0], row + 0.5 - a[1]
            t = min(1.0, max(0.0, (x * dx + y * dy) / length))
            cover = radius + 0.5 - math.hypot(x - t * dx, y - t * dy)
            at = row * SIDE + column
            if cover > pixels[at]:
                pixels[at] = min(cover, 1.0)


def image(digit: int, rng: random.Random) -> bytes:
    """SIDE x SIDE gray values of one digit, row by row: 0 is paper, 255 is ink."""
    moved, radius = _bend(rng), rng.uniform(0.7, 1.7)
    pixels = [0.0] * (SIDE * SIDE)
    for stroke in rng.choice(GLYPHS[digit]):
        points = [moved((x + rng.gauss(0, 0.012), y + rng.gauss(0, 0.012))) for x, y in stroke]
        for a, b in zip(points, points[1:]):
            _draw(pixels, a, b, radius)
    step = 255 // (LEVELS - 1)
    return bytes(int(p * (LEVELS - 1) + 0.5) * step for p in pixels)

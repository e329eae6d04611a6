#!/usr/bin/env python3
"""Draws examples/data/shapes: small images of three shapes, a folder for each (needs Pillow).

  tools/samples/shapes.py OUT
"""

import math
import random
import sys
from pathlib import Path

from PIL import Image, ImageDraw

EACH = 24


def corners(count, x, y, radius, turn):
    return [(x + radius * math.cos(turn + 2 * math.pi * k / count),
             y + radius * math.sin(turn + 2 * math.pi * k / count)) for k in range(count)]


def main():
    rng = random.Random(17)
    for name, count in (("disc", 60), ("square", 4), ("triangle", 3)):
        folder = Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        for i in range(EACH):
            width, height = rng.randint(24, 40), rng.randint(24, 40)
            ground, ink = rng.randint(0, 90), rng.randint(150, 255)
            image = Image.new("L", (width, height), ground)
            shape = corners(count, width / 2 + rng.uniform(-3, 3), height / 2 + rng.uniform(-3, 3),
                            rng.uniform(6, 11), rng.uniform(0, math.tau))
            ImageDraw.Draw(image).polygon(shape, fill=ink)
            if i % 2:
                image.save(folder / f"{i:02}.jpg", quality=85)
            else:
                image.save(folder / f"{i:02}.png", optimize=True)


if __name__ == "__main__":
    main()

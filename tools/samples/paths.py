#!/usr/bin/env python3
"""Writes examples/data/paths.csv: walks of 2 to 12 steps in the plane, one per row.

A row has the number of steps and the side where the walk ends, left or right of its start. Cells
after the last step are empty.

  tools/samples/paths.py OUT
"""

import random
import sys
from pathlib import Path

SAMPLES, MOST = 300, 12


def main():
    rng = random.Random(23)
    header = [f"{axis}{t}" for t in range(MOST) for axis in "xy"]
    lines = [",".join(["steps", *header, "side"])]
    for _ in range(SAMPLES):
        count = rng.randint(2, MOST)
        walk = [(rng.gauss(0, 1), rng.gauss(0, 1)) for _ in range(count)]
        cells = [f"{v:.2f}" for step in walk for v in step] + [""] * (2 * (MOST - count))
        side = "right" if sum(round(x, 2) for x, _ in walk) > 0 else "left"
        lines.append(",".join([str(count), *cells, side]))
    (Path(sys.argv[1]) / "paths.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes the sample data of examples/data: images of digits, tables of fruit
and houses, and a few stories.

Standard library only. The same data every time: everything random comes from fixed seeds.

    tools/samples/make.py             writes examples/data
  tools/samples/make.py --check     reports whether it has the output of this program
"""

import argparse
import gzip
import random
import struct
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "tools" / "stories")]
sys.dont_write_bytecode = True

import digits  # noqa: E402
import generate_text  # noqa: E402

SEED, STORIES, FRUIT_OF_A_KIND = 20261122, 60, 75
# Images for training and for tests: endings of file names, and their number.
PICTURES = {"": 2000, "-test": 500}

# Mean and deviation of mass in g, length and width in mm, and how red it is, 0 to 1.
FRUIT = {
    "apple": ((182, 24), (74, 5), (79, 5), (0.62, 0.18)),
    "lemon": ((121, 17), (83, 7), (60, 4), (0.14, 0.05)),
    "orange": ((176, 22), (72, 5), (73, 5), (0.45, 0.06)),
    "plum": ((47, 9), (46, 4), (41, 4), (0.71, 0.12)),
}


def idx(sizes: tuple[int, ...], values: bytes) -> bytes:
    """The format of MNIST: 8, how many sizes, the sizes as big-endian words, one byte a value."""
    head = struct.pack(f">I{len(sizes)}I", 0x0800 + len(sizes), *sizes)
    return gzip.compress(head + values, 9, mtime=0)


def digit_files() -> dict[str, bytes]:
    found = {}
    for ending, count in PICTURES.items():
        order = [i % 10 for i in range(count)]
        random.Random(f"{SEED}/labels{ending}").shuffle(order)
        pixels = b"".join(
            digits.image(digit, random.Random(f"{SEED}/digits{ending}/{i}"))
            for i, digit in enumerate(order)
        )
        found[f"digits{ending}.gz"] = idx((count, digits.SIDE, digits.SIDE), pixels)
        found[f"digit-labels{ending}.gz"] = idx((count,), bytes(order))
    return found


def fruit() -> bytes:
    rng = random.Random(f"{SEED}/fruit")
    rows = []
    for kind, columns in FRUIT.items():
        for _ in range(FRUIT_OF_A_KIND):
            mass, length, width, red = (rng.gauss(*column) for column in columns)
            red = min(max(red, 0.0), 1.0)
            rows.append(f"{mass:.0f},{length:.1f},{width:.1f},{red:.2f},{kind}\n")
    rng.shuffle(rows)
    return ("mass_g,length_mm,width_mm,redness,fruit\n" + "".join(rows)).encode()


HOUSES = 600
TOWNS = {"Ulm": 0, "Bonn": 60000, "Kiel": 40000, "Bern": 250000}


def houses() -> bytes:
    """Prices of houses, with texts, dates, gaps and a column that numbers the rows."""
    rng = random.Random(f"{SEED}/houses")
    rows = []
    for number in range(1, HOUSES + 1):
        area, town = rng.randint(40, 240), rng.choice(list(TOWNS))
        rooms = max(1, area // 30 + rng.randint(-1, 1))
        year, month, day = rng.randint(1950, 2020), rng.randint(1, 12), rng.randint(1, 28)
        garden = rng.random() < 0.5
        price = 1800 * area + 9000 * rooms + TOWNS[town] + 1500 * (year - 1950) + 45000 * garden
        price += rng.gauss(0, 12000)
        seen = area if rng.random() > 0.04 else ""
        built = f"{year}-{month:02}-{day:02}"
        rows.append(f"{number},{seen},{rooms},{town},{built},{'yes' if garden else 'no'},"
                    f"{price:.0f}\n")  # fmt: skip
    return ("id,area,rooms,town,built,garden,price\n" + "".join(rows)).encode()


def stories() -> bytes:
    """Stories of another seed than the training text of models/stories.entity."""
    told = generate_text.documents(SEED, STORIES, chat=0)
    return "".join(generate_text.SEPARATOR + story + "\n" for story in told).encode()


def files() -> dict[str, bytes]:
    return {**digit_files(), "fruit.csv": fruit(), "houses.csv": houses(), "stories.txt": stories()}


def plain(name: str, data: bytes) -> bytes:
    """Without compression, whose bytes differ from one zlib to another."""
    return gzip.decompress(data) if name.endswith(".gz") else data


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args().check
    folder = ROOT / "examples" / "data"
    folder.mkdir(parents=True, exist_ok=True)
    status = 0
    for name, data in files().items():
        file = folder / name
        if not check:
            file.write_bytes(data)
            print(f"{file.relative_to(ROOT)}: {len(data)} bytes")
        elif not file.is_file() or plain(name, file.read_bytes()) != plain(name, data):
            print(f"{file.relative_to(ROOT)} is not what tools/samples/make.py writes; run it")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())

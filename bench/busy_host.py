#!/usr/bin/env python3
"""Single short runs at default threads next to spinning processes, paired with runs on one lane.

  bench/busy_host.py                       200 pairs of each case, next to one spinner and to two.
  bench/busy_host.py --pairs 50 --spinners 2 --filter decode
  bench/busy_host.py --cores 2,3           on two cores of a machine with more.

A pair is two processes, one after the other, in an alternating order: `--threads 1`, and the
default. The table has the median of the pairs' speed ratios (1 means as fast as one lane) and their
lowest twentieth. It also has the 95th percentile of the times over that of one lane. The exit
status is 1 if a median is below 0.9 or a 95th percentile above 1.25. Linux only.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEAST_MEDIAN, MOST_TAIL = 0.9, 1.25


def decode(shape: str, tokens: int) -> list[str]:
    return ["bench", "llm", "--shape", shape, "--prefill", "1", "--decode", str(tokens),
            "--reps", "1", "--json"]


def train(folder: Path, widths: list[int], rows: int) -> list[str]:
    """Two epochs over random rows; makes the files."""
    name = "-".join(map(str, widths))
    ends = [*["relu"] * (len(widths) - 2), "linear"]
    layers = [{"type": "Dense", "in": a, "out": b, "activation": end}
              for a, b, end in zip(widths, widths[1:], ends)]  # fmt: skip
    network, table = folder / f"{name}.json", folder / f"{name}.csv"
    network.write_text(json.dumps({"loom": 1, "input": [widths[0]], "layers": layers}))
    draw = random.Random(1)
    with table.open("w") as file:
        file.write(",".join([*(f"x{i}" for i in range(widths[0])), "class"]) + "\n")
        for row in range(rows):
            values = [f"{draw.random():.3f}" for _ in range(widths[0])]
            file.write(",".join([*values, f"c{row % widths[-1]}"]) + "\n")
    return ["train", str(network), str(table), "--epochs", "2", "--quiet",
            "-o", str(folder / f"{name}.entity")]  # fmt: skip


def cases(folder: Path) -> dict[str, list[str]]:
    return {
        "decode shakespeare": decode("shakespeare", 300),
        "decode smollm2-135m": decode("smollm2-135m", 30),
        "train 64-32-10": train(folder, [64, 32, 10], 4000),
        "train 256-512-512-10": train(folder, [256, 512, 512, 10], 1500),
    }


def run(loom: list[str], case: list[str], threads: int) -> float:
    """Seconds of a token as the run reports it, or of the whole run."""
    command = [*loom, *case, "--threads", str(threads)]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        sys.exit(f"busy_host: {' '.join(command)}: {done.stderr.strip()}")
    if case[0] == "bench":
        return 1 / float(json.loads(done.stdout)["decode_tokens_per_s"])
    return time.monotonic() - start


def quantile(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def pairs(loom: list[str], case: list[str], count: int,
          note: Callable[[float, float], None]) -> tuple[list[float], list[float]]:  # fmt: skip
    """Calls `note` with the seconds of each pair: a run that is stopped leaves its pairs."""
    one, default = [], []
    for turn in range(count):
        for threads in (1, 0) if turn % 2 == 0 else (0, 1):
            (one if threads == 1 else default).append(run(loom, case, threads))
        note(one[-1], default[-1])
    return one, default


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--loom", default=str(ROOT / "build/release/cli/loom"),
                        help="the program, or a command that starts it")  # fmt: skip
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--spinners", default="1,2", help="a comma list")
    parser.add_argument("--filter", default="", help="only cases with a match")
    parser.add_argument("--raw", help="a file for the seconds of each pair")
    parser.add_argument("--cores", help="a comma list; default: those this process may use")
    args = parser.parse_args()
    if args.cores:
        os.sched_setaffinity(0, {int(core) for core in args.cores.split(",")})
    print(f"{args.pairs} pairs, {len(os.sched_getaffinity(0))} cores; speed over one lane's, "
          "and the 95th percentile of times over one lane's")  # fmt: skip
    print(f"{'':28} spinners  median  least 5 %  tail")
    held = True
    folder = tempfile.TemporaryDirectory(prefix="loom-busy-")
    rows = cases(Path(folder.name))
    for count in map(int, args.spinners.split(",")):
        spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                    for _ in range(count)]  # fmt: skip
        try:
            for name, case in rows.items():
                if not re.search(args.filter, name):
                    continue

                def note(a: float, b: float, row: str = f"{name}\t{count}") -> None:
                    if args.raw:
                        with open(args.raw, "a", encoding="utf-8") as raw:
                            raw.write(f"{row}\t{a:.6g}\t{b:.6g}\n")

                one, default = pairs(args.loom.split(), case, args.pairs, note)
                ratios = [a / b for a, b in zip(one, default)]
                tail = quantile(default, 0.95) / quantile(one, 0.95)
                good = quantile(ratios, 0.5) >= LEAST_MEDIAN and tail <= MOST_TAIL
                held = held and good
                print(f"{name:28} {count:8} {quantile(ratios, 0.5):7.2f} "
                      f"{quantile(ratios, 0.05):9.2f} {tail:6.2f}{'' if good else '  NOT HELD'}",
                      flush=True)  # fmt: skip
        finally:
            for spinner in spinners:
                spinner.kill()
                spinner.wait()
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())

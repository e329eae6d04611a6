#!/usr/bin/env python3
"""The cost of a call through C and Python, compared with the same call through C++.

  bench/call_overhead.py [BUILD]      BUILD: build/dev; needs NumPy

The networks are one Dense 1 x 1, whose arithmetic costs almost nothing, and one of 1 x 512 x 512,
on one thread. The three languages alternate. Each number is the minimum of many rounds, so that a
busy machine disturbs it little. With _into the result goes into memory of the caller. The exit
status is 1 if a limit is exceeded:

- C, 100 ns over C++, both into memory of the caller (a returned array handle takes some 100 more).
- Python, 2 us over C++.
- The wide network through Python, 1.3 times the time of C++.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TURNS = 5


def least(function, calls: int, rounds: int) -> float:
    """Nanoseconds per call, the minimum of the rounds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter_ns()
        for _ in range(calls):
            function()
        best = min(best, (time.perf_counter_ns() - start) / calls)
    return best


def in_python(width: int) -> "dict[str, float]":
    import loom
    import numpy as np

    engine = loom.Engine(threads=1)
    net = loom.Sequential([loom.Dense(width, width)], input=width, engine=engine)
    session = net.session()
    x = np.full((1, width), 0.5, np.float32)
    y = np.empty((1, width), np.float32)
    calls, rounds = (20, 100) if width > 64 else (200, 100)
    return {
        "python": least(lambda: session.run(x), calls, rounds),
        "python_into": least(lambda: session.run(x, out=y), calls, rounds),
    }


def program(build: Path) -> Path:
    to = build / "bench" / "call_overhead"
    to.parent.mkdir(exist_ok=True)
    subprocess.run(
        ["c++", "-std=c++20", "-O2", f"-I{ROOT / 'include'}", ROOT / "bench/call_overhead.cpp",
         f"-L{build}", f"-Wl,-rpath,{build}", "-lloom", "-o", to],
        check=True,
    )  # fmt: skip
    return to


def measured(build: Path, width: int) -> "dict[str, float]":
    binary = program(build)
    environment = {**os.environ, "LOOM_LIBRARY": str(build / "libloom.so"),
                   "PYTHONPATH": str(ROOT / "bindings/python")}  # fmt: skip
    best: "dict[str, float]" = {}
    for _ in range(TURNS):
        for command in ([binary, str(width), "100"],
                        [sys.executable, __file__, "--python", str(width)]):  # fmt: skip
            out = subprocess.run(command, env=environment, check=True, capture_output=True)
            for name, took in json.loads(out.stdout).items():
                best[name] = min(best.get(name, took), took)
    return best


def main() -> int:
    words = sys.argv[1:]
    if words[:1] == ["--python"]:
        print(json.dumps(in_python(int(words[1]))))
        return 0
    if words and words[0].startswith("-"):
        print(__doc__)
        return 0 if words[0] in ("-h", "--help") else 2
    build = Path(words[0] if words else "build/dev").resolve()
    narrow, wide = measured(build, 1), measured(build, 512)
    print("ns per call          1 x 1   over C++   1 x 512 x 512   ratio")
    for name in ("cpp", "cpp_into", "c", "c_into", "python", "python_into"):
        beside = narrow["cpp_into" if name.endswith("_into") else "cpp"]
        print(f"{name:<15}{narrow[name]:>11.0f}{narrow[name] - beside:>11.0f}"
              f"{wide[name]:>16.0f}{wide[name] / wide['cpp']:>8.2f}")  # fmt: skip
    held = {
        "C into memory of the caller, 100 ns": narrow["c_into"] - narrow["cpp_into"] <= 100,
        "Python, 2 us": narrow["python"] - narrow["cpp"] <= 2000,
        "Python, 1 x 512 x 512, 1.3": wide["python"] <= 1.3 * wide["cpp"],
    }
    for limit, holds in held.items():
        print(f"{limit}: {'held' if holds else 'NOT held'}")
    return 0 if all(held.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

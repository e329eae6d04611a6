#!/usr/bin/env python3
"""Writes tests/interpreter/golden/standard.npz: small tests of the ONNX standard (package onnx).

  tools/goldens/onnx_standard.py [--bytes N] [--output FILE]

tests/outside/onnx_standard.py runs all of them if the package is installed. Array `cases` has the
model, the inputs and the outputs of each test, one after the other. Values are models without nodes
whose initializers they are (tests/interpreter/values.hpp). Array `index` is JSON:
[name, rtol, atol, bytes of the model, of the inputs, of the outputs].
Tests of more than --bytes, those with strings and those that Loom refuses are left out.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "outside"))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx_standard import case_data, save_values, tests, verdict  # noqa: E402

ENDS = (".onnx", ".in", ".out")
KINDS = ("node", "simple", "pytorch-operator")


def small_cases(folder: Path, limit: int):
    """Path, name and case of each test that is small enough."""
    for case in tests(KINDS, ""):
        model, sets = case_data(case)
        inputs, outputs = sets[0]
        name = case.name.removeprefix("test_")
        path = folder / name
        if not save_values(inputs, f"{path}.in") or not save_values(outputs, f"{path}.out"):
            continue
        model.doc_string = model.producer_name = ""
        onnx.save(model, f"{path}.onnx")
        if sum(Path(f"{path}{end}").stat().st_size for end in ENDS) <= limit:
            yield path, name, case, list(outputs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", type=Path, default=ROOT / "build/dev/tests/evaluate_runner")
    parser.add_argument("--bytes", type=int, default=1500)
    parser.add_argument("--output", type=Path,
                        default=ROOT / "tests/interpreter/golden/standard.npz")  # fmt: skip
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        cases = sorted(small_cases(folder, options.bytes), key=lambda case: case[1])
        lines = "".join(f"{path}.onnx {path}.in {path}.made\n" for path, *_ in cases)
        done = subprocess.run([options.program], input=lines, capture_output=True, text=True,
                              check=True)  # fmt: skip
        index, data = [], []
        for (path, name, case, want), answer in zip(cases, done.stdout.splitlines()):
            result, why = verdict(answer, f"{path}.made", want, case)
            if result == "wrong":
                print(f"{name}: {why}", file=sys.stderr)
                return 1
            if result == "right":
                parts = [Path(f"{path}{end}").read_bytes() for end in ENDS]
                bounds = [max(case.rtol, 1e-4), max(case.atol, 1e-6)]
                index.append([name, *bounds, *(len(part) for part in parts)])
                data += parts
    options.output.parent.mkdir(parents=True, exist_ok=True)
    entries = {"index": json.dumps(index).encode(), "cases": b"".join(data)}
    arrays = {name: np.frombuffer(content, np.uint8) for name, content in entries.items()}
    np.savez_compressed(options.output, **arrays)
    print(f"{len(index)} tests, {options.output.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

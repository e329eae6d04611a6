#!/usr/bin/env python3
"""The node tests of the ONNX standard (package onnx, onnx.backend.test) in Loom.

Each is a graph of one operator with inputs and the outputs of the standard. A network of Loom has
one input: the first input of floats stays one, the others become initializers of the model. The
result is compared with the standard's output (rtol and atol of the test, at least 1e-4 and 1e-5).

  onnx_backend.py --program build/dev/tests/onnx_runner [--filter TEXT] [--table FILE] [--verbose]

The last lines: a table by operator (right, wrong, refused), and the sum. Exit status 1 if any is
wrong.
"""

import argparse
import collections
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

FLOATS = (np.float32, np.float64, np.float16)


def one_input(model, inputs):
    """The model with one input left, its name and its values; or the reason of a refusal."""
    names = [v.name for v in model.graph.input]
    kept = None
    for name, value in zip(names, inputs):
        if value.dtype in FLOATS and value.ndim >= 1 and value.size > 0:
            kept = name
            break
    if kept is None:
        return None, "no input of floats"
    given = dict(zip(names, inputs))
    for name in names:
        if name != kept:
            model.graph.initializer.append(numpy_helper.from_array(given[name], name))
    first = next(v for v in model.graph.input if v.name == kept)
    del model.graph.input[:]
    model.graph.input.append(first)
    return model, given[kept]


def node_tests(text):
    with warnings.catch_warnings():  # of the examples' own arithmetic
        warnings.simplefilter("ignore")
        return [case for case in load_model_tests(kind="node") if text in case.name]


def run(program, cases, folder):
    """Asks the runner for all cases; yields (case, answer). A crash ends one case, not the run."""
    waiting = list(cases)
    while waiting:
        lines = "".join(
            f"{folder}/{i}.onnx {batch} {folder}/{i}.x {folder}/{i}.y\n" for i, batch, *_ in waiting
        )
        done = subprocess.run(
            [program], input=lines, capture_output=True, text=True, timeout=1800
        )
        answers = done.stdout.splitlines()
        for case, answer in zip(waiting, answers):
            yield case, answer
        if len(answers) >= len(waiting):
            return
        yield waiting[len(answers)], f"crashed with status {done.returncode}"
        waiting = waiting[len(answers) + 1 :]


def verdict(answer, path, want, rtol, atol):
    if not answer.startswith("ok"):
        return "wrong" if answer.startswith("crashed") else "refused"
    got = np.fromfile(path, dtype=np.float32)
    if got.size != want.size:
        return "wrong"
    want = want.astype(np.float64).ravel()
    same = np.allclose(got, want, rtol=max(rtol, 1e-4), atol=max(atol, 1e-5), equal_nan=True)
    return "right" if same else "wrong"


def row(name, c):
    return f"| {name} | {c['right']} | {c['wrong']} | {c['refused']} | {c['other']} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--filter", default="")
    parser.add_argument("--table", help="also write the table there, as Markdown")
    parser.add_argument("--verbose", action="store_true", help="every test with its answer")
    args = parser.parse_args()
    counts = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as folder:
        cases, wants = [], {}
        for i, case in enumerate(node_tests(args.filter)):
            model = case.model
            op = model.graph.node[0].op_type if len(model.graph.node) == 1 else "(functions)"
            inputs, outputs = case.data_sets[0]
            tensors = all(isinstance(v, np.ndarray) for v in [*inputs, outputs[0]])
            made, x = one_input(model, inputs) if tensors else (None, None)
            want = outputs[0]
            if made is None or want.dtype not in FLOATS:
                counts[op]["other"] += 1
                continue
            onnx.save(model, f"{folder}/{i}.onnx")
            x.astype(np.float32).tofile(f"{folder}/{i}.x")
            cases.append((i, x.shape[0], case, op))
            wants[i] = want
        for (i, _, case, op), answer in run(args.program, cases, folder):
            result = verdict(answer, f"{folder}/{i}.y", wants[i], case.rtol, case.atol)
            counts[op][result] += 1
            if args.verbose or result == "wrong":
                print(f"{result}: {case.name}: {answer}")
    lines = ["| operator | right | wrong | refused | no floats |", "|---|---|---|---|---|"]
    total = collections.Counter()
    for op in sorted(counts):
        c = counts[op]
        total.update(c)
        lines.append(row(op, c))
    lines.append(row("all", total))
    print("\n".join(lines))
    if args.table:
        pathlib.Path(args.table).write_text("\n".join(lines) + "\n")
    print(
        f"{total['right']} right, {total['wrong']} wrong, {total['refused']} refused, "
        f"{total['other']} without floats"
    )
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

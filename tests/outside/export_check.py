#!/usr/bin/env python3
"""Random networks with every field drawn away from its default (field_runner.cpp), written in each
format and read by the other side: Loom for .json, .entity, .safetensors and .npz, whose
descriptions and bits must be equal; ONNX Runtime for .onnx, which must give the same numbers. A
writer may refuse a network if it names the field or the layer.

  export LOOM_LIBRARY=build/dev/libloom.so PYTHONPATH=bindings/python
  tests/outside/export_check.py build/dev/tests/field_runner --count 2000

Closes with "N passed, N failed, N skipped". Exit status 77 if numpy or onnxruntime is absent.
"""

import argparse
import collections
import json
import re
import subprocess
import sys

try:
    import numpy as np
    import onnxruntime
except ImportError as error:
    print(f"export_check: {error}", file=sys.stderr)
    sys.exit(77)

import loom

OWN = ("json", "entity", "safetensors", "npz")
BOUND = 2e-5  # of the largest value; of ONNX Runtime, which adds in another order
ROWS = 3  # samples at once, of networks that take several


def random_weights(net, random):
    for name, shape, _ in net.parameters():
        # Variances stay above 0.
        low = 0.2 if name.endswith(("var", "variance")) else -1.0
        values = random.uniform(low, 1.0, shape).astype(np.float32)
        try:
            net.set_parameter(name, values)
        except loom.LoomError as error:
            raise RuntimeError(f"set_parameter {name}: {error}") from error


def samples(net, random, rows):
    """A batch for every input, by name."""
    made = {}
    for port in net.inputs:
        shape = [rows, *port.shape] if port.batched else list(port.shape)
        if port.ids:
            made[port.name] = random.integers(0, port.ids, shape).astype(np.int32)
        else:
            made[port.name] = random.uniform(-1, 1, shape).astype(np.float32)
    return made


def answers(net, inputs):
    with net.session(max_batch=len(next(iter(inputs.values())))) as session:
        return {name: np.asarray(y).copy() for name, y in session.run(inputs).items()}


def equal_own(net, inputs, want, form):
    read = loom.Network.load(net.save_bytes(form), name=f"net.{form}")
    if json.loads(read.json()) != json.loads(net.json()):
        where = changed(json.loads(net.json()), json.loads(read.json()))
        return f"{form}: another description: {where}"
    got = answers(read, inputs)
    for name, y in want.items():
        if name not in got or got[name].tobytes() != y.tobytes():
            return f"{form}: other bits of {name}"
    return ""


def changed(a, b, path=""):
    """The first difference of two descriptions."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [*a, *(k for k in b if k not in a)]:
            if a.get(key) != b.get(key):
                return changed(a.get(key), b.get(key), f"{path}.{key}")
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            if x != y:
                return changed(x, y, f"{path}[{i}]")
    return f"{path}: {a!r} became {b!r}"


def near(got, want):
    if got.size != want.size:
        return f"{got.shape}, must be {want.shape}"
    got, want = got.reshape(-1).astype(np.float64), want.reshape(-1).astype(np.float64)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    if same.all():
        return ""
    scale = max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0)))
    off = np.abs(got - want)[~same]
    return (
        ""
        if np.isfinite(off).all() and off.max() <= BOUND * scale
        else f"off by {off.max():.3g} of {scale:.3g}"
    )


def equal_onnx(net, inputs, want, words):
    """The difference; "" if there is none; None if the writer refuses with the name."""
    try:
        data = net.save_bytes("onnx")
    except loom.LoomError as error:
        text = str(error)
        named = any(re.search(rf"\b{re.escape(w)}\b", text) for w in words)
        return None if named else f"onnx: refused without a name: {text}"
    try:
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    except Exception as error:  # any error of ONNX Runtime
        return f"onnx: ONNX Runtime refuses the file: {str(error).splitlines()[0][:300]}"
    given = {}
    for port in session.get_inputs():
        value = inputs.get(port.name, next(iter(inputs.values())))
        given[port.name] = value.astype(np.int64 if "int64" in port.type else value.dtype)
    try:
        got = session.run(None, given)
    except Exception as error:
        return f"onnx: ONNX Runtime stops: {str(error).splitlines()[0][:300]}"
    for y, (name, value) in zip(got, want.items()):
        reason = near(y, value)
        if reason:
            return f"onnx: {name} {reason}"
    return ""


class NotANetwork(Exception):
    """A description that no session runs."""


class Totals:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, 0
        self.refused = collections.Counter()
        self.onnx = 0
        self.seen = {}

    def note(self, case):
        for name in case["away"] + case["left"]:
            self.seen.setdefault((case["kind"], name), False)
        for name in case["away"]:
            self.seen[case["kind"], name] = True

    def print(self):
        never = sorted(f"{kind}.{name}" for (kind, name), away in self.seen.items() if not away)
        print(
            f"fields drawn away from their defaults: {sum(self.seen.values())} of {len(self.seen)}"
            + (f"; never: {', '.join(never)}" if never else "")
        )
        print(
            f"onnx: {self.onnx} equal, {sum(self.refused.values())} refused by name: "
            + ", ".join(f"{kind} {n}" for kind, n in sorted(self.refused.items()))
        )
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")


def check(case, seed, totals):
    """Errors in the files of one network."""
    random = np.random.default_rng([41, seed])
    try:
        net = loom.Network.load(json.dumps(case["net"]).encode(), name="net.json")
        random_weights(net, random)
        inputs = samples(net, random, ROWS if case["batches"] else 1)
        want = answers(net, inputs)
    except loom.LoomError as error:
        raise NotANetwork(str(error)) from error
    wrong = [reason for form in OWN if (reason := equal_own(net, inputs, want, form))]
    words = {case["kind"], *case["away"], *(cell["type"] for cell in case["net"]["cells"])}
    onnx = equal_onnx(net, inputs, want, words)
    if onnx is None:
        totals.refused[case["kind"]] += 1
    elif onnx:
        wrong.append(onnx)
    else:
        totals.onnx += 1
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("runner")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    drawn = subprocess.run(
        [args.runner, str(args.first), str(args.count)], capture_output=True, text=True, check=True
    )
    totals = Totals()
    for seed, line in enumerate(drawn.stdout.splitlines(), args.first):
        case = json.loads(line)
        totals.note(case)
        try:
            wrong = check(case, seed, totals)
        except NotANetwork:
            totals.skipped += 1  # as fewer learned positions than steps
            continue
        for reason in wrong:
            print(f"FAILED seed {seed}, {case['kind']} with {', '.join(case['away'])}: {reason}")
        totals.failed += 1 if wrong else 0
        totals.passed += 0 if wrong else 1
    totals.print()
    return 1 if totals.failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The tests that the ONNX standard ships (package onnx, onnx.backend.test) in Loom's evaluator:
every type, several inputs and outputs, control flow, lists.

  onnx_standard.py --program build/dev/tests/evaluate_runner [--kinds node,simple,pytorch-operator]
                   [--filter TEXT] [--verbose] [--table FILE]

A test is right if types, shapes and values are those of the standard. Floats may differ by rtol and
atol of the test, at least 1e-4 and 1e-6; integers and booleans must be equal. A test is refused if
Loom reports that it does not support it. Otherwise it is wrong. The last lines have a table by
operator, and the sum. Exit status 1 if any is wrong.
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
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.loader import load_model_tests


def as_tensor(value, name):
    if isinstance(value, onnx.TensorProto):
        made = onnx.TensorProto()
        made.CopyFrom(value)
        made.name = name
        return made
    return numpy_helper.from_array(np.asarray(value), name)


def save_values(values, path):
    """Values as a model without nodes (see evaluate_runner.cpp). False: some are strings."""
    kinds, tensors = "", []
    for i, value in enumerate(values):
        if value is None:
            kinds += "n"
        elif isinstance(value, list):
            kinds += "s"
            tensors += [as_tensor(v, f"{i}/{k}") for k, v in enumerate(value)]
        else:
            kinds += "t"
            tensors.append(as_tensor(value, str(i)))
    if any(t.data_type == TensorProto.STRING for t in tensors):
        return False
    graph = helper.make_graph([], "values", [], [], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    helper.set_model_props(model, {"kinds": kinds})
    onnx.save(model, path)
    return True


def load_values(path):
    model = onnx.load(path)
    by_name = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    kinds = {p.key: p.value for p in model.metadata_props}.get("kinds", "")
    values = []
    for i, kind in enumerate(kinds):
        if kind == "s":
            values.append([by_name[f"{i}/{k}"] for k in range(len(by_name))
                           if f"{i}/{k}" in by_name])
        else:
            values.append(by_name.get(str(i)))
    return values


def same(got, want, rtol, atol):
    """The error of a value; empty if there is none."""
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return "no list of that length"
        return next((why for g, w in zip(got, want) if (why := same(g, w, rtol, atol))), "")
    if want is None:
        return "" if got is None else "a value where there is none"
    if isinstance(want, onnx.TensorProto):
        want = numpy_helper.to_array(want)
    want = np.asarray(want)
    if got is None:
        return "no value"
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    narrow = want.dtype.itemsize < 2 and want.dtype.kind not in "iub"  # of ml_dtypes
    if got.dtype != want.dtype and not narrow:
        return f"type {got.dtype}, not {want.dtype}"
    if want.dtype.kind in "iub":
        return "" if np.array_equal(got, want) else "other numbers"
    if narrow and "int" in want.dtype.name:
        return "" if np.array_equal(got.astype(int), want.astype(int)) else "other numbers"
    if narrow and want.dtype.name == "float4_e2m1fn" and got.dtype == np.uint8:
        got = got.view(want.dtype)
    a, b = got.astype(np.float64), want.astype(np.float64)
    if want.dtype == np.float16 or "bfloat16" in want.dtype.name:
        rtol, atol = max(rtol, 2e-3 if want.dtype == np.float16 else 1e-2), max(atol, 1e-3)
    if np.allclose(a, b, rtol=max(rtol, 1e-4), atol=max(atol, 1e-6), equal_nan=True):
        return ""
    return f"off by {np.nanmax(np.abs(a - b)) if a.size else 0:.3g}"


def tests(kinds, text):
    with warnings.catch_warnings():  # of the examples' own arithmetic
        warnings.simplefilter("ignore")
        for kind in kinds:
            for case in load_model_tests(kind=kind):
                if text in case.name:
                    yield case


def read_proto(path, value_info):
    """An input or output of a test, from its file."""
    kind = value_info.type.WhichOneof("value")
    data = pathlib.Path(path).read_bytes()
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def case_data(case):
    """The model and its data sets, of tests in memory and of those in folders."""
    if case.model is not None:
        return case.model, case.data_sets
    folder = pathlib.Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    sets = []
    for data in sorted(folder.glob("test_data_set_*")):
        inputs = [read_proto(data / f"input_{i}.pb", v) for i, v in enumerate(model.graph.input)
                  if (data / f"input_{i}.pb").exists()]
        outputs = [read_proto(data / f"output_{i}.pb", v)
                   for i, v in enumerate(model.graph.output)]
        sets.append((inputs, outputs))
    return model, sets


def operator_of(model):
    nodes = model.graph.node
    return nodes[0].op_type if len(nodes) == 1 else "(several)"


def run(program, jobs):
    """Asks the runner for all jobs; yields an answer each. A crash ends one job, not the run."""
    waiting = list(jobs)
    while waiting:
        lines = "".join(f"{p}.onnx {p}.in {p}.out\n" for p in waiting)
        done = subprocess.run([program], input=lines, capture_output=True, text=True,
                              timeout=3600, check=False)
        answers = done.stdout.splitlines()
        yield from answers[:len(waiting)]
        if len(answers) >= len(waiting):
            return
        yield f"crashed with status {done.returncode}"
        waiting = waiting[len(answers) + 1:]


def verdict(answer, path, want, case):
    if answer.startswith("refused"):
        return "refused", answer
    if answer != "ok":
        return "wrong", answer
    got = load_values(path)
    if len(got) != len(want):
        return "wrong", f"{len(got)} outputs, not {len(want)}"
    whys = [why for g, w in zip(got, want) if (why := same(g, w, case.rtol, case.atol))]
    return ("wrong", whys[0]) if whys else ("right", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--kinds", default="node,simple,pytorch-operator,pytorch-converted")
    parser.add_argument("--filter", default="")
    parser.add_argument("--table", help="also write the table there, as Markdown")
    parser.add_argument("--verbose", action="store_true", help="every test that is not right")
    args = parser.parse_args()
    counts, reasons = collections.defaultdict(collections.Counter), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        jobs, known = [], []
        for i, case in enumerate(tests(args.kinds.split(","), args.filter)):
            model, sets = case_data(case)
            for k, (inputs, outputs) in enumerate(sets):
                path = f"{folder}/{i}_{k}"
                if not save_values(inputs, f"{path}.in"):
                    counts[operator_of(model)]["strings"] += 1
                    continue
                onnx.save(model, f"{path}.onnx")
                jobs.append(path)
                known.append((case, operator_of(model), list(outputs)))
        for path, (case, op, want), answer in zip(jobs, known, run(args.program, jobs)):
            result, why = verdict(answer, f"{path}.out", want, case)
            counts[op][result] += 1
            if result == "refused":
                reasons[why.split("): ")[-1][:80]] += 1
            if args.verbose and result != "right" or result == "wrong":
                print(f"{result}: {case.name}: {why}")
    kinds = ("right", "wrong", "refused", "strings")
    lines = ["| operator | " + " | ".join(kinds) + " |", "|---|---|---|---|---|"]
    total = collections.Counter()
    for op in sorted(counts):
        total.update(counts[op])
        lines.append(f"| {op} | " + " | ".join(str(counts[op][k]) for k in kinds) + " |")
    lines.append("| all | " + " | ".join(str(total[k]) for k in kinds) + " |")
    if args.table:
        pathlib.Path(args.table).write_text("\n".join(lines) + "\n")
    if args.verbose:
        for why, n in reasons.most_common():
            print(f"{n:5} {why}")
    everything = sum(total.values())
    share = 100 * total["right"] / max(everything, 1)
    print(f"{everything} tests: {total['right']} right ({share:.1f} %), "
          f"{total['wrong']} wrong, {total['refused']} refused, {total['strings']} of strings")
    skipped = total["refused"] + total["strings"]
    print(f"{total['right']} passed, {total['wrong']} failed, {skipped} skipped")
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

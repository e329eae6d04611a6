#!/usr/bin/env python3
"""Random TFLite models in the TFLite interpreter and in Loom: as a network (the Python package),
and node by node (`loom onnx`). There are models of one operator with random attributes, of several
that read each other, and quantized ones.

  export LOOM_LIBRARY=build/dev/libloom.so PYTHONPATH=bindings/python
  tests/outside/tflite_check.py --loom build/dev/cli/loom --count 300 --seed 1

A value that differs by more than 1e-4 of the largest is wrong; for a quantized operator, by more
than one step. Refusals of Loom are counted by reason (--reasons); --keep DIR keeps wrong models.
The last line counts cases. Exit status 1 if a value differs, or if neither importer opens more than
a tenth of the models. Exit status 77 if ai-edge-litert, flatbuffers or numpy is absent.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
try:
    import numpy as np
    from ai_edge_litert import interpreter as litert

    from tflite_file import Model
    from tflite_graphs import graph
    from tflite_ops import OPERATORS
    from tflite_steps import STEPS
except ImportError as missing:
    print(f"tflite_check: {missing}", file=sys.stderr)
    sys.exit(77)

import loom

LIMIT = 1e-4


def interpreted(data, given):
    """The outputs of the interpreter, by name, from its own kernels; a text if it refuses the
    model, with the reason."""
    try:
        run = litert.Interpreter(
            model_content=data,
            num_threads=1,
            experimental_op_resolver_type=litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
        run.allocate_tensors()
        for detail in run.get_input_details():
            run.set_tensor(detail["index"], given[detail["name"]])
        run.invoke()
        return {d["name"]: run.get_tensor(d["index"]) for d in run.get_output_details()}
    except (RuntimeError, ValueError) as error:
        return str(error)


def reals(model, name, values):
    """Stored numbers as the values that they represent."""
    for t in model.tensors:
        if t.name.decode() == name and t.quantization is not None:
            q = t.quantization
            return ((values.astype(np.float64) - q.zeroPoint[0]) * q.scale[0]).astype(np.float32)
    return values


def by_nodes(args, data, given, work):
    """(outputs by name, "") or (None, reason)."""
    path = work / "m.tflite"
    path.write_bytes(data)
    command = [args.loom, "onnx", str(path), "-o", str(work / "y.npz")]
    for name, values in given.items():
        np.save(work / f"{name}.npy", values)
        command += ["--input", f"{name}={work}/{name}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, done.stderr.strip() or f"ended with {done.returncode}"
    with np.load(work / "y.npz") as values:
        return {k: values[k] for k in values.files}, ""


def by_network(data, given):
    if any(v.ndim < 2 for v in given.values()):
        return None, "an input without an axis of samples"
    try:
        net = loom.Network.load(data, name="m.tflite")
    except loom.UnsupportedError as error:
        return None, str(error)
    names = [port.name for port in net.inputs]
    fed = dict(zip(names, given.values())) if len(names) == 1 else {n: given[n] for n in names}
    with net.session(max_batch=1) as session:
        got = session.run(fed)
    return got, ""


def difference(theirs, ours, allowed=None):
    """The error, or "". A network from the pattern importer gives its output another name."""
    if len(ours) == 1 and len(theirs) >= 1 and next(iter(ours)) not in theirs:
        ours = {next(iter(theirs)): next(iter(ours.values()))}
    if not ours:
        return "no output"
    for name, mine in ours.items():
        if name not in theirs:
            return f"an output {name!r} that the file does not have"
        want = np.asarray(theirs[name], np.float64).reshape(-1)
        have = np.asarray(mine, np.float64).reshape(-1)
        if want.size != have.size:
            return f"{name}: {have.size} values instead of {theirs[name].shape}"
        near = LIMIT * max(1.0, float(np.max(np.abs(want[np.isfinite(want)]), initial=0)))
        if not np.allclose(have, want, rtol=0, atol=allowed or near, equal_nan=True):
            off = np.nanmax(np.abs(have - want))
            return f"{name}: off by {off:.3g}, allowed {allowed or near:.3g}"
    return ""


def cases(args):
    for i in range(args.count):
        seed = args.seed * 100000 + i
        r = np.random.default_rng(seed)
        kind = i % 10
        names = list(STEPS if kind >= 8 else OPERATORS)
        name = args.only or (
            names[(i // 10) % len(names)] if kind >= 8 else names[int(r.integers(len(names)))]
        )
        model, allowed = Model(), None
        if kind in (6, 7) and not args.only:
            name = "several"
            made = graph(model, r)
        elif name in STEPS:
            made, allowed = STEPS[name](model, r)
        else:
            made = OPERATORS[name](model, r)
        model.outputs = made if isinstance(made, list) else [made]
        yield seed, name, model, allowed


def shortened(reason):
    return re.sub(r"'[^']*'|operator \d+|node |\d+", "*", reason)[-150:]


def check(args, model, allowed, work):
    """(wrong, refused): texts by importer."""
    data = model.bytes()
    theirs = interpreted(data, model.given)
    if isinstance(theirs, str):
        return data, {"interpreter": theirs}, {}, 0
    theirs = {n: reals(model, n, v) for n, v in theirs.items()}
    given = {n: reals(model, n, v) for n, v in model.given.items()}
    wrong, refused, opened = {}, {}, 0
    for way, (got, why) in {
        "nodes": by_nodes(args, data, given, work),
        "network": by_network(data, given),
    }.items():
        if got is None:
            refused[way] = why
            continue
        opened += 1
        off = difference(theirs, got, allowed)
        if off:
            wrong[way] = off
    return data, wrong, refused, opened


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--loom", default="build/dev/cli/loom")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="one operator, a row of tflite_ops or tflite_steps")
    parser.add_argument("--reasons", action="store_true")
    parser.add_argument("--keep")
    args = parser.parse_args()
    count, reasons = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for seed, name, model, allowed in cases(args):
            data, wrong, refused, opened = check(args, model, allowed, work)
            count["cases"] += 1
            if "interpreter" in wrong:
                count["not taken"] += 1
                reasons[f"the interpreter: {name}: {wrong['interpreter'][-100:]}"] += 1
                continue
            for way, why in refused.items():
                count[f"refused as {way}"] += 1
                reasons[f"{way}: {name}: {shortened(why)}"] += 1
            count["opened"] += opened > 0
            count["as networks"] += "network" not in refused
            for way, why in wrong.items():
                print(f"WRONG {name} {seed} as {way}: {why}", flush=True)
                if args.keep:
                    pathlib.Path(args.keep).mkdir(exist_ok=True)
                    (pathlib.Path(args.keep) / f"{name}-{seed}.tflite").write_bytes(data)
            count["wrong"] += bool(wrong)
    if args.reasons:
        for reason, times in reasons.most_common():
            print(f"{times:4} {reason}")
    ran = count["cases"] - count["not taken"]
    print(
        f"{ran} models, {count['opened']} open, {count['as networks']} as networks; "
        f"the interpreter refused {count['not taken']}"
    )
    failed = count["wrong"]
    if count["opened"] < 0.9 * ran or count["not taken"] > 0.1 * count["cases"]:
        print("too few were read")
        failed += 1
    print(f"{count['opened'] - count['wrong']} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

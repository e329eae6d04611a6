#!/usr/bin/env python3
"""ONNX files inside popular packages, unchanged, in Loom's evaluator and in ONNX Runtime: which
open, how large the differences are, and the times.

  bench/onnx_packages.py --program build/dev/tests/evaluate_runner --python build/venv/bin/python
  bench/onnx_packages.py ... --folder build/onnx_packages --filter silero --inputs 20 --seconds 0.5

The packages of onnx_fetch.py are downloaded once into --folder, without their dependencies. Their
programs are not run. One row per file has its opset and operators. It has the largest difference
over the random inputs as a part of the largest value of its output. It has the fastest run in both
with two threads (ratio above 1: Loom is faster). Files with equal operators and weights count once.

If a file differs by more than 1e-4, the row also has the distance of the peer from itself without
its optimizations. If no operator is quantized, it has the distance of both from the result in
double precision. That result comes from the reference implementation of the standard, or else from
Loom. Such a file is wrong if Loom is further from the exact values than 1e-4 and than the peer.
Without exact values, it is wrong if Loom is too far from the peer, with and without its
optimizations. Too far is twice the distance of these two from each other. The last line counts,
with the geometric mean of the ratios. Exit status 1 if a file is wrong; 77 without the peer.
"""
import argparse
import collections
import json
import math
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from onnx_fetch import fetch

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIMIT = 1e-4
# Extents that are tried for the axes that a file leaves open, and values that a file expects.
EXTENTS = (64, 320, 512, 576, 48, 128, 32, 16, 24)
BANDS = range(80, 200)  # of a spectrum, if no weight determines their number
NAMED = {"sr": 16000}
STATES = ("state", "h", "c")


def value_of(np, value, size, seed):
    """Random values of an input. `size` replaces its open axes, see inputs_for."""
    extent, batch, width = size
    kind = {1: "float32", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64",
            2: "uint8"}[value.type.tensor_type.elem_type]
    dims = value.type.tensor_type.shape.dim
    # States of recurrent layers have the batch as their second axis.
    at = 1 if value.name in STATES and len(dims) == 3 else 0
    shape = [d.dim_value if d.dim_value > 0 else (batch if i == at else extent)
             for i, d in enumerate(dims)]
    if width and len(dims) > 1 and not dims[-1].dim_value > 0:
        shape[-1] = width
    if value.name in NAMED:
        return np.full(shape, NAMED[value.name], kind)
    draw = np.random.default_rng(seed)
    if "int" in kind:
        return draw.integers(0, 2 + seed % 8, shape).astype(kind)
    return (draw.standard_normal(shape) * 0.5).astype(kind)


def widths_of(model):
    """Sizes of an open last axis of an input: extents of weights."""
    found = [d for t in model.graph.initializer if len(t.dims) > 1 for d in t.dims]
    return list(dict.fromkeys(found))[:24]


def inputs_for(np, peer, values, model):
    """Extents that the peer accepts: of open axes, of the batch, of the last axis if that is
    another (else 0). A file without a batch has another open axis there."""
    last = None
    widths = widths_of(model) if any(not v.type.tensor_type.shape.dim[-1].dim_value > 0
                                     for v in values if v.type.tensor_type.shape.dim) else []
    sizes = [(extent, batch, 0) for extent in EXTENTS for batch in (1, 2)]
    extents = [64, 512] + [w for w in widths if w <= 128]
    sizes += [(extent, 1, width) for extent in extents for width in widths]
    sizes += [(64, 1, width) for width in BANDS if widths]
    sizes += [(extent, extent, width) for extent in extents for width in widths]
    for size in sizes + [(64, 64, width) for width in BANDS if widths]:
        given = {v.name: value_of(np, v, size, 7) for v in values}
        try:
            peer.run(None, given)
            return size
        except Exception as error:  # noqa: BLE001  (the peer's have no common base)
            last = error
    raise last


def apart(np, ours, theirs):
    theirs = np.asarray(theirs)
    if ours is None or ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return 1.0
    theirs, ours = theirs.astype("float64"), ours.astype("float64")
    if (np.isnan(theirs) != np.isnan(ours)).any():
        return 1.0
    scale = max(float(np.nanmax(np.abs(theirs), initial=0)), 1e-6)
    with np.errstate(invalid="ignore"):
        off = np.where(ours == theirs, 0.0, np.nan_to_num(np.abs(ours - theirs)))
    # The peer's sigmoid is off by some 1e-8, which is large relative to a tiny output.
    return max(float(np.max(off, initial=0)) - 1e-7, 0.0) / scale


def peer_ms(peer, given, seconds):
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        peer.run(None, given)
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def one(path, args):
    """The facts of a file, as JSON."""
    import numpy as np
    import onnx
    import onnxruntime as ort
    sys.path.insert(0, str(ROOT / "tests/outside"))
    import onnx_standard as standard

    model = onnx.load(path)
    row = {"operators": len(model.graph.node), "opens": False,
           "opset": max(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))}
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 2, 4
    peer = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    constants = {t.name for t in model.graph.initializer}
    values = [v for v in model.graph.input if v.name not in constants]
    size = inputs_for(np, peer, values, model)
    work = pathlib.Path(args.folder) / "work"
    work.mkdir(exist_ok=True)
    sets, lines = [], ""
    for i in range(args.inputs):
        given = {v.name: value_of(np, v, size, 7 + i) for v in values}
        standard.save_values(list(given.values()), work / f"{i}.in")
        sets.append(given)
        seconds = args.seconds if i == args.inputs - 1 else 0
        lines += f"{path} {work}/{i}.in {work}/{i}.out {seconds}\n"
    done = subprocess.run([args.program], input=lines, capture_output=True, text=True,
                          timeout=args.timeout, check=False)
    answers = done.stdout.splitlines()
    row["difference"] = 0.0
    for i, given in enumerate(sets):
        if i >= len(answers) or not answers[i].startswith("ok"):
            row["why"] = answers[i] if i < len(answers) else f"ended with {done.returncode}"
            return row
        row["opens"] = True
        got = standard.load_values(work / f"{i}.out")
        off = max(apart(np, ours, theirs) for ours, theirs in zip(got, peer.run(None, given)))
        if off > LIMIT:
            why, explained = arbiter(np, path, model, peer, given, got, work, args.program)
            row["wrong"] = row.get("wrong", False) or not explained
            if off > row["difference"]:
                row["why"] = why
        row["difference"] = max(row["difference"], off)
    row["loom_ms"] = float(answers[-1].split()[1])
    row["ort_ms"] = peer_ms(peer, sets[-1], args.seconds)
    return row


def widened(np, onnx, model):
    """The same model in double precision."""
    from onnx import numpy_helper

    def wide(tensor):
        if tensor.data_type == onnx.TensorProto.FLOAT:
            values = numpy_helper.to_array(tensor).astype(np.float64)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))

    out = onnx.ModelProto()
    out.CopyFrom(model)
    def widen(graph):
        for tensor in graph.initializer:
            wide(tensor)
        for node in graph.node:
            for a in node.attribute:
                if a.type == onnx.AttributeProto.TENSOR:
                    wide(a.t)
                if a.type == onnx.AttributeProto.GRAPH:
                    widen(a.g)
                if node.op_type == "Cast" and a.name == "to" and a.i == onnx.TensorProto.FLOAT:
                    a.i = onnx.TensorProto.DOUBLE
        del graph.value_info[:]

    widen(out.graph)
    for value in [*out.graph.input, *out.graph.output]:
        kind = value.type.tensor_type
        if kind.elem_type == onnx.TensorProto.FLOAT:
            kind.elem_type = onnx.TensorProto.DOUBLE
    return out


def in_double(np, model, given, work, program):
    """Outputs of the file in double precision, and who computed them."""
    import onnx
    import onnx_standard as standard
    from onnx.reference import ReferenceEvaluator

    wide = {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in given.items()}
    made = widened(np, onnx, model)
    try:
        return ReferenceEvaluator(made).run(None, wide), "the reference implementation"
    except Exception:  # noqa: BLE001  (it has gaps, and errors of every kind)
        onnx.save(made, work / "wide.onnx")
    standard.save_values(list(wide.values()), work / "wide.in")
    subprocess.run([program], input=f"{work}/wide.onnx {work}/wide.in {work}/wide.out\n",
                   capture_output=True, text=True, check=False)
    return standard.load_values(work / "wide.out"), "Loom"


def arbiter(np, path, model, peer, given, ours, work, program):
    """The facts of a difference, and whether they explain it: the peer compared with itself, and
    both with double precision."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    plain = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    theirs = peer.run(None, given)
    far = lambda a, b: max(apart(np, np.asarray(x), y) for x, y in zip(a, b))  # noqa: E731
    other = plain.run(None, given)
    own = far(other, theirs)
    said, near = f"the peer beside itself: {own:.1e}", min(far(ours, other), far(ours, theirs))
    if any("Quantize" in n.op_type or "Integer" in n.op_type for n in model.graph.node):
        return said, near <= 2 * own
    try:
        exact, whose = in_double(np, model, given, work, program)
    except OSError as error:  # an operator without a form in double precision
        return f"{said}; no double precision: {error}", near <= 2 * own
    exact = [np.asarray(e).astype(t.dtype) for e, t in zip(exact, theirs)]
    mine, peers = far(ours, exact), far(theirs, exact)
    return (f"{said}; from double precision (of {whose}) Loom is {mine:.1e}, "
            f"the peer {peers:.1e}"), mine <= max(LIMIT, peers)


def in_process(path, args):
    command = [args.python, __file__, "--one", path, "--program", args.program, "--folder",
               args.folder, "--inputs", str(args.inputs), "--seconds", str(args.seconds),
               "--timeout", str(args.timeout)]
    row = {"opset": "", "operators": "", "opens": False}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * args.timeout,
                              check=False)
        if done.returncode == 0 and done.stdout.strip():
            return json.loads(done.stdout.strip().splitlines()[-1])
        row["why"] = (done.stderr.strip().splitlines() or ["no answer"])[-1]
    except subprocess.TimeoutExpired:
        row["why"] = f"took more than {2 * args.timeout} s"
    return row


def cells(name, row):
    out = [name, row["opset"], row["operators"]]
    if "ort_ms" in row:
        out += [f"{row['difference']:.1e}", f"{row['loom_ms']:.3f}", f"{row['ort_ms']:.3f}",
                f"{row['ort_ms'] / row['loom_ms']:.2f}"]
    else:
        out += ["", "", "", ""]
    out.append(row.get("why", ""))
    return "| " + " | ".join(str(c).replace("|", "/")[:200] for c in out) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/tests/evaluate_runner"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--folder", default=str(ROOT / "build/onnx_packages"))
    parser.add_argument("--inputs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.5, help="of timing each")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--filter", default="", help="only files whose path contains it")
    parser.add_argument("--families", action="store_true",
                        help="one of several files that differ in their weights alone")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(args.one, args)))
        return 0
    peer = "import numpy, onnx, onnxruntime, pip"
    if subprocess.run([args.python, "-c", peer], capture_output=True, check=False).returncode != 0:
        print("onnx_packages: no Python with numpy, onnx and onnxruntime", file=sys.stderr)
        return 77
    count, ratios = collections.Counter(), []
    print("| file | opset | operators | difference | Loom ms | ONNX Runtime ms | ratio | "
          "why not |\n|---|---|---|---|---|---|---|---|")
    for path in fetch(pathlib.Path(args.folder), args.python, args.families):
        if args.filter not in str(path):
            continue
        row = in_process(str(path), args)
        print(cells(os.path.relpath(path, args.folder), row), flush=True)
        count["files"] += 1
        count["open"] += row["opens"]
        count["agree"] += "ort_ms" in row and row["difference"] <= LIMIT
        count["wrong"] += row.get("wrong", False)
        if "ort_ms" in row:
            ratios.append(row["ort_ms"] / row["loom_ms"])
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 0
    print(f"{count['files']} files, {count['open']} open, {count['agree']} agree, "
          f"{count['wrong']} wrong; ratio {mean:.2f} (geometric mean)")
    return 1 if count["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

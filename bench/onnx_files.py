#!/usr/bin/env python3
"""Published ONNX files in Loom and in ONNX Runtime: which open, how large the differences are, and
the times.

  bench/onnx_files.py FOLDER --python ~/onnx/bin/python     (a Python with numpy, onnx, onnxruntime)
  bench/onnx_files.py FOLDER --library build/release/libloom.so --extent 32

One row per .onnx file below FOLDER. It has the opset, the operators, whether Loom opens the file,
and if not why. It has the largest difference over 20 random inputs as a part of the largest value.
It has the time of one call in both with the same threads (ratio above 1: Loom is faster). Each file
runs in a separate process. The last line counts. Exit status 1 if an open file differs by more than
1e-3; 77 without the peer.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIMIT = 1e-3
NUMPY = {1: "float32", 6: "int32", 7: "int64", 10: "float16", 11: "float64"}


def shape_of(value, batch, extent):
    """The extents of an input: axes that the file leaves open are `extent`, the first `batch`."""
    dims = value.type.tensor_type.shape.dim
    return [d.dim_value if d.dim_value > 0 else (batch if i == 0 else extent)
            for i, d in enumerate(dims)]


def median_ms(call, seconds):
    """The median of the calls that fit into this time, at least three; the first one apart."""
    call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 1000):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2] * 1e3


def random_input(np, value, shape, i):
    kind = NUMPY.get(value.type.tensor_type.elem_type, "float32")
    draw = np.random.default_rng(7 + i)
    if kind.startswith("int"):  # ids that any vocabulary has
        return draw.integers(0, 2 + i % 8, shape).astype(kind)
    return draw.standard_normal(shape).astype(kind)


def ours_of(np, net, given):
    """The inputs by the names that the network has for them. A row of layers, found by its pattern,
    has one input and one output, without names."""
    def plain(x):
        return np.ascontiguousarray(x.astype("int32" if x.dtype.kind == "i" else "float32"))

    names = [port.name for port in net.inputs]
    if names == ["input"] and "input" not in given:
        return {"input": plain(next(iter(given.values())))}
    return {name: plain(given[name]) for name in names}


def apart(np, ours, theirs):
    """The difference of two results, as a part of the largest value."""
    theirs = np.asarray(theirs, dtype="float64")
    ours = np.asarray(ours, dtype="float64").reshape(theirs.shape)
    if (np.isnan(theirs) != np.isnan(ours)).any():
        return 1.0
    scale = max(float(np.nanmax(np.abs(theirs), initial=0)), 1e-6)
    with np.errstate(invalid="ignore"):
        off = np.where(ours == theirs, 0.0, np.nan_to_num(np.abs(ours - theirs)))
    return float(np.max(off, initial=0)) / scale


def compare(np, net, peer, model, args, row):
    constants = {t.name for t in model.graph.initializer}
    values = [v for v in model.graph.input if v.name not in constants]
    shapes = {v.name: shape_of(v, 2, args.extent) for v in values}
    row["difference"], row["shape"] = 0.0, shapes
    outputs = [output.name for output in peer.get_outputs()]
    batch = next((shape[0] for shape in shapes.values() if len(shape) > 1), 1)
    with net.session(max_batch=batch) as session:
        for i in range(args.inputs):
            given = {v.name: random_input(np, v, shapes[v.name], i) for v in values}
            ours = ours_of(np, net, given)
            want = dict(zip(outputs, peer.run(None, given)))
            got = session.run(ours)
            if list(got) == ["output"] and "output" not in want:
                got = {outputs[0]: got["output"]}
            for name in want.keys() & got.keys():
                row["difference"] = max(row["difference"], apart(np, got[name], want[name]))
            row["outputs"] = len(want.keys() & got.keys())
        row["loom_ms"] = median_ms(lambda: session.run(ours), args.seconds)
    row["ort_ms"] = median_ms(lambda: peer.run(None, given), args.seconds)


def one(path, args):
    """The facts of a file, as JSON."""
    import numpy as np
    import onnx
    import onnxruntime as ort

    row = {"file": os.path.relpath(path, args.folder)}
    model = onnx.load(path)
    own = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    row["opset"] = max(own, default=0)
    row["operators"] = len(model.graph.node)
    sys.path.insert(0, str(ROOT / "bindings/python"))
    os.environ.setdefault("LOOM_LIBRARY", args.library)
    import loom

    try:
        net = loom.Network.load(path, open_extent=args.extent,
                                engine=loom.Engine(threads=args.threads))
        row["opens"] = True
    except loom.LoomError as error:
        row["opens"], row["why"] = False, str(error).splitlines()[0]
        return row
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = args.threads, 4
    try:
        peer = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        compare(np, net, peer, model, args, row)
    except Exception as error:  # the peer's exceptions have no common base  # noqa: BLE001
        row["why"] = f"{type(error).__name__}: {error}".splitlines()[0]
    return row


def in_process(path, args):
    command = [args.python, __file__, args.folder, "--one", path, "--library", args.library,
               "--threads", str(args.threads), "--inputs", str(args.inputs),
               "--extent", str(args.extent), "--seconds", str(args.seconds)]
    row = {"file": os.path.relpath(path, args.folder), "opset": "", "operators": "", "opens": False}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=args.timeout,
                              check=False)
        last = done.stdout.strip().splitlines()[-1:]
        if done.returncode == 0 and last:
            return json.loads(last[0])
        row["why"] = f"ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}"
    except subprocess.TimeoutExpired:
        row["why"] = f"took more than {args.timeout} s"
    return row


def cells(row, width):
    why = row.get("why", "")
    why = why if len(why) <= width else why[:width - 2] + ".."
    out = [row["file"], row["opset"], row["operators"], "yes" if row["opens"] else "no"]
    if "ort_ms" in row:
        out += [f"{row['difference']:.1e}", f"{row['loom_ms']:.3f}", f"{row['ort_ms']:.3f}",
                f"{row['ort_ms'] / row['loom_ms']:.2f}"]
    else:
        out += ["", "", "", ""]
    return "| " + " | ".join(str(c).replace("|", "/") for c in [*out, why]) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--library", default=str(ROOT / "build/release/libloom.so"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--inputs", type=int, default=20)
    parser.add_argument("--extent", type=int, default=64, help="of axes that a file leaves open")
    parser.add_argument("--seconds", type=float, default=0.5, help="of timing each")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--width", type=int, default=140, help="of the reason in the table")
    parser.add_argument("--filter", default="", help="only files whose path contains it")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(args.one, args)))
        return 0
    peer = "import numpy, onnx, onnxruntime"
    if subprocess.run([args.python, "-c", peer], capture_output=True, check=False).returncode != 0:
        print("onnx_files: no Python with numpy, onnx and onnxruntime", file=sys.stderr)
        return 77
    count, wrong = collections.Counter(), 0
    print(f"| file | opset | operators | opens | difference | Loom ms ({args.threads} threads) | "
          "ONNX Runtime ms | ratio | why not |\n|---|---|---|---|---|---|---|---|---|")
    for path in sorted(pathlib.Path(args.folder).rglob("*.onnx")):
        if args.filter not in str(path):
            continue
        row = in_process(str(path), args)
        print(cells(row, args.width), flush=True)
        count["files"] += 1
        count["open"] += row["opens"]
        count["agree"] += row.get("difference", 1) <= LIMIT and "ort_ms" in row
        wrong += row.get("difference", 0) > LIMIT
    print(f"{count['files']} files, {count['open']} open, {count['agree']} agree, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

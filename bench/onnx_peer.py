#!/usr/bin/env python3
"""Loom's ONNX files in ONNX Runtime, and PyTorch's ONNX files in Loom: the largest difference.

  bench/onnx_peer.py --python ~/onnx/bin/python      (a Python with numpy, onnxruntime, safetensors)
  bench/onnx_peer.py --program build/dev/bench/loom_onnx_peer --opset 20

One row per network: Loom writes it, ONNX Runtime runs it on the same input, and Loom reads its own
file back. Below are the files of tests/formats/golden (written by tools/goldens/onnx_models.py),
run by Loom and compared with the results of PyTorch. Exit status 1 if a difference is above 1e-4;
77 without the peer.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BATCH = 3
LIMIT = 1e-4


def row(*layers, shape):
    return {"loom": 1, "input": shape, "layers": list(layers)}


def dense(i, o, **more):
    return {"type": "Dense", "in": i, "out": o, **more}


def attention(**more):
    return {"type": "MultiHeadAttention", "width": 12, "heads": 4, "kv_heads": 4, "head_dim": 4,
            **more}


def conv(kind, axes, **more):
    shape = [4, 9, 7, 6][:axes + 1]
    layer = {"type": kind, "channels": 4, "filters": 6, "groups": 2, "stride": 2, "padding": 1,
             "activation": "relu", **more}
    return row(layer, shape=shape)


def networks():
    """name: network, and whether the importer reads it back."""
    for act in ("linear relu leaky_relu relu2 silu gelu_tanh gelu_erf tanh sigmoid mish softplus "
                "elu hard_swish").split():
        yield f"Dense {act}", row(dense(5, 8, activation=act), dense(8, 3), shape=[5]), True
    yield "Dense flat", row(dense(12, 4), shape=[3, 4]), True
    yield "Dense rows", row(dense(4, 6, activation="tanh"), shape=[3, 4]), True
    for axes in (1, 2, 3):
        yield f"CNN{axes}", conv(f"CNN{axes}", axes), True
        yield (f"ConvTransposed{axes}D",
               conv(f"ConvTransposed{axes}D", axes, output_padding=1, activation="linear"), True)
    yield "CNN2 dilated", conv("CNN2", 2, dilation=[2, 1], kernel=[2, 3], stride=1), True
    yield "LayerNorm", row({"type": "LayerNorm", "width": 7}, shape=[4, 7]), True
    yield "RMSNorm", row({"type": "RMSNorm", "width": 7}, shape=[4, 7]), True
    for kind in ("RNN", "LSTM", "GRU"):
        for last in (False, True):
            layer = {"type": kind, "in": 5, "hidden": 6, "return_sequence": not last}
            yield f"{kind} {'last' if last else 'all'}", row(layer, dense(6, 3), shape=[7, 5]), True
    yield "RNN relu", row({"type": "RNN", "in": 3, "hidden": 4, "activation": "relu"},
                          shape=[5, 3]), True
    yield "Embedding", row({"type": "Embedding", "vocab": 11, "width": 6}, dense(6, 3),
                           shape=[8]), True
    yield "MHA causal", row(attention(rope=False), shape=[8, 12]), True
    yield "MHA full, biases", row(attention(rope=False, causal=False, bias=True, out_bias=True),
                                  shape=[8, 12]), True
    yield "MHA grouped, window", row(attention(rope=False, kv_heads=2, window=3),
                                     shape=[8, 12]), True
    yield "MHA rope", row(attention(), shape=[8, 12]), False
    yield "MHA rope, qk norm", row(attention(kv_heads=2, qk_norm=True, bias=True),
                                   shape=[8, 12]), False
    yield "SwiGLU", row({"type": "SwiGLU", "width": 6, "inner": 10}, shape=[4, 6]), True
    yield "SwiGLU biases", row({"type": "SwiGLU", "width": 6, "inner": 10, "bias": True,
                                "activation": "gelu_tanh"}, shape=[6]), True
    yield "Softmax", row(dense(5, 6), {"type": "Softmax", "temperature": 0.7}, shape=[5]), True
    yield "Softmax grid", row({"type": "Softmax", "variant": "grid", "rows": 2, "cols": 3},
                              shape=[6]), True
    yield "Softmax masked", row({"type": "Softmax", "variant": "masked", "mask": [1, 0, 1]},
                                shape=[5]), False
    yield "KMeans", row({"type": "KMeans", "clusters": 4, "width": 5}, shape=[5]), False
    yield "Residual", row({"type": "Residual", "children": [dense(5, 8, activation="silu"),
                                                            dense(8, 5)]}, shape=[5]), True
    yield "Residual bare", row(dense(5, 5, activation="tanh"), {"type": "Residual"},
                               shape=[5]), True
    yield "Sequential", row({"type": "Sequential", "children": [dense(5, 4), dense(4, 3)]},
                            shape=[5]), True
    branches = [dense(5, 4, activation="tanh"), dense(5, 4)]
    for combine in ("concat", "add", "avg"):
        yield f"Parallel {combine}", row({"type": "Parallel", "combine": combine,
                                          "children": branches}, shape=[5]), True
    yield "Parallel filter", row({"type": "Parallel", "combine": "filter",
                                  "children": branches + [dense(5, 2)]}, shape=[5]), False
    yield "transformer", row({"type": "Embedding", "vocab": 11, "width": 12},
                             {"type": "Residual", "children": [
                                 {"type": "RMSNorm", "width": 12}, attention(rope=False)]},
                             {"type": "Residual", "children": [
                                 {"type": "RMSNorm", "width": 12},
                                 {"type": "SwiGLU", "width": 12, "inner": 20}]},
                             {"type": "RMSNorm", "width": 12}, dense(12, 11, bias=False),
                             shape=[6]), True


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


def difference(a, b):
    import numpy as np
    if a.size != b.size:
        return float("inf")
    return float(np.abs(a.reshape(-1) - b.reshape(-1)).max())


def verdict(value):
    return f"{value:.1e}" if value <= LIMIT else f"**{value:.1e}**"


def export_table(program, opset, folder):
    import numpy as np
    import onnxruntime
    onnxruntime.set_default_logger_severity(3)
    worst = 0.0
    print(f"| network, opset {opset} | ONNX Runtime {onnxruntime.__version__} | read back |")
    print("|---|---|---|")
    for name, network, reads in networks():
        net, model, x, y, again = (folder / n for n in ("n.json", "m.onnx", "x", "y", "z"))
        net.write_text(json.dumps(network))
        error = run([program, "export", net, model, opset, BATCH, x, y])
        if error:
            print(f"| {name} | {error} | |")
            worst = float("inf")
            continue
        ids = "Embedding" in name or name == "transformer"
        values = np.fromfile(x, np.int32 if ids else np.float32).reshape([BATCH, *network["input"]])
        ours = np.fromfile(y, np.float32)
        session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        theirs = session.run(None, {"input": values.astype(np.int64) if ids else values})[0]
        off = difference(theirs, ours)
        error = run([program, "run", model, BATCH, x, again])
        back = "" if error else verdict(difference(np.fromfile(again, np.float32), ours))
        if error and reads:
            worst = float("inf")
            back = f"**{error}**"
        print(f"| {name} | {verdict(off)} | {back or 'not read'} |")
        worst = max(worst, off)
    return worst


def import_table(program, folder):
    import numpy as np
    from safetensors.numpy import load_file
    golden = ROOT / "tests" / "bridge" / "golden"
    worst = 0.0
    print("\n| file of PyTorch | Loom |")
    print("|---|---|")
    tensors = load_file(golden / "onnx.safetensors")
    for path in sorted(golden.glob("*.onnx")):
        x, y = tensors[f"{path.stem}/x"], tensors[f"{path.stem}/y"]
        x.tofile(folder / "x")
        error = run([program, "run", path, len(x), folder / "x", folder / "y"])
        off = float("inf") if error else difference(np.fromfile(folder / "y", np.float32), y)
        print(f"| {path.stem} | {error or verdict(off)} |")
        worst = max(worst, off)
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build/dev/bench/loom_onnx_peer")
    parser.add_argument("--python", default="", help="a Python that has the peers")
    parser.add_argument("--opset", type=int, default=20)
    args = parser.parse_args()
    if args.python:
        rest = ["--program", str(args.program), "--opset", str(args.opset)]
        command = [args.python, os.path.abspath(__file__), *rest]
        return subprocess.run(command, check=False).returncode
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        print("onnx_peer: no onnxruntime is there", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory() as folder:
        worst = export_table(args.program, args.opset, pathlib.Path(folder))
        worst = max(worst, import_table(args.program, pathlib.Path(folder)))
    print(f"\nlargest difference: {worst:.1e}")
    return 0 if worst <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Images through networks of PyTorch at batch 1: Loom and ONNX Runtime, float32 and 8 bits.

  bench/torch_speed.py --python PYTHON     (one with numpy, onnx, onnxruntime and torch)
  bench/torch_speed.py --library build/release/libloom.so --threads 2 --rounds 15

ResNet-18, MobileNetV3 small and ViT-tiny of tests/outside/torch_zoo.py, 224 x 224, random weights,
written by torch.onnx. Both programs read the same file. In 8 bits Loom packs the weights as int8
and rounds inputs of products at run time. ONNX Runtime runs the faster result of its own tools,
quantize_dynamic and quantize_static (calibrated on the images). Rounds alternate. The median of
each counts, and a ratio above 1 means that Loom is faster. `apart` is the distance to ONNX
Runtime's float32 as a part of its largest output. Exit status 77 without the peer, 1 if float32 is
more than 1e-4 away.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SIDE, CLASSES, LIMIT = 224, 1000, 1e-4


def networks():
    sys.path.insert(0, str(ROOT / "tests/outside"))
    import torch_zoo as zoo

    yield "ResNet-18", zoo.resnet18(CLASSES)
    yield "MobileNetV3 small", zoo.mobilenet_v3_small(CLASSES)
    yield "ViT-tiny", zoo.ViT(side=SIDE, patch=16, classes=CLASSES)


def export(module, path):
    import torch

    # Statistics as training leaves them: values neither vanish nor grow from layer to layer.
    module.train()
    with torch.no_grad():
        for _ in range(8):
            module(torch.randn(4, 3, SIDE, SIDE))
    torch.onnx.export(module.eval(), (torch.randn(2, 3, SIDE, SIDE),), str(path), dynamo=False,
                      opset_version=17, input_names=["x"], output_names=["y"],
                      dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})


class Pictures:
    """The calibration data of quantize_static."""

    def __init__(self, pictures):
        self.left = [{"x": p[None]} for p in pictures]

    def get_next(self):
        return self.left.pop() if self.left else None


def quantized(path, pictures):
    """(name, file) of the results of the peer's tools for a file; a failing tool reports it."""
    from onnxruntime import quantization as q

    prepared = path.with_suffix(".prepared.onnx")
    try:
        q.shape_inference.quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
    except Exception:  # noqa: BLE001  (it has errors of every kind)
        prepared = path
    ways = {
        "dynamic": lambda to: q.quantize_dynamic(str(prepared), to),
        "static": lambda to: q.quantize_static(str(prepared), to, Pictures(pictures),
                                               per_channel=True),
    }
    for name, make in ways.items():
        to = str(path.with_suffix(f".{name}.onnx"))
        try:
            make(to)
            yield name, to
        except Exception as error:  # noqa: BLE001
            print(f"torch_speed: {name}: {error}", file=sys.stderr)


def peer(path, threads):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def medians(runs, rounds, seconds=3):
    """Milliseconds of each, in alternating rounds."""
    took = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            run()
            count, start = 0, time.perf_counter()
            while count == 0 or time.perf_counter() - start < seconds / rounds:
                run()
                count += 1
            took[name].append((time.perf_counter() - start) / count * 1e3)
    return {name: statistics.median(t) for name, t in took.items()}


def one(name, module, args, folder):
    import loom
    import numpy as np

    path = folder / "net.onnx"
    export(module, path)
    pictures = np.random.default_rng(1).standard_normal((8, 3, SIDE, SIDE)).astype(np.float32)
    x = pictures[:1]
    engine = loom.Engine(threads=args.threads)
    runs, outputs = {}, {}
    sessions = {
        "loom": loom.Network.load(path, engine=engine).session(),
        "loom int8": loom.Network.load(path, dtype="int8", engine=engine).session(),
    }
    for key, session in sessions.items():
        runs[key] = lambda s=session: s.run(x)
        outputs[key] = np.asarray(session.run(x))
    files = [("onnxruntime", path), *quantized(path, pictures)]
    for key, file in files:
        session = peer(file, args.threads)
        runs[key] = lambda s=session: s.run(None, {"x": x})
        outputs[key] = session.run(None, {"x": x})[0]
    took = medians(runs, args.rounds)
    want = outputs["onnxruntime"]
    apart = {k: float(np.abs(o - want).max() / np.abs(want).max()) for k, o in outputs.items()}
    eight = min(took.get(k, float("inf")) for k in ("dynamic", "static"))
    cells = [f"{took['loom']:.2f}", f"{took['onnxruntime']:.2f}",
             f"{took['onnxruntime'] / took['loom']:.2f}", f"{apart['loom']:.1e}",
             f"{took['loom int8']:.2f}",
             *(f"{took[k]:.2f}" if k in took else "" for k in ("dynamic", "static")),
             f"{eight / took['loom int8']:.2f}", f"{apart['loom int8']:.1e}",
             f"{min(apart.get(k, 9.0) for k in ('dynamic', 'static')):.1e}"]
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    return apart["loom"] <= LIMIT


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--library", default=str(ROOT / "build/release/libloom.so"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not args.inside:
        if subprocess.run([args.python, "-c", "import numpy, onnx, onnxruntime, torch"],
                          capture_output=True, check=False).returncode != 0:
            print("torch_speed: no Python with onnxruntime, onnx and torch", file=sys.stderr)
            return 77
        paths = [str(ROOT / "bindings/python"), os.environ.get("PYTHONPATH", "")]
        surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p),
                        "LOOM_LIBRARY": args.library}
        return subprocess.run([args.python, __file__, *sys.argv[1:], "--inside"],
                              env=surroundings, check=False).returncode
    import torch

    torch.manual_seed(0)
    print("| network | Loom ms | ONNX Runtime | ratio | apart | Loom int8 | dynamic | static "
          "| ratio | apart | theirs |\n|---|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        good = [one(name, module, args, pathlib.Path(folder)) for name, module in networks()]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())

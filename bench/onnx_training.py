#!/usr/bin/env python3
"""The ONNX files of onnx_packages.py as networks that learn: which open, how far they are from ONNX
Runtime, and whether one step of training goes where its gradients say.

  bench/onnx_training.py --loom build/dev/cli/loom --python build/venv/bin/python --filter mtcnn

A file is converted to .entity and predicts two random samples. Then it is trained by steps of SGD
at the rates r and 2 r towards its own outputs and noise, on one batch. `slope` is the derivative of
the loss along the step from three losses, (3 L(0) - 4 L(r) + L(2 r)) / 2 r, divided by the squared
norm of the gradient, which the weights before and after say: 1 where gradients are right. r is such
that the loss falls by a hundredth, or less where it bends. The last line counts; exit status 1
where a slope is off by more than 2 % or a prediction by more than 1e-4, 77 without ONNX Runtime.
"""
import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import onnx_packages as packages

SAMPLES, SLOPE, LIMIT = 2, 0.02, 1e-4
SHARES = (1e-2, 1e-3, 1e-4)  # of the loss, by which a step should lower it


class Refused(Exception):
    pass


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments), "--quiet"], capture_output=True,
                          text=True, timeout=240, check=False)
    if done.returncode != 0:
        raise Refused((done.stderr.strip().splitlines() or ["no answer"])[-1].split(".onnx: ")[-1])


def weights(np, loom, path, folder):
    run(loom, "convert", path, folder / "w.npz", "--force")
    kept = np.load(folder / "w.npz")
    return {k: kept[k].astype(np.float64) for k in kept.files if kept[k].dtype.kind == "f"}


def step(np, loom, folder, rate):
    """The loss before a step of SGD and after it, and the squared norm of its gradient."""
    told, after = folder / "told.jsonl", folder / "after.entity"
    told.unlink(missing_ok=True)
    common = ["train", folder / "net.entity", folder / "data.npz", "--optimizer", "sgd", "--rate",
              repr(rate), "--schedule", "constant", "--no-shuffle", "--batch", SAMPLES, "--loss",
              "mse"]
    run(loom, *common, "--epochs", 2, "--telemetry", told)
    run(loom, *common, "--epochs", 1, "-o", after)
    records = [json.loads(line) for line in told.read_text().splitlines()]
    losses = [r["value"] for r in records if r.get("tag") == "loss/batch"]
    old, new = (weights(np, loom, p, folder) for p in (folder / "net.entity", after))
    norm = sum(float(((old[k] - new[k]) ** 2).sum()) for k in old if k in new) / rate**2
    return losses[0], losses[1], norm


def slope(np, loom, folder):
    """The derivative along the step by the squared norm of the gradient, of the first step of
    SHARES that is short enough for three losses to say it; else of the last."""
    before, _, norm = step(np, loom, folder, 1e-4)
    for share in SHARES:
        rate = share * before / norm
        if rate > 500:
            raise Refused(f"a gradient of {norm ** 0.5:.1e}, too small to be seen in a loss")
        before, after, norm = step(np, loom, folder, rate)
        _, far, _ = step(np, loom, folder, 2 * rate)
        found = (3 * before - 4 * after + far) / (2 * rate * norm)
        if abs(found - 1) <= SLOPE:
            break
    return found


def one(path, args):
    import numpy as np
    import onnx
    import onnxruntime as ort

    row = {}
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 2, 4
    peer = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    model = onnx.load(path)
    constants = {t.name for t in model.graph.initializer}
    values = [v for v in model.graph.input if v.name not in constants]
    extent, _ = packages.inputs_for(np, peer, values)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run(args.loom, "convert", path, folder / "net.entity", "--open-extent", extent)
        row["network"] = True
        if len(values) != 1:
            raise Refused("several inputs, of which trainers know one") from None
        shape = [SAMPLES] + [d.dim_value if d.dim_value > 0 else extent
                             for d in values[0].type.tensor_type.shape.dim][1:]
        draw = np.random.default_rng(5)
        ids = values[0].type.tensor_type.elem_type in (6, 7)
        x = draw.integers(0, 8, shape).astype(np.int32) if ids else \
            (draw.standard_normal(shape) * 0.5).astype(np.float32)
        np.save(folder / "x.npy", x)
        run(args.loom, "predict", folder / "net.entity", folder / "x.npy", "-o", folder / "y.npz")
        got = np.load(folder / "y.npz")["outputs"].reshape(SAMPLES, -1)
        kind = {7: np.int64, 6: np.int32}.get(values[0].type.tensor_type.elem_type, np.float32)
        want = np.concatenate([peer.run(None, {values[0].name: x[i:i + 1].astype(kind)})[0]
                               .reshape(1, -1) for i in range(SAMPLES)])
        row["difference"] = packages.apart(np, got.astype(want.dtype), want)
        y = np.load(folder / "y.npz")["outputs"]
        noise = draw.standard_normal(y.shape).astype(np.float32) * max(float(np.abs(y).std()), 1e-3)
        np.savez(folder / "data.npz", x=x, y=y + noise)
        row["slope"] = slope(np, args.loom, folder)
    return row


def in_process(path, args):
    command = [args.python, __file__, "--one", path, "--loom", args.loom]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError):
        return {"why": "no answer"}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loom", default=str(packages.ROOT / "build/dev/cli/loom"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--folder", default=str(packages.ROOT / "build/onnx_packages"))
    parser.add_argument("--filter", default="", help="only files whose path contains it")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        row = {}
        try:
            row = one(args.one, args)
        except Exception as error:  # noqa: BLE001  (the peer's have no common base)
            row["why"] = str(error)
        print(json.dumps(row))
        return 0
    peer = "import numpy, onnx, onnxruntime, pip"
    if subprocess.run([args.python, "-c", peer], capture_output=True, check=False).returncode != 0:
        print("onnx_training: no Python with numpy, onnx and onnxruntime", file=sys.stderr)
        return 77
    files = trained = wrong = 0
    seen = set()
    print("| file | difference | slope | why not |\n|---|---|---|---|")
    for path in packages.fetch(pathlib.Path(args.folder), args.python):
        digest = hashlib.sha256(path.read_bytes()).digest()
        if args.filter not in str(path) or digest in seen or path.parent.name == "work":
            continue
        seen.add(digest)
        row = in_process(str(path), args)
        good = abs(row.get("slope", 0) - 1) <= SLOPE and row["difference"] <= LIMIT
        files, trained = files + 1, trained + good
        wrong += "slope" in row and not good
        cells = [os.path.relpath(path, args.folder),
                 f"{row['difference']:.1e}" if "difference" in row else "",
                 f"{row['slope']:.4f}" if "slope" in row else "", row.get("why", "")]
        print("| " + " | ".join(c.replace("|", "/")[:160] for c in cells) + " |", flush=True)
    print(f"{files} files, {trained} open as networks, agree and train a step; "
          f"{wrong} do not agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

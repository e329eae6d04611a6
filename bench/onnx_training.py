#!/usr/bin/env python3
"""The ONNX files of onnx_packages.py as networks that learn: which open, their distance from ONNX
Runtime, and whether one step of training follows its gradients.

  bench/onnx_training.py --loom build/dev/cli/loom --python build/venv/bin/python --filter mtcnn

A file is converted to .entity and predicts two random samples. Then it is trained by steps of SGD
at the rates r and 2 r towards its own outputs and noise, on one batch. `slope` is the derivative of
the loss along the step, divided by the squared norm of the gradient. It is 1 for a correct
gradient. The derivative comes from three losses, (3 L(0) - 4 L(r) + L(2 r)) / 2 r. The norm comes
from the weights before and after. r is chosen so that the loss falls by a hundredth, or less if it
bends.

`gradient` is the error of single gradients against central differences in double precision. They
are at the largest gradient and at a random one of up to --tensors parameters that are spread over
the network. The file's floats become doubles for that, after ONNX Runtime folded its batch norms as
Loom did. The reference implementation of the standard computes the loss on both sides of each
weight. If that is slow or lacks an operator, Loom's evaluator computes it in double; it shares no
code with training. Parameters are those of the file in the same order, unchanged or transposed. The
result is the largest difference, as a part of the gradient or of the root mean square of its
parameter's, whichever is larger.

The last line counts. The exit status is 1 if an error is too large: 2 % for a slope, 5e-3 for a
gradient, 1e-4 for a prediction. It is 77 without ONNX Runtime.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import onnx_packages as packages

sys.path.insert(0, str(packages.ROOT / "tests/outside"))

SAMPLES, SLOPE, LIMIT, GRADIENT = 2, 0.02, 1e-4, 5e-3
SLOW = 3.0  # seconds of one run of the reference implementation
SHARES = (1e-2, 1e-3, 1e-4)  # of the loss, by which a step should lower it


class Refused(Exception):
    pass


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments), "--quiet"], capture_output=True,
                          text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise Refused((done.stderr.strip().splitlines() or ["no answer"])[-1].split(".onnx: ")[-1])


def weights(np, loom, path, folder):
    run(loom, "convert", path, folder / "w.npz", "--force")
    kept = np.load(folder / "w.npz")
    floats = {k: kept[k].astype(np.float64) for k in kept.files if kept[k].dtype.kind == "f"}
    # Constants may be infinite, such as those of a Clip without an end; they do not move.
    return {k: np.where(np.isfinite(v), v, 0) for k, v in floats.items()}


def common(folder, rate):
    return ["train", folder / "net.entity", folder / "data.npz", "--optimizer", "sgd", "--rate",
            repr(rate), "--schedule", "constant", "--no-shuffle", "--batch", SAMPLES, "--loss",
            "mse"]


def step(np, loom, folder, rate):
    """The loss before a step of SGD and after it, and the squared norm of its gradient."""
    told, after = folder / "told.jsonl", folder / "after.entity"
    told.unlink(missing_ok=True)
    run(loom, *common(folder, rate), "--epochs", 2, "--telemetry", told)
    run(loom, *common(folder, rate), "--epochs", 1, "-o", after)
    records = [json.loads(line) for line in told.read_text().splitlines()]
    losses = [r["value"] for r in records if r.get("tag") == "loss/batch"]
    old, new = (weights(np, loom, p, folder) for p in (folder / "net.entity", after))
    norm = sum(float(((old[k] - new[k]) ** 2).sum()) for k in old if k in new) / rate**2
    if not np.isfinite(norm) or not norm > 0:
        raise Refused(f"a gradient of the squared norm {norm}")
    return losses[0], losses[1], norm


def slope(np, loom, folder):
    """The derivative along the step by the squared norm of the gradient. It takes the first step of
    SHARES that is short enough for three losses, or else the last."""
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


def folded(path, folder):
    """The file with its constants and batch norms folded by ONNX Runtime, or else unchanged."""
    import onnx
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(folder / "folded.onnx")
    ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    model = onnx.load(folder / "folded.onnx")
    own = {"", "ai.onnx"}
    return model if all(n.domain in own for n in model.graph.node) else onnx.load(path)


def kind_of(np, value, floats):
    return {7: np.int64, 6: np.int32, 9: np.bool_}.get(value.type.tensor_type.elem_type, floats)


def in_training(onnx, model, count):
    """The model whose remaining batch norms use the statistics of the batch, as in training. None
    if it has none, or if the file fixes its batch."""
    from onnx import helper

    graph = model.graph
    norms = [n for n in graph.node if n.op_type == "BatchNormalization"]
    if not norms or graph.input[0].type.tensor_type.shape.dim[0].dim_value not in (0, count):
        return None
    known = onnx.shape_inference.infer_shapes(model)
    ranks = {v.name: len(v.type.tensor_type.shape.dim)
             for v in [*known.graph.value_info, *known.graph.input, *known.graph.output]}
    newer = max(o.version for o in model.opset_import if o.domain in ("", "ai.onnx")) >= 18
    made = []
    for n in graph.node:
        if n.op_type != "BatchNormalization":
            made.append(n)
            continue
        x, y, rank = n.input[0], n.output[0], ranks.get(n.input[0], 4)
        eps = next((a.f for a in n.attribute if a.name == "epsilon"), 1e-5)

        def constant(name, values, kind, y=y):
            made.append(helper.make_node("Constant", [], [f"{y} {name}"], value=helper.make_tensor(
                name, kind, [len(values)] if kind == onnx.TensorProto.INT64 else [], values)))
            return f"{y} {name}"

        axes = [i for i in range(rank) if i != 1]
        place = constant("axes", axes, onnx.TensorProto.INT64)
        shape = constant("shape", [1, -1] + [1] * (rank - 2), onnx.TensorProto.INT64)
        least = constant("eps", [eps], onnx.TensorProto.FLOAT)

        def node(op, inputs, name, y=y, **attributes):
            made.append(helper.make_node(op, inputs, [name if name == y else f"{y} {name}"],
                                         **attributes))
            return made[-1].output[0]

        def mean(of, name):
            if newer:
                return node("ReduceMean", [of, place], name)
            return node("ReduceMean", [of], name, axes=axes)

        off = node("Sub", [x, mean(x, "mean")], "off")
        spread = mean(node("Mul", [off, off], "square"), "variance")
        root = node("Sqrt", [node("Add", [spread, least], "more")], "root")
        unit = node("Div", [off, root], "unit")
        scale, shift = (node("Reshape", [n.input[i], shape], f"parameter {i}") for i in (1, 2))
        node("Add", [node("Mul", [unit, scale], "scaled"), shift], y)
    out = onnx.ModelProto()
    out.CopyFrom(model)
    del out.graph.node[:]
    out.graph.node.extend(made)
    return out


def batch_axis(value, first):
    """The axis of the samples of an input: states of recurrent layers have them second."""
    names = [d.dim_param for d in value.type.tensor_type.shape.dim]
    batch = first.type.tensor_type.shape.dim[0].dim_param
    return names.index(batch) if batch and batch in names else 0


class Oracle:
    """The loss of a file in double precision, at weights near its own."""

    def __init__(self, np, path, data, folder, program):
        import onnx

        self.np, self.folder, self.program = np, folder, program
        self.inference = folded(path, folder)
        self.model = packages.widened(np, onnx, self.inference)
        self.by, self.at_once = self.by_reference, False
        kept = np.load(data)
        self.y = kept["y"].astype(np.float64)
        constants = {t.name for t in self.model.graph.initializer}
        inputs = [v for v in self.model.graph.input if v.name not in constants]
        self.x = {v.name: kept["x" if v is inputs[0] else v.name].astype(kind_of(np, v, np.float64))
                  for v in inputs}
        self.axes = {v.name: batch_axis(v, inputs[0]) for v in inputs}
        self.take(self.model)

    def take(self, model):
        import onnx

        self.model = model
        self.tensors = {t.name: t for t in model.graph.initializer
                        if t.data_type == onnx.TensorProto.DOUBLE}
        self.values = {n: onnx.numpy_helper.to_array(t) for n, t in self.tensors.items()}

    def settle(self, before):
        """The way of computing that gives the loss `before`, which both sides have to begin with:
        the reference implementation has gaps and faults, and norms may be trained by the
        statistics of the batch. The faster of two that do."""
        import onnx

        training, found = in_training(onnx, self.inference, SAMPLES), []
        ways = [self.by_reference, self.by_program] if self.program else [self.by_reference]
        for model in (self.inference, training):
            if model is None:
                continue
            self.at_once = model is training
            self.take(packages.widened(self.np, onnx, model))
            best = None
            for self.by in ways:
                start = time.perf_counter()
                try:
                    loss = self.loss()
                except Exception as error:  # noqa: BLE001  (errors of every kind)
                    found.append(str(error))
                    continue
                took = time.perf_counter() - start
                if abs(loss - before) > 1e-3 * abs(before):
                    found.append(f"in double precision {loss:.6g}")
                elif best is None or took < best[0]:
                    best = took, self.by
                if best is not None and best[0] < SLOW:
                    break
            if best is not None:
                self.by = best[1]
                return
        raise Refused(f"the loss is {before:.6g}; " + "; ".join(found)[:200])

    def by_reference(self, given):
        from onnx.reference import ReferenceEvaluator

        return ReferenceEvaluator(self.model).run(None, given)[0]

    def by_program(self, given, limit=240.0):
        import onnx
        import onnx_standard as standard

        onnx.save(self.model, self.folder / "wide.onnx")
        standard.save_values(list(given.values()), self.folder / "wide.in")
        lines = f"{self.folder}/wide.onnx {self.folder}/wide.in {self.folder}/wide.out\n"
        done = subprocess.run([self.program], input=lines, capture_output=True, text=True,
                              timeout=limit, check=False)
        if not done.stdout.startswith("ok"):
            raise Refused(f"in double precision: {done.stdout.strip()}")
        return standard.load_values(self.folder / "wide.out")[0]

    def loss(self):
        parts = [slice(None)] if self.at_once else [slice(i, i + 1) for i in range(SAMPLES)]
        out = [self.np.asarray(self.by({n: self.np.moveaxis(x[part], 0, self.axes[n])
                                        for n, x in self.x.items()}),
                               self.np.float64).reshape(-1) for part in parts]
        return float(((self.np.concatenate(out) - self.y.reshape(-1)) ** 2).mean())

    def place(self, parameter, at):
        """The tensor and the place in it of one weight of a parameter [rows, columns]."""
        flat = parameter.reshape(-1)
        found = []
        for name, values in self.values.items():
            if values.size != flat.size:
                continue
            if self.np.allclose(values.reshape(-1), flat, rtol=1e-4, atol=1e-7):
                found.append((name, at))
            elif values.ndim == 2 and self.np.allclose(values.T.reshape(-1), flat, rtol=1e-4,
                                                       atol=1e-7):
                found.append((name, at % values.shape[0] * values.shape[1]
                              + at // values.shape[0]))
        return found[0] if len(found) == 1 else None

    def difference(self, place):
        """dL/dw by two steps; the shorter one is taken if they agree."""
        import onnx

        name, at = place
        found = []
        for step in (1e-4, 1e-5):
            sides = []
            for side in (step, -step):
                values = self.values[name].copy()
                values.reshape(-1)[at] += side * max(abs(values.reshape(-1)[at]), 0.1)
                moved = values.reshape(-1)[at]
                self.tensors[name].CopyFrom(onnx.numpy_helper.from_array(values, name))
                sides.append((moved, self.loss()))
            found.append((sides[0][1] - sides[1][1]) / (sides[0][0] - sides[1][0]))
        self.tensors[name].CopyFrom(onnx.numpy_helper.from_array(self.values[name], name))
        return found


def gradient(np, path, args, folder):
    """The largest difference between gradients and central differences, and how many there were."""
    after = folder / "after.entity"
    before, _, _ = step(np, args.loom, folder, 1e-4)
    old, new = (weights(np, args.loom, p, folder) for p in (folder / "net.entity", after))
    # One step so long that weights become what their gradients say, and rounding is that of these.
    steepest = max(float(np.abs(old[k] - new[k]).max()) for k in old if k in new) / 1e-4
    rate = min(1e3, 1e2 / max(steepest, 1e-30))
    run(args.loom, *common(folder, rate), "--epochs", 1, "-o", after)
    new = weights(np, args.loom, after, folder)
    oracle = Oracle(np, path, folder / "data.npz", folder, args.program)
    oracle.settle(before)
    names = [n for n in old if n in new and (old[n] != new[n]).any() and oracle.place(old[n], 0)]
    if not names:
        raise Refused("no parameter has the same form in the file and in the network")
    names = [names[i] for i in np.unique(np.linspace(0, len(names) - 1, args.tensors).astype(int))]
    draw, worst, count = np.random.default_rng(3), 0.0, 0
    until = time.monotonic() + args.seconds
    for name in names:
        if count >= 4 and time.monotonic() > until:
            break
        g = ((old[name] - new[name]) / rate).reshape(-1)
        rounding = (np.abs(old[name]) + np.abs(new[name])).reshape(-1) * 2.0**-23 / rate
        size = float((g**2).mean() ** 0.5)
        for at in {int(np.abs(g).argmax()), int(draw.integers(g.size))}:
            place = oracle.place(old[name], at)
            if place is None:
                continue
            long, short = oracle.difference(place)
            if abs(long - short) > 1e-3 * max(abs(short), size):
                continue  # a bend of the loss between the two sides
            if rounding[at] > 1e-3 * max(abs(short), size):
                continue  # so small a gradient that its step is lost in the weight
            off = abs(g[at] - short) / max(abs(short), size)
            worst, count = max(worst, off), count + 1
    if count == 0:
        raise Refused("no parameter has the same form in the file and in the network")
    return worst, count


def drawn(np, draw, value, extent, axis=0):
    """SAMPLES of an input, the batch first: small ids, numbers, or truths as 1 and 0, the first of
    each being 0, since a mask that hides everything leaves nothing to compute."""
    dims = list(value.type.tensor_type.shape.dim)
    del dims[axis]
    shape = [SAMPLES] + [d.dim_value if d.dim_value > 0 else extent for d in dims]
    if value.type.tensor_type.elem_type in (6, 7):
        return draw.integers(0, 8, shape).astype(np.int32)
    if value.type.tensor_type.elem_type == 9:
        truths = (draw.random(shape) < 0.3).reshape(SAMPLES, -1)
        truths[:, 0] = False
        return truths.reshape(shape).astype(np.float32)
    return (draw.standard_normal(shape) * 0.5).astype(np.float32)


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
    extent = packages.inputs_for(np, peer, values, model)[0]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run(args.loom, "convert", path, folder / "net.entity", "--open-extent", extent, "--force")
        row["network"] = True
        draw = np.random.default_rng(5)
        axes = {v.name: batch_axis(v, values[0]) for v in values}
        given = {v.name: drawn(np, draw, v, extent, axes[v.name]) for v in values}
        arrays = {"x" if v is values[0] else v.name: given[v.name] for v in values}
        np.savez(folder / "x.npz", **arrays)
        run(args.loom, "predict", folder / "net.entity", folder / "x.npz", "--force", "-o",
            folder / "y.npz")  # fmt: skip
        got = np.load(folder / "y.npz")["outputs"].reshape(SAMPLES, -1)
        sample = [{v.name: np.moveaxis(given[v.name][i:i + 1].astype(kind_of(np, v, np.float32)), 0,
                                       axes[v.name]) for v in values} for i in range(SAMPLES)]
        want = np.concatenate([peer.run(None, s)[0].reshape(1, -1) for s in sample])
        row["difference"] = packages.apart(np, got.astype(want.dtype), want)
        y = np.load(folder / "y.npz")["outputs"]
        # Outputs that hardly differ, such as scores near 1, still get a loss that floats resolve.
        spread = max(float(np.abs(y).std()), 0.1 * float(np.abs(y).mean()), 1e-3)
        noise = draw.standard_normal(y.shape).astype(np.float32) * spread
        np.savez(folder / "data.npz", **arrays, y=y + noise)
        row["slope"] = slope(np, args.loom, folder)
        row["gradient"], row["checked"] = gradient(np, path, args, folder)
    return row


def in_process(path, args):
    command = [args.python, __file__, "--one", path, "--loom", args.loom, "--program",
               args.program, "--tensors", str(args.tensors), "--seconds", str(args.seconds)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=2400, check=False)
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError):
        return {"why": "no answer"}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loom", default=str(packages.ROOT / "build/dev/cli/loom"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--folder", default=str(packages.ROOT / "build/onnx_packages"))
    parser.add_argument("--program", default="", help="evaluate_runner of the tests, for double "
                        "precision where the reference implementation is slow or has a gap")
    parser.add_argument("--tensors", type=int, default=8, help="whose gradients are compared")
    parser.add_argument("--seconds", type=float, default=300, help="for the gradients of a "
                        "file, of which four are compared however long that takes")
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
    print("| file | difference | slope | gradient | of | why not |\n|---|---|---|---|---|---|")
    for path in packages.fetch(pathlib.Path(args.folder), args.python):
        if args.filter not in str(path):
            continue
        row = in_process(str(path), args)
        good = abs(row.get("slope", 0) - 1) <= SLOPE and row["difference"] <= LIMIT and \
            row.get("gradient", 1) <= GRADIENT
        files, trained = files + 1, trained + good
        wrong += "slope" in row and not good
        cells = [os.path.relpath(path, args.folder),
                 f"{row['difference']:.1e}" if "difference" in row else "",
                 f"{row['slope']:.4f}" if "slope" in row else "",
                 f"{row['gradient']:.1e}" if "gradient" in row else "",
                 str(row.get("checked", "")), row.get("why", "")]
        print("| " + " | ".join(c.replace("|", "/")[:160] for c in cells) + " |", flush=True)
    print(f"{files} files, {trained} open as networks, agree and train a step; "
          f"{wrong} do not agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

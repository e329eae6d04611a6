#!/usr/bin/env python3
"""Random ONNX graphs in Loom and in ONNX Runtime. The results are equal, or Loom refuses with a
reason. Loom never accepts a graph that ONNX Runtime refuses. Loom writes each network again, and
ONNX Runtime computes the same from that file.

  tests/outside/onnx_random.py                       300 graphs of one operator, 100 of idioms
  tests/outside/onnx_random.py --count 2000 --seed 7 --idioms 0
  tests/outside/onnx_random.py --only Gemm --keep DIR   one operator; what is wrong stays in DIR

One row per operator gives the number of graphs that became networks, so that a test which refuses
everything is visible. If ONNX Runtime has no kernel for a valid graph (some types), the evaluator
of the package onnx gives the result. Exit status 1 if anything is wrong; 77 if onnx, onnxruntime or
numpy is absent.
"""
import argparse
import collections
import multiprocessing
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnx.reference
    import onnxruntime
except ImportError as error:
    print(f"onnx_random: {error}", file=sys.stderr)
    sys.exit(77)

import onnx_graph
import onnx_idioms
import onnx_ops

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNNER = ROOT / "build" / "dev" / "tests" / "onnx_runner"
# "no truth": Loom reads it, and the checks of ONNX Runtime accept it, but ONNX Runtime has no
# kernel for its types. The package onnx does not compute it either.
COLUMNS = ("equal", "not written", "refused", "both refuse", "no truth", "WRONG")
NO_TRUTH = "no truth: "
# The tolerance of a float type, relative to the largest value of a result. It is the rounding of
# the type, because Loom always computes in float32.
ROUNDING = {"float16": 4e-3, "bfloat16": 3e-2}


class Runner:
    """Loom, one process for all files; restarted if a file ends it."""

    def __init__(self, program):
        self.program, self.process = program, None

    def ask(self, line):
        if self.process is None:
            self.process = subprocess.Popen([self.program], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True)
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline().strip()
        except BrokenPipeError:
            answer = ""
        if answer:
            return answer
        code = self.process.wait()
        self.process = None
        return f"failed the program ended with status {code}"


def run_session(data, x):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(data, options, ["CPUExecutionProvider"])
        return session.run(None, {"x": x})[0], ""
    except Exception as error:  # pylint: disable=broad-except
        return None, str(error)


def serve(pipe):
    while True:
        pipe.send(run_session(*pipe.recv()))


class Truth:
    """ONNX Runtime in a separate process: some graphs end it."""

    def __init__(self):
        self.process = self.pipe = None

    def __call__(self, data, x):
        """(values, "") or (None, reason)."""
        if self.process is None:
            self.pipe, theirs = multiprocessing.Pipe()
            self.process = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
            self.process.start()
            theirs.close()
        try:
            self.pipe.send((data, x))
            y, why = self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            self.process = None
            y, why = None, "ended by a signal"
        unknown = ("NOT_IMPLEMENTED", "does not support", "ended by a signal")
        if y is not None or not any(word in why for word in unknown):
            return y, why
        try:
            return evaluated(data, x), ""
        except Exception as error:  # pylint: disable=broad-except
            return None, f"{NO_TRUTH if 'NOT_IMPLEMENTED' in why else ''}{why}; {error}"


def evaluated(data, x):
    """The results of the package onnx. It is used if ONNX Runtime has no kernel of the type, or one
    that keeps more digits between two operators than the type has."""
    model = onnx.load_from_string(data)
    for node in model.graph.node:
        node.domain = "" if node.domain == "ai.onnx" else node.domain
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    return onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})[0]


def has_halves(data):
    halves = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
    model = onnx.load_from_string(data)
    casts = [a.i for n in model.graph.node for a in n.attribute if a.name == "to"]
    return any(t.data_type in halves for t in model.graph.initializer) or any(
        to in halves for to in casts) or any(
        a.t.data_type in halves for n in model.graph.node for a in n.attribute)


def difference(ours, theirs, x):
    """The difference of two results; "" if they are equal. A layer keeps the order of values, but
    not the grouping of axes after it."""
    if ours.size != theirs.size:
        return f"{ours.size} values, must be {theirs.shape}"
    if theirs.dtype.kind in "biu":  # booleans and integers: the same, as floats
        apart = np.flatnonzero(ours != theirs.astype(np.float64).reshape(-1))
        return f"at {apart[0]} of {theirs.dtype}: {ours[apart[0]]}" if apart.size else ""
    if theirs.dtype.kind != "f" and theirs.dtype.name != "bfloat16":
        return f"ONNX Runtime gives {theirs.dtype}, Loom floats"
    theirs = theirs.astype(np.float64).reshape(-1)
    ours = ours.astype(np.float64)
    rounding = ROUNDING.get(x.dtype.name, 2e-5)
    finite = np.abs(theirs[np.isfinite(theirs)])
    bound = rounding * np.abs(theirs) + rounding / 10 * max(1.0, finite.max(initial=0))
    with np.errstate(invalid="ignore"):
        off = np.abs(ours - theirs)
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs)) | (off <= bound)
    if same.all():
        return ""
    at = int(np.argmin(same))
    return f"value {at} is {ours[at]:.9g}, must be {theirs[at]:.9g}"


class Test:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.runner, self.truth = Runner(args.program), Truth()
        self.rows = collections.defaultdict(collections.Counter)
        self.reasons = collections.defaultdict(collections.Counter)
        self.wrong = []
        self.r = None  # of the graph under way

    def verdict(self, name, model, x):
        data = model.SerializeToString()
        paths = [self.folder / f"case.{end}" for end in ("onnx", "x", "y", "written")]
        paths[0].write_bytes(data)
        x.astype(np.int32 if x.dtype.kind == "i" else np.float32).tofile(paths[1])
        batch = x.shape[0] if x.ndim else 1
        apart = "apart" if self.r.chance(0.5) else "whole"
        answer = self.runner.ask(f"{paths[0]} {batch} {paths[1]} {paths[2]} {apart} {paths[3]}")
        theirs, why = self.truth(data, x)
        if answer.startswith("refused "):
            self.reasons[name][answer[len("refused "):].replace(str(paths[0]), "f")] += 1
            return ("both refuse" if theirs is None else "refused"), ""
        if not answer.startswith("ok"):
            return "WRONG", answer
        if theirs is None and why.startswith(NO_TRUTH):
            return "no truth", ""
        if theirs is None:
            return "WRONG", f"accepted, ONNX Runtime says: {why[:300]}"
        ours = np.fromfile(paths[2], np.float32)
        theirs = np.asarray(theirs)
        turned = " turned" in answer.partition(" unwritten ")[0]
        ways = [np.moveaxis(theirs, a, 0) for a in range(1, theirs.ndim)] if turned else [theirs]
        off = min((difference(ours, way, x) for way in ways), key=bool)
        if off and has_halves(data):
            off = difference(ours, np.asarray(evaluated(data, x)), x)
        if off:
            return "WRONG", off
        _, unwritten, reason = answer.partition(" unwritten ")
        if unwritten:
            self.reasons[name][f"not written: {reason}"] += 1
            return "not written", ""
        off = self.written_differs(paths[3].read_bytes(), x, ours)
        return ("WRONG", f"written again: {off}") if off else ("equal", "")

    def written_differs(self, data, x, ours):
        """Our own file in ONNX Runtime; ids are int64 there, numbers float32."""
        x = x.astype(np.int64 if x.dtype.kind == "i" else np.float32)
        if x.ndim == 1:  # a sample is one value, an array of one for us
            x = x.reshape(-1, 1)
        read = onnx.load_model_from_string(data).graph.input[0].type.tensor_type.shape.dim
        if len(read) == x.ndim + 1:  # the file has no batch: a sample is its whole input
            x = x[None]
        theirs, why = self.truth(data, x)
        if theirs is None:
            return f"ONNX Runtime says: {why[:300]}"
        return difference(ours, np.asarray(theirs, np.float32), x)

    def run(self, name, make, seed):
        self.r = r = onnx_graph.Random(seed)
        opset = r.whole(max(17, min(onnx_ops.SINCE.get(name, 17), 23)), 23)
        if r.chance(0.08):
            opset = r.whole(17, 23)
        g = onnx_graph.Graph(r, opset)
        g.output = make(g)
        if isinstance(g.output, list):
            g.output = g.output[0]
        model = g.model()
        if r.chance(self.args.damage):
            onnx_graph.damage(r, model)
        verdict, why = self.verdict(name, model, g.x)
        self.rows[name][verdict] += 1
        if verdict == "WRONG":
            self.wrong.append(f"{name}, seed {seed}: {why}")
            self.save(name, seed, model, g.x)

    def save(self, name, seed, model, x):
        if self.args.keep is None:
            return
        self.args.keep.mkdir(parents=True, exist_ok=True)
        stem = self.args.keep / f"{name}-{seed[-1]}".replace(" ", "_")
        onnx.save(model, f"{stem}.onnx")
        np.save(f"{stem}.npy", x)

    def table(self):
        print("| operator | " + " | ".join(COLUMNS) + " |\n|---|" + "---|" * len(COLUMNS))
        total = collections.Counter()
        for name, row in self.rows.items():
            total.update(row)
            print(f"| {name} | " + " | ".join(str(row[c]) for c in COLUMNS) + " |")
        print("| all | " + " | ".join(str(total[c]) for c in COLUMNS) + " |")
        if self.args.reasons:
            for name, reasons in self.reasons.items():
                for reason, count in reasons.most_common():
                    print(f"{count:5} {name}: {reason}")
        for line in self.wrong:
            print(f"WRONG {line}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=RUNNER, type=pathlib.Path)
    parser.add_argument("--count", type=int, default=300, help="graphs of one operator")
    parser.add_argument("--idioms", type=int, default=100, help="graphs of several")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--damage", type=float, default=0.25, help="share that is damaged")
    parser.add_argument("--only", help="an operator, by its row")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the graphs that are wrong")
    parser.add_argument("--reasons", action="store_true", help="list why graphs are refused")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        test = Test(args, pathlib.Path(folder))
        for table, count in ((onnx_ops.OPERATORS, args.count), (onnx_idioms.IDIOMS, args.idioms)):
            names = [n for n in table if args.only in (None, n)]
            for i in range(count if names else 0):
                name = names[i % len(names)]
                test.run(name, table[name], [args.seed, i])
    test.table()
    done = sum(sum(row.values()) for row in test.rows.values())
    print(f"{done - len(test.wrong)} passed, {len(test.wrong)} failed, 0 skipped")
    return 1 if test.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Random ONNX files whose samples are not the first axis of all inputs and outputs, through the
Python package and in ONNX Runtime:

  whole   no batch: the first axis is the rows of one image, or the steps of one sequence.
  single  a first axis of 1 that the output does not keep.
  alone   a batch of 1, or one with that name, of which means and maxima are taken.
  steps   outputs with their steps first and their batch second.
  names   inputs whose batches have other names and are joined.

Values are equal, sample by sample, or the file is refused with a reason.

  export LOOM_LIBRARY=build/dev/libloom.so PYTHONPATH=bindings/python
  tests/outside/onnx_batches.py --count 200

The last line counts them. Exit status 1 when a value differs, when more than a quarter is refused,
or 77 when onnx, onnxruntime or numpy is not there.
"""
import argparse
import collections
import sys

try:
    import numpy as np
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(f"onnx_batches: {error}", file=sys.stderr)
    sys.exit(77)

import loom

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ACTIVATIONS = ("Tanh", "Sigmoid", "Relu", "Softplus", "Abs")


class File:
    """A graph that grows; `y` is its last value, of the axes `shape`."""

    def __init__(self, r, x, shape):
        self.r, self.y, self.shape = r, x, list(shape)
        self.nodes, self.constants = [], []

    def whole(self, low, high):
        return int(self.r.integers(low, high + 1))

    def constant(self, values):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def weight(self, *shape):
        return self.constant(self.r.normal(0, 0.6, shape).astype(np.float32))

    def node(self, op, *inputs, shape=None, outputs=1, at=0, **attributes):
        names = [f"v{len(self.nodes)}.{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, [self.y, *inputs], names, names[0], **attributes))
        self.y = names[at]
        if shape is not None:
            self.shape = list(shape)

    def list_of(self, *values):
        return self.constant(np.array(values, np.int64))

    # ---- of each row

    def product(self):
        out = self.whole(1, 5)
        self.node("MatMul", self.weight(self.shape[-1], out), shape=[*self.shape[:-1], out])

    def function(self):
        self.node(ACTIVATIONS[self.whole(0, len(ACTIVATIONS) - 1)])

    def shift(self):
        self.node("Add", self.weight(self.shape[-1]))

    # ---- of several rows

    def rim(self):
        before, after = self.whole(0, 2), self.whole(1, 2)
        zeros = [0] * (len(self.shape) - 1)
        self.node("Pad", self.list_of(before, *zeros, after, *zeros),
                  shape=[self.shape[0] + before + after, *self.shape[1:]])

    def later(self):
        if self.shape[0] < 3:
            return
        self.node("Slice", self.list_of(1), self.list_of(2**31), self.list_of(0),
                  shape=[self.shape[0] - 1, *self.shape[1:]])

    def shares(self):
        self.node("Softmax", axis=0)

    def twice(self):
        self.node("Concat", self.y, axis=0, shape=[2 * self.shape[0], *self.shape[1:]])

    def less_mean(self):
        x = self.y
        self.node("ReduceMean", axes=[0], keepdims=1)
        mean, self.y = self.y, x
        self.node("Sub", mean)

    def less_all(self):
        x, op = self.y, ("ReduceMean", "ReduceMax", "ReduceL2")[self.whole(0, 2)]
        self.node(op, keepdims=1)
        most, self.y = self.y, x
        self.node("Sub", most)

    def share_of_all(self):
        self.node("Softmax", axis=0)

    def window(self):
        """A convolution over rows and columns."""
        if len(self.shape) != 2:
            return
        channels, rows = self.whole(1, 3), self.whole(1, 3)
        self.node("Unsqueeze", self.list_of(0, 1))
        self.node("Conv", self.weight(channels, 1, rows, self.shape[1]),
                  pads=[rows - 1, 0, 0, 0], kernel_shape=[rows, self.shape[1]])
        self.node("Squeeze", self.list_of(0, 3))
        self.node("Transpose", perm=[1, 0], shape=[self.shape[0], channels])

    def recurrence(self):
        """Over the first axis, whose batch is 1."""
        if len(self.shape) != 2:
            return
        op = list(GATES)[self.whole(0, 2)]
        hidden, width = self.whole(1, 4), self.shape[1]
        direction = ("forward", "reverse", "bidirectional")[self.whole(0, 2)]
        ways, gates = 1 + (direction == "bidirectional"), GATES[op] * hidden
        self.node("Unsqueeze", self.list_of(1))
        more = {"linear_before_reset": 1} if op == "GRU" else {}
        self.node(op, self.weight(ways, gates, width), self.weight(ways, gates, hidden),
                  self.weight(ways, 2 * gates), hidden_size=hidden, direction=direction, **more)
        self.node("Reshape", self.list_of(-1, ways * hidden), shape=[self.shape[0], ways * hidden])

    def grow(self, parts):
        getattr(self, parts[self.whole(0, len(parts) - 1)])()

    def model(self, inputs, y=None):
        values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs]
        out = helper.make_tensor_value_info(y or self.y, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "batches", values, [out], self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        made.ir_version = 9
        return made.SerializeToString()


KINDS = ("whole", "single", "alone", "steps", "names")
ROW = ("product", "function", "shift")
ROWS = (*ROW, "rim", "later", "shares", "twice", "less_mean", "window", "recurrence")


class Case:
    """A file, whole inputs of it, and the axis of the samples in each input and output. It is None
    if a whole input is one sample."""

    def __init__(self, seed):
        self.r = np.random.default_rng(seed)
        self.kind = KINDS[int(self.r.integers(len(KINDS)))]
        self.samples, self.rows = int(self.r.integers(1, 4)), int(self.r.integers(3, 8))
        self.extent = self.rows
        self.given, self.out = {}, 0
        getattr(self, self.kind)()

    def draw(self, *shape):
        return self.r.normal(0, 1, shape).astype(np.float32)

    def whole(self):
        width = int(self.r.integers(1, 5))
        file = File(self.r, "x", [self.rows, width])
        for _ in range(file.whole(1, 5)):
            file.grow(ROWS)
        file.function()
        self.given["x"] = self.draw(self.samples, self.rows, width)
        self.data, self.out = file.model([("x", ["rows", width])]), None

    def single(self):
        width = int(self.r.integers(1, 5))
        file = File(self.r, "x", [1, self.rows, width])
        for _ in range(file.whole(1, 3)):
            file.grow(ROW)
        file.node("Squeeze", file.list_of(0), shape=file.shape[1:])
        for _ in range(file.whole(1, 3)):
            file.grow(ROWS)
        file.function()
        self.given["x"] = self.draw(self.samples, 1, self.rows, width)
        self.data = file.model([("x", [1, self.rows, width])])
        self.out = None

    def alone(self):
        width = int(self.r.integers(1, 5))
        file = File(self.r, "x", [1, self.rows, width])
        for _ in range(file.whole(0, 2)):
            file.grow(ROW)
        file.grow(("less_all", "less_all", "share_of_all"))
        for _ in range(file.whole(0, 2)):
            file.grow((*ROW, "less_all"))
        self.given["x"] = self.draw(self.samples, 1, self.rows, width)
        batch = (1, "batch_size")[file.whole(0, 1)]
        self.data, self.out = file.model([("x", [batch, self.rows, width])]), None

    def steps(self):
        width = int(self.r.integers(1, 5))
        file = File(self.r, "x", ["n", self.rows, width])
        for _ in range(file.whole(1, 4)):
            file.grow(ROW)
        file.node("Transpose", perm=[1, 0, 2])
        if self.r.random() < 0.5:
            file.function()
        self.given["x"] = self.draw(self.samples, self.rows, width)
        self.data, self.out = file.model([("x", ["n", self.rows, width])]), 1

    def names(self):
        width, other = (int(self.r.integers(1, 5)) for _ in range(2))
        file = File(self.r, "x", ["n", width])
        for _ in range(file.whole(0, 2)):
            file.grow(ROW)
        if self.r.random() < 0.5:
            file.node("Concat", "z", axis=1, shape=["n", file.shape[1] + other])
        else:
            other = file.shape[1]
            file.node(("Add", "Mul", "Sub", "Max")[file.whole(0, 3)], "z")
        for _ in range(file.whole(0, 2)):
            file.grow(ROW)
        self.given = {"x": self.draw(self.samples, width), "z": self.draw(self.samples, other)}
        self.data = file.model([("x", ["n", width]), ("z", ["m", other])])

    def truth(self):
        """Outputs of the samples, the samples first."""
        peer = onnxruntime.InferenceSession(self.data, providers=["CPUExecutionProvider"])
        if self.out is not None:
            return np.moveaxis(peer.run(None, self.given)[0], self.out, 0)
        return np.stack([peer.run(None, {"x": x})[0] for x in self.given["x"]])

    def difference(self, net):
        theirs = self.truth()
        given = dict(self.given)
        port = net.inputs[0]
        if self.out is None:
            axes = self.given["x"].ndim - 1
            if len(port.shape) == axes - 1 and self.kind == "whole":
                # Each row is a sample: no node of the file reads two of them.
                given["x"], theirs = given["x"].reshape(-1, *port.shape), np.concatenate(theirs)
            elif len(port.shape) == axes - 1:
                given["x"] = given["x"][:, 0]
        got = self.run(net, given)
        if got.size != theirs.size or len(got) != len(theirs):
            return f"{got.shape}, must be {theirs.shape}"
        near = 2e-5 * max(1.0, float(np.abs(theirs).max(initial=0)))
        off = float(np.abs(got.reshape(-1) - theirs.reshape(-1)).max(initial=0))
        return "" if off <= near else f"off by {off}"

    def run(self, net, given):
        if len(net.inputs) == 1:
            return net.predict(next(iter(given.values())))
        with net.session(max_batch=self.samples) as session:
            return next(iter(session.run(given).values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    counts = collections.Counter()
    for seed in range(args.seed * 100000, args.seed * 100000 + args.count):
        case = Case(seed)
        try:
            net = loom.Network.load(case.data, name="batches.onnx", open_extent=case.extent)
        except loom.UnsupportedError as error:
            counts["refused"] += 1
            print(f"refused {seed}, {case.kind}: {error}")
            continue
        why = case.difference(net)
        if why:
            print(f"WRONG {seed}, {case.kind}: {why}")
        counts["failed" if why else "passed"] += 1
        counts[case.kind] += 1
        counts["rows"] += case.kind == "whole" and len(net.inputs[0].shape) == 1
    print(f"{counts['refused']} refused; the others: "
          + ", ".join(f"{counts[k]} {k}" for k in KINDS)
          + f"; of the whole ones {counts['rows']} have rows as samples")
    if counts["refused"] * 4 > args.count:
        print("too few were read")
        counts["failed"] += 1
    print(f"{counts['passed']} passed, {counts['failed']} failed, 0 skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())

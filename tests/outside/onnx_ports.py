#!/usr/bin/env python3
"""Random ONNX models of several inputs and outputs, through the Python package and in ONNX Runtime:
equal values under equal names, or refused by Loom with a reason. So are the files that Loom writes
of them.

  export LOOM_LIBRARY=build/dev/libloom.so PYTHONPATH=bindings/python
  tests/outside/onnx_ports.py --count 200

The last line counts them. Exit status 1 when a value differs, when more than a third is refused, or
77 when onnx, onnxruntime or numpy is not there.
"""
import argparse
import sys

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(f"onnx_ports: {error}", file=sys.stderr)
    sys.exit(77)

import loom

TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": bool}
ACTIVATIONS = ("Tanh", "Sigmoid", "Relu", "Neg", "Abs", "Softplus")


class Model:
    """A graph that grows by random nodes; every value is [batch, width], or shared [1, width]."""

    def __init__(self, r, batch):
        self.r, self.batch = r, batch
        self.nodes, self.constants, self.inputs, self.given = [], [], [], {}
        self.values = []  # (name, width, whether it has the batch)
        self.symbol = "n" if r.random() < 0.7 else batch
        self.single = self.symbol == 1  # a file for one sample at a time

    def whole(self, low, high):
        return int(self.r.integers(low, high + 1))

    def pick(self, items):
        return items[self.whole(0, len(items) - 1)]

    def add_input(self, name, batched):
        width = self.whole(1, 7)
        shape = [self.symbol if batched else 1, width]
        if not batched and self.r.random() < 0.4:
            shape = [width]
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        real = [self.batch if d == self.symbol and i == 0 and batched else d
                for i, d in enumerate(shape)]
        self.given[name] = self.r.normal(0, 2, real).astype(np.float32)
        self.values.append((name, width, batched))

    def add_ids(self, name):
        """Integers, and the rows of a table that they choose, concatenated."""
        places, rows, width = self.whole(1, 3), self.whole(2, 9), self.whole(1, 3)
        self.inputs.append(
            helper.make_tensor_value_info(name, TensorProto.INT64, [self.symbol, places]))
        self.given[name] = self.r.integers(0, rows, [self.batch, places])
        self.nodes += [
            helper.make_node("Gather", [self.constant([rows, width]), name], ["rows"], "rows"),
            helper.make_node("Flatten", ["rows"], ["row"], "row"),
        ]
        self.values.append(("row", places * width, True))

    def add_truths(self, name):
        """True and false, which choose between two values, or are 1 and 0."""
        before, width, batched = self.pick(self.values)
        shape = [self.symbol, width]
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.BOOL, shape))
        self.given[name] = self.r.random([self.batch, width]) < 0.5
        if self.r.random() < 0.5:
            self.node("Cast", [name], width, True, to=TensorProto.FLOAT)
        else:
            other = self.pick([v for v in self.values if v[1] == width])
            self.node("Where", [name, before, other[0]], width, True)

    def add_whole(self, name):
        """A second input of int64: a mask that is computed with, or ids of tables."""
        if self.r.random() < 0.4:
            return self.add_further_ids(name)
        width = self.pick(self.values)[1]
        self.inputs.append(
            helper.make_tensor_value_info(name, TensorProto.INT64, [self.symbol, width]))
        self.given[name] = self.r.integers(0, 3, [self.batch, width])
        kind = self.whole(0, 4)
        if kind == 0:
            return self.node("Cast", [name], width, True, to=TensorProto.FLOAT)
        if kind == 1:  # as exporters write 1 - mask
            self.nodes += [helper.make_node("Sub", [self.number(1), name], [f"{name} less"]),
                           helper.make_node("Mul", [f"{name} less", self.number(-3)],
                                            [f"{name} far"])]
            return self.node("Cast", [f"{name} far"], width, True, to=TensorProto.FLOAT)
        test = f"{name} test"
        if kind == 2:
            self.nodes.append(helper.make_node("Cast", [name], [test], to=TensorProto.BOOL))
        else:
            op = self.pick(("Equal", "Greater", "LessOrEqual"))
            self.nodes.append(helper.make_node(op, [name, self.number(1)], [test]))
        same = [v for v in self.values if v[1] == width]
        self.node("Where", [test, self.pick(same)[0], self.pick(same)[0]], width, True)

    def add_further_ids(self, name):
        """Rows of one table or of two of other sizes, one id a sample or several."""
        places, width = self.whole(0, 3), self.whole(1, 3)
        tables = [self.whole(2, 9) for _ in range(self.whole(1, 2))]
        shape = [self.symbol, places] if places else [self.symbol]
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.INT64, shape))
        self.given[name] = self.r.integers(0, min(tables), [self.batch, places][:len(shape)])
        for i, rows in enumerate(tables):
            parts = [f"{name} rows {i}", f"{name} row {i}"]
            self.nodes += [
                helper.make_node("Gather", [self.constant([rows, width]), name], parts[:1]),
                helper.make_node("Flatten", parts[:1], parts[1:]),
            ]
            self.values.append((parts[1], max(places, 1) * width, True))

    def number(self, n):
        name = f"n{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(n, np.int64), name))
        return name

    def constant(self, shape):
        name = f"w{len(self.constants)}"
        self.constants.append(
            numpy_helper.from_array(self.r.normal(0, 1, shape).astype(np.float32), name))
        return name

    def node(self, op, inputs, width, batched, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], f"node {name}", **attributes))
        self.values.append((name, width, batched))

    def grow(self):
        name, width, batched = self.pick(self.values)
        kind = self.whole(0, 7 if self.single else 5)
        if kind == 0:
            self.node(self.pick(ACTIVATIONS), [name], width, batched)
        elif kind == 1:
            out = self.whole(1, 7)
            self.node("MatMul", [name, self.constant([width, out])], out, batched)
        elif kind == 2:
            same = [v for v in self.values if v[1] == width]
            other = self.pick(same)
            self.node(self.pick(("Add", "Mul", "Sub", "Max")), [name, other[0]], width,
                      batched or other[2])
        elif kind == 3:
            self.node("Identity", [name], width, batched)
        elif kind == 4:
            self.branch(name, width, batched)
        elif kind == 6 and batched:
            self.branch(name, width, batched, self.largest(name))
        elif kind == 7:
            least = f"least{len(self.nodes)}"
            self.nodes.append(helper.make_node("ReduceMin", [name], [least], keepdims=0))
            other = self.pick([v for v in self.values if v[1] == width])
            self.node("Clip", [other[0], least], width, batched or other[2])
        elif batched:
            others = [v for v in self.values if v[2]]
            other = self.pick(others)
            self.node("Concat", [name, other[0]], width + other[1], True, axis=1)

    def largest(self, name):
        """True if a value of the sample is above a half."""
        asked, half = f"asked{len(self.nodes)}", f"half{len(self.nodes)}"
        self.constants.append(numpy_helper.from_array(np.array(0.5, np.float32), half))
        self.nodes += [helper.make_node("ReduceMax", [name], [f"{asked} most"], axes=[1]),
                       helper.make_node("Greater", [f"{asked} most", half], [asked])]
        return asked

    def branch(self, name, width, batched, asked=None):
        """An If whose condition comes from the file or the sample: two functions of a value, with
        the same names."""
        graphs = [
            helper.make_graph(
                [helper.make_node(self.pick(ACTIVATIONS), [name], ["inner"])], "g", [],
                [helper.make_tensor_value_info("inner", TensorProto.FLOAT, None)])
            for _ in range(2)]
        if asked is None:
            asked = f"asked{len(self.nodes)}"
            self.constants.append(numpy_helper.from_array(np.array(self.r.random() < 0.5), asked))
        self.node("If", [asked], width, batched, then_branch=graphs[0], else_branch=graphs[1])

    def finish(self):
        computed = {n.output[0] for n in self.nodes}
        batched = [v for v in self.values if v[2] and v[0] in computed]
        rest = [v for v in self.values if v[0] in computed]
        if not batched:
            return None
        outputs = [self.pick(batched)]
        for _ in range(self.whole(0, 2)):
            more = self.pick(rest)
            if more[0] not in [v[0] for v in outputs]:
                outputs.append(more)
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
                 for name, _, _ in outputs]
        graph = helper.make_graph(self.nodes, "random", self.inputs, infos, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 9
        return onnx.shape_inference.infer_shapes(model)


def drawn(seed):
    r = np.random.default_rng(seed)
    model = Model(r, int(r.integers(1, 5)))
    ids = r.random() < 0.2
    if ids:
        model.add_ids("x")
    else:
        model.add_input("x", True)
    for i in range(model.whole(0, 3)):
        model.add_input(f"more{i}", bool(r.random() < 0.6))
    for i in range(model.whole(-2, 1)):
        model.add_truths(f"truths{i}")
    for i in range(model.whole(-1, 2)):
        model.add_whole(f"whole{i}")
    for _ in range(model.whole(2, 10)):
        model.grow()
    if r.random() < 0.3 and model.inputs[-1].name.startswith("whole"):
        model.inputs.insert(0, model.inputs.pop())  # a mask may come before what it masks
    return model, model.finish()


def as_numbers(name, values, axes):
    """Booleans are 1 and 0; one id a sample may be a row of one."""
    values = values.astype(np.float32) if values.dtype == bool else values
    row = name.startswith("whole") and values.ndim == 1 and axes == 2
    return values[:, None] if row else values


def difference(net, model, truth):
    names = [port.name for port in net.inputs]
    if names == ["input"]:  # a row of layers, found by its pattern, has one of each
        model.given["input"] = model.given["x"]
        truth = {"output": next(iter(truth.values()))}
    given = {port.name: as_numbers(port.name, model.given[port.name],
                                   int(port.batched) + len(port.shape))
             for port in net.inputs}  # fmt: skip
    with net.session(max_batch=model.batch) as session:
        got = session.run(given)
    wanted = {port.name for port in net.outputs}
    if set(got) != wanted:
        return f"outputs {sorted(got)}, announced {sorted(wanted)}"
    for name, theirs in truth.items():
        if name not in got:
            return f"there is no output {name!r}"
        ours = np.asarray(got[name]).reshape(-1)
        if ours.size != theirs.size:
            return f"{name}: {ours.size} values, must be {theirs.shape}"
        if not np.allclose(ours, theirs.reshape(-1), rtol=2e-5, atol=2e-5 * max(
                1.0, float(np.abs(theirs).max(initial=0)))):
            return f"{name}: off by {np.abs(ours - theirs.reshape(-1)).max()}"
    return ""


def written_differs(net, model, truth):
    """Our own file in ONNX Runtime: the names of the first, and its values."""
    names = [port.name for port in net.inputs]
    try:
        file = net.save_bytes("onnx")
    except loom.UnsupportedError as error:
        print(f"not written: {error}")
        return ""
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    inputs = [port.name for port in session.get_inputs()]
    if sorted(inputs) != sorted(names):
        return f"written with the inputs {inputs}, read with {names}"
    outputs = [port.name for port in session.get_outputs()]
    if outputs != [port.name for port in net.outputs]:
        return f"written with the outputs {outputs}"
    given = {i.name: as_numbers(i.name, model.given[i.name], len(i.shape)).astype(TYPES[i.type])
             for i in session.get_inputs()}
    made = dict(zip(outputs, session.run(None, given)))
    for name, theirs in truth.items():
        ours = made[name if name in made else "output"]
        if ours.shape != theirs.shape:
            return f"written {name}: {ours.shape}, must be {theirs.shape}"
        near = 2e-5 * max(1.0, float(np.abs(theirs).max(initial=0)))
        if not np.allclose(ours, theirs, rtol=2e-5, atol=near):
            return f"written {name}: off by {np.abs(ours - theirs).max()}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    passed = failed = refused = several = 0
    for seed in range(args.seed * 100000, args.seed * 100000 + args.count):
        model, made = drawn(seed)
        if made is None:
            continue
        data = made.SerializeToString()
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        outputs = [o.name for o in session.get_outputs()]
        truth = dict(zip(outputs, session.run(None, model.given)))
        try:
            net = loom.Network.load(data, name="random.onnx")
        except loom.UnsupportedError as error:
            refused += 1
            print(f"refused {seed}: {error}")
            continue
        why = difference(net, model, truth) or written_differs(net, model, truth)
        several += len(net.inputs) > 1 or len(net.outputs) > 1
        if why:
            print(f"WRONG {seed}: {why}")
        failed += bool(why)
        passed += not why
    print(f"{several} with several inputs or outputs, {refused} refused")
    if refused > (passed + failed) / 2 or several < args.count / 4:
        print("too few were read")
        failed += 1
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

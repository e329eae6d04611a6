#!/usr/bin/env python3
"""Random recurrent layers with initial and last states, through the Python package and in ONNX
Runtime: RNN, GRU and LSTM in either direction and in both. Any state may be given or left out.
States have their batch second in the file, and first in a network.

  export LOOM_LIBRARY=build/dev/libloom.so PYTHONPATH=bindings/python
  tests/outside/onnx_states.py --count 200

The last line counts them. Exit status 1 when a value differs or a file is refused, or 77 when onnx,
onnxruntime or numpy is not there.
"""
import argparse
import sys

try:
    import numpy as np
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(f"onnx_states: {error}", file=sys.stderr)
    sys.exit(77)

import loom

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


class Case:
    def __init__(self, seed):
        r = np.random.default_rng(seed)
        self.op = ("RNN", "GRU", "LSTM")[r.integers(3)]
        self.batch, time, width, hidden = (int(r.integers(1, high)) for high in (5, 7, 6, 6))
        direction = ("forward", "reverse", "bidirectional")[r.integers(3)]
        ways = 1 + (direction == "bidirectional")
        gates = GATES[self.op] * hidden
        weights = [r.normal(0, 0.5, shape).astype(np.float32)
                   for shape in ([ways, gates, width], [ways, gates, hidden], [ways, 2 * gates])]
        states = ["h", "c"][:1 + (self.op == "LSTM")]
        given = [s for s in states if r.random() < 0.7]
        self.given = {"x": r.normal(0, 1, [self.batch, time, width]).astype(np.float32)}
        for name in given:
            self.given[name] = r.normal(0, 1, [ways, self.batch, hidden]).astype(np.float32)
        nodes = [
            helper.make_node("Transpose", ["x"], ["turned"], perm=[1, 0, 2]),
            helper.make_node(
                self.op, ["turned", "w", "r", "b", "", *(s if s in given else "" for s in states)],
                ["sequence", "last_h", "last_c"][:1 + len(states)], direction=direction,
                hidden_size=hidden, **({"linear_before_reset": 1} if self.op == "GRU" else {})),
            helper.make_node("Transpose", ["sequence"], ["y"], perm=[2, 0, 1, 3]),
        ]
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", time, width])]
        inputs += [helper.make_tensor_value_info(s, TensorProto.FLOAT, [ways, "n", hidden])
                   for s in given]
        outputs = ["y", *(f"last_{s}" for s in states if r.random() < 0.7)]
        infos = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs]
        constants = [numpy_helper.from_array(w, n) for w, n in zip(weights, "wrb")]
        graph = helper.make_graph(nodes, "states", inputs, infos, constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 9
        self.data = model.SerializeToString()

    def difference(self):
        peer = onnxruntime.InferenceSession(self.data, providers=["CPUExecutionProvider"])
        names = [o.name for o in peer.get_outputs()]
        truth = dict(zip(names, peer.run(None, self.given)))
        net = loom.Network.load(self.data, name="states.onnx")
        given = {n: v if n == "x" else np.moveaxis(v, 1, 0) for n, v in self.given.items()}
        if [port.name for port in net.inputs] == ["input"]:  # a layer, found by its pattern
            got = {"y": net.predict(given["x"])}
        else:
            with net.session(max_batch=self.batch) as session:
                got = session.run(given)
            if set(got) != set(names):
                return f"outputs {sorted(got)}, must be {sorted(names)}"
        for name, ours in got.items():
            theirs = truth[name] if name == "y" else np.moveaxis(truth[name], 1, 0)
            if ours.size != theirs.size:
                return f"{name}: {ours.shape}, must be {theirs.shape}"
            off = np.abs(np.asarray(ours).reshape(-1) - theirs.reshape(-1)).max()
            if not off <= 2e-5:
                return f"{name}: off by {off}"
        return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    passed = failed = 0
    for seed in range(args.seed * 100000, args.seed * 100000 + args.count):
        case = Case(seed)
        try:
            why = case.difference()
        except loom.LoomError as error:
            why = str(error)
        if why:
            print(f"WRONG {seed}, {case.op} of {sorted(case.given)}: {why}")
        failed += bool(why)
        passed += not why
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""One operator of com.microsoft under test: inputs, a node, and the results of ONNX Runtime."""

import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from onnx_graph import Random, type_of


class Skip(Exception):
    """ONNX Runtime does not run the case on a CPU."""


class Case:
    def __init__(self, r, rtol=1e-4, atol=1e-5):
        self.r, self.rtol, self.atol = r, rtol, atol
        self.inputs, self.initializers, self.nodes, self.outputs = [], [], [], []
        self.names = 0

    @staticmethod
    def drawn(maker, name, seed, i):
        return maker(Random((zlib.crc32(name.encode()), seed, i)))

    def scale(self, want):
        finite = want[np.isfinite(want)]
        return float(np.abs(finite).max()) if finite.size else 1.0

    def fresh(self):
        self.names += 1
        return f"v{self.names}"

    def input(self, values, dtype=None):
        """A value of a run, at times a constant."""
        values = np.asarray(values, dtype)
        if self.r.chance(0.25) and self.inputs:
            return self.constant(values)
        name = self.fresh()
        self.inputs.append((name, values))
        return name

    def constant(self, values, dtype=None):
        return self.tensor(numpy_helper.from_array(np.asarray(values, dtype), ""))

    def tensor(self, tensor):
        tensor.name = self.fresh()
        self.initializers.append(tensor)
        return tensor.name

    def node(self, op, inputs, outputs=(np.float32,), domain="com.microsoft", **attributes):
        """The node under test; an output of None is left out."""
        names = []
        for dtype in outputs:
            names.append("" if dtype is None else self.fresh())
            if dtype is not None:
                self.outputs.append((names[-1], dtype))
        kept = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(op, inputs, names, "under_test", domain=domain, **kept))

    def said(self):
        node = self.nodes[-1]
        words = [f"{a.name}={helper.get_attribute_value(a)}" for a in node.attribute]
        shapes = {n: v.shape for n, v in self.inputs}
        shapes.update({t.name: tuple(t.dims) for t in self.initializers})
        return " ".join(words) + " " + " ".join(str(shapes.get(n, "-")) for n in node.input)

    def model(self):
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes, "g", [value(n, type_of(v.dtype), list(v.shape)) for n, v in self.inputs],
            [value(n, type_of(d), None) for n, d in self.outputs], self.initializers)
        sets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=sets)
        model.ir_version = 10
        return model

    def reference(self):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        try:
            session = onnxruntime.InferenceSession(
                self.model().SerializeToString(), options, providers=["CPUExecutionProvider"])
            return session.run(None, dict(self.inputs))
        except Exception as error:  # pylint: disable=broad-except
            raise Skip(str(error)[:200]) from error

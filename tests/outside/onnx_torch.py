"""An ONNX graph in PyTorch, in the precision of its parameters, for onnx_torch_training.py.

It shares no code with Loom. Batch norms use the statistics of the batch, dropout keeps everything.
Operators are in onnx_torch_ops.py and onnx_torch_windows.py; an unknown one is refused with its
name. Integers and booleans keep their types; each floating-point type becomes `dtype`.
"""
import numpy as np
import onnx
import torch
from onnx import numpy_helper

OPERATORS = {}
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class Unsupported(Exception):
    pass


def operator(*names):
    def add(function):
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return add


class Call:
    """One node under way: its attributes, and the parts of the graph that its function needs."""

    def __init__(self, module, node, outer):
        self.module, self.node, self.outer = module, node, outer
        self.attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        self.opset, self.dtype = module.opset, module.dtype
        self.outputs = len(node.output)

    def get(self, name, otherwise=None):
        value = self.attributes.get(name, otherwise)
        return value.decode() if isinstance(value, bytes) else value

    def tensor(self, proto):
        return to_torch(proto, self.dtype)


def to_torch(proto, dtype):
    values = torch.from_numpy(np.array(numpy_helper.to_array(proto)))
    return values.to(dtype) if values.dtype in FLOATS else values


class Graph(torch.nn.Module):
    """The first `outputs` of a model. `weights` are the initializers that train, by name."""

    def __init__(self, model, trains, dtype):
        super().__init__()
        self.graph, self.dtype = model.graph, dtype
        self.all_branches = False  # an If depends on the branch that it does not take, too
        self.opset = max(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
        self.constants = {t.name: to_torch(t, dtype) for t in model.graph.initializer}
        self.weights = {n: self.constants[n].clone().requires_grad_() for n in trains}
        self.inputs = [v.name for v in model.graph.input if v.name not in self.constants]

    def parameters(self, recurse=True):
        return iter(self.weights.values())

    def forward(self, inputs):
        values = {**self.constants, **self.weights}
        values.update({n: x.to(self.dtype) if x.dtype in FLOATS else x for n, x in inputs.items()})
        return self.run(self.graph, values)

    def run(self, graph, values):
        """The outputs of a graph; `values` are the outer values, and those that it computes."""
        for tensor in graph.initializer:
            values.setdefault(tensor.name, to_torch(tensor, self.dtype))
        for node in graph.node:
            if node.op_type not in OPERATORS or node.domain not in ("", "ai.onnx"):
                raise Unsupported(f"{node.domain or 'ai.onnx'}.{node.op_type}")
            inputs = [values[n] if n else None for n in node.input]
            made = OPERATORS[node.op_type](Call(self, node, values), *inputs)
            made = made if isinstance(made, (tuple, list)) else (made,)
            values.update((n, v) for n, v in zip(node.output, made) if n)
        return [values[v.name] for v in graph.output]

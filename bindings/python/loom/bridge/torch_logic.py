"""Rules for PyTorch's comparisons, for logic, and for what chooses between two tensors."""

from typing import Any

import numpy as np

from .torch_graph import Graph, rule


def _is_truth(value: Any) -> bool:
    """Whether a tensor holds booleans."""
    return hasattr(value, "meta") and str(value.meta["val"].dtype) == "torch.bool"


def truth(g: Graph, value: Any) -> Any:
    """A condition, computed or constant, as booleans."""
    if value in g.names:
        return value
    return g.plan.constant(g.array(value).astype(bool))


def real(g: Graph, value: Any) -> Any:
    """A tensor that arithmetic can read: PyTorch counts True as 1, and joins integers to floats."""
    if _is_truth(value):
        return g.op("Cast", truth(g, value), to=1)
    if value in g.arrays and not g.arrays[value].is_floating_point():
        return g.plan.constant(g.array(value).astype(np.float64), parameter=False)
    return value


_COMPARISONS = {
    "gt": "Greater",
    "ge": "GreaterOrEqual",
    "lt": "Less",
    "le": "LessOrEqual",
    "eq": "Equal",
    "ne": "Equal",
}
for _torch_name, _onnx_name in _COMPARISONS.items():

    @rule(f"aten.{_torch_name}.Scalar", f"aten.{_torch_name}.Tensor")
    def _(g: Graph, a: Any, b: Any, _name: str = _onnx_name) -> str:
        found = g.op(_name, real(g, a), real(g, b))
        return g.op("Not", found) if ".ne." in str(g.node.target) else found


_LOGIC = {
    "logical_and": "And",
    "logical_or": "Or",
    "logical_xor": "Xor",
    "bitwise_and": "And",
    "bitwise_or": "Or",
    "bitwise_xor": "Xor",
    "__and__": "And",
    "__or__": "Or",
    "__xor__": "Xor",
}
for _torch_name, _onnx_name in _LOGIC.items():

    @rule(f"aten.{_torch_name}.default", f"aten.{_torch_name}.Tensor")
    def _(g: Graph, a: Any, b: Any, _name: str = _onnx_name) -> str:
        if not (_is_truth(a) and _is_truth(b)):
            raise NotImplementedError("logic of values that are not boolean")
        return g.op(_name, truth(g, a), truth(g, b))


@rule("aten.logical_not.default", "aten.bitwise_not.default")
def _(g: Graph, a: Any) -> str:
    if not _is_truth(a):
        raise NotImplementedError("logic of values that are not boolean")
    return g.op("Not", truth(g, a))


@rule("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf")
def _(g: Graph, condition: Any, x: Any, y: Any) -> str:
    return g.op("Where", truth(g, condition), real(g, x), real(g, y))


@rule("aten.masked_fill.Scalar", "aten.masked_fill_.Scalar", "aten.masked_fill.Tensor")
def _(g: Graph, x: Any, mask: Any, value: Any) -> str:
    return g.op("Where", truth(g, mask), value, x)

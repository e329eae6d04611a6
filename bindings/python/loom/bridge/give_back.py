"""Networks back as modules of PyTorch: chains of layers that torch.nn has, with the weights of now.

Network.to_torch() calls it. Every field of a layer is read; one that torch.nn cannot follow is an
error that names the cell, so that what is given back computes what the network does.
"""

from importlib import import_module
from typing import Any, Callable, Dict, List

from ..errors import UnsupportedError

# Of loom -> how torch.nn makes it.
_ACTIVATIONS: Dict[str, Callable[[Any], Any]] = {
    "relu": lambda nn: nn.ReLU(),
    "leaky_relu": lambda nn: nn.LeakyReLU(0.01),
    "silu": lambda nn: nn.SiLU(),
    "gelu_erf": lambda nn: nn.GELU(),
    "gelu_tanh": lambda nn: nn.GELU(approximate="tanh"),
    "tanh": lambda nn: nn.Tanh(),
    "sigmoid": lambda nn: nn.Sigmoid(),
    "mish": lambda nn: nn.Mish(),
    "softplus": lambda nn: nn.Softplus(),
    "elu": lambda nn: nn.ELU(),
    "hard_swish": lambda nn: nn.Hardswish(),
}
# Fields that a rule below follows; others have to have the value that changes nothing.
_NEUTRAL = {"disabled": False, "soft_cap": 0.0, "activation": "linear", "padding_id": -1,
            "scale": 1.0, "sparse": False, "variant": "standard", "temperature": 1.0, "rows": 0,
            "cols": 0, "form": "elementwise", "levels": [], "mask": [], "noise": False,
            "hard": False}  # fmt: skip
# Fields of variants that the neutral one above does not look at.
_OF_VARIANTS = {"alpha", "kappa", "target_entropy"}
_NONE = object()


class _Cell:
    """A cell of a network's description, with its parameters as tensors of torch."""

    def __init__(self, network: Any, cell: Dict[str, Any], torch: Any) -> None:
        self.network, self.cell, self.torch, self.used = network, cell, torch, {"at", "type"}
        self.where = f"({', '.join(str(i) for i in cell['at'])})"

    def refuse(self, why: str) -> UnsupportedError:
        return UnsupportedError(
            f"cell {self.where}, {self.cell['type']}: {why}; save the network as ONNX instead"
        )

    def field(self, name: str) -> Any:
        self.used.add(name)
        return self.cell[name]

    def check(self) -> None:
        """Every field was read, or changes nothing."""
        for name, value in self.cell.items():
            if name in self.used or name in _OF_VARIANTS:
                continue
            if value != _NEUTRAL.get(name, _NONE):
                raise self.refuse(f"torch.nn has nothing for '{name}': {value}")

    def fill(self, parameter: Any, name: str) -> None:
        values = self.network.parameter(f"{self.where}/{name}")
        with self.torch.no_grad():
            parameter.copy_(self.torch.tensor(values).reshape(parameter.shape))


def _dense(c: _Cell, nn: Any) -> List[Any]:
    made = nn.Linear(c.field("in"), c.field("out"), bias=c.field("bias"))
    c.fill(made.weight, "weight")
    if made.bias is not None:
        c.fill(made.bias, "bias")
    activation = c.field("activation")
    if activation == "linear":
        return [made]
    if activation not in _ACTIVATIONS:
        raise c.refuse(f"torch.nn has no activation '{activation}'")
    return [made, _ACTIVATIONS[activation](nn)]


def _layer_norm(c: _Cell, nn: Any) -> List[Any]:
    made = nn.LayerNorm(c.field("width"), eps=c.field("eps"))
    c.fill(made.weight, "gamma")
    c.fill(made.bias, "beta")
    return [made]


def _embedding(c: _Cell, nn: Any) -> List[Any]:
    made = nn.Embedding(c.field("vocab"), c.field("width"))
    c.fill(made.weight, "weight")
    return [made]


_RULES: Dict[str, Callable[[_Cell, Any], List[Any]]] = {
    "Dense": _dense,
    "LayerNorm": _layer_norm,
    "Embedding": _embedding,
    "Softmax": lambda c, nn: [nn.Softmax(dim=-1)],
    "Flatten": lambda c, nn: [nn.Flatten(start_dim=c.field("first"))],
    "Dropout": lambda c, nn: [nn.Dropout(c.field("rate"))],
}


def to_torch(network: Any, description: Dict[str, Any]) -> Any:
    torch: Any = import_module("torch")
    if network.info["normalizes"]:
        raise UnsupportedError(
            "the network shifts and scales its inputs, which is no layer; save it as ONNX instead"
        )
    known = {"loom", "grid", "input", "cells", "classes", "dtype", "ids"}
    more = sorted(set(description) - known)
    if more:
        raise UnsupportedError(f"a network with {', '.join(more)} is no chain of layers")
    layers: List[Any] = []
    for each in description["cells"]:
        cell = _Cell(network, each, torch)
        if cell.cell["type"] not in _RULES:
            raise cell.refuse(f"it has no rule; those are {', '.join(_RULES)}")
        for link in ("link", "shared_with", "share", "feedback", "children"):
            if each.get(link):
                raise cell.refuse(f"it has '{link}', and a chain has none")
        layers += _RULES[cell.cell["type"]](cell, torch.nn)
        cell.check()
    return torch.nn.Sequential(*layers).eval()

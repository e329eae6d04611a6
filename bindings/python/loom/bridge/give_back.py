"""Networks back as modules of PyTorch, and chains as models of Keras, with the weights of now.

Network.to_torch() and to_keras() call it. Every field of a layer is read; one that the framework
cannot follow is an error that names the cell, so that what is given back computes what the network
does.
"""

from importlib import import_module
from typing import Any, Callable, Dict, List

import numpy as np

from ..errors import UnsupportedError
from .torch_free import free_standing
from .torch_state import give_into

# Fields that a rule below follows; others have to have the value that changes nothing.
_NEUTRAL = {"disabled": False, "soft_cap": 0.0, "activation": "linear", "padding_id": -1,
            "scale": 1.0, "sparse": False, "variant": "standard", "temperature": 1.0, "rows": 0,
            "cols": 0, "form": "elementwise", "levels": [], "mask": [], "noise": False,
            "hard": False}  # fmt: skip
# Fields of variants that the neutral one above does not look at.
_OF_VARIANTS = {"alpha", "kappa", "target_entropy"}
_NONE = object()


class _Cell:
    """A cell of a network's description, with its parameters. who: the framework, for messages."""

    def __init__(self, network: Any, cell: Dict[str, Any], framework: Any, who: str) -> None:
        self.network, self.cell, self.who, self.used = network, cell, who, {"at", "type"}
        self.torch = framework
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
                raise self.refuse(f"{self.who} has nothing for '{name}': {value}")

    def value(self, name: str) -> Any:
        """A parameter as an array."""
        return np.asarray(self.network.parameter(f"{self.where}/{name}"), dtype=np.float32)

    def fill(self, parameter: Any, name: str) -> None:
        with self.torch.no_grad():
            parameter.copy_(self.torch.tensor(self.value(name)).reshape(parameter.shape))


# ---- Keras ---------------------------------------------------------------------------------------

_KERAS_ACTIVATIONS = {
    "linear": "linear",
    "relu": "relu",
    "silu": "silu",
    "gelu_erf": "gelu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "mish": "mish",
    "softplus": "softplus",
    "elu": "elu",
}


def _keras_dense(c: _Cell, layers: Any) -> Any:
    activation = c.field("activation")
    if activation not in _KERAS_ACTIVATIONS:
        raise c.refuse(f"Keras has no activation '{activation}'")
    name, biased = _KERAS_ACTIVATIONS[activation], c.field("bias")
    made = layers.Dense(c.field("out"), name, use_bias=biased)
    made.build((None, c.field("in")))
    made.set_weights([c.value("weight").T, *([c.value("bias")] if biased else [])])
    return made


def _keras_layer_norm(c: _Cell, layers: Any) -> Any:
    made = layers.LayerNormalization(epsilon=c.field("eps"))
    made.build((None, c.field("width")))
    made.set_weights([c.value("gamma"), c.value("beta")])
    return made


def _keras_embedding(c: _Cell, layers: Any) -> Any:
    made = layers.Embedding(c.field("vocab"), c.field("width"))
    made.build((None,))
    made.set_weights([c.value("weight")])
    return made


def _keras_flatten(c: _Cell, layers: Any) -> Any:
    if c.field("first") != 1:
        raise c.refuse("Keras flattens all axes but the batch")
    return layers.Flatten()


_KERAS_RULES: Dict[str, Callable[[_Cell, Any], Any]] = {
    "Dense": _keras_dense,
    "LayerNorm": _keras_layer_norm,
    "Embedding": _keras_embedding,
    "Softmax": lambda c, layers: layers.Softmax(),
    "Flatten": _keras_flatten,
    "Dropout": lambda c, layers: layers.Dropout(c.field("rate")),
}


# ---- chains --------------------------------------------------------------------------------------


def _cells_of(network: Any, description: Dict[str, Any], framework: Any, who: str) -> List[_Cell]:
    """The cells of a chain. Raises UnsupportedError for other grids."""
    if network.info["normalizes"]:
        raise UnsupportedError(
            "the network shifts and scales its inputs, which is not a layer; "
            "save it as ONNX instead"
        )
    known = {"loom", "grid", "input", "cells", "classes", "dtype", "ids", "state_dict"}
    more = sorted(set(description) - known)
    if more:
        raise UnsupportedError(f"a network with {', '.join(more)} is not a chain of layers")
    cells = [_Cell(network, each, framework, who) for each in description["cells"]]
    for cell in cells:
        for link in ("link", "shared_with", "share", "feedback", "children"):
            if cell.cell.get(link):
                raise cell.refuse(f"it has '{link}', and a chain has none")
    return cells


def _rule_of(cell: _Cell, rules: Dict[str, Any]) -> Any:
    if cell.cell["type"] not in rules:
        raise cell.refuse(f"it has no rule; those are {', '.join(rules)}")
    return rules[cell.cell["type"]]


def to_torch(network: Any, description: Dict[str, Any], into: Any = None) -> Any:
    """See Network.to_torch()."""
    source = getattr(network.plan, "torch", None)
    names = description.pop("state_dict", {}) or getattr(source, "names", {})
    if source is not None and source.problem:
        why = f"the weights cannot go back into the module: {source.problem}"
        raise UnsupportedError(f"{why}; save the network as ONNX instead")
    if into is None and source is not None:
        into = source.target
    if into is not None and not names and source is None:
        raise UnsupportedError(
            "the network was not absorbed from a PyTorch module, so it does not know the names of "
            "the module's weights; call to_torch() without one"
        )
    return free_standing(network, description) if into is None else give_into(network, into, names)


def to_keras(network: Any, description: Dict[str, Any]) -> Any:
    keras: Any = import_module("keras")
    ids = network.info["takes_ids"]
    shape = network.info["input"]
    layers: List[Any] = [keras.Input(shape, dtype="int32" if ids else "float32")]
    for cell in _cells_of(network, description, keras, "Keras"):
        layers.append(_rule_of(cell, _KERAS_RULES)(cell, keras.layers))
        cell.check()
    return keras.Sequential(layers)

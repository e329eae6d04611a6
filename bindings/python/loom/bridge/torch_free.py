"""Free-standing modules of PyTorch: a network's grid as a torch.fx.GraphModule.

Each layer becomes calls of PyTorch that compute what it computes; torch_layers.py and torch_maps.py
have a rule for each kind. The module needs no Loom: `module.code` is its forward(). Parameters keep
their names: "(0, 0, 1, 0)/weight" is "cell_0_0_1_0.weight".

Invariant: every field of a layer is read by its rule. One that is not, and is not at its default,
is an error that names the layer and the field.
"""

import dataclasses
import io
import keyword
import re
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, cast

import numpy as np

from .. import layers as kinds
from .._layer import Layer as LayerClass
from ..errors import UnsupportedError

Rule = Callable[["Builder", "Layer", List["Value"]], Any]
RULES: Dict[str, Rule] = {}
# Keys of a description that are not fields of a layer.
_FRAME = {"at", "type", "disabled", "dtype", "shared_with", "link", "frozen", "children", "from"}
_WIRING = {"inputs", "nodes", "outputs", "name"}
BATCH = 2  # of the values that are shown to rules


def rule(*types: str) -> Callable[[Rule], Rule]:
    def enter(made: Rule) -> Rule:
        RULES.update(dict.fromkeys(types, made))
        return made

    return enter


def _defaults() -> Dict[str, Dict[str, Any]]:
    """The default values of the fields of each kind of layer."""
    out: Dict[str, Dict[str, Any]] = {}
    for made in vars(kinds).values():
        if not (isinstance(made, type) and issubclass(made, LayerClass) and made.TYPE):
            continue
        out[made.TYPE] = {
            made._NAMES[f.name]: (
                list(f.default) if isinstance(f.default, tuple) else f.default
            )
            for f in dataclasses.fields(cast(Any, made))
            if f.name in made._NAMES
        }
    return out


class Value(NamedTuple):
    """A value of the graph: its node, and a sample of it, whose shape rules read."""

    node: Any
    shown: Any

    @property
    def shape(self) -> List[int]:
        return [int(n) for n in self.shown.shape]


class Layer:
    """A layer of a description: its fields, of which every one has to be read."""

    def __init__(self, builder: "Builder", fields: Dict[str, Any], path: str, owner: str) -> None:
        self.builder, self.fields, self.path, self.owner = builder, fields, path, owner
        self.type = str(fields["type"])
        self._read = set(_FRAME) | (_WIRING if self.type == "Graph" else {"name"})

    def __getitem__(self, field: str) -> Any:
        self._read.add(field)
        return self.fields[field]

    def skip(self, *fields: str) -> None:
        """Fields that do not change what is computed here."""
        self._read.update(fields)

    def per_axis(self, field: str, count: int) -> List[int]:
        value = list(self[field])
        return value * count if len(value) == 1 else value

    def refuse(self, why: str) -> UnsupportedError:
        return UnsupportedError(f"cell {self.path}, {self.type}: {why}")

    def refuse_field(self, field: str, why: str) -> UnsupportedError:
        return self.refuse(f"'{field}' is {self.fields[field]!r}: {why}")

    def check(self) -> None:
        default = self.builder.defaults.get(self.type, {})
        for name, value in self.fields.items():
            if name not in self._read and value != default.get(name, dataclasses.MISSING):
                raise self.refuse_field(name, "PyTorch has no form for it")

    # ---- parameters ------------------------------------------------------------------------------

    def values(self, name: str) -> Any:
        return np.asarray(self.builder.network.parameter(f"{self.owner}/{name}"), dtype=np.float32)

    def parameter(self, name: str, *shape: int, trains: bool = True) -> Value:
        return self.builder.parameter(self, name, shape, trains)

    def has(self, name: str) -> bool:
        return f"{self.owner}/{name}" in self.builder.parameters


class Builder:
    """The graph on its way."""

    def __init__(self, network: Any, description: Dict[str, Any]) -> None:
        self.torch: Any = import_module("torch")
        self.functions: Any = import_module("torch.nn.functional")
        self.network, self.description = network, description
        self.graph = import_module("torch.fx").Graph()
        self.root = self.torch.nn.Module()
        self.parameters = {name for name, _, _ in network.parameters()}
        self.defaults = _defaults()
        self.inputs: Dict[str, Value] = {}
        self._held: Dict[str, Any] = {}  # parameters, buffers and modules by their targets
        self._alike: Dict[str, Any] = {}  # of modules: what they were made with
        self._frozen: Dict[str, List[str]] = {}

    # ---- nodes -----------------------------------------------------------------------------------

    def __call__(self, function: Any, *args: Any, **options: Any) -> Value:
        """A call of a function; values may be anywhere in its arguments."""
        node = self.graph.call_function(function, _nodes(args), _nodes(options))
        with self.torch.no_grad():
            return Value(node, function(*_shown(args), **_shown(options)))

    def parts(self, values: Value) -> List[Value]:
        """Each result of a call that returns several."""
        getitem = import_module("operator").getitem
        return [self(getitem, values, i) for i in range(len(values.shown))]

    def reshape(self, x: Value, *sample: int) -> Value:
        """The values of each sample in another shape."""
        return self(self.torch.reshape, x, (-1, *sample))

    def batch_of(self, x: Value) -> Value:
        node = self.graph.call_method("size", (x.node, 0))
        return Value(node, x.shown.size(0))

    @property
    def training(self) -> Value:
        """Whether the module is in training."""
        return Value(self.graph.get_attr("training"), False)

    # ---- what the module holds -------------------------------------------------------------------

    def parameter(self, c: Layer, name: str, shape: Sequence[int], trains: bool) -> Value:
        target = _target(f"{c.owner}/{name}")
        if target not in self._held:
            tensor = self.torch.from_numpy(c.values(name).copy())
            tensor = tensor.reshape(shape) if shape else tensor
            if trains:
                made = self.torch.nn.Parameter(tensor)
                made.requires_grad_(self.trains(c.owner, name))
                self._put(target, made)
            else:
                self._put(target, tensor)
        held = self._held[target]
        if shape and tuple(held.shape) != tuple(shape):
            raise c.refuse(f"it shares '{name}' with a layer that has it in another shape")
        return Value(self.graph.get_attr(target), held.detach())

    def trains(self, owner: str, name: str) -> bool:
        cell, _, rest = f"{owner}/{name}".partition("/")
        return not any(fnmatchcase(rest, pattern) for pattern in self._frozen.get(cell, ()))

    def constant(self, c: Layer, name: str, array: Any) -> Value:
        """Numbers that do not train, as a buffer."""
        target = _target(f"{c.path}/{name}")
        if target not in self._held:
            self._put(target, self.torch.from_numpy(np.ascontiguousarray(array)))
        return Value(self.graph.get_attr(target), self._held[target])

    def module(self, c: Layer, made: Any, x: Sequence[Any], parameters: Dict[str, str]) -> Value:
        """A call of a module of torch.nn. parameters: its own names, and the layer's."""
        target = _target(c.owner)
        alike = {k: v for k, v in c.fields.items() if k not in _FRAME and k != "name"}
        if target not in self._held:
            own = {**dict(made.named_parameters()), **dict(made.named_buffers())}
            with self.torch.no_grad():
                for name, of_layer in parameters.items():
                    values = self.torch.from_numpy(c.values(of_layer).copy())
                    own[name].copy_(values.reshape(own[name].shape))
                    if own[name].requires_grad:
                        own[name].requires_grad_(self.trains(c.owner, of_layer))
            self._put(target, made.eval())
            self._alike[target] = alike
        if self._alike[target] != alike:
            raise c.refuse("it shares weights with a layer of other fields")
        node = self.graph.call_module(target, _nodes(tuple(x)))
        with self.torch.no_grad():
            return Value(node, self._held[target](*_shown(tuple(x))))

    def _put(self, target: str, made: Any) -> None:
        *path, last = target.split(".")
        at = self.root
        for name in path:
            if not hasattr(at, name):
                at.add_module(name, self.torch.nn.Module())
            at = getattr(at, name)
        if isinstance(made, self.torch.nn.Module):
            at.add_module(last, made)
        elif isinstance(made, self.torch.nn.Parameter):
            at.register_parameter(last, made)
        else:
            at.register_buffer(last, made)
        self._held[target] = made

    # ---- the walk --------------------------------------------------------------------------------

    def run(self) -> Any:
        known = {"loom", "grid", "input", "cells"}
        if extra := sorted(set(self.description) - known):
            raise UnsupportedError(f"a description with {', '.join(extra)} has no form in PyTorch")
        value = before = self._first_input()
        seen: Dict[Any, Value] = {}
        outputs = [value]
        for cell in self.description["cells"]:
            at = f"({', '.join(str(i) for i in cell['at'])})"
            self._frozen[at] = list(cell.get("frozen", []))
            if cell["disabled"]:
                continue
            x, skip = value, before
            if "link" in cell:
                if cell["link"]["feedback"]:
                    raise UnsupportedError(
                        f"cell {at}, {cell['type']}: 'link' is a feedback link, which needs the "
                        "pass before; a module has one pass"
                    )
                other = seen[tuple(cell["link"]["from"])]
                x, skip = (x, other) if _adds_skip(cell) else (other, skip)
            shared = cell.get("shared_with")
            owner = at if shared is None else f"({', '.join(str(i) for i in shared)})"
            outputs = self.layer(cell, at, owner, [x], skip)
            before, value = x, outputs[0]
            seen[tuple(cell["at"])] = value
        results = tuple(o.node for o in outputs)
        self.graph.output(results[0] if len(results) == 1 else results)
        module = import_module("torch.fx").GraphModule(self.root, self.graph)
        return module.eval()

    def layer(
        self, fields: Dict[str, Any], path: str, owner: str, xs: List[Value], skip: Value
    ) -> List[Value]:
        """All outputs of a layer. skip: what a Residual without children adds."""
        c = Layer(self, fields, path, owner)
        if fields.get("disabled"):
            return xs[:1]
        if c.type not in RULES:
            raise c.refuse("PyTorch has no form for this kind of layer")
        made = RULES[c.type](self, c, [xs[0], skip] if _adds_skip(fields) else xs)
        c.check()
        return made if isinstance(made, list) else [made]

    def child(self, c: Layer, i: int, x: Value, skip: Value) -> Value:
        return self.layer(c.fields["children"][i], f"{c.path}/{i}", f"{c.owner}/{i}", [x], skip)[0]

    def sequence(self, c: Layer, x: Value) -> Value:
        value = before = x
        for i, child in enumerate(c.fields["children"]):
            made = self.child(c, i, value, before)
            if not child["disabled"]:
                before = value
            value = made
        return value

    def _first_input(self) -> Value:
        """Placeholders of all inputs; gives the first, as the layers read it."""
        for port in self.network.inputs:
            shape = [BATCH, *port.shape] if port.batched else list(port.shape)
            kind = self.torch.int64 if port.ids else self.torch.float32
            name = re.sub(r"\W", "_", port.name)
            name = f"{name}_" if not name.isidentifier() or keyword.iskeyword(name) else name
            shown = self.torch.zeros(shape, dtype=kind)
            self.inputs[port.name] = Value(self.graph.placeholder(name), shown)
        first = next(iter(self.inputs.values()))
        return self._normalized(first) if self.network.info["normalizes"] else first

    def _normalized(self, x: Value) -> Value:
        """(x - shift) scale, as training found them."""
        with np.load(io.BytesIO(self.network.save_bytes("npz"))) as held:
            arrays = [held[f"input/{name}"].reshape(x.shape[1:]) for name in ("shift", "scale")]
        buffers = []
        for name, array in zip(("shift", "scale"), arrays):
            self._put(f"input_{name}", self.torch.from_numpy(array.copy()))
            buffers.append(Value(self.graph.get_attr(f"input_{name}"), self._held[f"input_{name}"]))
        return self(self.torch.mul, self(self.torch.sub, x, buffers[0]), buffers[1])


def _adds_skip(fields: Dict[str, Any]) -> bool:
    return fields["type"] == "Residual" and not fields.get("children")


def _map(value: Any, of: Callable[[Value], Any]) -> Any:
    if isinstance(value, Value):
        return of(value)
    if isinstance(value, (tuple, list)):
        return type(value)(_map(v, of) for v in value)
    if isinstance(value, dict):
        return {k: _map(v, of) for k, v in value.items()}
    return value


def _nodes(value: Any) -> Any:
    return _map(value, lambda v: v.node)


def _shown(value: Any) -> Any:
    return _map(value, lambda v: v.shown)


def _target(path: str) -> str:
    """The name in the module for the path of a parameter."""
    cell, _, rest = path.partition("/")
    name = "cell_" + "_".join(re.findall(r"-?\d+", cell))
    return f"{name}.{rest.replace('/', '.')}" if rest else name


def free_standing(network: Any, description: Dict[str, Any]) -> Any:
    """A torch.fx.GraphModule in evaluation mode that computes what the network does."""
    from . import torch_layers, torch_maps  # noqa: F401  (they fill the table of rules)

    return Builder(network, description).run()


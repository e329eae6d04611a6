"""Which values of a network are which entries of a module's state_dict, and the way back.

The plan of a module is made a second time, of tensors in which no two numbers are equal. The
network that is made of that plan then tells where each number went: layers may transpose, cut, join
or reorder. A description keeps the result (docs/absorb.md), so files keep it too:

"state_dict": {"fc.weight": "[3, 4] (0, 0, 0, 0)/weight"}
"""

import hashlib
import re
import warnings
from importlib import import_module
from math import prod
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from ..errors import InvalidArgumentError, UnsupportedError

METADATA = "loom.state_dict"  # of ONNX files: the key that keeps it
# Marks are the floats below this one: no weight of a model is near it.
_TOP = 0x7F000000
_PIECE = re.compile(r"(\(.*?\)/[^\[]+)(?:\[(\d+):([\dx]*):([-\dx]*)\])?")


class Parameter(NamedTuple):
    """A parameter of a network."""

    path: str
    begin: int  # of its first value among all of the network
    size: int


class Marks:
    """Tensors in the place of what changes in training: parameters, and statistics of batches."""

    def __init__(self, module: Any, statistics: List[str]) -> None:
        self.torch: Any = import_module("torch")
        self.tensors: Dict[int, Any] = {}  # by the place of the source's tensor in memory
        self.names: Dict[str, Any] = {}  # entries of the state_dict: the source's tensor
        self.starts: Dict[str, int] = {}  # of an entry: its first mark
        self.aliases: Dict[str, str] = {}
        first: Dict[int, str] = {}
        buffers = dict(module.named_buffers())
        trained = [i for i in module.named_parameters(remove_duplicate=False) if i[1].requires_grad]
        for name, tensor in trained + [(name, buffers[name]) for name in statistics]:
            place = int(tensor.data_ptr())
            if place in first:
                self._alias(name, tensor, first[place])
                continue
            first[place] = name
            self.names[name], self.starts[name] = tensor, self.count
        self.base = _TOP - self.count
        for name, tensor in self.names.items():
            self.tensors[int(tensor.data_ptr())] = self._marked(name, tensor)

    @property
    def count(self) -> int:
        return sum(t.numel() for t in self.names.values())

    def _alias(self, name: str, tensor: Any, owner: str) -> None:
        other = self.names[owner]
        if tensor.shape != other.shape or tensor.stride() != other.stride():
            raise UnsupportedError(f"{name} and {owner} share memory in two layouts")
        self.aliases[name] = owner

    def _marked(self, name: str, tensor: Any) -> Any:
        start = self.base + self.starts[name]
        bits = np.arange(start, start + tensor.numel(), dtype=np.uint32)
        return self.torch.from_numpy(bits.view(np.float32)).reshape(tensor.shape)

    def of(self, tensor: Any) -> Any:
        """The tensor that replaces a tensor."""
        return self.tensors.get(int(tensor.data_ptr()), tensor)

    def found(self, network: Any) -> Tuple[Any, List[Parameter]]:
        """For each mark its place among all values of the network (-1: none), and the parameters
        of the network."""
        places, all_, at = np.full(self.count, -1, dtype=np.int64), [], 0
        for path, _, _ in network.parameters():
            values = np.ascontiguousarray(network.parameter(path), dtype=np.float32).ravel()
            which = values.view(np.uint32).astype(np.int64) - self.base
            known = np.flatnonzero((which >= 0) & (which < self.count))
            if (places[which[known]] >= 0).any() or len(set(which[known])) != len(known):
                raise UnsupportedError(f"{path} is a second copy of a parameter")
            places[which[known]] = at + known
            all_.append(Parameter(path, at, values.size))
            at += values.size
        return places, all_


def names_of(
    network: Any, marks: Marks, constants: Dict[str, Any], prefix: str = ""
) -> Dict[str, str]:
    """The `state_dict` of a description, from the network that was made of the marks.

    prefix: of the names in the module of the marks. constants: tensors that the module computes
    with and that do not train. They stay in the module, and their hashes tell another's apart.
    """
    places, parameters = marks.found(network)
    out: Dict[str, str] = {}
    for name, tensor in marks.names.items():
        start = marks.starts[name]
        own = places[start : start + tensor.numel()]
        if own.size and own.max() < 0:
            continue  # no output depends on it
        if (own < 0).any():
            raise UnsupportedError(f"the network has some values of {name}, not all")
        pieces = " + ".join(_pieces(own.reshape(tuple(tensor.shape)), parameters))
        out[name] = f"{list(tensor.shape)} {pieces}"
    cut = len(prefix)
    out.update({n: f"as {owner[cut:]}" for n, owner in marks.aliases.items() if owner in out})
    out.update({name: f"constant {hash_of(t)}" for name, t in constants.items()})
    return {name[cut:]: text for name, text in out.items()}


def hash_of(tensor: Any) -> str:
    values = np.ascontiguousarray(tensor.detach().cpu().double().numpy())
    return f"{list(values.shape)} {hashlib.sha256(values.tobytes()).hexdigest()[:16]}"


def _strides(own: Any) -> Optional[List[int]]:
    """Steps along each axis, if the places are a view of a row; None: they are not."""
    axes = [np.diff(own, axis=axis) for axis in range(own.ndim)]
    steps = [int(d.flat[0]) if d.size else 0 for d in axes]
    return steps if all((d == s).all() for d, s in zip(axes, steps)) else None


def _pieces(own: Any, parameters: List[Parameter]) -> Iterator[str]:
    """Views of parameters that one after the other are these places."""
    which = np.searchsorted([p.begin for p in parameters], own, side="right") - 1
    steps = _strides(own) if own.size and (which == which.flat[0]).all() else None
    if steps is not None:
        held = parameters[int(which.flat[0])]
        whole = steps == _dense(own.shape) and own.size == held.size
        extents = "x".join(map(str, own.shape))
        view = f"[{int(own.flat[0]) - held.begin}:{extents}:{'x'.join(map(str, steps))}]"
        yield held.path if whole else held.path + view
    elif own.size:
        for rows in _runs(own, which):
            yield from _pieces(rows, parameters)


def _dense(shape: Tuple[int, ...]) -> List[int]:
    """The steps of an array without gaps; 0 along extents of 1, which have none."""
    return [prod(shape[i + 1 :]) if n > 1 else 0 for i, n in enumerate(shape)]


def _runs(own: Any, which: Any) -> Iterator[Any]:
    """The places in parts along the first axis that is longer than 1."""
    if own.shape[0] == 1:
        yield from _runs(own[0], which[0])
        return
    count = own.shape[0]
    rows = np.diff(own.reshape(count, -1), axis=0)
    within = (rows == rows[:, :1]).all(axis=1)
    within &= (np.diff(which.reshape(count, -1), axis=0) == 0).all(axis=1)
    first = 0
    while first < count:
        last = first + 1
        while last < count and within[last - 1] and rows[last - 1, 0] == rows[first, 0]:
            last += 1
        part = own[first:last]
        if last - first == 1 and own.ndim > 1:
            part = part[0]
        elif _strides(part) is None:  # equal rows that are not views by themselves
            part, last = own[first], first + 1
        yield part
        first = last


# ---- back ----------------------------------------------------------------------------------------


def values_of(network: Any, text: str) -> Any:
    """The numbers that an entry names, in its shape."""
    shape, _, pieces = text.partition("] ")
    extents = [int(n) for n in shape[1:].split(",") if n.strip()]
    parts = []
    for piece in pieces.split(" + ") if prod(extents) else []:
        found = _PIECE.fullmatch(piece)
        if found is None:
            raise InvalidArgumentError(f"state_dict: '{piece}' is not a view of a parameter")
        path, offset, sizes, steps = found.groups()
        values = np.asarray(network.parameter(path), dtype=np.float32).ravel()
        if offset is not None:
            axes = [
                np.arange(int(n)) * int(step)
                for n, step in zip(sizes.split("x"), steps.split("x"))
                if n
            ]
            at: Any = np.int64(offset)
            for axis in axes:
                at = np.add.outer(at, axis)
            values = values[at]
        parts.append(np.ravel(values))
    return np.concatenate(parts or [np.zeros(0, np.float32)]).reshape(extents)


def wrong_of(network: Any, names: Dict[str, str], marks: Any, prefix: str) -> str:
    """The numbers of the source that the network lacks under their names; "": nothing."""
    for name, tensor in marks.names.items() if names else ():
        text = names.get(name[len(prefix) :])
        wanted = tensor.detach().cpu().float().numpy()
        if text is None:
            continue
        if not np.array_equal(values_of(network, text), wanted, equal_nan=True):
            return f"the network has other values than {name}"
    return ""


def give_into(network: Any, module: Any, names: Dict[str, str]) -> Any:
    """The weights of now into the module, by the names of its state_dict."""
    torch: Any = import_module("torch")
    state = dict(module.state_dict())
    known = {**dict(module.named_buffers()), **dict(module.named_parameters()), **state}
    made: Dict[str, Any] = {}
    absent = [name for name in names if name not in known]
    if absent:
        raise InvalidArgumentError(
            f"the module has no {', '.join(absent)}; give a module of the class that was absorbed"
        )
    for name, text in names.items():
        if text.startswith("constant "):
            _same_constant(name, known[name], text)
        elif text.startswith("as "):
            made[name] = made[text[3:]]
        else:
            made[name] = torch.from_numpy(values_of(network, text).copy())
            _fits(name, known[name], made[name])
    module.load_state_dict({**state, **made}, strict=True)
    return module.eval()


def _fits(name: str, old: Any, new: Any) -> None:
    if old.shape != new.shape:
        raise InvalidArgumentError(
            f"{name} is {list(old.shape)} in the module and {list(new.shape)} in the network; give "
            "a module of the sizes that were absorbed"
        )
    if not (new.to(old.dtype).float() == new).all():
        warnings.warn(f"{name}: values are rounded to {old.dtype}", stacklevel=4)


def _same_constant(name: str, tensor: Any, text: str) -> None:
    if f"constant {hash_of(tensor)}" != text:
        raise InvalidArgumentError(
            f"{name} does not train, and the module has other values in it than the one that was "
            "absorbed; load that one's state_dict first"
        )

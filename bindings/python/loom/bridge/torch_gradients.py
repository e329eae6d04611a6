"""The rung `gradients` of a proof: one step of SGD in the module and in the network, by name.

Both train on the example with the loss mean((y - target)^2), y being the first output and the
target random. The change of each entry of the state_dict is compared with that of the module in
double precision. The module is copied; its dropout is off in the copy.
"""

import copy
import warnings
from importlib import import_module
from typing import Any, Callable, Dict, List, NamedTuple, Sequence

import numpy as np

from ..errors import LoomError
from ..network import Network
from ..training import Trainer
from .torch_state import values_of

# At this rate a step is the gradient: what was there before is lost beside it.
_RATE = 1e6
# A share of the largest value of a tensor; or a multiple of the module's own error in float32.
_OFF, _TIMES = 1e-4, 10.0
# Gradients below this part of the network's largest have no digit in float32.
_NONE = 1e-6
_TRIES = 3


class Gradients(NamedTuple):
    """The result of the comparison."""

    held: bool
    compared: int  # tensors
    largest: float  # difference, of the largest of its tensor
    text: str  # why it was not asked, or which tensor differs


class _NotAsked(Exception):
    pass


def compare_gradients(source: Any, make: Callable[[], Network], inputs: Sequence[Any]) -> Gradients:
    """Asks a fresh network of `make()` for each try. A ReLU at 0 may turn by a rounding, so other
    targets and inputs are tried before a difference counts."""
    found = Gradients(False, 0, 0.0, "")
    try:
        for seed in range(_TRIES):
            draw = np.random.default_rng(seed)
            given = [_moved(x, draw, seed) for x in inputs]
            found = _compare_once(source, make(), given, draw)
            if found.held:
                break
    except _NotAsked as why:
        return Gradients(False, 0, 0.0, str(why))
    return found


def _moved(x: Any, draw: Any, seed: int) -> Any:
    values = np.asarray(x)
    if seed == 0 or values.dtype.kind != "f":
        return values
    return (values + 0.1 * draw.standard_normal(values.shape)).astype(values.dtype)


def _compare_once(source: Any, network: Network, inputs: List[Any], draw: Any) -> Gradients:
    torch: Any = import_module("torch")
    exact = _there(source, inputs, torch.float64, torch)
    target = draw.standard_normal(exact.shape)
    exact.step(target)
    rough = _there(source, inputs, torch.float32, torch)
    rough.step(target)
    before = {name: p.detach().cpu().float().numpy() for name, p in exact.parameters.items()}
    _step_here(network, inputs, target)
    top = max((float(np.abs(g).max(initial=0)) for g in exact.gradients.values()), default=0.0)
    compared, largest = 0, 0.0
    for name, text in source.names.items():
        wanted = exact.gradients.get(source.prefix + name)
        if wanted is None or text.startswith(("as ", "constant ")):
            continue
        size = float(np.abs(wanted).max(initial=0))
        start = before[source.prefix + name].astype(np.float64)
        mine = (start - values_of(network, text).astype(np.float64)) / _RATE
        if not size > _NONE * top:  # a bias before a norm has none; nor has what is detached
            size = top
        own = _far(rough.gradients[source.prefix + name], wanted, size)
        off = _far(mine, wanted, size)
        compared, largest = compared + 1, max(largest, off)
        if not off <= max(_OFF, _TIMES * own):
            why = f"the gradient of {name} differs by {off:.1e} of the largest"
            return Gradients(False, compared, largest, why)
    return Gradients(True, compared, largest, "")


def _far(a: Any, b: Any, size: float) -> float:
    return float(np.abs(a - b).max(initial=0)) / size if size else 0.0


def _step_here(network: Network, inputs: List[Any], target: Any) -> None:
    ports = [port.name for port in network.inputs]
    given: Any = inputs[0] if len(inputs) == 1 else dict(zip(ports, inputs))

    def loss(outputs: Any) -> Any:
        far = np.asarray(outputs, dtype=np.float64).reshape(target.shape) - target
        gradient = (2 * far / far.size).astype(np.float32).reshape(np.shape(outputs))
        return float((far**2).mean()), gradient

    try:
        trainer = Trainer(network, optimizer="sgd", schedule="constant")
        trainer.step(given, loss=loss, rate=_RATE)
    except LoomError as error:
        raise _NotAsked(f"the network does not train: {error}") from error


class _There:
    """The module in a precision, with the example."""

    def __init__(self, module: Any, inputs: List[Any], torch: Any) -> None:
        self.module, self.inputs, self.torch = module, inputs, torch
        self.parameters = {n: p for n, p in module.named_parameters() if p.requires_grad}
        self.gradients: Dict[str, Any] = {}
        self.first = self._ask()
        if not torch.equal(self.first, self._ask()):
            raise _NotAsked("the module draws random numbers in training")

    @property
    def shape(self) -> Any:
        return tuple(self.first.shape)

    def _ask(self) -> Any:
        said = self.module(*self.inputs)
        while not self.torch.is_tensor(said):
            said = next(iter(said.values())) if hasattr(said, "values") else said[0]
        if not said.requires_grad:
            raise _NotAsked("its first output does not depend on what trains")
        return said

    def step(self, target: Any) -> None:
        far = self.first - self.torch.from_numpy(target).to(self.first.dtype)
        (far**2).mean().backward()
        self.gradients = {
            name: np.zeros(tuple(p.shape)) if p.grad is None else p.grad.double().numpy()
            for name, p in self.parameters.items()
        }


def _there(source: Any, inputs: List[Any], dtype: Any, torch: Any) -> _There:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = _still(copy.deepcopy(source.module), torch).to("cpu", dtype).train()
            given = [torch.from_numpy(np.array(x)) for x in inputs]
            given = [x.to(dtype) if x.is_floating_point() else x for x in given]
            return _There(module, given, torch)
    except _NotAsked:
        raise
    except Exception as error:  # of the module: a norm of one sample, a copy that fails, ...
        raise _NotAsked(f"the module does not train on the example: {error}") from error


def _still(module: Any, torch: Any) -> Any:
    """Without dropout."""
    for part in module.modules():
        if isinstance(part, torch.nn.modules.dropout._DropoutNd):
            part.p = 0.0
        if isinstance(getattr(part, "dropout", None), float):
            part.dropout = 0.0
    return module

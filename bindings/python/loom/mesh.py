"""Mesh: a network that ticks: every cell fires once a tick, on what was committed before it."""

import ctypes
import json
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _ffi
from ._library import Callbacks, Handle, check, encoded, handle_from, lib, report, sized, text_from
from ._options import Options
from .arrays import as_tensor, result
from .network import Network
from .options import (
    MESH_TRAINER_OPTIONS,
    ClipName,
    LossName,
    Optimizer,
    OptimizerKindName,
    RuleName,
)
from .training import Dataset

Place = Tuple[int, int, int, int]


class MeshLink(NamedTuple):
    """Sets the source of the cell `to`, instead of the cell before it. Each is (z, y, x, l).

    Another cell, a port by its name, or nothing. Without any of them the source stays, and the
    delay is new. delay: ticks; of a port 1 is the sample of this very tick. second: the second
    input, of a Residual without children.
    """

    to: Place
    source: Optional[Place] = None
    port: Optional[str] = None
    delay: int = 1
    nothing: bool = False
    second: bool = False


def _links(links: Sequence[MeshLink]) -> Any:
    made = (_ffi.loom_mesh_link * len(links))()
    for struct, link in zip(made, links):
        struct.to[:] = link.to
        struct.has_source = link.source is not None
        struct.source[:] = link.source or (0, 0, 0, 0)
        struct.port = None if link.port is None else encoded(link.port)
        struct.delay, struct.nothing, struct.second = link.delay, link.nothing, link.second
    return made


def _ports(ports: Mapping[str, Union[int, Sequence[int]]]) -> Any:
    made = (_ffi.loom_mesh_port * len(ports))()
    for struct, (name, given) in zip(made, ports.items()):
        shape = [given] if isinstance(given, int) else list(given)
        extents = (ctypes.c_int64 * len(shape))(*shape)
        struct.name, struct.rank = encoded(name), len(shape)
        struct.shape = ctypes.cast(extents, ctypes.POINTER(ctypes.c_int64))
    return made


class Cell(NamedTuple):
    """A cell of a mesh."""

    at: Place
    layer: str  # its kind; "" for a disabled cell
    output: Tuple[int, ...]  # shape of one sample
    first_tick: int  # in which it fires, if all ports are set from the start; -1 means never
    holds: bool  # whether it ever fired


class _How:
    """The options of a mesh as C has them, with the memory that they point to."""

    def __init__(
        self,
        ports: Optional[Mapping[str, Union[int, Sequence[int]]]],
        links: Sequence[MeshLink],
        **more: Any,
    ) -> None:
        self.ports, self.links = _ports(ports or {}), _links(links)
        self.struct = sized(
            _ffi.loom_mesh_options,
            ports=self.ports,
            port_count=len(self.ports),
            links=self.links,
            link_count=len(self.links),
            **more,
        )


class Mesh(Handle):
    """Keeps the weights that the network has now. For one thread at a time.

    ports: inputs besides "input" and those of the network's Input layers, as name: shape of one
    sample. batch: streams side by side. zero_fill: cells fire on zeros as long as nothing reaches
    them. carry: recurrent layers go on from the tick before. activity: run() keeps how active
    cells were.
    """

    _FREE = "loom_mesh_free"

    def __init__(
        self,
        network: Network,
        *,
        ports: Optional[Mapping[str, Union[int, Sequence[int]]]] = None,
        links: Sequence[MeshLink] = (),
        batch: int = 1,
        zero_fill: bool = False,
        carry: bool = False,
        quantize_activations: bool = True,
        activity: bool = False,
    ) -> None:
        how = _How(
            ports,
            links,
            batch=batch,
            zero_fill=zero_fill,
            carry=carry,
            float_activations=not quantize_activations,
            activity=activity,
        )
        self._batch = batch
        call = lib.loom_mesh_create
        super().__init__(handle_from(call, network.handle, ctypes.byref(how.struct)))

    def set(self, x: Any, port: str = "input") -> None:
        """Sets the value of a port until it is replaced: [batch, sample]."""
        tensor = as_tensor(x)
        check(lib.loom_mesh_set_port(self.handle, encoded(port), tensor.pointer))

    def tick(self, count: int = 1) -> None:
        check(lib.loom_mesh_tick(self.handle, count))

    def output(self, cell: Optional[Place] = None) -> Any:
        """The last output of a cell, [batch, ...]; zeros before it fired. None: the last cell."""
        if cell is None:
            return result(handle_from(lib.loom_mesh_output, self.handle))
        place = (ctypes.c_int64 * 4)(*cell)
        return result(handle_from(lib.loom_mesh_cell_output, self.handle, place))

    def push(self, **inputs: Any) -> Any:
        """A sample for one tick, and what the last cell committed in it."""
        for port, x in inputs.items():
            self.set(x, port)
        self.tick()
        return self.output()

    def run(self, **inputs: Any) -> List[Any]:
        """A tick for each sample of the ports, which are given by name: run(input=x, eye=z)."""
        counts: Dict[str, int] = {name: len(x) for name, x in inputs.items()}
        if len(set(counts.values())) != 1:
            raise ValueError(f"give as many samples to each port, at least to one; got {counts}")
        tensors = [as_tensor(x) for x in inputs.values()]
        names = (ctypes.c_char_p * len(tensors))(*(encoded(name) for name in inputs))
        samples = (_ffi.loom_tensor * len(tensors))(*(t.tensor for t in tensors))
        call = lib.loom_mesh_run
        made = result(handle_from(call, self.handle, names, samples, len(tensors)))
        rows = made if hasattr(made, "__getitem__") else made.tolist()
        if self._batch > 1:
            return list(rows)
        return [rows[i : i + 1] for i in range(len(rows))]

    def activity(self) -> Any:
        """The amount that each cell committed in each tick of the last run(), [ticks, cells].

        Means of absolute values, in the order of cells(); NaN if a cell held nothing.
        """
        return result(handle_from(lib.loom_mesh_activity, self.handle))

    def cells(self) -> List[Cell]:
        found = json.loads(text_from(lib.loom_mesh_cells, self.handle))
        return [
            Cell(
                tuple(c["at"]), c["layer"], tuple(c["output"]), c["first_tick"], bool(c["holds"])
            )
            for c in found
        ]

    def holds(self, cell: Place) -> bool:
        """Whether a cell ever fired."""
        for other in self.cells():
            if other.at == tuple(cell):
                return other.holds
        raise ValueError(f"there is no cell {tuple(cell)}")

    def reset(self) -> None:
        """Nothing is held, tick 0."""
        check(lib.loom_mesh_reset(self.handle))

    def _info(self) -> Any:
        return report(_ffi.loom_mesh_info, lib.loom_mesh_get_info, self.handle)

    @property
    def bytes(self) -> int:
        """Memory that it took."""
        return int(self._info().bytes)

    @property
    def ticks(self) -> int:
        return int(self._info().ticks)

    @property
    def stale(self) -> int:
        """Cells that did not fire in the last tick."""
        return int(self._info().stale)

    @property
    def latency(self) -> int:
        """Ticks from a sample to its result; -1: it never comes."""
        return int(self._info().latency)


@dataclass(frozen=True)
class MeshEpoch:
    """An epoch of a mesh."""

    number: int  # from 1
    loss: float  # mean over the samples
    accuracy: Optional[float]  # of labels
    ticks_per_second: float


class MeshTrainer(Handle):
    """Trains a network as a mesh, by back-propagation through ticks or by a learning rule.

    ports, links, batch, zero_fill, carry: as of Mesh.

    Options, from api/options, MeshTrainerOptions:

    window: Length of a window; 1 or more ticks.
    stride: Ticks from the begin of a window to that of the next; 0 is the window; 0 or more ticks.
    loss: Loss. Unset: cross_entropy for labels, mse for targets.
    optimizer: Optimizer.
    rate: Learning rate; 0 or more.
    clip: Gradient clipping.
    clip_limit: norm, value: limit of clipping; above 0.
    seed: Seed of dropout and of learning rules.
    memory: Limit of what windows, gradients and moments take; 0 disables it; bytes.
    rule: How cells get the signal that they learn from: back_propagation, chain, dfa, drtp or
        diff_project; docs/mesh.md.
    rule_beta: diff_project: step from the prediction towards the target; above 0, up to 1.
    rule_gate: Budget below which a cell does not learn; 0 disables budgets; 0 to 0.999. Unset: 0.2
        for chain, else 0.
    rule_steady: dfa, drtp: cells learn from the error of the same tick, not of the sample that they
        see. Right at a fixed point alone.
    """

    _FREE = "loom_mesh_trainer_free"

    def __init__(
        self,
        network: Network,
        *,
        ports: Optional[Mapping[str, Union[int, Sequence[int]]]] = None,
        links: Sequence[MeshLink] = (),
        batch: int = 1,
        zero_fill: bool = False,
        carry: bool = False,
        # options: generated from api/options, MeshTrainerOptions
        window: int = 8,
        stride: int = 0,
        loss: LossName = "automatic",
        optimizer: Union[OptimizerKindName, Optimizer] = "adam",
        rate: Optional[float] = None,
        clip: ClipName = "none",
        clip_limit: float = 1.0,
        seed: int = 1,
        memory: int = 0,
        rule: RuleName = "back_propagation",
        rule_beta: float = 0.6,
        rule_gate: Optional[float] = None,
        rule_steady: bool = False,
        # end of options
    ) -> None:
        given = dict(locals())
        values = {name: given[name] for name in MESH_TRAINER_OPTIONS}
        if isinstance(optimizer, Optimizer):
            values["rate"] = optimizer.rate if rate is None else rate
        how = _How(ports, links, batch=batch, zero_fill=zero_fill, carry=carry)
        with Options("mesh_trainer", values) as options:
            options.warn_idle()
            call = lib.loom_mesh_trainer_create
            struct = ctypes.byref(how.struct)
            super().__init__(handle_from(call, network.handle, struct, options.handle))
        self.network = network

    def fit(
        self,
        stream: Dataset,
        *,
        # options: generated from api/options, MeshFitOptions
        epochs: int = 10,
        # end of options
        on_window: Optional[Callable[[int, int], Any]] = None,
        on_epoch: Optional[Callable[[MeshEpoch], Any]] = None,
    ) -> List[MeshEpoch]:
        """The samples are a stream, one per tick in their order; each epoch begins a new one.

        on_window(done, total) and on_epoch(epoch) stop by returning False.

        Options, from api/options, MeshFitOptions:

        epochs: Times that the stream is seen; 1 or more epochs.
        """
        callbacks, told = Callbacks(), []

        def seen(pointer: Any) -> Any:
            e = pointer.contents
            accuracy = e.accuracy if e.has_accuracy else None
            told.append(MeshEpoch(e.number, e.loss, accuracy, e.ticks_per_second))
            return None if on_epoch is None else on_epoch(told[-1])

        options = sized(
            _ffi.loom_mesh_fit_options,
            epochs=epochs,
            on_window=callbacks.wrap(_ffi.loom_progress_fn, on_window),
            on_epoch=callbacks.wrap(_ffi.loom_mesh_epoch_fn, seen),
        )
        call = lib.loom_mesh_trainer_fit
        callbacks.check(callbacks.run(call, self.handle, stream.handle, ctypes.byref(options)))
        return told

"""Mesh: a network that ticks: every cell fires once a tick, on what was committed before it."""

import ctypes
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _ffi
from ._library import Handle, check, encoded, handle_from, lib, report, sized
from .arrays import as_tensor, result
from .network import Network

Place = Tuple[int, int, int, int]


class MeshLink(NamedTuple):
    """What the cell `to` reads in place of the cell before it, each as (z, y, x, l).

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


class Mesh(Handle):
    """Keeps the weights that the network has now. For one thread at a time.

    ports: inputs besides "input" and those of the network's Input layers, as name: shape of one
    sample. batch: streams side by side. zero_fill: cells fire on zeros as long as nothing reaches
    them. carry: recurrent layers go on from the tick before.
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
    ) -> None:
        named, linked = _ports(ports or {}), _links(links)
        options = sized(
            _ffi.loom_mesh_options,
            batch=batch,
            zero_fill=zero_fill,
            carry=carry,
            float_activations=not quantize_activations,
            ports=named,
            port_count=len(named),
            links=linked,
            link_count=len(linked),
        )
        super().__init__(handle_from(lib.loom_mesh_create, network.handle, ctypes.byref(options)))

    def set(self, x: Any, port: str = "input") -> None:
        """What a port offers until it is replaced: [batch, sample]."""
        tensor = as_tensor(x)
        check(lib.loom_mesh_set_port(self.handle, encoded(port), tensor.pointer))

    def tick(self, count: int = 1) -> None:
        check(lib.loom_mesh_tick(self.handle, count))

    def output(self, cell: Optional[Place] = None) -> Any:
        """What a cell committed last, [batch, ...]; zeros before it fired. None: the last cell."""
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
        rows = range(next(iter(counts.values())))
        return [self.push(**{name: x[i : i + 1] for name, x in inputs.items()}) for i in rows]

    def reset(self) -> None:
        """Nothing is held, tick 0."""
        check(lib.loom_mesh_reset(self.handle))

    def _info(self) -> Any:
        return report(_ffi.loom_mesh_info, lib.loom_mesh_get_info, self.handle)

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

"""Observers of training: functions that are called per layer and pass, and telemetry.

with loom.Telemetry(tensorboard="runs/first") as told:
    trainer.fit(train, telemetry=told, on_layer=lambda stats: print(stats.at, stats.std))
"""

import ctypes
import inspect
import json
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import _ffi
from ._library import Callbacks, Handle, check, encoded, handle_from, lib, report, sized
from .arrays import as_tensor
from .network import Network, Path

Place = Tuple[int, ...]


class LayerStats(NamedTuple):
    """The output of a layer in the last step of an epoch, or its gradient."""

    epoch: int
    at: Place  # z, y, x, l
    type: str
    backward: bool  # of the gradient of its output
    mean: float
    std: float
    min: float
    max: float
    active: int  # values beyond 1e-6 from 0
    total: int


class LayerPass(NamedTuple):
    """A layer that a batch just went through. Times are nanoseconds of a clock that never steps
    back during a run."""

    at: Place
    type: str
    backward: bool  # the gradient of its output has come
    begin_ns: int
    end_ns: int
    shape: Tuple[int, ...]  # of its output


class LinkStats(NamedTuple):
    """How a learning rule sees a layer, on the mean over the batches of an epoch: docs/rules.md."""

    epoch: int
    at: Place
    type: str
    budget: float  # 1: its output has the direction of its target, 0: the opposite one
    gap: float  # root mean square of output - target
    closed: float  # share of the batches in which it learned nothing
    cosine: float  # of its signal and the gradient of the loss
    size: float  # root mean square of its signal


_EVENTS: Dict[str, Any] = {"layer": LayerStats, "pass": LayerPass, "link": LinkStats}


def _event(kind: Any, values: Dict[str, Any]) -> Any:
    for name, value in values.items():
        if isinstance(value, list):
            values[name] = tuple(value)
        elif value is None:  # what JSON has no number for
            values[name] = float("nan")
    if "backward" in values:
        values["backward"] = bool(values["backward"])
    return kind(**values)


def begun(function: Callable[..., Any], event: Dict[str, Any]) -> List[Any]:
    """Arguments of on_begin; functions of earlier versions have no `planned`."""
    values = list(event.values())
    try:
        inspect.signature(function).bind(*values)
    except (TypeError, ValueError):  # too many arguments, or a function without a signature
        return values[:2]
    return values


def observers(
    callbacks: Callbacks,
    on_layer: Optional[Callable[[LayerStats], Any]],
    on_pass: Optional[Callable[[LayerPass], Any]],
    on_link: Optional[Callable[[LinkStats], Any]],
    on_begin: Optional[Callable[..., Any]] = None,
) -> Dict[str, Any]:
    """Fields of loom_fit_options that call these functions."""
    wanted: Dict[str, Optional[Callable[..., Any]]] = {
        "layer": on_layer, "pass": on_pass, "link": on_link, "begin": on_begin
    }  # fmt: skip
    called = {name: function for name, function in wanted.items() if function is not None}
    if not called:
        return {}

    def tell(event: bytes, text: bytes) -> Any:
        name = event.decode()
        if name == "begin":
            return called[name](*begun(called[name], json.loads(text)))
        return called[name](_event(_EVENTS[name], json.loads(text)))

    return {
        "observer": callbacks.wrap(_ffi.loom_observer_fn, tell),
        "observe": ",".join(called).encode(),
    }


class Telemetry(Handle):
    """The records of a run while it continues. It never holds the run up: a thread of its own
    writes.

    Give it to fit() as `telemetry`. json_lines: a file to which lines of JSON are appended.
    tensorboard: a folder. prometheus: a file with the last value of each number. http:
    "http://host:port/path". udp, tanhi: "host:port". on_line(line): gets the lines too, on another
    thread. queue: records that may wait; more are dropped and counted. Functions may be called
    from several threads at once. docs/telemetry.md
    """

    _FREE = "loom_telemetry_free"

    def __init__(
        self,
        *,
        json_lines: Optional[Path] = None,
        tensorboard: Optional[Path] = None,
        prometheus: Optional[Path] = None,
        http: Optional[str] = None,
        udp: Optional[str] = None,
        tanhi: Optional[str] = None,
        on_line: Optional[Callable[[str], Any]] = None,
        queue: int = 4096,
    ) -> None:
        if queue < 1:
            raise ValueError(f"queue is {queue}, must be 1 or more")
        self._callbacks = Callbacks()

        def line(text: bytes) -> Any:
            return on_line(text.decode()) if on_line is not None else None

        told = line if on_line is not None else None
        options = sized(
            _ffi.loom_telemetry_options,
            json_lines=encoded(json_lines),
            tensorboard=encoded(tensorboard),
            prometheus=encoded(prometheus),
            http=encoded(http),
            udp=encoded(udp),
            tanhi=encoded(tanhi),
            queue=queue,
            on_line=self._callbacks.wrap(_ffi.loom_line_fn, told, listens=False),
        )
        super().__init__(handle_from(lib.loom_telemetry_open, ctypes.byref(options)))

    def scalar(self, tag: str, step: int, value: float) -> None:
        check(lib.loom_telemetry_scalar(self.handle, encoded(tag), step, value))

    def histogram(self, tag: str, step: int, values: Any) -> None:
        """How values are spread, over 30 ranges of equal width."""
        tensor = as_tensor(values)
        check(lib.loom_telemetry_histogram(self.handle, encoded(tag), step, tensor.pointer))

    def picture(self, network: Network) -> None:
        """The cells of a network, and who reads whom."""
        check(lib.loom_telemetry_picture(self.handle, network.handle))

    def weights(self, step: int, network: Network) -> None:
        """A histogram of every parameter."""
        check(lib.loom_telemetry_weights(self.handle, step, network.handle))

    def begin_run(self, label: str) -> None:
        """For viewers: a run of that name begins."""
        check(lib.loom_telemetry_begin_run(self.handle, encoded(label)))

    def _info(self) -> Any:
        return report(_ffi.loom_telemetry_info, lib.loom_telemetry_get_info, self.handle)

    @property
    def dropped(self) -> int:
        """Records that found the queue full."""
        return int(self._info().dropped)

    @property
    def passes_dropped(self) -> int:
        """Passes of layers that found theirs full."""
        return int(self._info().passes_dropped)

    def flush(self, seconds: float = 5.0) -> None:
        """Writes what waits, for so long at most. Nothing is taken afterwards.

        An error of a place that failed or lost records is raised.
        """
        self._callbacks.check(lib.loom_telemetry_close(self.handle, seconds))

    def __exit__(self, *_: Any) -> None:
        try:
            self.flush()
        finally:
            self.close()

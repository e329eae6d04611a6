"""Session: one user of a network, with the memory that running it takes."""

import ctypes
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from . import _ffi
from ._direct import Direct
from ._library import Callbacks, Handle, check, handle_from, lib
from .arrays import as_tensor, result
from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from .network import Network


class Port(NamedTuple):
    """An input or an output of a network."""

    name: str
    shape: Tuple[int, ...]  # of one sample, or of the whole where all samples share it
    batched: bool  # each sample has its own
    ids: int  # above 0: integers below it


def run_ports(function: Any, handle: int, tensors: Sequence[Any]) -> Dict[str, Any]:
    """Copies of the outputs of a run by their names; tensors: all inputs, in order."""
    found: Dict[str, Any] = {}

    def seen(pointer: Any) -> None:
        port = pointer.contents
        found[port.name.decode()] = result(handle_from(lib.loom_array_copy, port.values))

    array = (_ffi.loom_tensor * len(tensors))(*[t.tensor for t in tensors])
    callbacks = Callbacks()
    sink = callbacks.wrap(_ffi.loom_port_fn, seen)
    callbacks.check(callbacks.run(function, handle, array, len(tensors), sink, None))
    return found


class Session(Handle):
    """For one thread at a time."""

    _FREE = "loom_session_free"
    _network: "Optional[Network]" = None
    _direct: Optional[Direct] = None

    def run(self, x: Any, out: Any = None, *, lengths: Optional[Sequence[int]] = None) -> Any:
        """Inputs [n, ...] to float32 outputs [n, ...], into `out` if that is given.

        Networks of several inputs or outputs: a dict of the inputs by their names
        (Network.inputs) to a dict of all outputs. lengths: how many steps of each sample are real,
        of a session that was made for lengths.
        """
        if lengths is not None:
            self._set_lengths(lengths)
            try:
                return self.run(x, out)
            finally:
                self._set_lengths(())
        direct = self._direct
        if direct is not None and self._handle:
            found = direct.run(x, out)
            if found is not None:
                return found
        if isinstance(x, dict):
            return self._run_all(x)
        inputs = as_tensor(x)
        if out is None:
            made = result(handle_from(lib.loom_session_run, self.handle, inputs.pointer))
            self._direct = Direct.after(self.handle, x, inputs, made)
            return made
        place = as_tensor(out)
        if place.copied or (hasattr(out, "flags") and not out.flags.writeable):
            raise ValueError("'out' has to be an array that can be written in place")
        check(lib.loom_session_run_into(self.handle, inputs.pointer, place.pointer))
        self._direct = Direct.after(self.handle, x, inputs, out)
        return out

    def _set_lengths(self, lengths: Sequence[int]) -> None:
        array = (ctypes.c_int64 * len(lengths))(*[int(n) for n in lengths])
        check(lib.loom_session_set_lengths(self.handle, array, len(lengths)))

    @property
    def states(self) -> List[Any]:
        """The states of recurrent layers of a stateful session, [max_batch, width] each.

        The next call begins with the states that were set.
        """
        count = ctypes.c_int64()
        check(lib.loom_session_state_count(self.handle, ctypes.byref(count)))
        return [
            result(handle_from(lib.loom_session_state, self.handle, i)) for i in range(count.value)
        ]

    @states.setter
    def states(self, values: Sequence[Any]) -> None:
        tensors = [as_tensor(value) for value in values]
        array = (_ffi.loom_tensor * len(tensors))(*[t.tensor for t in tensors])
        check(lib.loom_session_set_states(self.handle, array, len(tensors)))

    def _run_all(self, given: Dict[str, Any]) -> Dict[str, Any]:
        assert self._network is not None
        names = [port.name for port in self._network.inputs]
        if sorted(names) != sorted(given):
            raise InvalidArgumentError(
                f"the network takes {', '.join(names)}; given are {', '.join(given) or 'none'}"
            )
        tensors = [as_tensor(given[name]) for name in names]
        return run_ports(lib.loom_session_run_ports, self.handle, tensors)

    def cells(self, x: Any) -> Iterator[Tuple[Tuple[int, ...], str, Any]]:
        """(place, layer, values [n, ...]) of every cell, in the order of computation."""
        inputs, found, callbacks = as_tensor(x), [], Callbacks()

        def seen(pointer: Any) -> None:
            cell = pointer.contents
            copy = handle_from(lib.loom_array_copy, cell.values)
            found.append((tuple(cell.at), cell.layer.decode(), result(copy)))

        sink = callbacks.wrap(_ffi.loom_cell_fn, seen)
        callbacks.check(
            lib.loom_session_run_cells(self.handle, inputs.pointer, sink, None)
        )
        return iter(found)

    def reset(self) -> None:
        """Stateful: begins new streams."""
        check(lib.loom_session_reset(self.handle))

    def _number(self, function: Any) -> int:
        out = ctypes.c_int64()
        check(function(self.handle, ctypes.byref(out)))
        return out.value

    @property
    def position(self) -> int:
        """Stateful: steps since."""
        return self._number(lib.loom_session_position)

    @property
    def bytes(self) -> int:
        """Memory that it took."""
        return self._number(lib.loom_session_bytes)

"""Direct: runs a session on NumPy arrays like those of the call before, not described anew.

A call through ctypes costs a microsecond; describing arrays to it costs several. Arrays of the same
shape and type differ by their address alone, so that is all that is set here. A call that does not
fit is None, and uses the general code.
"""

import ctypes
from typing import Any

from . import _ffi
from ._library import check, lib
from .arrays import TensorArgument

_MOST_BYTES = 1 << 20  # of outputs: larger ones are handed over by the library, not copied

# Without argument types: what is given below is what C takes.
_run_into = lib._FuncPtr(("loom_session_run_into", lib))
_run_into.restype = ctypes.c_int32
_memory_of = ctypes.c_char.from_buffer
_address_of = ctypes.addressof


class Direct:
    """For the one thread at a time that a session is for."""

    __slots__ = ("_array", "_shape", "_dtype", "_out_shape", "_float32", "_empty", "_x", "_y",
                 "_arguments", "_kept")  # fmt: skip

    def __init__(self, numpy: Any, handle: int, x: Any, inputs: TensorArgument, y: Any) -> None:
        self._array, self._empty, self._float32 = numpy.ndarray, numpy.empty, y.dtype
        self._shape, self._dtype, self._out_shape = x.shape, x.dtype, y.shape
        outputs = TensorArgument(_ffi.DTYPE["float32"], y.shape, 0, None, None, False)
        given = TensorArgument(inputs.tensor.dtype, x.shape, 0, None, None, False)
        self._kept = (given, outputs)
        self._x, self._y = given.tensor, outputs.tensor
        self._arguments = (ctypes.c_void_p(handle), given.pointer, outputs.pointer)

    @staticmethod
    def after(handle: int, x: Any, inputs: TensorArgument, y: Any) -> "Direct | None":
        """For calls like the one that made `y` of `x`; None where none can be like it."""
        from .arrays import numpy_module

        numpy = numpy_module()
        if numpy is None or type(x) is not numpy.ndarray or type(y) is not numpy.ndarray:
            return None
        if inputs.copied or not 0 < y.nbytes <= _MOST_BYTES or not x.nbytes:
            return None
        return Direct(numpy, handle, x, inputs, y)

    def run(self, x: Any, out: Any) -> Any:
        array = self._array
        if type(x) is not array or x.shape != self._shape or x.dtype is not self._dtype:
            return None
        if out is None:
            out = self._empty(self._out_shape, self._float32)
        elif (
            type(out) is not array
            or out.shape != self._out_shape
            or out.dtype is not self._float32
        ):
            return None
        try:
            # Refused of arrays with gaps, and of those that may not be written.
            given, place = _memory_of(x), _memory_of(out)
        except (TypeError, ValueError, BufferError):
            return None
        self._x.data = _address_of(given)
        self._y.data = _address_of(place)
        code = _run_into(*self._arguments)
        if code:
            check(code)
        return out

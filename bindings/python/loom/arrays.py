"""Numbers in and out: NumPy arrays, anything that speaks DLPack or the buffer protocol, and lists.

Nothing is copied that does not have to be. Arrays are passed by address, with their strides.
Results are NumPy arrays over memory of the library, or an Array if NumPy is absent.
"""

import array as _array
import ctypes
import math
import sys
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _ffi
from ._library import Handle, check, handle_from, lib

# Name in loom -> (name in NumPy, format of the buffer protocol).
_TYPES: Dict[int, Tuple[str, str]] = {
    _ffi.DTYPE["float64"]: ("float64", "d"),
    _ffi.DTYPE["float32"]: ("float32", "f"),
    _ffi.DTYPE["float16"]: ("float16", "e"),
    _ffi.DTYPE["bfloat16"]: ("bfloat16", "H"),
    _ffi.DTYPE["int64"]: ("int64", "q"),
    _ffi.DTYPE["int32"]: ("int32", "i"),
    _ffi.DTYPE["int16"]: ("int16", "h"),
    _ffi.DTYPE["int8"]: ("int8", "b"),
    _ffi.DTYPE["uint64"]: ("uint64", "Q"),
    _ffi.DTYPE["uint32"]: ("uint32", "I"),
    _ffi.DTYPE["uint16"]: ("uint16", "H"),
    _ffi.DTYPE["uint8"]: ("uint8", "B"),
}
_BY_NUMPY = {name: dtype for dtype, (name, _) in _TYPES.items()}
_BY_NUMPY["bool"] = _ffi.DTYPE["uint8"]
_BY_FORMAT = {form: dtype for dtype, (name, form) in _TYPES.items() if name != "bfloat16"}
_LONG = ctypes.sizeof(ctypes.c_long) * 8
_BY_FORMAT["?"] = _ffi.DTYPE["uint8"]
_BY_FORMAT["l"], _BY_FORMAT["L"] = _ffi.DTYPE[f"int{_LONG}"], _ffi.DTYPE[f"uint{_LONG}"]


_numpy: List[Any] = []  # what numpy_module() found
_known_types: Dict[Any, int] = {}  # NumPy's dtype -> number; asking for its name is slow


def numpy_module() -> Any:
    """NumPy, or None where it is not installed; imported when it is first needed."""
    if not _numpy:
        try:
            import numpy
        except ImportError:
            _numpy.append(None)
        else:
            _numpy.append(numpy)
    return _numpy[0]


def dtype_number(dtype: Union[str, int]) -> int:
    """ "float32", "int8", "q4_0", ... or a short form such as "f32" as the number of the type."""
    if isinstance(dtype, int):
        return dtype
    out = ctypes.c_int32()
    check(lib.loom_dtype_parse(str(dtype).encode(), ctypes.byref(out)))
    return out.value


def dtype_name(number: int) -> str:
    name = lib.loom_dtype_name(number)
    if name is None:
        raise ValueError(f"there is no number type {number}")
    return str(name.decode())


# ---- in ------------------------------------------------------------------------------------------


_INT64S = [ctypes.c_int64 * rank for rank in range(65)]  # NumPy has at most 64 axes


class TensorArgument:
    """A loom_tensor over somebody's memory, and what keeps that memory alive."""

    def __init__(
        self,
        dtype: int,
        shape: Sequence[int],
        address: int,
        strides: Optional[Sequence[int]],
        owner: Any,
        copied: bool,
    ) -> None:
        self.copied = copied
        self.shape = tuple(shape)
        extents = _INT64S[len(self.shape)]
        self._shape = extents(*shape)
        self._strides = None if strides is None else extents(*strides)
        self.tensor = _ffi.loom_tensor(dtype, len(self.shape), self._shape, self._strides, address)
        # A pointer to the struct keeps the struct, which so keeps the memory that it names.
        self.tensor.owner = owner

    @property
    def pointer(self) -> Any:
        return ctypes.byref(self.tensor)


def _numpy_type(dtype: Any) -> int:
    if dtype.name not in _BY_NUMPY:
        raise TypeError(f"an array of {dtype} is not a tensor; convert it with astype()")
    if not dtype.isnative:
        raise TypeError("arrays of the other byte order are not tensors; convert with astype()")
    number = _known_types[dtype] = _BY_NUMPY[dtype.name]
    return number


def _from_numpy(numpy: Any, values: Any, copied: bool) -> TensorArgument:
    dtype, flags, strides = values.dtype, values.flags, None
    number = _known_types.get(dtype)
    if number is None:
        number = _numpy_type(dtype)
    if not (flags.c_contiguous and flags.aligned):
        size = dtype.itemsize
        if any(step % size for step in values.strides) or not flags.aligned:
            values, copied = numpy.array(values, order="C"), True
        strides = [step // size for step in values.strides]
    address = values.__array_interface__["data"][0]
    return TensorArgument(number, values.shape, address, strides, values, copied)


def _from_buffer(values: Any) -> TensorArgument:
    view = memoryview(values)
    form = view.format.lstrip("@=" + ("<" if sys.byteorder == "little" else ">"))
    if form not in _BY_FORMAT:
        raise TypeError(f"a buffer of format '{view.format}' is not a tensor; make it numeric")
    strides = None
    if view.readonly or not view.c_contiguous:
        # ctypes tells the address of memory that may be written alone.
        memory: Any = bytearray(view.tobytes())
    else:
        memory = view
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory)) if view.nbytes else 0
    shape = view.shape or (len(view),)
    return TensorArgument(_BY_FORMAT[form], shape, address, strides, memory, memory is not view)


def _from_list(values: Any) -> TensorArgument:
    shape: List[int] = []
    level = values
    while isinstance(level, (list, tuple)):
        shape.append(len(level))
        level = level[0] if level else None
    flat: List[Any] = []

    def collect(part: Any, depth: int) -> None:
        if depth == len(shape):
            flat.append(part)
            return
        if not isinstance(part, (list, tuple)) or len(part) != shape[depth]:
            raise ValueError("a list whose rows differ in length is not a tensor")
        for item in part:
            collect(item, depth + 1)

    collect(values, 0)
    whole = all(isinstance(v, int) for v in flat)
    memory = _array.array("q" if whole else "d", flat)
    dtype = _ffi.DTYPE["int64" if whole else "float64"]
    return TensorArgument(dtype, shape, memory.buffer_info()[0], None, memory, True)


def as_tensor(values: Any) -> TensorArgument:
    """Anything that holds numbers as an argument of the library."""
    if isinstance(values, TensorArgument):
        return values
    if isinstance(values, Array):
        view = values.view()
        out = TensorArgument(view.dtype, values.shape, view.data or 0, None, values, False)
        return out
    numpy = numpy_module()
    if numpy is not None:
        made = isinstance(values, (list, tuple, int, float))
        return _from_numpy(numpy, numpy.asarray(values), made)
    if hasattr(values, "__dlpack__"):
        return as_tensor(Array.from_dlpack(values))
    if isinstance(values, (list, tuple, int, float)):
        return _from_list(values)
    return _from_buffer(values)


# ---- out -----------------------------------------------------------------------------------------

_pythonapi = ctypes.pythonapi
_new_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", _pythonapi))
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _pythonapi)
)
_rename_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", _pythonapi)
)
_capsule_is = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _pythonapi)
)
# A capsule that dies has no references left, so these two take its address.
_dying_is = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _pythonapi)
)
_dying_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _pythonapi)
)
# Name of a capsule -> its name once somebody has taken it, and how the library takes it back.
_CAPSULES = {
    b"dltensor": (b"used_dltensor", lib.loom_array_from_dlpack),
    b"dltensor_versioned": (b"used_dltensor_versioned", lib.loom_array_from_dlpack_versioned),
}
_FLAGS_AT, _READ_ONLY = 24, 1  # in a DLManagedTensorVersioned


def _drop_capsule(capsule: int) -> None:
    """The caller did not take the tensor: the library takes it back, and frees it."""
    for name, (_, taken_by) in _CAPSULES.items():
        if _dying_is(capsule, name):
            out = ctypes.c_void_p()
            if taken_by(_dying_pointer(capsule, name), ctypes.byref(out)) == 0:
                lib.loom_array_free(out)


_drop = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_drop_capsule)


class Array(Handle):
    """Numbers in memory of the library. numpy() and DLPack share that memory."""

    _FREE = "loom_array_free"
    _writeable = True

    @classmethod
    def from_dlpack(cls, other: Any) -> "Array":
        """The numbers of anything with __dlpack__() on the CPU, without a copy."""
        try:
            capsule = other.__dlpack__(max_version=(1, 0))
        except TypeError:  # older than DLPack 1.0
            capsule = other.__dlpack__()
        name = next(name for name in _CAPSULES if _capsule_is(capsule, name))
        managed, (used, taken_by) = _capsule_pointer(capsule, name), _CAPSULES[name]
        flags = 0
        if name == b"dltensor_versioned":
            flags = ctypes.c_uint64.from_address(managed + _FLAGS_AT).value
        made = cls(handle_from(taken_by, managed))
        _rename_capsule(capsule, used)
        made._writeable = not flags & _READ_ONLY
        return made

    def view(self) -> Any:
        """The loom_tensor: good while the array lives."""
        out = _ffi.loom_tensor()
        check(lib.loom_array_view(self.handle, ctypes.byref(out)))
        return out

    @property
    def shape(self) -> Tuple[int, ...]:
        view = self.view()
        return tuple(view.shape[: view.rank])

    @property
    def dtype(self) -> str:
        return dtype_name(self.view().dtype)

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 0

    def _memory(self, view: Any, shape: Tuple[int, ...]) -> Any:
        """The bytes as a ctypes array, which keeps this array alive."""
        if view.strides:
            raise ValueError("an array with gaps between its rows has no bytes in one piece")
        size = math.prod(shape) * lib.loom_dtype_bits(view.dtype) // 8 if view.data else 0
        memory: Any = (ctypes.c_char * size).from_address(view.data or ctypes.addressof(view))
        memory._owner = self
        return memory

    def memoryview(self) -> memoryview:
        """The numbers without NumPy; the type is that of the buffer protocol."""
        view, shape = self.view(), self.shape
        octets: Any = memoryview(self._memory(view, shape)).cast("B")
        if not octets.nbytes:
            return memoryview(b"")
        return memoryview(octets.cast(_TYPES[view.dtype][1], shape))

    def tolist(self) -> Any:
        return self.memoryview().tolist()

    def numpy(self) -> Any:
        """A NumPy array over the same memory, which lives as long as either."""
        numpy = numpy_module()
        if numpy is None:
            raise ImportError("NumPy is not installed; use memoryview() or tolist()")
        view = self.view()
        if not view.data:
            return numpy.empty((0,), numpy.float32)
        shape = tuple(view.shape[: view.rank])
        name = _TYPES[view.dtype][0]
        if name == "bfloat16":
            name = "uint16"  # the bits: NumPy has no such type
        values = numpy.frombuffer(self._memory(view, shape), name).reshape(shape)
        values.flags.writeable = self._writeable
        return values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        values = self.numpy()
        return values if dtype is None else values.astype(dtype, copy=bool(copy))

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, *, max_version: Optional[Tuple[int, int]] = None, **_: Any) -> Any:
        out = ctypes.c_void_p()
        if max_version is not None and max_version[0] >= 1:
            name, export = b"dltensor_versioned", lib.loom_array_to_dlpack_versioned
        else:
            name, export = b"dltensor", lib.loom_array_to_dlpack
        if not self._writeable:
            raise BufferError("a read-only array is not shared further; take numpy().copy()")
        check(export(self.handle, ctypes.byref(out)))
        return _new_capsule(out, name, ctypes.cast(_drop, ctypes.c_void_p))

    def __repr__(self) -> str:
        if self.closed:
            return "<loom.Array, closed>"
        return f"<loom.Array {list(self.shape)} of {self.dtype}>"


def result(handle: int) -> Any:
    """The results of calls: a NumPy array over memory of the library, or an Array without NumPy."""
    made = Array(handle)
    return made if numpy_module() is None else made.numpy()


def first_and_further(x: Any) -> Tuple[Any, List[Tuple[str, Any]]]:
    """The first of a dict of inputs, and the others with their names; no dict: x is the first."""
    if not isinstance(x, dict):
        return x, []
    if not x:
        raise ValueError("x is a dict without arrays; give one for each input")
    (_, first), *further = x.items()
    return first, further

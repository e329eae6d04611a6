"""The shared library: found, loaded, and called so that failures are exceptions."""

import ctypes
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Type, TypeVar

from . import _ffi
from .errors import BY_CODE, LoomError

if TYPE_CHECKING:
    from typing_extensions import TypeIs

_NAMES = {"win32": "loom.dll", "darwin": "libloom.dylib"}


def _path() -> str:
    """The library of $LOOM_LIBRARY, or the one beside this file."""
    given = os.environ.get("LOOM_LIBRARY")
    if given:
        return given
    return str(Path(__file__).with_name(_NAMES.get(sys.platform, "libloom.so")))


def _load() -> ctypes.CDLL:
    path = _path()
    try:
        library = ctypes.CDLL(path)
        _ffi.bind(library)
    except (OSError, AttributeError) as error:
        raise ImportError(
            f"{path} is not the library of this package ({error}); install the wheel of this "
            "platform, or name a build of it in LOOM_LIBRARY"
        ) from error
    if library.loom_abi_version() != _ffi.ABI_VERSION:
        raise ImportError(
            f"{path} has the interface {library.loom_abi_version()}, this package is for "
            f"{_ffi.ABI_VERSION}; take both from one release"
        )
    return library


lib = _load()


def error_of(code: int) -> LoomError:
    """The exception of the call of this thread that failed with `code`."""
    message = lib.loom_last_error().decode("utf-8", "replace")
    return BY_CODE.get(code, LoomError)(message)


def check(code: int) -> None:
    if code != 0:
        raise error_of(code)


def encoded(text: "str | os.PathLike[str] | None") -> Optional[bytes]:
    """A text or a path as C takes it."""
    if text is None:
        return None
    out = os.fspath(text).encode("utf-8")
    if b"\0" in out:
        raise ValueError("a text for Loom cannot hold the character NUL")
    return out


def number_of(names: Dict[str, int], name: str, what: str) -> int:
    """The value of an enum by the name that the program calls it."""
    key = name.lower()
    if key not in names:
        raise ValueError(f"there is no {what} '{name}'; choose from {', '.join(sorted(names))}")
    return names[key]


def name_of(names: Dict[str, int], value: int) -> str:
    return next(name for name, number in names.items() if number == value)


def text_from(function: Callable[..., int], *arguments: Any) -> str:
    """Calls a function whose last argument gives a text that is ours to free."""
    out = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(out)))
    return take_text(out)


def take_text(out: ctypes.c_void_p) -> str:
    """A text that is ours to free."""
    try:
        return ctypes.string_at(out.value or 0).decode("utf-8", "replace")
    finally:
        lib.loom_free(out)


def handle_from(function: Callable[..., int], *arguments: Any) -> int:
    """Calls a function whose last argument gives a handle."""
    out = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(out)))
    return out.value or 0


_S = TypeVar("_S", bound=ctypes.Structure)


def sized(struct: Type[_S], **fields: Any) -> _S:
    """A struct of the C interface with its size and some fields; the others are zero."""
    return struct(struct_size=ctypes.sizeof(struct), **fields)


def report(struct: Type[_S], function: Callable[..., int], *arguments: Any) -> _S:
    """Calls a function that fills a struct, its last argument."""
    out = sized(struct)
    check(function(*arguments, ctypes.byref(out)))
    return out


class FileBytes:
    """A file in memory as C takes it: address, size and name. Keeps what the address is of."""

    def __init__(self, source: Any, name: Optional[str]) -> None:
        self.kept = source if isinstance(source, bytes) else bytes(source)
        self.arguments = (self.kept, len(self.kept), encoded(name))


def is_bytes(source: object) -> "TypeIs[bytes | bytearray | memoryview]":
    return isinstance(source, (bytes, bytearray, memoryview))


class Callbacks:
    """Python functions as callbacks. An exception in one of them ends the call, which raises it
    again.

    In the main thread a call without functions has callbacks too: Python looks for Ctrl-C only
    while it runs Python code."""

    def __init__(self) -> None:
        self.error: Optional[BaseException] = None
        self._kept: List[Any] = []
        self._called: List[Any] = []

    def wrap(self, kind: Any, function: Optional[Callable[..., Any]], listens: bool = True) -> Any:
        """`function` is given the arguments that C passes after `user`; it stops the call by
        returning False.

        listens: without a function, a callback that only lets Python look for signals."""
        if function is None and not (listens and _is_main_thread()):
            return kind()
        wanted = function or _nothing

        def called(_user: Any, *arguments: Any) -> int:
            try:
                return 1 if self.error is not None or wanted(*arguments) is False else 0
            except BaseException as error:  # KeyboardInterrupt too
                self.error = error
                return 1

        made = kind(called)
        self._kept.append(made)
        self._called.append(called)
        return made

    def run(self, function: Callable[..., int], *arguments: Any) -> int:
        """Calls a function that has these callbacks; check() raises what they raised.

        A signal may be noticed before `called` is in its `try`. Python then cannot hand its
        exception on, and tells sys.unraisablehook about it."""
        if not (self._called and _is_main_thread()):
            return function(*arguments)
        before = sys.unraisablehook

        def hook(told: Any) -> None:
            if any(told.object is called for called in self._called):
                self.error = told.exc_value or told.exc_type()
            else:
                before(told)

        sys.unraisablehook = hook
        try:
            return function(*arguments)
        finally:
            sys.unraisablehook = before

    def check(self, code: int) -> None:
        if self.error is not None:
            raise self.error
        check(code)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _nothing(*_: Any) -> None:
    pass


_H = TypeVar("_H", bound="Handle")


class Handle:
    """An object of the library. close() frees it at once; else it goes with the last reference."""

    _FREE = ""

    def __init__(self, handle: int) -> None:
        self._handle: Optional[int] = handle

    @property
    def handle(self) -> int:
        if not self._handle:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._handle

    @property
    def closed(self) -> bool:
        return not self._handle

    def close(self) -> None:
        """Frees the memory. Closing twice is fine; any other use is a ValueError from now on."""
        handle, self._handle = self._handle, None
        if handle:
            getattr(lib, self._FREE)(handle)

    def __enter__(self: _H) -> _H:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        # An object that was never finished has no handle; at the very end the library may be gone.
        if getattr(self, "_handle", None) and lib is not None:
            self.close()

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be pickled")

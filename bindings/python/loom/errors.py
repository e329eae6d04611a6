"""Exceptions of calls: a class per code of the C interface, each also the built-in exception that
is
nearest to it."""

from typing import Dict, Type


class LoomError(Exception):
    """One line: what went wrong, where, what to do."""

    code = -1


class InvalidArgumentError(LoomError, ValueError):
    """Something that can never work."""

    code = 1


class NotFoundError(LoomError, LookupError):
    """A file, tensor or name that does not exist."""

    code = 2


class IoError(LoomError, OSError):
    """The operating system refused to read or write."""

    code = 3


class BadFileError(LoomError, ValueError):
    """Bytes that are not what their format says."""

    code = 4


class UnsupportedError(LoomError, NotImplementedError):
    """Well-formed, but this build or machine cannot do it."""

    code = 5


class OutOfMemoryError(LoomError, MemoryError):
    """No memory is left, or the limit is reached."""

    code = 6


class OutOfRangeError(LoomError, IndexError):
    """An index, id or position beyond its limit."""

    code = 7


class CancelledError(LoomError):
    """A callback said so."""

    code = 8


class InternalError(LoomError, RuntimeError):
    """A bug of ours; please report it."""

    code = 9


BY_CODE: Dict[int, Type[LoomError]] = {
    error.code: error
    for error in (
        InvalidArgumentError,
        NotFoundError,
        IoError,
        BadFileError,
        UnsupportedError,
        OutOfMemoryError,
        OutOfRangeError,
        CancelledError,
        InternalError,
    )
}

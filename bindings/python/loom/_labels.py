"""Class labels of any kind as the numbers that the library trains on.

Texts, and integers that are not 0, 1, 2 ..., become the index of their class; the network keeps the
names. Integers for a network without room for classes are numbers: the library decides that.
"""

from typing import Any, List, NamedTuple, Optional, Sequence

from .arrays import numpy_module
from .errors import InvalidArgumentError


class Labels(NamedTuple):
    """Targets for the library, and the names of their classes; None: it needs none."""

    values: Any
    names: Optional[List[str]]


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, bytes))


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _plain(y: Any) -> Optional[List[Any]]:
    """Texts or integers, one per sample, as a list; None: y is something else."""
    numpy = numpy_module()
    if isinstance(y, (list, tuple)):
        return list(y) if y and all(_is_text(v) or type(v) is int for v in y) else None
    if numpy is None or not hasattr(y, "__array__"):
        return None
    values = numpy.asarray(y)
    if values.dtype.kind == "O":
        listed = values.tolist()
        return listed if all(_is_text(v) or isinstance(v, int) for v in listed) else None
    one = values.ndim == 1 or (values.ndim == 2 and values.shape[1] == 1)
    if one and values.dtype.kind in "USiu":
        return list(values.reshape(-1).tolist())
    return None


def _indices(y: Sequence[str], names: Sequence[str]) -> List[int]:
    at = {name: i for i, name in enumerate(names)}
    unknown = sorted({v for v in y if v not in at})
    if unknown:
        raise InvalidArgumentError(
            f"label '{unknown[0]}' is not a class of the network; its classes are "
            f"{', '.join(names[:20])}"
        )
    return [at[v] for v in y]


def _whole(values: List[int]) -> Any:
    numpy = numpy_module()
    return values if numpy is None else numpy.array(values, numpy.int32)


def named(y: Any, known: Sequence[str] = (), room: Optional[int] = None) -> Labels:
    """y with its names.

    known: classes of a trained network, which are kept. room: how many classes the network can
    tell apart; integers outside of 0 to room - 1 become classes if their values fit.
    """
    plain = _plain(y)
    if plain is None:
        return Labels(y, None)
    if any(_is_text(v) for v in plain):
        texts = [_text(v) for v in plain]
        names = list(known) or sorted(set(texts))
        return Labels(_whole(_indices(texts, names)), names)
    distinct = sorted(set(plain))
    if known and all(str(v) in known for v in distinct):
        return Labels(_whole(_indices([str(v) for v in plain], known)), list(known))
    inside = room is None or (distinct[0] >= 0 and distinct[-1] < room)
    if known or inside or room is None or room < 2 or len(distinct) > room:
        return Labels(y, None)
    names = [str(v) for v in distinct]
    return Labels(_whole(_indices([str(v) for v in plain], names)), names)


def label_of(names: Sequence[str]) -> List[Any]:
    """Names as they were given: integers if all of them are."""
    whole = all(n.lstrip("-").isdigit() and str(int(n)) == n for n in names)
    return [int(n) for n in names] if names and whole else list(names)

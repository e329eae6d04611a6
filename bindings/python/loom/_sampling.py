"""Options of generation as C takes them: lists, texts and JSON become what the struct points to."""

import ctypes
import json
from typing import Any, Dict, List, Sequence

from . import _ffi
from ._library import encoded, sized
from .options import GENERATE_NONZERO, GENERATE_OPTIONS

# Objects of this package that a text may use.
HANDLES = ("rules", "lookup_text")
_FIELDS = {name for name, *_ in _ffi.loom_generate_options._fields_}


def c_texts(texts: Sequence[str]) -> Any:
    return (ctypes.c_char_p * len(texts))(*[encoded(text) for text in texts])


def _count(name: str) -> str:
    """The field that has the length of a list; "" of a number."""
    stems = (name, name[:-1], name.replace("_ids", ""))
    return next((f"{s}_count" for s in stems if f"{s}_count" in _FIELDS), "")


def _array(name: str, value: Any) -> Any:
    if name == "logit_bias":
        rows: List[Any] = [_ffi.loom_token_bias(token, bias) for token, bias in value.items()]
        return (_ffi.loom_token_bias * len(rows))(*rows)
    items: List[Any] = [value] if isinstance(value, str) else list(value)
    ids = name in ("eos_ids", "banned_tokens")
    return (ctypes.c_int32 * len(items))(*items) if ids else c_texts(items)


def _check(name: str, value: Any) -> None:
    """0 means the default in C, so a default that is not 0 needs a field that says has_."""
    if name in GENERATE_NONZERO and f"has_{name}" not in _FIELDS and value == 0:
        raise ValueError(f"{name} is {value}, must be above 0")


def generate_options(values: Dict[str, Any], **callbacks: Any) -> Any:
    """The struct. Raises TypeError for a name that is not an option."""
    fields: Dict[str, Any] = dict(callbacks)
    types: Dict[str, Any] = {row[0]: row[1] for row in _ffi.loom_generate_options._fields_}
    for name, value in values.items():
        if name in HANDLES:
            fields[name] = None if value is None else value.handle
            continue
        if name not in GENERATE_OPTIONS:
            raise TypeError(f"'{name}' is not an option of generate(); docs/generation-options.md")
        if value is None:
            continue
        _check(name, value)
        if _count(name):
            array = _array(name, value)
            fields[_count(name)] = len(array)
            value = ctypes.cast(array, types[name])
        elif name in ("grammar", "json_schema"):
            value = encoded(value if isinstance(value, str) else json.dumps(value)) or None
        elif f"has_{name}" in _FIELDS:
            fields[f"has_{name}"] = 1
        fields[name] = value
    return sized(_ffi.loom_generate_options, **fields)

"""Options of generation as C takes them: lists, texts and JSON become what the struct points to."""

import ctypes
import json
from typing import Any, Dict, List, Sequence

from . import _ffi
from ._library import encoded, sized

_TEXTS = {"stop": "stop_count", "dry_breakers": "dry_breaker_count",
          "banned_strings": "banned_string_count"}  # fmt: skip
_IDS = {"eos_ids": "eos_count", "banned_tokens": "banned_token_count"}
# What a caller may name that generate() does not.
_MORE = {name for name, *_ in _ffi.loom_generate_options._fields_} - {
    "struct_size", "user", "logit_bias_count", *_TEXTS.values(), *_IDS.values()
}  # fmt: skip


def c_texts(texts: Sequence[str]) -> Any:
    return (ctypes.c_char_p * len(texts))(*[encoded(text) for text in texts])


def _biases(given: Dict[int, float]) -> Any:
    rows: List[Any] = [_ffi.loom_token_bias(token, bias) for token, bias in given.items()]
    return (_ffi.loom_token_bias * len(rows))(*rows)


def generate_options(more: Dict[str, Any], **fields: Any) -> Any:
    """The struct. Raises TypeError for a name that is no option."""
    unknown = sorted(set(more) - _MORE)
    if unknown:
        raise TypeError(f"'{unknown[0]}' is no option of generate(); docs/sampling.md has them")
    fields.update(more)
    for name, count in _TEXTS.items():
        texts = fields.get(name) or []
        array = c_texts([texts] if isinstance(texts, str) else list(texts))
        fields[count] = len(array)
        fields[name] = ctypes.cast(array, ctypes.POINTER(ctypes.c_char_p))
    for name, count in _IDS.items():
        ids = list(fields.get(name) or [])
        fields[count] = len(ids)
        list_ = (ctypes.c_int32 * len(ids))(*ids)
        fields[name] = ctypes.cast(list_, ctypes.POINTER(ctypes.c_int32))
    biases = _biases(fields.get("logit_bias") or {})
    fields["logit_bias_count"] = len(biases)
    fields["logit_bias"] = ctypes.cast(biases, ctypes.POINTER(_ffi.loom_token_bias))
    schema = fields.get("json_schema")
    if schema is not None and not isinstance(schema, str):
        fields["json_schema"] = json.dumps(schema)
    for name in ("grammar", "json_schema"):
        fields[name] = encoded(fields.get(name))
    for name in ("rules", "lookup_text"):
        if fields.get(name) is not None:
            fields[name] = fields[name].handle
    return sized(_ffi.loom_generate_options, **fields)

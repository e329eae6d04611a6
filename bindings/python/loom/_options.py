"""Options by name, as the C interface takes them: each value as a text."""

import dataclasses
import json
import warnings
from typing import Any, Dict, Iterator, Tuple

from ._library import Handle, check, encoded, handle_from, lib, text_from


def _list(values: Any) -> str:
    items = [v.item() if hasattr(v, "item") else v for v in values]
    return json.dumps(items, ensure_ascii=False)


def text_of(value: Any) -> str:
    """As loom_options_set() reads it; a dict of patterns has PATTERN=FACTOR for each."""
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()  # a number of NumPy
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, dict):
        return _list(f"{pattern}={factor}" for pattern, factor in value.items())
    return _list(value)


def flat(values: Dict[str, Any]) -> Iterator[Tuple[str, Any]]:
    """Names and values, of an object inside with a dot: "schedule.floor". None is left out."""
    for name, value in values.items():
        if value is None:
            continue
        if not dataclasses.is_dataclass(value):
            yield name, value
            continue
        fields = {f"{name}.{f.name}": getattr(value, f.name) for f in dataclasses.fields(value)}
        kind = getattr(value, "KIND", None)
        if kind is not None:  # an optimizer; its rate is an option of the trainer
            fields.pop(f"{name}.rate", None)
            fields[f"{name}.kind"] = kind
        yield from flat(fields)


class Options(Handle):
    """A struct of options. Errors: those of loom_options_set()."""

    _FREE = "loom_options_free"

    def __init__(self, kind: str, values: Dict[str, Any]) -> None:
        super().__init__(handle_from(lib.loom_options_new, encoded(kind)))
        for name, value in flat(values):
            check(lib.loom_options_set(self.handle, encoded(name), encoded(text_of(value))))

    def warn_idle(self) -> None:
        """Warns of options without an effect, at the line that called the caller."""
        for line in text_from(lib.loom_options_idle, self.handle).splitlines():
            warnings.warn(line, stacklevel=3)

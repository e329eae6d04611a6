"""Layers in Python: a class per kind, in bindings/python/loom/layers.py."""

import re
import textwrap

from api_layers import WIDTH, Kind, Layers, listed, plain_default, plain_type, python_name, sentence

PYTHON_TYPES = {"int": "int", "double": "float", "bool": "bool", "ints": "Axes"}
LAYERS_TOP = '''\
# {mark}
# fmt: off
"""The layers a network is made of, as plain values: a class per kind, with fields and defaults.

A value that is out of range is an error of the call that makes a network of the layer. Lists take
one number for all axes, or one per axis. In Sequential() the width of the input may be left out:
Dense(32) has 32 outputs, and norms have the width of the layer before.
"""

from dataclasses import dataclass
from typing import Sequence, Union

from ._layer import OPEN, Layer

Axes = Union[int, Sequence[int]]

'''


# The width of the input, and the width that a class takes if only one number is there: Dense(32).
_OPEN = {("in_", "out"), ("in_", "hidden"), ("channels", "filters"), ("width",), ("channels",)}


def open_widths(kind: Kind) -> tuple[str, ...]:
    """Widths of a class that may follow from the input."""
    names = tuple(python_name(f) for f in kind.arguments() if f.required)
    return names if names in _OPEN else ()


def _python_text(text: str) -> str:
    """`in` between brackets is a member, whose name in Python is in_."""
    in_brackets = lambda m: re.sub(r"\bin\b", "in_", m[0])  # noqa: E731
    return re.sub(r"\[[^\]]*\]", in_brackets, text).replace('"""', "'''")


def _docstring(kind: Kind) -> list[str]:
    lines = textwrap.wrap(f'"""{_python_text(kind.help)}', WIDTH, initial_indent="    ",
                          subsequent_indent="    ")  # fmt: skip
    if not kind.fields:
        return [lines[0] + '"""'] if len(lines) == 1 else [*lines, '    """']
    lines.append("")
    for item in kind.arguments():
        lines += textwrap.wrap(f"{python_name(item)}: {sentence(item)}", WIDTH,
                               initial_indent="    ", subsequent_indent="        ")  # fmt: skip
    return [*lines, '    """']


def python(layers: Layers, mark: str) -> str:
    out = []
    for kind in layers.public():
        fields = kind.arguments()
        out += ["", "@dataclass(frozen=True)", f"class {kind.name}(Layer):", *_docstring(kind), ""]
        if kind.children:
            out.append("    children: Sequence[Layer] = ()")
        for item in fields:
            value = plain_default(item, layers.enums)
            text = repr(tuple(value)) if isinstance(value, list) else repr(value)
            default = "" if item.required else f" = {text}"
            default = " = OPEN" if python_name(item) in open_widths(kind) else default
            out.append(f"    {python_name(item)}: {plain_type(item, PYTHON_TYPES, 'str')}{default}")
        if fields or kind.children:
            out.append("")
        names = [f'"{python_name(f)}": "{f.name}"' for f in fields]
        out.append(f'    TYPE = "{kind.type}"')
        out += listed("_NAMES = {", names, "}", "    ")
        if open_widths(kind):
            out.append(f"    _WIDTHS = {open_widths(kind)!r}")
        out.append("")
    names = [f'"{kind.name}"' for kind in layers.public()]
    out += ["", *listed("__all__ = [", names, "]"), ""]
    return LAYERS_TOP.format(mark=mark) + "\n".join(out)

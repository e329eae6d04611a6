"""Shared parts of the writers of other languages: parsed C types, names, wrapped comments.

It knows the description (generate_api.Api) by its tables alone, and no language.
"""

import re
import textwrap
from dataclasses import dataclass

WIDTH = 100
_ARRAY = re.compile(r"^(\w+)\[(\d+)\]$")
_WORDS = {"dtype": "DType", "gpu": "Gpu"}


@dataclass(frozen=True)
class CType:
    """`const char *const *` is base char, pointees (True, True)."""

    base: str  # "int32_t", "char", "void", "loom_tensor"
    kind: str  # "scalar", "char", "void", "enum", "handle", "struct" or "callback"
    pointees: tuple[bool, ...] = ()  # per star, from the left: the pointee is const
    extent: int = 0  # of an array inside of a struct

    @property
    def stars(self) -> int:
        return len(self.pointees)


def kind_of(api, base: str) -> str:
    if base in ("char", "void"):
        return base
    tables = {"enum": api.enums, "handle": api.handles, "struct": api.structs,
              "callback": api.callbacks}  # fmt: skip
    return next((kind for kind, names in tables.items() if base in names), "scalar")


def parse(api, text: str) -> CType:
    array = _ARRAY.match(text)
    if array:
        return CType(array[1], kind_of(api, array[1]), extent=int(array[2]))
    base, constant, pointees = "", False, []
    for token in re.findall(r"const|\*|\w+", text):
        if token == "const":
            constant = True
        elif token == "*":
            pointees.append(constant)
            constant = False
        else:
            base = token
    return CType(base, kind_of(api, base), tuple(pointees))


def type_name(name: str) -> str:
    """loom_model_session_options -> ModelSessionOptions."""
    words = name.removeprefix("loom_").split("_")
    return "".join(_WORDS.get(w, w.capitalize()) for w in words)


def value_name(name: str) -> str:
    """COSINE_RESTARTS -> CosineRestarts; Q4_0 stays unchanged."""
    out = ""
    for word in name.split("_"):
        out += ("_" if out[-1:].isdigit() and word[0].isdigit() else "") + word.capitalize()
    return out


def in_section_order(table: dict, kind: str) -> list[str]:
    return [item["name"] for item in table["order"] if item["kind_of"] == kind]


def comment(doc: str, prefix: str = "// ", indent: str = "") -> list[str]:
    """Comment lines that each begin with `prefix`."""
    words = " ".join(doc.split())
    return [f"{indent}{prefix}{line}".rstrip()
            for line in textwrap.wrap(words, WIDTH - len(indent) - len(prefix))]  # fmt: skip


def listed(opening: str, items: list[str], closing: str, indent: str = "") -> list[str]:
    """opening item, item closing: on one line if it fits, else wrapped."""
    line = f"{indent}{opening}{', '.join(items)}{closing}"
    if len(line) <= WIDTH:
        return [line]
    body = textwrap.wrap(", ".join(items), WIDTH - len(indent) - 4, break_on_hyphens=False)
    return [f"{indent}{opening}", *(f"{indent}    {part}" for part in body), indent + closing]


def function_doc(call: dict) -> str:
    doc = " ".join(call["doc"].split())
    return doc + (" One thread at a time." if call.get("thread") == "handle" else "")

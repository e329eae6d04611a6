"""docs/layers.md: every layer kind and block with its fields, from api/layers.toml."""

import json

from api_layers import Field, Kind, Layers, plain_default, range_text

ABOUT = (
    "Written by `tools/generate_api.py` from `api/layers.toml`. A kind has its name in JSON; C++ "
    "structs and the\nclasses of Python and TypeScript are in brackets if they have another name. "
    "Lists take one number for all\naxes, or one per axis. A field without a default has to be "
    "given in Python and TypeScript. `B` counts\nsamples, `T` steps. [network.md](network.md) has "
    "the form of a file.\n"
)
TITLES = {"layers": "Layers", "graph_layers": "Nodes of graphs", "blocks": "Blocks"}
TYPES = {"int": "integer", "double": "number", "bool": "boolean", "text": "text", "ints": "list"}


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _default(item: Field, layers: Layers) -> str:
    if item.required:
        return ""
    value = plain_default(item, layers.enums)
    return f"`{json.dumps(value)}`"


def _row(item: Field, layers: Layers) -> str:
    type_ = "text" if item.off_on else TYPES.get(item.type, "text")
    cells = (f"`{item.name}`", type_, _default(item, layers), range_text(item), _cell(item.help))
    return f"| {' | '.join(cells)} |"


def _kind(kind: Kind, layers: Layers, names: str) -> list[str]:
    lines = [f"### {names}", "", kind.help, ""]
    if kind.fields:
        lines += ["| field | type | default | range | what it is |", "|---|---|---|---|---|"]
        lines += [_row(item, layers) for item in kind.fields] + [""]
    return lines


def _names(row: Kind, count: int) -> str:
    """Types of all kinds of a row, then the names of their structs."""
    numbers = range(1, count + 1)
    types = ", ".join(row.type.format(n) for n in numbers)
    names = ", ".join(row.name.format(n) for n in numbers)
    return types if types == names else f"{types} ({names})"


def page(layers: Layers, mark: str) -> str:
    lines = [f"<!-- {mark} -->", "# Layers", "", ABOUT]
    for header, title in TITLES.items():
        lines += [f"## {title}", ""]
        for row in layers.rows:
            if row.header == header and not row.by_hand:
                lines += _kind(row, layers, _names(row, 3 if row.struct else 1))
    for enum in layers.enums.values():
        if enum.function:  # the others are in the help of their field
            texts = ", ".join(f"`{text}`" for _, text in enum.words)
            lines += [f"## Texts of `{enum.function}`", "", enum.help, "", f"{texts}.", ""]
    return "\n".join(lines)

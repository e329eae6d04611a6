"""Writes bindings/go/constants.go: the enums of the C interface as types of Go, with names."""

from api_types import comment, type_name, value_name

_KINDS = {"loom_status": "Code"}


def _values(kind: str, values: list) -> list[str]:
    """Laid out as gofmt does: aligned from one comment to the next."""
    out, group = [], []

    def close() -> None:
        width = max((len(name) for name, _ in group), default=0)
        out.extend(f"\t{name:{width}} {kind} = {number}" for name, number in group)
        group.clear()

    for value, number, doc in values:
        if doc:
            close()
            out.extend(comment(doc, "// ", "\t"))
        group.append((kind + value_name(value), number))
    close()
    return out


def write_constants(api, mark: str) -> str:
    out = ["// Code " + mark.replace("; do not edit", ". DO NOT EDIT."), "", "package loom", "",
           'import "strconv"', "",
           "// abiVersion is that of the description this package was made from.",
           f"const abiVersion = {api.abi}", ""]  # fmt: skip
    for name, enum in api.enums.items():
        kind = _KINDS.get(name, type_name(name))
        out += [*comment(f"{kind}: {enum['doc']}"), f"type {kind} int32", "", "const ("]
        out += _values(kind, enum["values"])
        names = [f'"{value.lower()}"' for value, _, _ in enum["values"]]
        lower = kind[0].lower() + kind[1:]
        out += [")", "", f"var {lower}Names = []string{{"]
        out += [f"\t{text}," for text in names]
        out += ["}", "",
                "// String is the name of the value, or its number where a newer library gave it.",
                f"func (v {kind}) String() string {{",
                f"\tif v >= 0 && int(v) < len({lower}Names) {{",
                f"\t\treturn {lower}Names[v]", "\t}",
                "\treturn strconv.Itoa(int(v))", "}", ""]  # fmt: skip
    return "\n".join(out).rstrip() + "\n"

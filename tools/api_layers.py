"""Layers: the rows of api/layers.toml as tables of core, structs of C++ and classes of others.

The head of api/layers.toml has the form.
"""

import re
import textwrap
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from api_options import WIDTH, Wrong, comment, number, quoted

CPP = {"int": "int64_t", "double": "double", "bool": "bool", "text": "std::string", "ints": "Axes"}
CORE = {"int": "integer", "double": "real", "bool": "boolean", "text": "text", "ints": "list"}
HEADERS = ("layers", "graph_layers", "blocks")
AXES = (1, 2, 3)
NO_LIMIT = 2**53 - 1  # beyond it a range says nothing to people
_RANGE = re.compile(r"^\[(\S+), (\S+)\]$")
_KEYS = {"name", "code", "type", "default", "start", "begin", "range", "help", "unset", "off_on",
         "was", "late"}  # fmt: skip
_LAYER_KEYS = {"name", "type", "kind", "id", "definition", "header", "help", "children", "more",
               "struct", "ids", "fields", "order", "cpp_order", "constant",
               "by_hand"}  # fmt: skip


@dataclass(frozen=True)
class Enum:
    name: str
    help: str
    words: tuple[tuple[str, str], ...]  # (name, text of files)
    function: str = ""

    def text(self, name: str) -> str:
        return dict(self.words)[name]


@dataclass(frozen=True)
class Field:
    name: str
    code: str  # in C++, Python, TypeScript
    type: str
    help: str
    required: bool
    default: Any
    begin: Any  # what C++ begins with
    low: float = 0
    high: float = 0
    unset: str = ""
    off_on: tuple[str, ...] = ()
    was: str = ""
    late: bool = False

    @property
    def core(self) -> str:
        return CORE.get(self.type, "text")


@dataclass(frozen=True)
class Kind:
    """A [[layer]]; `axes` above 0: one of a family."""

    name: str
    type: str
    kind: str
    definition: str
    header: str
    help: str
    fields: tuple[Field, ...]
    id: int = -1  # a block
    children: bool = False
    more: bool = False
    order: tuple[str, ...] = ()
    cpp_order: tuple[str, ...] = ()
    constant: tuple[str, int] | None = None
    by_hand: bool = False
    struct: str = ""  # of a family
    axes: int = 0

    @property
    def space(self) -> str:
        """The namespace of its fields."""
        return self.kind.removesuffix(str(self.axes)) if self.axes else self.kind

    def cpp_members(self) -> list[Any]:
        """Fields, "children" and "more" in the order of C++."""
        known = {f.code: f for f in self.fields}
        names = [*(["children"] if self.children else []),
                 *(self.order or known), *(["more"] if self.more else [])]  # fmt: skip
        first = list(self.cpp_order)
        names = first + [name for name in names if name not in first]
        return [known.get(name, name) for name in names]

    def arguments(self) -> list[Field]:
        """Fields in the order of Python: those that have to be given come first."""
        known = {f.code: f for f in self.fields}
        return sorted((known[name] for name in self.order or known), key=lambda f: not f.required)


@dataclass
class Layers:
    enums: dict[str, Enum] = field(default_factory=dict)
    rows: list[Kind] = field(default_factory=list)  # a family is one

    def kinds(self) -> list[Kind]:
        """Each kind of a family separately."""
        return [kind for row in self.rows for kind in _members_of(row)]

    def public(self) -> list[Kind]:
        return [kind for kind in self.kinds() if not kind.by_hand]


def _members_of(row: Kind) -> list[Kind]:
    if not row.struct:
        return [row]
    return [Kind(**{**row.__dict__, "name": row.name.format(n), "type": row.type.format(n),
                    "kind": row.kind.format(n), "definition": row.definition.format(n),
                    "id": row.id + i, "axes": n})
            for i, n in enumerate(AXES)]  # fmt: skip


# ---- reading -------------------------------------------------------------------------------------


def _only(row: dict, known: set[str], where: str) -> None:
    for key in sorted(row.keys() - known):
        raise Wrong(f"{where}: {key} is not one of {', '.join(sorted(known))}")


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _limit(text: str) -> float:
    base, power, exponent = text.partition("^")
    value = int(base) ** int(exponent) if power else float(text)
    return int(value) if value == int(value) and abs(value) <= NO_LIMIT else value


def _limits(row: dict, where: str) -> tuple[float, float]:
    if row["type"] not in ("int", "double", "ints"):
        if "range" in row:
            raise Wrong(f"{where}: a {row['type']} has no range")
        return (0, 1) if row["type"] == "bool" and "off_on" not in row else (0, 0)
    found = _RANGE.match(row.get("range", ""))
    if found is None:
        raise Wrong(f"{where}: range is {row.get('range')!r}; write it as [0, 2^20]")
    return _limit(found[1]), _limit(found[2])


def _first(row: dict, low: float) -> Any:
    """The start value of a required field."""
    if "start" in row:
        return row["start"]
    return {"ints": [], "text": "", "bool": False}.get(row["type"], low)


def _check_field(found: Field, enums: dict[str, Enum], where: str) -> None:
    if found.type not in CPP and found.type not in enums:
        raise Wrong(f"{where}: type {found.type} is not known")
    if found.help.endswith(".") or not found.help:
        raise Wrong(f"{where}: help is a sentence without a full stop")
    values = found.default if isinstance(found.default, list) else [found.default]
    if found.core in ("integer", "real", "list"):
        for value in values:
            if not found.low <= value <= found.high:
                raise Wrong(f"{where}: default {value} is not in its range")
    if found.core == "list" and len(values) > 1:
        raise Wrong(f"{where}: a default has one number or none")
    if found.type in enums:
        if found.default not in dict(enums[found.type].words):
            raise Wrong(f"{where}: {found.default} is not a value of {found.type}")
        for _, text in enums[found.type].words:
            if not enums[found.type].function and not re.search(rf"\b{text}\b", found.help):
                raise Wrong(f"{where}: help does not name {text}")


def _field(row: dict, enums: dict[str, Enum], where: str) -> Field:
    where = f"{where}.{row.get('name', '?')}"
    _only(row, _KEYS, where)
    for key in ("name", "type", "help"):
        if key not in row:
            raise Wrong(f"{where}: has no {key}")
    low, high = _limits(row, where)
    default = row.get("default", _first(row, low))
    found = Field(row["name"], row.get("code", row["name"]), row["type"], row["help"],
                  "default" not in row, default, row.get("begin", default), low, high,
                  row.get("unset", ""), tuple(row.get("off_on", ())),
                  row.get("was", ""), row.get("late", False))  # fmt: skip
    _check_field(found, enums, where)
    return found


def _kind(row: dict, groups: dict[str, list], enums: dict[str, Enum], source: str) -> Kind:
    where = f"{source}: {row.get('name', '?')}"
    _only(row, _LAYER_KEYS, where)
    for key in ("name", "header", "help"):
        if not row.get(key):
            raise Wrong(f"{where}: has no {key}")
    if row["header"] not in HEADERS:
        raise Wrong(f"{where}: header is not one of {', '.join(HEADERS)}")
    rows = []
    for item in row.get("fields", ()):
        if isinstance(item, str) and item not in groups:
            raise Wrong(f"{where}: there is no group {item}")
        rows += groups[item] if isinstance(item, str) else [item]
    block = "id" not in row and "ids" not in row
    kind = row.get("kind", snake(row["name"]))
    of_name = camel(row["name"]) if block else camel(kind)
    found = Kind(
        row["name"], row.get("type", row["name"]), kind, row.get("definition", f"k{of_name}"),
        row["header"], " ".join(row["help"].split()),
        tuple(_field(item, enums, where) for item in rows),
        row.get("ids", [row.get("id", -1)])[0], row.get("children", False), row.get("more", False),
        tuple(row.get("order", ())), tuple(row.get("cpp_order", ())),
        tuple(row["constant"]) if "constant" in row else None, row.get("by_hand", False),
        row.get("struct", ""),
    )  # fmt: skip
    _check_kind(found, row, where)
    return found


def _check_kind(found: Kind, row: dict, where: str) -> None:
    codes = [f.code for f in found.fields]
    if found.order and sorted(found.order) != sorted(codes):
        raise Wrong(f"{where}: order does not name every member once")
    for name in found.cpp_order:
        if name not in (*codes, "children", "more"):
            raise Wrong(f"{where}: cpp_order: there is no member {name}")
    if "ids" in row and row["ids"] != [found.id + i for i in range(len(AXES))]:
        raise Wrong(f"{where}: ids do not follow each other")


def read(path: Path) -> Layers:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    _only(table, {"enum", "group", "layer"}, path.name)
    layers = Layers()
    for row in table.get("enum", ()):
        words = tuple((w, w) if isinstance(w, str) else tuple(w) for w in row["values"])
        layers.enums[row["name"]] = Enum(row["name"], row["help"], words, row.get("function", ""))
    groups = {row["name"]: row["fields"] for row in table.get("group", ())}
    layers.rows = [_kind(row, groups, layers.enums, path.name) for row in table["layer"]]
    kinds = layers.kinds()
    for what, keys in (("type", [k.type for k in kinds]), ("name", [k.name for k in kinds]),
                       ("id", [k.id for k in kinds if k.id >= 0])):  # fmt: skip
        twice = [key for key in keys if keys.count(key) > 1]
        if twice:
            raise Wrong(f"{path.name}: two layers have the {what} {twice[0]}")
    return layers


# ---- tables of core ------------------------------------------------------------------------------


def registry(layers: Layers, mark: str) -> str:
    lines = [f"// {mark}",
             "// The table of layer kinds: LOOM_LAYER(id, enumerator, definition). Ids are frozen: "
             "files and old models use them.",
             "// Those from 200 on are for kinds that no release has yet."]  # fmt: skip
    for kind in sorted((k for k in layers.kinds() if k.id >= 0), key=lambda k: k.id):
        lines.append(f"LOOM_LAYER({kind.id}, {kind.kind}, {kind.definition})")
    return "\n".join([*lines, ""])


def blocks(layers: Layers, mark: str) -> str:
    lines = [f"// {mark}",
             "// The table of blocks: LOOM_BLOCK(definition). A block has no number: files do not "
             "have it."]  # fmt: skip
    lines += [f"LOOM_BLOCK({kind.definition})" for kind in layers.kinds() if kind.id < 0]
    return "\n".join([*lines, ""])


def _core_row(item: Field, enums: dict[str, Enum]) -> str:
    value, text = item.default, ""
    if item.type in enums:
        value, text = 0, enums[item.type].text(item.default)
    elif item.off_on:
        value, text = 0, item.off_on[int(item.default)]
    elif item.type == "text":
        value, text = 0, item.default
    elif item.type == "ints":  # a number below the range: no default
        value = item.default[0] if item.default else item.low - 1
    kind = "text" if item.off_on else item.core
    numbers = ", ".join(f"{int(v)}" if v == int(v) and abs(v) <= NO_LIMIT else repr(float(v))
                        for v in (value, item.low, item.high))  # fmt: skip
    parts = [quoted(item.name), f"FieldType::{kind}", numbers, quoted(text), quoted(item.help)]
    if item.was or item.late:
        parts.append(quoted(item.was))
    if item.late:
        parts.append("true")
    return f"    {{{', '.join(parts)}}},"


def field_tables(layers: Layers, mark: str) -> str:
    """A namespace per row: kFields, and the position of each field by name."""
    lines = [f"// {mark}", "// clang-format off", "//",
             *comment("Fields of every layer kind and block: the table that its LayerDef has, and "
                      "the position of each field by its name, for LayerConfig::integer() and its "
                      "like."),
             "#pragma once", "", '#include "layers/core/config.hpp"', "",
             "namespace loom::core::fields {", ""]  # fmt: skip
    for row in layers.rows:
        if not row.fields:
            continue
        space = _members_of(row)[0].space
        lines.append(f"namespace {space} {{")
        names = [f"k{camel(f.name)} = {i}" for i, f in enumerate(row.fields)]
        lines += textwrap.wrap(f"inline constexpr int {', '.join(names)};", WIDTH,
                               subsequent_indent="    ")  # fmt: skip
        lines.append("inline constexpr FieldDesc kFields[] = {")
        lines += [_core_row(f, layers.enums) for f in row.fields]
        lines += ["};", f"}}  // namespace {space}", ""]
    return "\n".join([*lines, "}  // namespace loom::core::fields", ""])


# ---- structs of C++ ------------------------------------------------------------------------------


def range_text(item: Field) -> str:
    """ "1 to 4096"; empty if there is no limit."""
    if item.core not in ("integer", "real", "list") or item.off_on:
        return ""
    low, high = abs(item.low) < NO_LIMIT, abs(item.high) < NO_LIMIT
    if low and high:
        return f"{number(item.low)} to {number(item.high)}"
    return f"{number(item.low)} or more" if low else ""


def sentence(item: Field) -> str:
    """The help with its range. A leading symbol or value stays unchanged."""
    tail = range_text(item)
    plain = re.match(r"[a-z]+(?![a-z0-9]*:)[ ,;]|[a-z]+$", item.help)
    first = item.help[0].upper() if plain else item.help[0]
    return f"{first}{item.help[1:]}{'; ' + tail if tail else ''}."


def _braced(values: list) -> str:
    return "{" + ", ".join(str(v) for v in values) + "}"


def _member(item: Any, enums: dict[str, Enum]) -> list[str]:
    if item == "children":
        return ["  std::vector<Layer> children = {};"]
    if item == "more":
        return [*comment("Further fields by name; they win over the members.", "  "),
                "  std::vector<LayerField> more = {};"]  # fmt: skip
    text = sentence(item) + (f" 0: {item.unset}." if item.unset else "")
    value = item.begin
    if item.unset:
        value = 0
    elif item.type in enums:
        value = f"{item.type}::{value}"
    elif isinstance(value, list):
        value = _braced(value)
    elif item.type == "text":
        value = quoted(value)
    else:
        value = number(value)
    return [*comment(text, "  "), f"  {CPP.get(item.type, item.type)} {item.code} = {value};"]


def _enum(enum: Enum) -> list[str]:
    names = ", ".join(name for name, _ in enum.words)
    lines = comment(enum.help)
    line = f"enum class {enum.name} : uint8_t {{ {names} }};"
    if len(line) <= WIDTH:
        lines.append(line)
    else:
        lines += [f"enum class {enum.name} : uint8_t {{",
                  *textwrap.wrap(names, WIDTH, initial_indent="  ", subsequent_indent="  "),
                  "};"]  # fmt: skip
    if enum.function:
        lines += [f"LOOM_API std::string_view {enum.function}_name({enum.name} value);",
                  f"LOOM_API Result<{enum.name}> parse_{enum.function}(std::string_view name);"]
    return [*lines, ""]


def _struct(row: Kind, enums: dict[str, Enum]) -> list[str]:
    lines = comment(row.help)
    if row.struct:
        lines.append("template <int kAxes>")
    lines.append(f"struct LOOM_API {row.struct or row.name} {{")
    if row.constant:
        lines.append(f"  static constexpr int64_t {row.constant[0]} = {row.constant[1]};")
    for item in row.cpp_members():
        lines += _member(item, enums)
    lines += ["  operator Layer() const;", "};"]
    lines += [f"using {k.name} = {row.struct}<{k.axes}>;" for k in _members_of(row) if k.axes]
    return [*lines, ""]


ABOUT = {
    "layers": "The layers a network is made of, as plain values: a struct per kind. Each becomes a "
              "Layer. A field that is out of range is an Error of the function that makes a "
              "network of the layer. B counts samples, T steps, and [..] is any number of extents.",
    "graph_layers": "Nodes of a Graph (graph.hpp) as plain values. Those of one input are layers "
                    "of a row, too. Axes count the batch as 0, negative ones from the last.",
    "blocks": "Blocks: layers under one name that others together already compute. A network and "
              "its file hold those others: Graph, Sequential and their nodes. B counts samples, T "
              "and S steps, C channels.",
}  # fmt: skip


def header(layers: Layers, name: str, mark: str) -> str:
    first = name == "layers"
    includes = ["#include <cstdint>", "#include <string>", "#include <string_view>",
                "#include <vector>", "", '#include "loom/export.hpp"',
                f'#include "loom/{"layer" if first else "layers"}.hpp"',
                '#include "loom/result.hpp"']  # fmt: skip
    lines, done = [], set()
    for other in HEADERS[: HEADERS.index(name)]:
        done |= {f.type for row in layers.rows if row.header == other for f in row.fields}
    for row in layers.rows:
        if row.header != name or row.by_hand:
            continue
        for item in row.fields:
            if item.type in layers.enums and item.type not in done:
                done.add(item.type)
                lines += _enum(layers.enums[item.type])
        lines += _struct(row, layers.enums)
    return "\n".join([f"// {mark}", "// clang-format off", "//", *comment(ABOUT[name]),
                      "#pragma once", "", *includes, "", "namespace loom {", "", *lines,
                      "}  // namespace loom", ""])  # fmt: skip


# ---- structs as Layers ---------------------------------------------------------------------------


def _value(item: Field, enums: dict[str, Enum]) -> str:
    if item.type in enums:
        return f"word(k{item.type}, {item.code})"
    if item.off_on:
        off, on = map(quoted, item.off_on)
        return f"{item.code} ? {on} : {off}"
    if not item.unset:
        return item.code
    top, by, divisor = item.unset.partition(" / ")
    unless = f" || {divisor} < 1" if by else ""
    return f"{item.code} > 0{unless} ? {item.code} : {top}{by}{divisor}"


def _operator(row: Kind, enums: dict[str, Enum]) -> list[str]:
    type_ = quoted(row.type)
    lines = []
    if row.struct:
        lines.append("template <int kAxes>")
        head, _, tail = row.type.partition("{}")
        type_ = f"{quoted(head)} + std::to_string(kAxes)" + (f" + {quoted(tail)}" if tail else "")
    scope = f"{row.struct}<kAxes>" if row.struct else row.name
    lines += [f"{scope}::operator Layer() const {{", f"  LayerBuilder b({type_});"]
    lines += [f"  b.add({quoted(f.name)}, {_value(f, enums)});" for f in row.fields]
    if row.more:
        lines.append("  b.add(more);")
    end = "std::move(b).layer(children)" if row.children else "std::move(b).layer()"
    lines += [f"  return {end};", "}"]
    lines += [f"template struct {row.struct}<{k.axes}>;" for k in _members_of(row) if k.axes]
    return lines


def translation(layers: Layers, mark: str) -> str:
    lines = [f"// {mark}", "// clang-format off",
             "// The structs of layers.hpp, graph_layers.hpp and blocks.hpp as Layers.",
             '#include "loom/blocks.hpp"', '#include "loom/graph_layers.hpp"', "",
             "#include <utility>", "", '#include "api/network/layer_builder.hpp"', "",
             "namespace loom {", "namespace {", ""]  # fmt: skip
    for enum in layers.enums.values():
        words = ", ".join(quoted(text) for _, text in enum.words)
        lines += textwrap.wrap(f"constexpr const char* k{enum.name}[] = {{{words}}};", WIDTH,
                               subsequent_indent="    ")  # fmt: skip
    lines += ["", "}  // namespace", ""]
    for row in layers.rows:
        if not row.by_hand:
            lines += _operator(row, layers.enums)
    return "\n".join([*lines, "", "}  // namespace loom", ""])


def every_layer(layers: Layers, mark: str) -> str:
    """For tests: LAYER(struct, type) and MEMBER(struct, member, field) of each."""
    lines = [f"// {mark}", "// clang-format off"]
    for kind in layers.public():
        lines.append(f"LAYER({kind.name}, {quoted(kind.type)})")
        lines += [f"MEMBER({kind.name}, {f.code}, {quoted(f.name)})" for f in kind.fields]
    for enum in layers.enums.values():
        words = ", ".join(quoted(text) for _, text in enum.words)
        lines.append(f"WORDS({enum.name}, {words})")
    return "\n".join([*lines, ""])


def generated(layers: Layers, mark: str) -> dict[str, str]:
    """Path -> text of the C++ of layers."""
    return {
        "src/layers/core/registry.def": registry(layers, mark),
        "src/layers/blocks/blocks.def": blocks(layers, mark),
        "src/layers/core/field_tables.hpp": field_tables(layers, mark),
        **{f"include/loom/{name}.hpp": header(layers, name, mark) for name in HEADERS},
        "src/api/network/layers.cpp": translation(layers, mark),
        "tests/api/every_layer.inl": every_layer(layers, mark),
    }


# ---- Python --------------------------------------------------------------------------------------

def python_name(item: Field) -> str:
    """`in` is a word of the language, and features is a text there."""
    if item.off_on:
        return item.name
    return "in_" if item.code == "in" else item.code


def plain_default(item: Field, enums: dict[str, Enum]) -> Any:
    """As files have it."""
    if item.off_on:
        return item.off_on[int(item.default)]
    return enums[item.type].text(item.default) if item.type in enums else item.default


def plain_type(item: Field, types: dict[str, str], text: str) -> str:
    return text if item.off_on else types.get(item.type, text)


def listed(opening: str, items: list[str], closing: str, indent: str = "") -> list[str]:
    """opening item, item closing: on one line if it fits."""
    line = f"{indent}{opening}{', '.join(items)}{closing}"
    if len(line) <= WIDTH:
        return [line]
    return [f"{indent}{opening}", *(f"{indent}    {item}," for item in items), indent + closing]

"""Options and the names of their values: public C++ structs and the rows of their descriptors.

api/options/*.toml describe them; the head of training.toml has the form.
"""

import re
import textwrap
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

WIDTH = 100
# Type of a description -> type of C++.
CPP = {
    "bool": "bool",
    "int": "int64_t",
    "seed": "uint64_t",
    "float": "float",
    "double": "double",
    "text": "std::string",
    "path": "std::string",
    "ints": "std::vector<int64_t>",
    "floats": "std::vector<float>",
    "texts": "std::vector<std::string>",
    "words": "std::vector<std::string>",
    "rates": "std::vector<RateFor>",
    "tokens": "std::vector<TokenId>",
    "biases": "std::vector<TokenBias>",
}
# Types without a text: their options have no row.
NO_TEXT = ("tokens", "biases")
NUMBERS = ("int", "seed", "float", "double")
_RANGE = re.compile(r"^([\[(])(\S+), (\S+)([\])])$")


class Wrong(Exception):
    """An error in a description: file, position, reason."""


@dataclass(frozen=True)
class Word:
    """A value of an enum; `text` is its name in files and flags."""

    name: str
    help: str
    text: str


@dataclass(frozen=True)
class Enum:
    name: str
    function: str  # "rule": rule_name(), parse_rule()
    what: str  # in messages: "unknown rule 'x'"
    help: str
    words: tuple[Word, ...]
    rows: str = ""  # "learn/optimizer": a folder that has a row for each value
    no_row: tuple[str, ...] = ()  # values without one
    layers: bool = False  # of api/layers.toml, which generates the rest of it

    @property
    def c(self) -> str:
        return f"loom_{self.function}"


@dataclass(frozen=True)
class Option:
    name: str
    type: str  # without "?"
    optional: bool
    help: str
    group: str = ""
    default: Any = None
    range: str = ""
    unit: str = ""
    applies: str = ""  # "loss=focal"
    unset: str = ""
    flag: str = ""
    was: tuple[str, ...] = ()
    usual: Any = None
    since: str = "0.1"
    by_hand: bool = False  # a member that has no row: an engine, a callback
    flat: str = ""  # where structs are flattened: "schedule_floor"
    c: str = ""  # in the frozen struct of C, if it is not `flat`; "!keep_order": the opposite
    names: str = ""  # the enum whose texts {names} in the help becomes

    @property
    def enum(self) -> str:
        """The enum of "Activation[]", a list of values of an enum."""
        return self.type.removesuffix("[]")

    @property
    def cpp(self) -> str:
        if self.enum != self.type:
            return f"std::vector<{self.enum}>"
        plain = CPP.get(self.type, self.type)
        return f"std::optional<{plain}>" if self.optional else plain

    def limits(self) -> tuple[str, str, bool, bool]:
        """Low, high, and whether each is excluded."""
        found = _RANGE.match(self.range)
        if found is None:
            return "-inf", "inf", False, False
        return found[2], found[3], found[1] == "(", found[4] == ")"


@dataclass(frozen=True)
class Group:
    name: str
    title: str  # a heading of --help and of docs


@dataclass(frozen=True)
class Struct:
    name: str
    help: str
    options: tuple[Option, ...]
    groups: tuple[Group, ...] = ()
    c: str = ""
    kind: str = ""  # of loom_options_new(); "" if it is inside another struct
    flat: str = ""  # the prefix of the flat names of its options
    rows: bool = False  # has rows without a kind: in C and Python it is a struct

    @property
    def has_rows(self) -> bool:
        return bool(self.kind) or self.rows


@dataclass
class Vocabulary:
    """One file of api/options."""

    source: str
    kinds: str  # header of the enums; may be empty
    header: str  # of the structs
    about: str = ""  # "Options of training"
    includes: tuple[str, ...] = ()  # of the header
    enums: dict[str, Enum] = field(default_factory=dict)  # with those of other files that it uses
    structs: dict[str, Struct] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)  # names of other files
    parts: tuple[dict, ...] = ()  # [[part]]: api_options_parts.py
    rows: str = ""  # the file of its rows, if it is not in src/options

    def own_enums(self) -> list[Enum]:
        return [enum for enum in self.enums.values() if enum.name not in self.used]

    def own_structs(self) -> list[Struct]:
        return [struct for struct in self.structs.values() if struct.name not in self.used]

    def user_structs(self) -> list[Struct]:
        """Those that a user fills."""
        return [struct for struct in self.own_structs() if struct.has_rows]

    def named_structs(self) -> list[Struct]:
        """Those that loom_options_new() makes."""
        return [struct for struct in self.own_structs() if struct.kind]


# ---- reading -------------------------------------------------------------------------------------


def _only(row: dict, known: set[str], where: str) -> None:
    for key in row.keys() - known:
        raise Wrong(f"{where}: {key} is not one of {', '.join(sorted(known))}")


def _option(row: dict, where: str) -> Option:
    where = f"{where}.{row.get('name', '?')}"
    _only(row, {"name", "type", "default", "range", "unit", "for", "help", "flag", "was", "unset",
                "usual", "since", "group", "by_hand", "flat", "c", "names"}, where)  # fmt: skip
    for key in ("name", "type", "help"):
        if not row.get(key):
            raise Wrong(f"{where}: has no {key}")
    if row.get("range") and not _RANGE.match(row["range"]):
        raise Wrong(f"{where}: range is {row['range']}; write it as [0, 1] or (0, inf)")
    type_ = row["type"].removesuffix("?")
    return Option(
        row["name"], type_, row["type"].endswith("?"), row["help"], row.get("group", ""),
        row.get("default"),
        row.get("range", ""), row.get("unit", ""), row.get("for", ""), row.get("unset", ""),
        row.get("flag", row["name"]).replace("_", "-"), tuple(row.get("was", ())),
        row.get("usual"), row.get("since", "0.1"), row.get("by_hand", False), row.get("flat", ""),
        row.get("c", ""), row.get("names", ""),
    )  # fmt: skip


def _with_names(option: Option, enums: dict[str, Enum], where: str) -> Option:
    """The option with the texts of its enum in place of {names}."""
    if not option.names:
        return option
    if option.names not in enums or "{names}" not in option.help:
        raise Wrong(f"{where}.{option.name}: names is an enum, for {{names}} in the help")
    texts = ", ".join(word.text for word in enums[option.names].words)
    return replace(option, help=option.help.replace("{names}", texts))


def _enum(row: dict, where: str) -> Enum:
    _only(row, {"name", "function", "what", "help", "values", "rows", "no_row"}, where)
    words = tuple(Word(name, help_, *text or [name]) for name, help_, *text in row["values"])
    return Enum(row["name"], row["function"], row["what"], row["help"], words, row.get("rows", ""),
                tuple(row.get("no_row", ())))  # fmt: skip


def _struct(row: dict, enums: dict[str, Enum], where: str) -> Struct:
    _only(row, {"name", "c", "kind", "flat", "rows", "help", "groups", "options"}, where)
    groups = tuple(Group(*group) for group in row.get("groups", ()))
    options = tuple(_with_names(_option(o, where), enums, where) for o in row["options"])
    for option in options:
        if option.group not in [g.name for g in groups] and (groups or option.group):
            raise Wrong(f"{where}.{option.name}: group {option.group} is not one of its groups")
    return Struct(row["name"], " ".join(row["help"].split()), options, groups,
                  row.get("c", ""), row.get("kind", ""), row.get("flat", ""),
                  row.get("rows", False))  # fmt: skip


def _check(option: Option, struct: Struct, v: Vocabulary) -> None:
    where = f"{v.source}: {struct.name}.{option.name}"
    if option.by_hand:
        return
    if option.type not in CPP and option.enum not in v.enums and option.type not in v.structs:
        raise Wrong(f"{where}: type {option.type} is not known")
    if option.range and option.type not in (*NUMBERS, "ints", "floats", "rates"):
        raise Wrong(f"{where}: a {option.type} has no range")
    if option.type in v.enums and option.default is not None:
        if option.default not in [w.name for w in v.enums[option.type].words]:
            raise Wrong(f"{where}: {option.default} is not a value of {option.type}")
    if option.enum != option.type:
        for name in option.default or ():
            if name not in [w.name for w in v.enums[option.enum].words]:
                raise Wrong(f"{where}: {name} is not a value of {option.enum}")
    if option.type in ("bool", *NUMBERS) and not option.optional and option.default is None:
        raise Wrong(f"{where}: has no default")
    if option.applies:
        other, _, values = option.applies.partition("=")
        kind = next((o.type for o in struct.options if o.name == other), "")
        names = [w.name for w in v.enums[kind].words] if kind in v.enums else []
        for value in values.split(","):
            if value not in names:
                raise Wrong(f"{where}: for {option.applies}: {other} has no value {value}")


def _use(v: Vocabulary, path: Path) -> None:
    """Enums and structs of another file; of api/layers.toml the enums that have a function."""
    if path.name != "layers.toml":
        other = read(path)
        v.enums.update(other.enums)
        v.structs.update(other.structs)
        v.used |= other.enums.keys() | other.structs.keys()
        return
    for row in tomllib.loads(path.read_text(encoding="utf-8"))["enum"]:
        if "function" in row:
            words = (w if isinstance(w, list) else [w, w] for w in row["values"])
            named = tuple(Word(name, "", text) for name, text in words)
            v.enums[row["name"]] = Enum(row["name"], row["function"], row["function"],
                                        row["help"], named, layers=True)  # fmt: skip
            v.used.add(row["name"])


def read(path: Path) -> Vocabulary:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    _only(table, {"kinds", "structs", "rows", "about", "includes", "uses", "enum", "struct",
                  "part"}, path.name)  # fmt: skip
    v = Vocabulary(path.name, table.get("kinds", ""), table["structs"], table.get("about", ""),
                   tuple(table.get("includes", ())))  # fmt: skip
    v.parts, v.rows = tuple(table.get("part", ())), table.get("rows", "")
    for name in table.get("uses", ()):
        _use(v, path.parent / name)
    for row in table.get("enum", ()):
        v.enums[row["name"]] = _enum(row, f"{path.name}: {row['name']}")
    for row in table.get("struct", ()):
        v.structs[row["name"]] = _struct(row, v.enums, f"{path.name}: {row['name']}")
    for struct in v.own_structs():
        for option in struct.options:
            _check(option, struct, v)
    return v


# ---- sentences -----------------------------------------------------------------------------------


def number(value: Any) -> str:
    """0.002, 1e-05, 10: as C++, Python and JSON all read it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (int, str)) else f"{value:g}"


def applies_text(option: Option) -> str:
    """ "focal", of "loss=focal"."""
    return option.applies.partition("=")[2].replace(",", ", ")


def range_text(option: Option) -> str:
    """ "above 0": as OptionRange::text() says it."""
    if not option.range:
        return ""
    low, high, low_open, high_open = option.limits()
    if "inf" in high:
        return f"above {low}" if low_open else f"{low} or more"
    if low_open and high_open:
        return f"between {low} and {high}"
    if low_open:
        return f"above {low}, up to {high}"
    return f"from {low}, below {high}" if high_open else f"{low} to {high}"


def sentence(option: Option) -> str:
    """The help with its purpose, unit and range: the one text of every surface."""
    text = option.help
    if option.applies:
        text = f"{applies_text(option)}: {text[0].lower()}{text[1:]}"
    tail = " ".join(part for part in (range_text(option), option.unit) if part)
    if tail:
        text = f"{text.rstrip('.')}; {tail}."
    if option.unset:
        text += f" Unset: {option.unset}."
    return text


# ---- the public header ---------------------------------------------------------------------------


def comment(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(" ".join(text.split()), WIDTH, initial_indent=f"{indent}// ",
                         subsequent_indent=f"{indent}// ")  # fmt: skip


def _member(option: Option, v: Vocabulary) -> str:
    if option.enum != option.type:
        values = ", ".join(f"{option.enum}::{name}" for name in option.default or ())
        return f"  {option.cpp} {option.name}{' = {' + values + '}' if values else '{}'};"
    if option.type == "words" and option.default:
        return f"  {option.cpp} {option.name} = {{{', '.join(map(quoted, option.default))}}};"
    if option.type == "text" and option.default:
        return f"  {option.cpp} {option.name} = {quoted(option.default)};"
    inside = option.type in v.structs or CPP.get(option.type, "").startswith("std::")
    if option.by_hand or option.optional or inside:
        return f"  {option.cpp} {option.name}{{}};"
    if option.type in v.enums:
        return f"  {option.cpp} {option.name} = {option.type}::{option.default};"
    value = number(option.default)
    if option.type == "float" and re.search(r"[.e]", value):
        value += "f"
    return f"  {option.cpp} {option.name} = {value};"


def _enum_lines(enum: Enum) -> list[str]:
    lines = [*comment(enum.help), f"enum class {enum.name} : uint8_t {{"]
    for i, word in enumerate(enum.words):
        comma = "," if i + 1 < len(enum.words) else ""
        lines += comment(f"{word.help[0].upper()}{word.help[1:]}.", "  ")
        lines.append(f"  {word.name}{comma}")
    return [*lines, "};",
            f"LOOM_API std::string_view {enum.function}_name({enum.name} value);",
            f"LOOM_API Result<{enum.name}> parse_{enum.function}(std::string_view name);",
            ""]  # fmt: skip


def _struct_lines(struct: Struct, v: Vocabulary) -> list[str]:
    lines = [*comment(struct.help), f"struct {struct.name} {{"]
    for option in struct.options:
        lines += [*comment(sentence(option), "  "), _member(option, v)]
    return [*lines, "};", *(_declared(struct) if struct.has_rows else []), ""]


def _declared(struct: Struct) -> list[str]:
    name = struct.name
    set_ = f"LOOM_API Status set_option({name}& options, std::string_view name,"
    text = " std::string_view text);"
    if len(set_ + text) > WIDTH:
        text = "\n" + " " * len("LOOM_API Status set_option(") + text.lstrip()
    return [set_ + text,
            f"LOOM_API Status set_flag({name}& options, std::string_view flag,",
            "                         const std::vector<std::string>& values);",
            f"LOOM_API Result<std::string> option_text(const {name}& options, std::string_view "
            "name);",
            f"LOOM_API std::vector<OptionInfo> list_options(const {name}& options);",
            f"LOOM_API std::vector<std::string> idle_options(const {name}& options);",
            f"LOOM_API Status check_options(const {name}& options);",
            f"LOOM_API std::string describe(const {name}& options);"]  # fmt: skip


def _header(mark: str, doc: str, includes: list[str], body: list[str]) -> str:
    paragraphs = [["//", *comment(part)] for part in doc.split("\n\n")]
    return "\n".join([f"// {mark}", *sum(paragraphs, []), "#pragma once", "", *includes, "",
                      "namespace loom {", "", *body, "}  // namespace loom", ""])  # fmt: skip


def kinds_header(v: Vocabulary, mark: str) -> str:
    doc = f"""{v.about}: kinds. X_name() is the text of a value, as files and flags say it, and
    "unknown" of no value. parse_X() reads it, whatever its case. Errors: invalid_argument, with
    the texts there are."""
    includes = ["#include <cstdint>", "#include <string_view>", "", '#include "loom/export.hpp"',
                '#include "loom/result.hpp"']  # fmt: skip
    return _header(mark, doc, includes,
                   [line for enum in v.own_enums() for line in _enum_lines(enum)])  # fmt: skip


SETTING = """set_option() reads a text, as files and flags have it: true, 0.1, cosine; numbers of a
    list as 1,2.5,1; texts as ["a", "b"]; "" unsets. Options of a struct inside have a dot:
    schedule.floor; "schedule" alone is schedule.kind. set_flag() takes the flag of the program,
    without dashes, and the values that follow it: several of a list. Its messages name the flag.
    option_text() is the text that reads back as the same value. check_options() holds all numbers
    against their ranges. list_options() has all that is known of each option, describe() the same
    as a JSON array. idle_options() has a line for each option that differs from its default and has
    no effect beside the others. Errors: not_found, with the closest name; invalid_argument,
    "margin is -1, must be above 0"."""


def structs_header(v: Vocabulary, mark: str) -> str:
    doc = f"""{v.about}. A sentence begins with the kinds that the option is for, and ends with its
    range and unit.\n\n{SETTING}"""
    own = [f'#include "{public(v.kinds)}"'] if v.kinds else []
    types = " ".join(o.type for s in v.own_structs() for o in s.options)
    engine = ['#include "loom/engine.hpp"'] if "Engine" in types or not v.includes else []
    loom = sorted({*engine, '#include "loom/option_info.hpp"', *own,
                   *(f'#include "{name}"' for name in v.includes)})  # fmt: skip
    system = ["functional"] if "std::function" in types else []
    system += ["memory"] if "std::shared_ptr" in types else []
    system = [f"#include <{name}>" for name in sorted([*system, "optional", "string", "vector"])]
    return _header(mark, doc, [*system, "", *loom],
                   [line for s in v.own_structs() for line in _struct_lines(s, v)])  # fmt: skip


# ---- names of values -----------------------------------------------------------------------------


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def public(header: str) -> str:
    return header.removeprefix("include/").removeprefix("src/")


def word_table(enum: Enum) -> list[str]:
    lines = [f"static constexpr core::Word k{enum.name}[] = {{"]
    for word in enum.words:
        name = "" if word.text == word.name else word.name
        lines.append(f"    {{{quoted(word.text)}, {quoted(name)}}},")
    return [*lines, "};"]


def words(enum: Enum, shared: bool = False) -> list[str]:
    """The functions that name and read the values of an enum. shared: rows of other files
    have it."""
    table, name = f"k{enum.name}", enum.name
    more = [f"std::span<const core::Word> core::words_of({name}) {{", f"  return {table};", "}"]
    return [*word_table(enum), *(more if shared else []),
            f"std::string_view {enum.function}_name({enum.name} value) {{",
            f"  return core::word_of({table}, value);", "}",
            f"Result<{enum.name}> parse_{enum.function}(std::string_view name) {{",
            f"  return core::value_of<{enum.name}>({quoted(enum.what)}, {table}, name);", "}",
            ""]  # fmt: skip


# ---- rows of options -----------------------------------------------------------------------------


def flat(struct: Struct, v: Vocabulary, prefix: str = "", path: str = "",
         all_: bool = True) -> list[tuple]:  # fmt: skip
    """Each option with its own value: dotted name, path in C++, option. all_: with those of structs
    inside that have rows of their own."""
    rows = []
    for option in struct.options:
        if option.by_hand:
            continue
        name, at = prefix + option.name, f"{path}.{option.name}"
        if option.type not in v.structs:
            rows.append((name, at, option))
        elif all_ or not v.structs[option.type].has_rows:
            rows += flat(v.structs[option.type], v, f"{name}.", at, all_)
    return rows


def in_rows(struct: Struct, v: Vocabulary) -> list[tuple]:
    """The options that have a row of this struct, as flat() lists them."""
    return [row for row in flat(struct, v, all_=False) if row[2].type not in NO_TEXT]


def flat_name(dotted: str, option: Option, struct: Struct, v: Vocabulary) -> str:
    """Names of flattened structs: "schedule_floor", "schedule" for its kind, "beta1"."""
    outer, _, inner = dotted.partition(".")
    if not inner or option.flat:
        return option.flat or outer
    if inner == "kind":
        return outer
    inside = v.structs[next(o for o in struct.options if o.name == outer).type]
    return inside.flat + flat_name(inner, option, inside, v)


def _limit(text: str) -> str:
    return {"-inf": "-kInfinity", "inf": "kInfinity"}.get(text, text)


def only_with(dotted: str, option: Option, struct: Struct, v: Vocabulary) -> str:
    """ "schedule.kind=step,cosine": an option, and the texts of its values."""
    if not option.applies:
        return ""
    on, _, names = option.applies.partition("=")
    outer, _, inner = dotted.rpartition(".")
    inside = v.structs[next(o.type for o in struct.options if o.name == outer)] if outer else struct
    enum = v.enums[next(o.type for o in inside.options if o.name == on)]
    texts = [next(w.text for w in enum.words if w.name == name) for name in names.split(",")]
    return f"{outer + '.' if outer else ''}{on}={','.join(texts)}"


def _row(name: str, at: str, option: Option, struct: Struct, v: Vocabulary,
         group: str) -> list[str]:  # fmt: skip
    low, high, low_open, high_open = option.limits()
    value = f"&static_cast<{struct.name}*>(o)->{at[1:]}"
    if option.enum in v.enums:
        enum = v.enums[option.enum]
        elsewhere = enum.name in v.used and not enum.layers  # another file has its table of words
        words_ = f"words_of({enum.name}{{}})" if elsewhere else f"k{enum.name}"
        one = "enum_if_set" if option.optional else "enum_value"
        function = one if option.enum == option.type else "enum_list"
        value = f"{function}({value}, {quoted(enum.what)}, {words_})"
    type_ = option.type + ("?" if option.optional else "")
    was = ",".join(flag.removeprefix("--") for flag in option.was)
    return [f"    {{{quoted(name)}, {quoted(option.flag)}, {quoted(was)}, {quoted(group)}, "
            f"{quoted(type_)},",
            f"     {quoted(sentence(option))},",
            f"     {{{_limit(low)}, {_limit(high)}, {number(low_open)}, {number(high_open)}}}, "
            f"{quoted('' if option.usual is None else number(option.usual))}, "
            f"{quoted(only_with(name, option, struct, v))},",
            f"     [](void* o) -> OptionValue {{ return {value}; }}}},"]  # fmt: skip


def table(struct: Struct, v: Vocabulary) -> list[str]:
    """The rows of a struct that a user fills, and the functions that use them."""
    name, rows = struct.name, f"k{struct.name}"
    lines = [f"static constexpr core::OptionRow {rows}[] = {{"]
    titles = {group.name: group.title for group in struct.groups}
    heads = {option.name: titles.get(option.group, "") for option in struct.options}
    for dotted, at, option in in_rows(struct, v):
        lines += _row(dotted, at, option, struct, v, heads[dotted.partition(".")[0]])
    # The checks of a struct without a kind do not keep the texts of the rows in small libraries.
    checked = rows if struct.kind else f"core::kLimits<{rows}>"
    return [*lines, "};",
            f"Status set_option({name}& options, std::string_view name, std::string_view text) {{",
            f"  return core::set_option({rows}, &options, name, text);", "}",
            f"Status set_flag({name}& options, std::string_view flag,",
            "                const std::vector<std::string>& values) {",
            f"  return core::set_flag({rows}, &options, flag, values);", "}",
            f"Result<std::string> option_text(const {name}& options, std::string_view name) {{",
            f"  return core::option_text({rows}, &options, name);", "}",
            f"std::vector<std::string> idle_options(const {name}& options) {{",
            f"  return core::idle_options({rows}, &options, &core::kUsual<{name}>);", "}",
            f"std::vector<OptionInfo> list_options(const {name}& options) {{",
            f"  return core::list_options({rows}, &options);", "}",
            f"Status check_options(const {name}& options) {{",
            f"  return core::check_options({checked}, &options);", "}",
            f"std::string describe(const {name}& options) {{",
            f"  return core::describe_options(list_options(options));", "}", ""]  # fmt: skip


def shared_enums(vocabularies: list[Vocabulary]) -> dict[str, Vocabulary]:
    """Enums whose words rows of other files have, each with the file that it is of."""
    names = {option.type for v in vocabularies for struct in v.user_structs()
             for _, _, option in in_rows(struct, v) if option.type in v.used}  # fmt: skip
    return {enum.name: v for v in vocabularies for enum in v.own_enums() if enum.name in names}


def source(v: Vocabulary, shared: dict[str, Vocabulary], mark: str) -> str:
    lines = [f"// {mark}", "// clang-format off", "", f'#include "{public(v.header)}"',
             '#include "options/option.hpp"', '#include "options/words.hpp"',
             '#include "options/words_of.hpp"', "", "namespace loom {", "",
             "using core::OptionValue, core::kInfinity, core::enum_if_set, core::enum_list, "
             "core::enum_value,", "    core::words_of;", ""]  # fmt: skip
    for enum in v.enums.values():
        if enum.layers:
            lines += [*word_table(enum), ""]
    for enum in v.own_enums():
        lines += words(enum, enum.name in shared)
    for struct in v.user_structs():
        lines += table(struct, v)
    return "\n".join([*lines, "}  // namespace loom", ""])


def words_of(shared: dict[str, Vocabulary], mark: str) -> str:
    includes = sorted({f'#include "{public(v.kinds)}"' for v in shared.values()})
    lines = [f"// {mark}", "//", "// The words of enums that rows of several files have.",
             "#pragma once", "", "#include <span>", "", *includes, '#include "options/words.hpp"',
             "", "namespace loom::core {", "",
             *(f"std::span<const Word> words_of({name} value);" for name in shared)]  # fmt: skip
    return "\n".join([*lines, "", "}  // namespace loom::core", ""])


def generated(vocabularies: list[Vocabulary], mark: str) -> dict[str, str]:
    """Path -> text."""
    shared = shared_enums(vocabularies)
    files = {"src/options/words_of.hpp": words_of(shared, mark)}
    for v in vocabularies:
        if v.kinds:
            files[v.kinds] = kinds_header(v, mark)
        files[v.header] = structs_header(v, mark)
        rows = v.rows or f"src/options/{v.source.removesuffix('.toml')}.cpp"
        files[rows] = source(v, shared, mark)
    return files

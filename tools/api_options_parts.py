"""Structs of core that have some options of a public struct, and the functions that fill them.

A [[part]] of api/options/*.toml describes one; the head of training.toml has the form.
"""

from dataclasses import dataclass
from typing import Any

import api_options
from api_options import Option, Struct, Vocabulary, Wrong

STRUCTS = "src/learn/option_structs.hpp"
FILLS = "src/api/train/fill_options.hpp"
SAVED = "src/learn/saved_options.hpp"
_PART = {"name", "of", "into", "at", "help", "members", "more", "saved"}
_MEMBER = {"name", "option", "type", "default", "unless", "key"}


@dataclass(frozen=True)
class Member:
    name: str
    option: Option
    type: str  # of C++
    default: str
    unless: str  # a value of the option that leaves the member as it is
    key: str  # in checkpoints

    @property
    def optional(self) -> bool:
        return self.type.startswith("std::optional<")


@dataclass(frozen=True)
class Part:
    name: str
    into: str  # the struct of core that has it
    at: str  # its member there; "" if it is that struct itself
    help: str
    members: tuple[Member, ...]
    more: str  # further members in C++
    saved: str = ""  # when checkpoints have it: "always", "each" or the name of a member


def _member(row: dict[str, Any], struct: Struct, v: Vocabulary, where: str) -> Member:
    for key in row.keys() - _MEMBER:
        raise Wrong(f"{where}: {key} is not one of {', '.join(sorted(_MEMBER))}")
    name = row["name"]
    option = next((o for o in struct.options if o.name == row.get("option", name)), None)
    if option is None:
        raise Wrong(f"{where}.{name}: {struct.name} has no option {row.get('option', name)}")
    type_ = row.get("type", option.cpp)
    default = row.get("default", option.default)
    if option.type in v.enums and default is not None:
        text = f"{option.type}::{default}"
    else:
        text = "" if default is None or isinstance(default, list) else api_options.number(default)
    if type_ == "float" and any(mark in text for mark in ".e"):
        text += "f"
    key = row.get("key", option.name)
    return Member(name, option, type_, text, row.get("unless", ""), key)


def parts(v: Vocabulary) -> list[Part]:
    """The parts that a file describes."""
    found = []
    for row in v.parts:
        where = f"{v.source}: part {row.get('name', '?')}"
        for key in row.keys() - _PART:
            raise Wrong(f"{where}: {key} is not one of {', '.join(sorted(_PART))}")
        struct = v.structs[row["of"]]
        members = tuple(_member(m if isinstance(m, dict) else {"name": m}, struct, v, where)
                        for m in row["members"])  # fmt: skip
        saved = row.get("saved", "")
        if saved not in ("", "always", "each", *(m.name for m in members)):
            raise Wrong(f"{where}: saved is {saved}; write always, each or a member")
        found.append(Part(row["name"], row["into"], row.get("at", ""), row.get("help", ""),
                          members, row.get("more", ""), saved))  # fmt: skip
    return found


def _struct(part: Part) -> list[str]:
    lines = [*api_options.comment(part.help), f"struct {part.name} {{"]
    for m in part.members:
        value = f" = {m.default}" if m.default and not m.optional else "{}"
        lines += [*api_options.comment(api_options.sentence(m.option), "  "),
                  f"  {m.type} {m.name}{value};"]  # fmt: skip
    if part.more:
        lines += ["", *(f"  {line}" if line else "" for line in part.more.strip().split("\n"))]
    return [*lines, "};", ""]


def structs(all_parts: list[Part], headers: list[str], mark: str) -> str:
    lines = [f"// {mark}", "//", "// Options of training as parts of a run.", "#pragma once", "",
             "#include <optional>", "#include <string>", "#include <vector>", "",
             *(f'#include "{header}"' for header in headers), "", "namespace loom::core {",
             ""]  # fmt: skip
    for part in (part for part in all_parts if part.help):
        lines += _struct(part)
    return "\n".join([*lines, "}  // namespace loom::core", ""])


def _assign(part: Part, m: Member) -> list[str]:
    """Statements that fill a member, if the struct of options has the option."""
    to = f"to.{part.at + '.' if part.at else ''}{m.name}"
    value = f"from.{m.option.name}"
    inner = m.type.removeprefix("std::optional<").removesuffix(">")
    source = m.option.cpp.removeprefix("std::optional<").removesuffix(">")
    test = ""
    if m.option.optional:
        test, value = f"if ({value}) ", f"*{value}"
    elif m.unless:
        test = f"if ({value} != {m.option.type}::{m.unless}) "
    if inner != source:
        value = f"static_cast<{inner}>({value})"
    return [f"  if constexpr (requires {{ from.{m.option.name}; }}) {{",
            f"    {test}{to} = {value};", "  }"]  # fmt: skip


def fills(all_parts: list[Part], mark: str) -> str:
    lines = [f"// {mark}", "//",
             *api_options.comment("Fills structs of core from structs of options. Options that a "
                                  "struct lacks leave their member as it is."),
             "#pragma once", "", '#include "learn/trainer.hpp"', "", "namespace loom::core {",
             ""]  # fmt: skip
    for into in dict.fromkeys(part.into for part in all_parts):
        lines += ["template <class Options>",
                  f"void fill_options(const Options& from, {into}& to) {{"]  # fmt: skip
        for part in (part for part in all_parts if part.into == into):
            for m in part.members:
                lines += _assign(part, m)
        lines += ["}", ""]
    return "\n".join([*lines, "}  // namespace loom::core", ""])


def saved(all_parts: list[Part], mark: str) -> str:
    """Functions that visit what checkpoints have of a part."""
    lines = [f"// {mark}", "//", "// Members of options that checkpoints of training have, with "
             "their keys.", "#pragma once", "", '#include "learn/option_structs.hpp"', "",
             "namespace loom::core {", ""]  # fmt: skip
    for part in (part for part in all_parts if part.saved):
        visits = [(m, f'visit("{m.key}", of.{m.name});') for m in part.members]
        lines += ["template <class Visit>",
                  f"void each_saved(const {part.name}& of, const Visit& visit) {{"]  # fmt: skip
        if part.saved not in ("always", "each"):
            lines.append(f"  if (!(of.{part.saved} > 0)) return;")
        for m, visit in visits:
            lines.append(f"  if (of.{m.name} > 0) {visit}" if part.saved == "each"
                         else f"  {visit}")  # fmt: skip
        lines += ["}", ""]
    return "\n".join([*lines, "}  // namespace loom::core", ""])


def generated(vocabularies: list[Vocabulary], mark: str) -> dict[str, str]:
    files = [v for v in vocabularies if v.parts]
    found = [part for v in files for part in parts(v)]
    headers = [api_options.public(v.header) for v in files]
    return {STRUCTS: structs(found, headers, mark), FILLS: fills(found, mark),
            SAVED: saved(found, mark)}  # fmt: skip

"""Options in TypeScript: an interface for each struct, flat but for those that stay together."""

import textwrap

import api_options
from api_options import Enum, Option, Struct, Vocabulary

FILE = "bindings/typescript/src/options.ts"
PLAIN = {"bool": "boolean", "int": "number", "seed": "number | bigint", "float": "number",
         "double": "number", "text": "string", "ints": "readonly number[]",
         "floats": "readonly number[]", "texts": "readonly string[]", "words": "readonly string[]",
         "rates": "Readonly<Record<string, number>>"}  # fmt: skip
# Structs whose options are members of an object of their own.
TOGETHER = ("Augment",)


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _type(option: Option, v: Vocabulary) -> str:
    return v.enums[option.type].name if option.type in v.enums else PLAIN[option.type]


def _member(name: str, type_: str, option: Option) -> list[str]:
    lines = textwrap.wrap(f"/** {api_options.sentence(option)}\0*/", 116, initial_indent="  ",
                          subsequent_indent="   * ")  # fmt: skip
    lines = [line.replace("\0", " ") for line in lines]
    return [*lines, f"  {camel(name)}?: {type_};"]


def members(struct: Struct, v: Vocabulary) -> list[tuple[str, str, Option]]:
    """Name, type and option of each member."""
    found = []
    for dotted, _, option in api_options.flat(struct, v):
        outer = next(o for o in struct.options if o.name == dotted.partition(".")[0])
        if outer.type not in TOGETHER:
            name = api_options.flat_name(dotted, option, struct, v)
            found.append((name, _type(option, v), option))
        elif outer.name not in [name for name, _, _ in found]:
            found.append((outer.name, outer.type, outer))
    return found


def _enum(enum: Enum) -> list[str]:
    texts = sorted({w.name for w in enum.words} | {w.text for w in enum.words})
    union = textwrap.wrap(" | ".join(f'"{text}"' for text in texts), 116, initial_indent="  ",
                          subsequent_indent="  ")  # fmt: skip
    union[-1] += ";"
    return [f"/** {enum.help} */", f"export type {enum.name} =", *union]


def _names(name: str, constant: str, names: list[str]) -> list[str]:
    rows = textwrap.wrap(", ".join(f'"{one}"' for one in names), 112, initial_indent="  ",
                         subsequent_indent="  ")  # fmt: skip
    return ["", f"/** The names of {name}. */", f"export const {constant}: readonly string[] = [",
            *rows, "];"]  # fmt: skip


def module(v: Vocabulary, mark: str) -> str:
    lines = [f"// {mark}", "/** Options, as api/options describes them. */", ""]
    for enum in v.enums.values():
        lines += _enum(enum)
    for struct in (v.structs[name] for name in TOGETHER if name in v.structs):
        name = struct.name
        lines += ["", *textwrap.wrap(f"/** {struct.help} */", 118, subsequent_indent=" * "),
                  f"export interface {name} {{"]  # fmt: skip
        for option in struct.options:
            lines += _member(option.name, _type(option, v), option)
        names = [camel(option.name) for option in struct.options]
        lines += ["}", *_names(name, f"{name.lower()}Options", names)]
    for struct in (s for s in v.structs.values() if s.c):
        found = members(struct, v)
        lines += ["", f"/** {struct.help} */", f"export interface {struct.name} {{"]
        for name, type_, option in found:
            lines += _member(name, type_, option)
        constant = camel(struct.c.removeprefix("loom_"))
        lines += ["}", *_names(struct.name, constant, [camel(name) for name, _, _ in found])]
    return "\n".join([*lines, ""])


def generated(vocabularies: list[Vocabulary], mark: str) -> dict[str, str]:
    training = next(v for v in vocabularies if v.source == "training.toml")
    return {FILE: module(training, mark)}

"""Options in Python: classes of structs, literals of enums, and the parameters and docstrings of
functions that take options. They are between marks in files that are written by hand.
"""

import re
import textwrap
from pathlib import Path

import api_options
from api_options import Enum, Option, Struct, Vocabulary

FILE = "bindings/python/loom/options.py"
# The sections with the parameters of a struct: file -> struct.
SECTIONS = {
    "bindings/python/loom/training.py": "TrainerOptions",
    "bindings/python/loom/network.py": "TrainerOptions",
}
BEGIN = "# options: generated from api/options"
END = "# end of options"
DOC = "Options, from api/options:"
PLAIN = {"bool": "bool", "int": "int", "seed": "int", "float": "float", "double": "float",
         "text": "str", "ints": "Sequence[int]", "floats": "Sequence[float]",
         "texts": "Sequence[str]", "words": "Sequence[str]",
         "rates": "Mapping[str, float]"}  # fmt: skip


def literal(enum: Enum) -> str:
    return f"{enum.name}Name"


def hint(option: Option, v: Vocabulary) -> str:
    if option.type in v.structs:
        struct = v.structs[option.type]
        kind = next((o for o in struct.options if o.name == "kind"), None)
        if kind is None:
            return f"Optional[{option.type}]"
        return f"Union[{literal(v.enums[kind.type])}, {option.type}]"
    plain = literal(v.enums[option.type]) if option.type in v.enums else PLAIN[option.type]
    return f"Optional[{plain}]" if option.optional or option.type == "rates" else plain


def default(option: Option, v: Vocabulary) -> str:
    if option.type in v.structs:
        kind = next((o for o in v.structs[option.type].options if o.name == "kind"), None)
        return "None" if kind is None else f'"{kind.default}"'
    if option.optional or option.type == "rates":
        return "None"
    if option.type in v.enums:
        word = next(w for w in v.enums[option.type].words if w.name == option.default)
        return f'"{word.name}"'
    if PLAIN[option.type].startswith("Sequence"):
        return "()"
    return repr(float(option.default) if PLAIN[option.type] == "float" else option.default)


def shown(struct: Struct) -> list[Option]:
    return [option for option in struct.options if not option.by_hand]


def parameter(option: Option, v: Vocabulary) -> str:
    # The rate has its default in the optimizer, which may be given with its own.
    if option.name == "rate":
        return "rate: Optional[float] = None"
    return f"{option.name}: {hint(option, v)} = {default(option, v)}"


def described(struct: Struct, indent: str) -> list[str]:
    lines = []
    for option in shown(struct):
        lines += textwrap.wrap(f"{option.name}: {api_options.sentence(option)}", 100,
                               initial_indent=indent, subsequent_indent=indent + "    ",
                               break_long_words=False)  # fmt: skip
    return lines


def _literal_lines(enum: Enum) -> list[str]:
    names = [f'    "{word.name}",' for word in enum.words]
    other = [f'    "{w.text}",' for w in enum.words if w.text != w.name]
    return [f"# {enum.help}", f"{literal(enum)} = Literal[", *names, *other, "]"]


def _class_lines(struct: Struct, v: Vocabulary) -> list[str]:
    kind = next((o for o in struct.options if o.name == "kind"), None)
    lines = ["", "", "@dataclass(frozen=True)", f"class {struct.name}:"]
    head = textwrap.wrap(struct.help, 96, initial_indent='    """', subsequent_indent="    ")
    lines += [*head, "", *described(struct, "    "), '    """', ""]
    if struct.name == "Optimizer":
        lines.append("    rate: float = 1e-3")
        constants = [option for option in shown(struct) if option != kind]
        lines += [f"    {o.name}: {hint(o, v)} = {default(o, v)}" for o in constants]
        lines.append(f'    KIND: ClassVar[str] = "{kind.default}"')
        for word in v.enums[kind.type].words:
            lines += ["", "", f"class {class_name(word.name)}(Optimizer):",
                      f'    """{word.help[0].upper()}{word.help[1:]}."""', "",
                      f'    KIND = "{word.name}"']  # fmt: skip
        names = ", ".join(class_name(word.name) for word in v.enums[kind.type].words)
        wrapped = textwrap.wrap(names, 92, initial_indent="        ", subsequent_indent="        ")
        return [*lines, "", "", "OPTIMIZERS: Dict[str, Type[Optimizer]] = {", "    c.KIND: c",
                "    for c in (", *wrapped, "    )", "}"]  # fmt: skip
    return [*lines, *(f"    {o.name}: {hint(o, v)} = {default(o, v)}" for o in shown(struct))]


CLASSES = {"rmsprop": "RmsProp", "adamw": "AdamW", "nadam": "NAdam", "radam": "RAdam"}


def class_name(kind: str) -> str:
    """ "adagrad" as Adagrad."""
    return CLASSES.get(kind, kind.capitalize())


def module(v: Vocabulary, mark: str) -> str:
    """Classes and literals. A struct that a user fills is the parameters of a function."""
    doc = '"""Options: names of values, and classes of what has constants of its own."""'
    typing = "ClassVar, Dict, Literal, Optional, Sequence, Type"
    lines = [f"# {mark}", doc, "", "from dataclasses import dataclass",
             f"from typing import {typing}", ""]  # fmt: skip
    for enum in v.enums.values():
        lines += _literal_lines(enum)
    for struct in v.structs.values():
        if not struct.c and struct.name != "RateFor":
            lines += _class_lines(struct, v)
    lines += ["", ""]
    for struct in v.structs.values():
        if struct.c:
            names = [f'    "{option.name}",' for option in shown(struct)]
            lines += [f"# Parameters that are {struct.name}.",
                      f"{struct.c.removeprefix('loom_').upper()} = (", *names, ")"]  # fmt: skip
    return "\n".join([*lines, ""])


def section(text: str, struct: Struct, v: Vocabulary) -> str:
    """`text` with its parameters and lists of options rewritten."""

    def parameters(found: re.Match) -> str:
        indent = found[1]
        lines = [f"{indent}{parameter(option, v)}," for option in shown(struct)]
        return "\n".join([f"{indent}{BEGIN}", *lines, f"{indent}{END}"])

    def docs(found: re.Match) -> str:
        indent = found[1]
        return "\n".join([f"{indent}{DOC}", "", *described(struct, indent), f'{indent}"""'])

    text = re.sub(rf"^( +){BEGIN}\n.*?{END}$", parameters, text, flags=re.M | re.S)
    return re.sub(rf'^( +){re.escape(DOC)}\n.*?"""$', docs, text, flags=re.M | re.S)


def generated(root: Path, vocabularies: list[Vocabulary], mark: str) -> dict[str, str]:
    v = vocabularies[0]
    files = {FILE: module(v, mark)}
    for path, name in SECTIONS.items():
        files[path] = section((root / path).read_text(encoding="utf-8"), v.structs[name], v)
    return files

"""Options in Python: classes of structs, literals of enums, and the parameters and docstrings of
functions that take options. They are between marks in files that are written by hand.
"""

import re
import textwrap
from dataclasses import replace
from pathlib import Path

import api_options
from api_options import Enum, Option, Struct, Vocabulary

FILE = "bindings/python/loom/options.py"
# Files with parameters of structs.
FILES = ("_model", "llm", "training", "network", "evolution", "mesh", "cluster", "ensemble",
         "search", "evaluation", "files")
# After the marks: ", KMeansOptions", of TrainerOptions nothing; ", NeatOptions but inputs, outputs"
# omits options that the function has by hand. ", EmbedOptions only pooling" names those it has.
BEGIN = "# options: generated from api/options"
END = "# end of options"
DOC = "Options, from api/options"
# Docstrings may have several: ", FitOptions and TrainerOptions".
OF = r"(?:, (\w+(?: and \w+)*))?(?: (but|only) ([\w, ]+))?"
PLAIN = {"bool": "bool", "int": "int", "seed": "int", "float": "float", "double": "float",
         "text": "str", "path": "Optional[Path]", "ints": "Sequence[int]",
         "floats": "Sequence[float]",
         "texts": "Sequence[str]", "words": "Sequence[str]",
         "rates": "Mapping[str, float]", "tokens": "Sequence[int]",
         "biases": "Mapping[int, float]"}  # fmt: skip


def literal(enum: Enum) -> str:
    return f"{enum.name}Name"


def hint(option: Option, v: Vocabulary) -> str:
    if option.type in v.structs:
        struct = v.structs[option.type]
        kind = next((o for o in struct.options if o.name == "kind"), None)
        if kind is None:
            return f"Optional[{option.type}]"
        return f"Union[{literal(v.enums[kind.type])}, {option.type}]"
    if option.enum != option.type:
        name = literal(v.enums[option.enum])
        return f"Union[{name}, Sequence[{name}]]"
    plain = literal(v.enums[option.type]) if option.type in v.enums else PLAIN[option.type]
    return f"Optional[{plain}]" if option.optional or plain.startswith("Mapping") else plain


def default(option: Option, v: Vocabulary) -> str:
    if option.type in v.structs:
        kind = next((o for o in v.structs[option.type].options if o.name == "kind"), None)
        return "None" if kind is None else f'"{kind.default}"'
    if option.optional or option.type in ("rates", "biases", "path"):
        return "None"
    if option.type in v.enums:
        word = next(w for w in v.enums[option.type].words if w.name == option.default)
        return f'"{word.name}"'
    if option.enum != option.type or isinstance(option.default, list):
        names = [f'"{name}"' for name in option.default or ()]
        return f"({', '.join(names)}{',' if len(names) == 1 else ''})"
    if PLAIN[option.type].startswith("Sequence"):
        return "()"
    if option.type == "text":
        return f'"{option.default or ""}"'
    return repr(float(option.default) if PLAIN[option.type] == "float" else option.default)


def shown(struct: Struct, v: Vocabulary, but: list[str] | None = None) -> list[Option]:
    """The parameters of a struct. A struct that is one in C, too, has those of structs inside."""
    options = [o for o in struct.options if not o.by_hand]
    if struct.rows:
        options = [replace(option, name=api_options.flat_name(dotted, option, struct, v))
                   for dotted, _, option in api_options.flat(struct, v)]  # fmt: skip
    return [o for o in options if o.name not in (but or [])]


def parameter(option: Option, struct: Struct, v: Vocabulary) -> str:
    # The rate has its default in the optimizer, which may be given with its own.
    if option.name == "rate" and any(o.type == "Optimizer" for o in struct.options):
        return "rate: Optional[float] = None"
    return f"{option.name}: {hint(option, v)} = {default(option, v)}"


def described(struct: Struct, v: Vocabulary, indent: str,
              but: list[str] | None = None) -> list[str]:  # fmt: skip
    lines = []
    for option in shown(struct, v, but):
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
    lines += [*head, "", *described(struct, v, "    "), '    """', ""]
    if struct.name == "Optimizer":
        lines.append("    rate: float = 1e-3")
        constants = [option for option in shown(struct, v) if option != kind]
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
    return [*lines, *(f"    {o.name}: {hint(o, v)} = {default(o, v)}" for o in shown(struct, v))]


def _zeros(kind: str, options: list[Option]) -> list[str]:
    """Defaults that are not 0, which the struct of C has for them."""
    names = [f'    "{o.name}": {api_options.number(o.default)},' for o in options
             if o.default and o.type in api_options.NUMBERS]  # fmt: skip
    return ["# Defaults that are not 0.", f"{kind}_NONZERO = {{", *names, "}"] if names else []


# Options that several functions of Python take as `**options`.
PASSED_ON = ("Generate",)


def _keywords(struct: Struct, v: Vocabulary) -> list[str]:
    """Options as keywords, for functions that pass them on."""
    name = struct.name.removesuffix("Options")
    if name not in PASSED_ON:
        return []
    rows = [f"    {o.name}: {hint(o, v)}" for o in shown(struct, v) if o.name != "json_schema"]
    return ["", "", f"class {name}Keywords(TypedDict, total=False):",
            f'    """Keywords that are {struct.name}."""', "", *rows]  # fmt: skip


CLASSES = {"rmsprop": "RmsProp", "adamw": "AdamW", "nadam": "NAdam", "radam": "RAdam"}


def class_name(kind: str) -> str:
    """ "adagrad" as Adagrad."""
    return CLASSES.get(kind, kind.capitalize())


def module(vocabularies: list[Vocabulary], mark: str) -> str:
    """Classes and literals. A struct that a user fills is the parameters of a function."""
    doc = '"""Options: names of values, and classes of what has constants of its own."""'
    typing = "ClassVar, Dict, Literal, Mapping, Optional, Sequence, Type, TypedDict"
    lines = [f"# {mark}", doc, "", "from dataclasses import dataclass",
             f"from typing import {typing}", ""]  # fmt: skip
    for v in vocabularies:
        for enum in v.enums.values():
            if enum.layers or enum.name not in v.used:
                lines += _literal_lines(enum)
    for v in vocabularies:
        if any(struct.rows for struct in v.own_structs()):
            continue  # its functions have the options of structs inside
        for struct in v.own_structs():
            if not struct.kind and struct.name != "RateFor":
                lines += _class_lines(struct, v)
    lines += ["", ""]
    for struct, v in ((s, v) for v in vocabularies for s in v.own_structs() if s.kind or s.c):
        names = [f'    "{option.name}",' for option in shown(struct, v)]
        kind = struct.kind or struct.name.removesuffix("Options")
        lines += [f"# Parameters that are {struct.name}.",
                  f"{kind.upper()}_OPTIONS = (", *names, ")"]  # fmt: skip
        if struct.rows:
            lines += [*_zeros(kind.upper(), shown(struct, v)), *_keywords(struct, v)]
    return "\n".join([*lines, ""])


def _structs_of(found: re.Match, vocabularies: list[Vocabulary]) -> list[tuple]:
    """The structs that a mark is of, each with its vocabulary and what the mark leaves out."""
    named, structs = (found[4] or "").split(", "), []
    for name in (found[2] or "TrainerOptions").split(" and "):
        v = next(v for v in vocabularies if name in [s.name for s in v.user_structs()])
        options = [o.name for o in v.structs[name].options]
        for one in filter(None, named):
            if one not in options:
                raise api_options.Wrong(f"{name} has no option {one}, which Python names")
        but = [o for o in options if o not in named] if found[3] == "only" else named
        structs.append((v.structs[name], v, but))
    return structs


def section(text: str, vocabularies: list[Vocabulary]) -> str:
    """`text` with its parameters and lists of options anew."""

    def parameters(found: re.Match) -> str:
        struct, v, but = _structs_of(found, vocabularies)[0]
        indent, begin = found[1], found[0].split("\n", 1)[0]
        lines = [f"{indent}{parameter(option, struct, v)}," for option in shown(struct, v, but)]
        return "\n".join([begin, *lines, f"{indent}{END}"])

    def docs(found: re.Match) -> str:
        indent, begin = found[1], found[0].split("\n", 1)[0]
        lines = [line for struct, v, but in _structs_of(found, vocabularies)
                 for line in described(struct, v, indent, but)]  # fmt: skip
        return "\n".join([begin, "", *lines, f'{indent}"""'])

    text = re.sub(rf"^( +){BEGIN}{OF}\n.*?{END}$", parameters, text, flags=re.M | re.S)
    return re.sub(rf'^( +){DOC}{OF}:\n.*?"""$', docs, text, flags=re.M | re.S)


def generated(root: Path, vocabularies: list[Vocabulary], mark: str) -> dict[str, str]:
    files = {FILE: module(vocabularies, mark)}
    for path in (root / f"bindings/python/loom/{name}.py" for name in FILES):
        if path.exists():
            text = section(path.read_text(encoding="utf-8"), vocabularies)
            files[path.relative_to(root).as_posix()] = text
    return files

"""Options in Rust, Go, C# and Java: a struct whose zeros are the defaults, and its texts."""

from dataclasses import dataclass

import api_options
import api_options_c
from api_options import Option, Struct, Vocabulary
from api_types import comment, type_name, value_name

FILES = {"rust": "bindings/rust/src/options.rs", "go": "bindings/go/options.go",
         "csharp": "bindings/csharp/Options.cs",
         "java": "bindings/java/src/main/java/loom/TrainerSettings.java"}  # fmt: skip
# 0 means the default, although it is in the range: so these were before options had names.
ZERO_IS_DEFAULT = ("rate",)
LISTS = ("ints", "floats", "texts", "words", "rates")


@dataclass(frozen=True)
class Field:
    """A member of such a struct."""

    name: str  # "keep_order"
    option: str  # "shuffle": of the library
    kind: str  # "bool", "int", "float", "double", "seed", one of LISTS, or an enum of C
    doc: str
    opposite: bool  # true sets the option to false
    may_be_absent: bool  # a number whose 0 is a separate value
    words: tuple[str, ...] = ()  # of an enum, by its number in C

    @property
    def words_name(self) -> str:
        return value_name(self.name.upper())


def _absent(option: Option) -> bool:
    """Is 0 a value that is not the default?"""
    if option.type not in api_options.NUMBERS or option.name in ZERO_IS_DEFAULT:
        return False
    low, _, low_open, _ = option.limits()
    holds_zero = low == "-inf" or float(low) < 0 or (float(low) == 0 and not low_open)
    return holds_zero and (option.optional or bool(option.default))


def fields(struct: Struct, v: Vocabulary, unset: dict[str, str]) -> list[Field]:
    """unset: of an enum of C++, the value that is 0 in C."""
    found = []
    for dotted, _, option in api_options.flat(struct, v):
        name = option.c or api_options.flat_name(dotted, option, struct, v)
        kind, words = option.type, ()
        if kind in v.enums:
            enum = v.enums[kind]
            values = api_options_c.c_values(enum, unset.get(kind, ""))
            kind, words = type_name(enum.c), tuple(value[0].lower() for value in values)
        found.append(Field(name.removeprefix("!"), dotted, kind, api_options.sentence(option),
                           name.startswith("!"), _absent(option), words))  # fmt: skip
    return found


def doc_of(field: Field) -> str:
    return f"The opposite of `{field.option}`. {field.doc}" if field.opposite else field.doc


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def pascal(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


# ---- Rust ----------------------------------------------------------------------------------------

_RUST = {"bool": "bool", "int": "i64", "seed": "u64", "float": "f32", "double": "f64",
         "text": "String", "ints": "Vec<i64>", "floats": "Vec<f32>", "texts": "Vec<String>",
         "words": "Vec<String>", "rates": "Vec<(String, f64)>"}  # fmt: skip


def _rust_text(f: Field) -> list[str]:
    def push(value: str) -> str:
        return f'out.push(("{f.option}", {value}));'

    member = f"self.{f.name}"
    if f.words:
        return [f"if {member} as i32 != 0 {{",
                f"    {push(f'{f.name.upper()}_WORDS[{member} as usize].to_string()')}",
                "}"]  # fmt: skip
    if f.kind == "bool":
        value = "false" if f.opposite else "true"
        return [f"if {member} {{", f'    {push(f"{chr(34)}{value}{chr(34)}.to_string()")}', "}"]
    if f.may_be_absent:
        return [f"if let Some(value) = {member} {{", f"    {push('value.to_string()')}", "}"]
    if f.kind in ("ints", "floats"):
        return [f"if !{member}.is_empty() {{", f"    {push(f'numbers(&{member})')}", "}"]
    if f.kind in ("texts", "words"):
        return [f"if !{member}.is_empty() {{", f"    {push(f'texts(&{member})')}", "}"]
    if f.kind == "rates":
        return [f"if !{member}.is_empty() {{", f"    {push(f'rates(&{member})')}", "}"]
    zero = "0.0" if f.kind in ("float", "double") else "0"
    return [f"if {member} != {zero} {{", f"    {push(f'{member}.to_string()')}", "}"]


def rust(struct: Struct, all_fields: list[Field], mark: str) -> str:
    lines = [f"// {mark}", "", "//! Options, as api/options describes them.", "",
             "use crate::calls::{numbers, rates, texts};", "use crate::enums::*;", ""]  # fmt: skip
    for f in (f for f in all_fields if f.words):
        words = ", ".join(f'"{word}"' for word in f.words)
        lines.append(f"const {f.name.upper()}_WORDS: [&str; {len(f.words)}] = [{words}];")
    lines += ["", *comment(f"{struct.help} Zeros and empty lists are the defaults.", "/// "),
              "#[derive(Clone, Debug, Default)]", f"pub struct {struct.name} {{"]  # fmt: skip
    for f in all_fields:
        type_ = _RUST.get(f.kind, f.kind)
        lines += comment(doc_of(f), "/// ", "    ")
        lines.append(f"    pub {f.name}: {f'Option<{type_}>' if f.may_be_absent else type_},")
    lines += ["}", "", f"impl {struct.name} {{",
              "    /// Name and text of each option that is not the default.",
              "    pub(crate) fn texts(&self) -> Vec<(&'static str, String)> {",
              "        let mut out = Vec::new();"]  # fmt: skip
    for f in all_fields:
        lines += [f"        {line}" for line in _rust_text(f)]
    return "\n".join([*lines, "        out", "    }", "}", ""])


# ---- Go ------------------------------------------------------------------------------------------

_GO = {"bool": "bool", "int": "int64", "seed": "uint64", "float": "float32", "double": "float64",
       "text": "string", "ints": "[]int64", "floats": "[]float32", "texts": "[]string",
       "words": "[]string", "rates": "map[string]float64"}  # fmt: skip
_GO_TEXT = {"ints": "numbersText", "floats": "numbersText", "texts": "textsText",
            "words": "textsText", "rates": "ratesText"}  # fmt: skip


def _go_text(f: Field) -> list[str]:
    member = f"o.{pascal(f.name)}"
    if f.words:
        return [f"if {member} != 0 {{", f'\tset("{f.option}", {member}.String())', "}"]
    if f.kind == "bool":
        value = "false" if f.opposite else "true"
        return [f"if {member} {{", f'\tset("{f.option}", "{value}")', "}"]
    if f.may_be_absent:
        return [f"if {member} != nil {{", f'\tset("{f.option}", fmt.Sprint(*{member}))', "}"]
    if f.kind in _GO_TEXT:
        text = f"{_GO_TEXT[f.kind]}({member})"
        return [f"if len({member}) > 0 {{", f'\tset("{f.option}", {text})', "}"]
    return [f"if {member} != 0 {{", f'\tset("{f.option}", fmt.Sprint({member}))', "}"]


def go(struct: Struct, all_fields: list[Field], mark: str) -> str:
    lines = ["// Code " + mark.replace("; do not edit", ". DO NOT EDIT."), "", "package loom", "",
             'import "fmt"', "",
             *comment(f"{struct.name}: {struct.help} Zeros, nil and empty lists are the defaults."),
             f"type {struct.name} struct {{"]  # fmt: skip
    for i, f in enumerate(all_fields):
        type_ = _GO.get(f.kind, f.kind)
        lines += [] if i == 0 else [""]
        lines += comment(doc_of(f), "// ", "\t")
        lines.append(f"\t{pascal(f.name)} {'*' if f.may_be_absent else ''}{type_}")
    lines += ["}", "",
              "// texts calls set with name and text of each option that is not the default.",
              f"func (o *{struct.name}) texts(set func(name, text string)) {{"]  # fmt: skip
    for f in all_fields:
        lines += [f"\t{line}" for line in _go_text(f)]
    return "\n".join([*lines, "}", ""])


# ---- C# ------------------------------------------------------------------------------------------

_CSHARP = {"bool": "bool", "int": "long", "seed": "ulong", "float": "float", "double": "double",
           "text": "string", "ints": "long[]", "floats": "float[]", "texts": "string[]",
           "words": "string[]", "rates": "Dictionary<string, double>"}  # fmt: skip


def _csharp_text(f: Field) -> str:
    member = pascal(f.name)
    if f.words:
        words = f"{member}Words[(int){member}]"
        return f'if ((int){member} != 0) set("{f.option}", {words});'
    if f.kind == "bool":
        return f'if ({member}) set("{f.option}", "{"false" if f.opposite else "true"}");'
    if f.may_be_absent:
        return f'if ({member}.HasValue) set("{f.option}", Named.Of({member}.Value));'
    if f.kind in LISTS:
        given = f"{member} != null && {member}.{_count(f)} > 0"
        return f'if ({given}) set("{f.option}", Named.Of({member}));'
    return f'if ({member} != 0) set("{f.option}", Named.Of({member}));'


def _count(f: Field) -> str:
    return "Count" if f.kind == "rates" else "Length"


def csharp(struct: Struct, all_fields: list[Field], mark: str) -> str:
    lines = [f"// {mark}", "using System;", "using System.Collections.Generic;", "",
             "namespace Loom", "{",
             f"    /// <summary>{struct.help} Zeros and nulls are the defaults.</summary>",
             "    public sealed class TrainOptions", "    {"]  # fmt: skip
    for f in all_fields:
        type_ = _CSHARP.get(f.kind, f.kind)
        doc = doc_of(f).replace("&", "&amp;").replace("<", "&lt;")
        lines += comment(f"<summary>{doc}</summary>", "/// ", "        ")
        lines.append(f"        public {type_}{'?' if f.may_be_absent else ''} {pascal(f.name)};")
    lines.append("")
    for f in (f for f in all_fields if f.words):
        words = ", ".join(f'"{word}"' for word in f.words)
        lines.append(f"        private static readonly string[] {pascal(f.name)}Words = "
                     f"{{ {words} }};")  # fmt: skip
    lines += ["", "        // Name and text of each option that is not the default.",
              "        internal void Texts(Action<string, string> set)", "        {"]  # fmt: skip
    lines += [f"            {_csharp_text(f)}" for f in all_fields]
    return "\n".join([*lines, "        }", "    }", "}", ""])


# ---- Java ----------------------------------------------------------------------------------------

_JAVA = {"bool": "boolean", "int": "long", "seed": "long", "float": "float", "double": "double",
         "text": "String", "ints": "long...", "floats": "float...", "texts": "String...",
         "words": "String...", "rates": "Map<String, Double>"}  # fmt: skip


def _java_value(f: Field) -> str:
    if f.words:
        return "value.name().toLowerCase(Locale.ROOT)"
    if f.opposite:
        return "String.valueOf(!value)"
    if f.kind == "seed":
        return "Long.toUnsignedString(value)"
    return "Named.of(value)" if f.kind in LISTS else "String.valueOf(value)"


def java(struct: Struct, all_fields: list[Field], mark: str) -> str:
    lines = [f"// {mark}", "package loom;", "", "import java.util.LinkedHashMap;",
             "import java.util.Locale;", "import java.util.Map;", "",
             f"/** {struct.help} Unset values are the defaults. */",
             "public abstract class TrainerSettings<T extends TrainerSettings<T>> {",
             "  /** Name and text of each option that is set. */",
             "  final Map<String, String> texts = new LinkedHashMap<>();", "",
             "  abstract T self();", "", "  private T set(String name, String text) {",
             "    texts.put(name, text);", "    return self();", "  }"]  # fmt: skip
    for f in all_fields:
        type_ = f"Types.{f.kind}" if f.words else _JAVA[f.kind]
        lines += ["", "  /**", *comment(doc_of(f).replace("&", "&amp;"), " * ", "  "), "   */",
                  f"  public T {camel(f.name)}({type_} value) {{",
                  f'    return set("{f.option}", {_java_value(f)});', "  }"]  # fmt: skip
    return "\n".join([*lines, "}", ""])


def generated(vocabularies: list[Vocabulary], unset: dict[str, str], mark: str) -> dict[str, str]:
    v = next(v for v in vocabularies if v.source == "training.toml")
    struct = next(s for s in v.structs.values() if s.c)
    all_fields = fields(struct, v, unset)
    writers = {"rust": rust, "go": go, "csharp": csharp, "java": java}
    return {FILES[name]: write(struct, all_fields, mark) for name, write in writers.items()}

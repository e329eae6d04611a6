"""Options in the C interface: kinds of options, counts and values of enums, frozen structs."""

import textwrap

import api_options
from api_options import Enum, Option, Struct, Vocabulary


def option_kinds(vocabularies: list[Vocabulary], mark: str) -> str:
    """The kinds of a loom_options."""
    structs = sorted((s for v in vocabularies for s in v.named_structs()), key=lambda s: s.kind)
    headers = sorted(api_options.public(v.header) for v in vocabularies if v.named_structs())
    includes = [f'#include "{header}"' for header in headers]
    names = ", ".join(struct.name for struct in structs)
    rows = [f'    {{"{s.kind}", [] {{ return AnyOptions({s.name}{{}}); }}}},' for s in structs]
    lines = [f"// {mark}", "// clang-format off", "//", "// Structs of options that have a name.",
             "#pragma once", "", "#include <string_view>", "#include <variant>", "", *includes, "",
             "namespace loom::capi {", "",
             "#ifdef __wasm__  // modules have no functions that take the others",
             "using AnyOptions = std::variant<TrainerOptions>;", "#else",
             *textwrap.wrap(f"using AnyOptions = std::variant<{names}>;", api_options.WIDTH,
                            subsequent_indent="    "), "#endif",
             "struct OptionKind {", "  std::string_view name;", "  AnyOptions (*defaults)();", "};",
             "// In the order of the variant.", "inline constexpr OptionKind kOptionKinds[] = {",
             "#ifndef __wasm__", *rows[:-1], "#endif", *rows[-1:], "};"]  # fmt: skip
    if structs[-1].name != "TrainerOptions":
        raise api_options.Wrong("the kind of TrainerOptions must be the last one")
    return "\n".join([*lines, "", "}  // namespace loom::capi", ""])


def counts(vocabularies: list[Vocabulary], c_enums: list[dict], mark: str) -> str:
    """The number of values of each enum. c_enums: those of the C interface."""
    headers = [api_options.public(v.kinds) for v in vocabularies if v.kinds]
    of_cpp = [enum for enum in c_enums if "cpp" in enum]
    if any("::" in enum["cpp"] for enum in of_cpp):
        headers.append("loom/dataset.hpp")
    lines = [f"// {mark}", "//", "// How many values an enum has.", "#pragma once", "",
             "#include <cstdint>", "", *(f'#include "{name}"' for name in sorted(headers)), "",
             "namespace loom {", "",
             *(f"enum class {enum['cpp']} : uint8_t;" for enum in of_cpp
               if "::" not in enum["cpp"]), "",
             "namespace capi {", "",
             "template <class E>", "inline constexpr int32_t kValues = 0;"]  # fmt: skip
    sizes = [(enum.name, len(enum.words)) for v in vocabularies for enum in v.own_enums()]
    sizes += [(enum["cpp"], len(enum["values"]) - ("unset" in enum)) for enum in of_cpp]
    for name, size in sizes:
        row = ["template <>", f"inline constexpr int32_t kValues<{name}> = {size};"]
        inside = "::" in name  # a build for inference alone has no such struct
        lines += ["#ifndef LOOM_MINIMAL", *row, "#endif"] if inside else row
    return "\n".join([*lines, "", "}  // namespace capi", "}  // namespace loom", ""])


# ---- the C interface -----------------------------------------------------------------------------


def c_values(enum: Enum, unset: str) -> list[list]:
    """Values of the enum of C: [name, number, doc]. `unset` is 0, and the others follow."""
    named = [(word.name.upper(), word.help) for word in enum.words]
    first = [(unset, dict(named).get(unset, ""))] if unset else []
    rest = [value for value in named if value[0] != unset]
    return [[name, number, doc] for number, (name, doc) in enumerate([*first, *rest])]


def c_fields(struct: Struct, v: Vocabulary, fields: set[str]) -> list[tuple[str, str, Option]]:
    """Options that the struct of C has: name of the field, path in C++, option. A name that begins
    with ! is the opposite. Options that came after a struct was frozen have no field."""
    rows = [(option.c or api_options.flat_name(dotted, option, struct, v), at, option)
            for dotted, at, option in api_options.flat(struct, v)]  # fmt: skip
    return [row for row in rows if row[0].removeprefix("!") in fields]


def count_of(name: str, fields: set[str]) -> str:
    """The field that has the length of a list: stop_count, eos_count, banned_token_count."""
    stems = (name, name.removesuffix("s"), name.removesuffix("_ids"))
    return next(f"{stem}_count" for stem in stems if f"{stem}_count" in fields)


def _list(name: str, to: str, option: Option, fields: set[str]) -> list[str]:
    function = "texts_of" if option.type in ("texts", "words") else "list_of"
    read = f'{function}(from.{name}, from.{count_of(name, fields)}, "{name}")'
    if function == "texts_of":
        return [f"  LOOM_ASSIGN({to}, {read});"]
    lines = [f"  LOOM_ASSIGN(const auto {name}, {read});"]
    if option.type == "biases":
        return [*lines, f"  for (const auto& row : {name}) {to}.push_back({{row.id, row.bias}});"]
    return [*lines, f"  {to}.assign({name}.begin(), {name}.end());"]


def _read(name: str, at: str, option: Option, fields: dict[str, str],
          enum: Enum | None, shifted: bool) -> list[str]:  # fmt: skip
    """Statements that read a field of the struct of C into `to`."""
    opposite, field_ = name.startswith("!"), name.removeprefix("!")
    to, value = f"to{at}", f"from.{field_}"
    if api_options.CPP.get(option.type, "").startswith("std::vector"):
        return _list(field_, to, option, fields)
    if option.type not in api_options.CPP:
        if "char" in fields[field_]:
            text = next(w.text for w in enum.words if w.name == option.default)
            return [f'  LOOM_ASSIGN({to}, parse_{enum.function}(text_or({value}, "{text}")));']
        if shifted:  # 0 leaves it unset
            return [f'  LOOM_TRY(read_enum({value}, "{field_}", {to}));']
        return [f'  LOOM_ASSIGN({to}, enum_of<{option.type}>({value}, "{field_}"));']
    if option.type == "text" and option.optional:
        return [f"  if ({value} != nullptr) {to} = {value};"]
    if option.type in ("text", "path"):
        return [f'  {to} = text_or({value}, "{option.default or ""}");']
    if option.type == "bool":
        test = f"if (from.has_{field_} != 0) " if option.optional else ""
        return [f"  {test}{to} = {value} {'==' if opposite else '!='} 0;"]
    if f"has_{field_}" in fields:
        return [f"  if (from.has_{field_} != 0) {to} = {value};"]
    if option.optional:
        return [f"  if ({value} != 0) {to} = {value};"]
    return [f"  {to} = non_zero({value}, {to});" if option.default else f"  {to} = {value};"]


def c_reader(v: Vocabulary, structs: list[dict], enums: dict[str, dict], mark: str) -> str:
    """The struct of C as that of C++. enums: of C, by the name in C++."""
    lines = [f"// {mark}", "// clang-format off", "",
             '#include "capi/options/read_options.hpp"', "",
             '#include "capi/support.hpp"', "", "namespace loom::capi {", ""]  # fmt: skip
    for struct in (s for s in v.own_structs() if s.c):
        rows = next(s for s in structs if s["name"] == struct.c)["fields"]
        fields = {row[1]: row[0] for row in rows}
        lines.append(f"Result<{struct.name}> read_options(const {struct.c}& from) {{")
        lines.append(f"  {struct.name} to;")
        for name, at, option in c_fields(struct, v, fields):
            shifted = bool(enums.get(option.type, {}).get("unset"))
            lines += _read(name, at, option, fields, v.enums.get(option.type), shifted)
        lines += ["  return to;", "}", ""]
    return "\n".join([*lines, "}  // namespace loom::capi", ""])


def readers(vocabularies: list[Vocabulary], table: dict, mark: str) -> dict[str, str]:
    enums = {enum["of"]: enum for enum in table["enum"] if "of" in enum}
    return {f"src/capi/options/read_{v.source.removesuffix('.toml')}.cpp":
            c_reader(v, table["struct"], enums, mark)
            for v in vocabularies if any(s.c for s in v.own_structs())}  # fmt: skip


def field_doc(name: str, option: Option, fields: set[str]) -> str:
    """The sentence of an option, and the default if it is not 0."""
    text = api_options.sentence(option)
    if name.startswith("!"):
        return f"The opposite of `{option.name}`. {text}"
    if option.default and not option.optional and option.type in api_options.NUMBERS:
        unset = "Unset" if f"has_{name}" in fields else "0"
        text += f" {unset}: {api_options.number(option.default)}."
    return text


def fill_docs(vocabularies: list[Vocabulary], structs: list[dict]) -> None:
    """Fields without a text in loom_api.toml get that of their option. A fourth item: a boolean."""
    for v in vocabularies:
        for struct in (s for s in v.own_structs() if s.c):
            rows = next(s for s in structs if s["name"] == struct.c)["fields"]
            fields = {row[1] for row in rows}
            docs = {name.removeprefix("!"): field_doc(name, option, fields)
                    for name, _, option in c_fields(struct, v, fields)}  # fmt: skip
            flags = {name.removeprefix("!") for name, _, option in c_fields(struct, v, fields)
                     if option.type == "bool"}  # fmt: skip
            for name in list(docs):
                docs[f"has_{name}"] = f"1: `{name}` counts"
            for row in rows:
                row[2:] = [row[2] or docs.get(row[1], ""), row[1] in flags]


def generated(vocabularies: list[Vocabulary], c_enums: list[dict], mark: str) -> dict[str, str]:
    return {"src/capi/options/enum_counts.hpp": counts(vocabularies, c_enums, mark),
            "src/capi/options/option_kinds.hpp": option_kinds(vocabularies, mark)}  # fmt: skip

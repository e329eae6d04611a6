"""Options in the C interface: kinds of options, counts and values of enums, frozen structs."""

import textwrap

import api_options
from api_options import Enum, Option, Vocabulary


def option_kinds(vocabularies: list[Vocabulary], mark: str) -> str:
    """What a loom_options may be."""
    structs = sorted((s for v in vocabularies for s in v.user_structs()), key=lambda s: s.kind)
    headers = sorted(api_options.public(v.header) for v in vocabularies if v.user_structs())
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


def counts(vocabularies: list[Vocabulary], mark: str) -> str:
    includes = sorted(f'#include "{api_options.public(v.kinds)}"' for v in vocabularies if v.kinds)
    lines = [f"// {mark}", "//", "// How many values an enum has.", "#pragma once", "",
             "#include <cstdint>", "", *includes, "", "namespace loom::capi {", "",
             "template <class E>", "inline constexpr int32_t kValues = 0;"]  # fmt: skip
    for enum in (enum for v in vocabularies for enum in v.own_enums()):
        lines += ["template <>", f"inline constexpr int32_t kValues<{enum.name}> = "
                  f"{len(enum.words)};"]  # fmt: skip
    return "\n".join([*lines, "", "}  // namespace loom::capi", ""])


# ---- the C interface -----------------------------------------------------------------------------


def c_values(enum: Enum, unset: str) -> list[list]:
    """Values of the enum of C: [name, number, doc]. `unset` is 0, and the others follow."""
    named = [(word.name.upper(), word.help) for word in enum.words]
    first = [(unset, dict(named).get(unset, ""))] if unset else []
    rest = [value for value in named if value[0] != unset]
    return [[name, number, doc] for number, (name, doc) in enumerate([*first, *rest])]


def _read(name: str, at: str, option: Option, fields: set[str], shifted: bool) -> list[str]:
    """Statements that read a field of the struct of C into `to`."""
    opposite, field_ = name.startswith("!"), name.removeprefix("!")
    to, value = f"to{at}", f"from.{field_}"
    if api_options.CPP.get(option.type, "").startswith("std::vector"):
        return [f'  LOOM_ASSIGN(const auto {field_}, list_of({value}, {value}_count, "{field_}"));',
                f"  {to}.assign({field_}.begin(), {field_}.end());"]  # fmt: skip
    if option.type not in api_options.CPP:
        if shifted:
            return [f'  LOOM_TRY(read_enum({value}, "{field_}", {to}));']
        return [f'  LOOM_ASSIGN({to}, enum_of<{option.type}>({value}, "{field_}"));']
    if option.type == "bool":
        return [f"  {to} = {value} {'==' if opposite else '!='} 0;"]
    if f"has_{field_}" in fields:
        return [f"  if (from.has_{field_} != 0) {to} = {value};"]
    if option.optional:
        return [f"  if ({value} != 0) {to} = {value};"]
    return [f"  {to} = non_zero({value}, {to});" if option.default else f"  {to} = {value};"]


def c_reader(v: Vocabulary, structs: list[dict], enums: dict[str, dict], mark: str) -> str:
    """The struct of C as that of C++. The former is frozen: options that came later have no field.
    enums: of C, by the name in C++."""
    lines = [f"// {mark}", "// clang-format off", "",
             '#include "capi/options/read_options.hpp"', "",
             '#include "capi/support.hpp"', "", "namespace loom::capi {", ""]  # fmt: skip
    for struct in (s for s in v.structs.values() if s.c):
        fields = {f[1] for f in next(s for s in structs if s["name"] == struct.c)["fields"]}
        lines.append(f"Result<{struct.name}> read_options(const {struct.c}& from) {{")
        lines.append(f"  {struct.name} to;")
        for dotted, at, option in api_options.flat(struct, v):
            name = option.c or api_options.flat_name(dotted, option, struct, v)
            if name.removeprefix("!") in fields:
                shifted = bool(enums.get(option.type, {}).get("unset"))
                lines += _read(name, at, option, fields, shifted)
        lines += ["  return to;", "}", ""]
    return "\n".join([*lines, "}  // namespace loom::capi", ""])


def generated(vocabularies: list[Vocabulary], mark: str) -> dict[str, str]:
    return {"src/capi/options/enum_counts.hpp": counts(vocabularies, mark),
            "src/capi/options/option_kinds.hpp": option_kinds(vocabularies, mark)}  # fmt: skip

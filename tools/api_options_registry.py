"""The rows of enums whose values have a file each (decision 0092), as a list in C++, and the
fields of their structs."""

from api_options import Enum, Struct, Vocabulary, public


def registry(enum: Enum, v: Vocabulary, mark: str) -> str:
    """The list of the rows that an enum has. A row that is missing is an error of the linker."""
    def camel(name: str) -> str:
        return "".join(part.capitalize() for part in name.split("_"))

    kind = camel(enum.function)
    names = ["" if word.name in enum.no_row else f"k{camel(word.name)}{kind}"
             for word in enum.words]  # fmt: skip
    lines = [f"// {mark}", "// clang-format off", f'#include "{enum.rows}/{enum.function}.hpp"', "",
             "namespace loom::core {", ""]  # fmt: skip
    lines += [f"extern const {kind}Def {name};" for name in names if name]
    lines.append(f"static const {kind}Def* const k{kind}Rows[] = {{")
    lines += [f"    {'&' + name if name else 'nullptr'}," for name in names]
    lines += ["};", f"const {kind}Def& {enum.function}_def(loom::{enum.name} value) {{",
              f"  return *k{kind}Rows[static_cast<size_t>(value)];", "}"]  # fmt: skip
    for struct in v.structs.values():
        own = [o.name for o in struct.options if o.optional]
        if own and any(o.name == "kind" and o.type == enum.name for o in struct.options):
            lines.append(f"void fill_unset({struct.name}& to, const {struct.name}& from) {{")
            lines += [f"  if (!to.{name}) to.{name} = from.{name};" for name in own]
            lines.append("}")
    return "\n".join([*lines, "", "}  // namespace loom::core", ""])


def fields(struct: Struct, v: Vocabulary, mark: str) -> str:
    """A function that visits the options of a struct, for files that have each under its name."""
    visits = [f'  visit("{o.name}", of.{o.name});' for o in struct.options if o.name != "kind"]
    return "\n".join([f"// {mark}", "// clang-format off", "#pragma once", "",
                      f'#include "{public(v.header)}"', "", "namespace loom::core {", "",
                      "// Every option but the kind.", "template <class Visit>",
                      f"void each_field(const {struct.name}& of, const Visit& visit) {{", *visits,
                      "}", "", "}  // namespace loom::core", ""])  # fmt: skip


def generated(vocabularies: list[Vocabulary], mark: str) -> dict[str, str]:
    files = {}
    for v in vocabularies:
        for enum in (enum for enum in v.enums.values() if enum.rows):
            files[f"src/{enum.rows}/registry.cpp"] = registry(enum, v, mark)
            for struct in v.structs.values():
                of_kind = any(o.name == "kind" and o.type == enum.name for o in struct.options)
                if of_kind and not any(o.optional for o in struct.options):
                    files[f"src/{enum.rows}/fields.hpp"] = fields(struct, v, mark)
    return files

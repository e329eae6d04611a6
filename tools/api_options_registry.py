"""The rows of enums whose values have a file each (decision 0092), as a list in C++."""

from api_options import Enum, Vocabulary


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


def generated(vocabularies: list[Vocabulary], mark: str) -> dict[str, str]:
    return {f"src/{enum.rows}/registry.cpp": registry(enum, v, mark)
            for v in vocabularies for enum in v.enums.values() if enum.rows}  # fmt: skip

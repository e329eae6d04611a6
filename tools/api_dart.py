"""Writes bindings/dart/lib/src/sys.dart: the C interface for dart:ffi."""

from api_types import comment, function_doc, in_section_order, listed, parse

_NATIVE = {"int32_t": "Int32", "uint32_t": "Uint32", "int64_t": "Int64", "uint64_t": "Uint64",
           "float": "Float", "double": "Double", "void": "Void", "char": "Uint8"}  # fmt: skip
# The reserved words of the language.
_RESERVED = set("""assert break case catch class const continue default do else enum extends false
    final finally for if in is new null rethrow return super switch this throw true try var void
    while with""".split())


def _name(name: str) -> str:
    return f"{name}_" if name in _RESERVED else name


def native(api, text: str) -> str:
    """The type of dart:ffi."""
    c = parse(api, text)
    if c.kind == "callback":
        return f"Pointer<NativeFunction<{c.base}>>"
    out = "Int32" if c.kind == "enum" else _NATIVE.get(c.base, c.base)
    for _ in c.pointees:
        out = f"Pointer<{out}>"
    return out


def dart(api, text: str) -> str:
    """The type of the same in Dart."""
    c = parse(api, text)
    if c.stars or c.kind == "callback":
        return native(api, text)
    return "void" if c.base == "void" else "double" if c.base in ("float", "double") else "int"


def _struct(api, name: str) -> list[str]:
    struct = api.structs[name]
    out = [*comment(struct["doc"], "/// "), f"final class {name} extends Struct {{"]
    for m in struct["members"]:
        c = parse(api, m.type)
        out += comment(m.doc, "/// ", "  ")
        if c.extent:
            out += [f"  @Array({c.extent})",
                    f"  external Array<{_NATIVE[c.base]}> {_name(m.name)};"]  # fmt: skip
        elif c.stars or c.kind == "callback":
            out.append(f"  external {native(api, m.type)} {_name(m.name)};")
        else:
            out += [f"  @{native(api, m.type)}()",
                    f"  external {dart(api, m.type)} {_name(m.name)};"]  # fmt: skip
    return [*out, "}", ""]


def _typedef(api, name: str, call: dict, of) -> list[str]:
    types = [of(api, a.type) for a in call["arguments"]]
    returns = of(api, call.get("returns", "int32_t"))
    return listed(f"typedef {name} = {returns} Function(", types, ");")


def write(api, table: dict, mark: str) -> str:
    out = [f"// {mark}", "// ignore_for_file: camel_case_types, non_constant_identifier_names",
           "/// The C interface of Loom as it is.", "library;", "", "import 'dart:ffi';", "",
           f"const int loomAbiVersion = {api.abi};", ""]  # fmt: skip
    for name, enum in api.enums.items():
        out += comment(enum["doc"], "/// ")
        out += [f"abstract final class {name} {{"]
        for value, number, doc in enum["values"]:
            out += comment(doc, "/// ", "  ")
            out.append(f"  static const int {enum['prefix']}{value} = {number};")
        out += ["}", ""]
    for name in api.handles:
        out += [f"final class {name} extends Opaque {{}}", ""]
    for item in table["order"]:
        if item["kind_of"] == "struct":
            out += _struct(api, item["name"])
        elif item["kind_of"] == "callback":
            call = api.callbacks[item["name"]]
            out += [*comment(call["doc"], "/// "), *_typedef(api, item["name"], call, native), ""]
    out += ["/// The functions of a library that DynamicLibrary.open() gave.",
            "class LoomLibrary {",
            "  LoomLibrary(this.library);", "", "  final DynamicLibrary library;", ""]  # fmt: skip
    types = []
    for name in in_section_order(table, "function"):
        call = api.functions[name]
        types += [*_typedef(api, f"_{name}_native", call, native),
                  *_typedef(api, f"_{name}_dart", call, dart)]  # fmt: skip
        out += [*comment(function_doc(call), "/// ", "  "),
                f"  late final {name} =",
                f"      library.lookupFunction<_{name}_native, _{name}_dart>('{name}');",
                ""]  # fmt: skip
    return "\n".join(out).rstrip() + "\n}\n\n" + "\n".join(types) + "\n"

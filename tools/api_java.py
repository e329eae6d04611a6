"""Writes bindings/java: Sys.java, the C interface for JNA, and Types.java, its enums.

Handles are Pointers. Lists of numbers that are read are Pointers too; a number that is written is a
Reference of JNA. Texts are Strings as arguments, and Pointers inside structs.
"""

from api_types import comment, function_doc, in_section_order, listed, parse, type_name

_SCALARS = {"int32_t": "int", "uint32_t": "int", "int64_t": "long", "uint64_t": "long",
            "float": "float", "double": "double"}  # fmt: skip
_LISTS = ("loom_chat_turn", "loom_ranked")  # of structs, in memory that the caller lays out
_REFERENCES = {"int": "IntByReference", "long": "LongByReference", "double": "DoubleByReference",
               "float": "FloatByReference"}  # fmt: skip


def _scalar(c) -> str:
    return "int" if c.kind == "enum" else _SCALARS[c.base]


def field_type(api, text: str) -> str:
    c = parse(api, text)
    if c.extent:
        return "byte[]" if c.kind == "char" else f"{_scalar(c)}[]"
    if c.kind == "callback":
        return type_name(c.base)
    return "Pointer" if c.stars else _scalar(c)


def argument_type(api, text: str) -> str:
    c = parse(api, text)
    if c.kind == "callback":
        return type_name(c.base)
    if c.stars == 0:
        return _scalar(c)
    if c.stars == 2:
        return "Pointer" if all(c.pointees) else "PointerByReference"
    if c.kind == "char" and c.pointees[0]:
        return "String"
    if c.kind in ("scalar", "enum") and not c.pointees[0]:
        return _REFERENCES[_scalar(c)]
    return type_name(c.base) if c.kind == "struct" and c.base not in _LISTS else "Pointer"


def _doc(text: str, indent: str) -> list[str]:
    if not text:
        return []
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("*/", "")
    lines = comment(text, " * ", indent)
    return [f"{indent}/**", *lines, f"{indent} */"]


def _struct(api, name: str) -> list[str]:
    struct, kind = api.structs[name], type_name(name)
    members = struct["members"]
    order = [f'"{m.name}"' for m in members]
    out = [*_doc(struct["doc"], "  "), *listed("@Structure.FieldOrder({", order, "})", "  "),
           f"  class {kind} extends Structure {{"]  # fmt: skip
    for m in members:
        extent = parse(api, m.type).extent
        start = f" = new {field_type(api, m.type)[:-2]}[{extent}]" if extent else ""
        out += _doc(m.doc, "    ")
        out.append(f"    public {field_type(api, m.type)} {m.name}{start};")
    sized = ["      struct_size = size();"] if struct["kind"] != "plain" else []
    out += ["", f"    public {kind}() {{", *sized, "    }", "",
            "    /** The object at an address. */",
            f"    public {kind}(Pointer at) {{", "      super(at);", "      read();", "    }",
            "  }", ""]  # fmt: skip
    return out


def _callback(api, name: str) -> list[str]:
    call = api.callbacks[name]
    types = ["Pointer" if parse(api, a.type).stars else _scalar(parse(api, a.type))
             for a in call["arguments"]]  # fmt: skip
    arguments = [f"{t} {a.name}" for t, a in zip(types, call["arguments"])]
    return [*_doc(call["doc"], "  "), f"  interface {type_name(name)} extends Callback {{",
            *listed("int invoke(", arguments, ");", "    "), "  }", ""]  # fmt: skip


def _function(api, name: str) -> list[str]:
    call = api.functions[name]
    c = parse(api, call["returns"])
    returns = "void" if call["returns"] == "void" else "String" if c.kind == "char" else _scalar(c)
    arguments = [f"{argument_type(api, a.type)} {a.name}" for a in call["arguments"]]
    return [*_doc(function_doc(call), "  "),
            *listed(f"{returns} {name}(", arguments, ");", "  "), ""]  # fmt: skip


def write_sys(api, table: dict, mark: str) -> str:
    out = [f"// {mark}", "package loom;", "", "import com.sun.jna.Callback;",
           "import com.sun.jna.Library;", "import com.sun.jna.Pointer;",
           "import com.sun.jna.Structure;",
           "import com.sun.jna.ptr.DoubleByReference;",
           "import com.sun.jna.ptr.FloatByReference;", "import com.sun.jna.ptr.IntByReference;",
           "import com.sun.jna.ptr.LongByReference;",
           "import com.sun.jna.ptr.PointerByReference;", "",
           "/** The C interface of Loom as it is; the other classes of the package are over it. */",
           "public interface Sys extends Library {",
           f"  int ABI_VERSION = {api.abi};", ""]  # fmt: skip
    for item in table["order"]:
        if item["kind_of"] == "struct":
            out += _struct(api, item["name"])
        elif item["kind_of"] == "callback":
            out += _callback(api, item["name"])
    for name in in_section_order(table, "function"):
        out += _function(api, name)
    return "\n".join(out).rstrip() + "\n}\n"


def write_types(api, mark: str) -> str:
    out = [f"// {mark}", "package loom;", "", "/** The enums of the C interface. */",
           "public final class Types {", "  private Types() {}", ""]  # fmt: skip
    for name, enum in api.enums.items():
        kind = "Code" if name == "loom_status" else type_name(name)
        out += [*_doc(enum["doc"], "  "), f"  public enum {kind} {{"]
        last = len(enum["values"]) - 1
        for i, (value, number, doc) in enumerate(enum["values"]):
            out += _doc(doc, "    ")
            out.append(f"    {value}({number}){',' if i < last else ';'}")
        out += ["", "    /** In the C interface. */", "    public final int number;", "",
                f"    {kind}(int number) {{", "      this.number = number;", "    }", "",
                "    /** Null: a number of a newer library. */",
                f"    public static {kind} of(int number) {{",
                f"      for ({kind} value : values()) if (value.number == number) return value;",
                "      return null;", "    }", "  }", ""]  # fmt: skip
    return "\n".join(out).rstrip() + "\n}\n"

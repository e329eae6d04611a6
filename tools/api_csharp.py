"""Writes bindings/csharp/Sys.cs: structs, callbacks and DllImports of the C interface, and enums.

Handles are SafeHandles, so that the runtime keeps them while a call uses them, and closed ones are
refused. Texts and lists are addresses, because Marshal's texts are not UTF-8 everywhere.
"""

from api_types import comment, function_doc, in_section_order, listed, parse, type_name, value_name

_SCALARS = {"int32_t": "int", "uint32_t": "uint", "int64_t": "long", "uint64_t": "ulong",
            "float": "float", "double": "double"}  # fmt: skip
_ADDRESSES = ("loom_chat_turn", "loom_ranked", "loom_tensor")  # the caller lays these out
# All keywords of the language.
_RESERVED = set("""abstract as base bool break byte case catch char checked class const continue
    decimal default delegate do double else enum event explicit extern false finally fixed float for
    foreach goto if implicit in int interface internal is lock long namespace new null object
    operator out override params private protected public readonly ref return sbyte sealed short
    sizeof stackalloc static string struct switch this throw true try typeof uint ulong unchecked
    unsafe ushort using virtual void volatile while""".split())


def _name(name: str) -> str:
    return f"@{name}" if name in _RESERVED else name


def _scalar(c) -> str:
    return "int" if c.kind == "enum" else _SCALARS[c.base]


def raw_name(name: str) -> str:
    """Structs and callbacks are CEpoch, so that Epoch is the public class."""
    return "C" + type_name(name)


def handle_name(name: str) -> str:
    return type_name(name) + "Handle"


def field_type(api, text: str) -> str:
    c = parse(api, text)
    if c.extent:
        return "byte[]" if c.kind == "char" else f"{_scalar(c)}[]"
    if c.kind == "callback":
        return raw_name(c.base)
    return "IntPtr" if c.stars else _scalar(c)


def argument_type(api, text: str) -> str:
    c = parse(api, text)
    if c.kind == "callback":
        return raw_name(c.base)
    if c.stars == 0:
        return _scalar(c)
    if c.kind == "handle":
        return ("out " if c.stars == 2 else "") + handle_name(c.base)
    if c.stars == 2:
        return "IntPtr" if all(c.pointees) else "out IntPtr"
    if c.kind in ("scalar", "enum") and not c.pointees[0]:
        return f"out {_scalar(c)}"
    if c.kind == "struct" and c.base not in _ADDRESSES:
        return f"ref {raw_name(c.base)}"
    return "IntPtr"


def _doc(text: str, indent: str) -> list[str]:
    if not text:
        return []
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return comment(f"<summary>{text}</summary>", "/// ", indent)


def _struct(api, name: str) -> list[str]:
    struct, kind = api.structs[name], raw_name(name)
    out = [*_doc(struct["doc"], "    "), "    [StructLayout(LayoutKind.Sequential)]",
           f"    internal struct {kind}", "    {"]  # fmt: skip
    for m in struct["members"]:
        c = parse(api, m.type)
        out += _doc(m.doc, "        ")
        if c.extent:
            out.append(f"        [MarshalAs(UnmanagedType.ByValArray, SizeConst = {c.extent})]")
        out.append(f"        public {field_type(api, m.type)} {_name(m.name)};")
    if struct["kind"] != "plain":
        out += ["", f"        public static {kind} Sized()", "        {",
                f"            {kind} made = default({kind});",
                f"            made.struct_size = (uint)Marshal.SizeOf(typeof({kind}));",
                ]  # fmt: skip
        for m in struct["members"]:
            c = parse(api, m.type)
            if c.extent:
                element = field_type(api, m.type)[:-2]
                out.append(f"            made.{_name(m.name)} = new {element}[{c.extent}];")
        out += ["            return made;", "        }"]
    return [*out, "    }", ""]


def _callback(api, name: str) -> list[str]:
    call = api.callbacks[name]
    types = ["IntPtr" if parse(api, a.type).stars else _scalar(parse(api, a.type))
             for a in call["arguments"]]  # fmt: skip
    arguments = [f"{t} {_name(a.name)}" for t, a in zip(types, call["arguments"])]
    return [*_doc(call["doc"], "    "),
            "    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]",
            *listed(f"internal delegate int {raw_name(name)}(", arguments, ");", "    "),
            ""]  # fmt: skip


def _handle(name: str) -> list[str]:
    kind = handle_name(name)
    return [f"    internal sealed class {kind} : SafeHandle", "    {",
            f"        public {kind}() : base(IntPtr.Zero, true) {{ }}",
            "        public override bool IsInvalid { get { return handle == IntPtr.Zero; } }",
            "        protected override bool ReleaseHandle()", "        {",
            f"            Sys.{name}_free(handle);", "            return true;", "        }",
            "    }", ""]  # fmt: skip


def _function(api, name: str) -> list[str]:
    call = api.functions[name]
    c = parse(api, call["returns"])
    returns = "void" if call["returns"] == "void" else "IntPtr" if c.stars else _scalar(c)
    freeing = name.endswith("_free")
    arguments = [f"{'IntPtr' if freeing else argument_type(api, a.type)} {_name(a.name)}"
                 for a in call["arguments"]]  # fmt: skip
    return [*_doc(function_doc(call), "        "),
            "        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]",
            *listed(f"internal static extern {returns} {name}(", arguments, ");", "        "),
            ""]  # fmt: skip


def write(api, table: dict, mark: str) -> str:
    out = [f"// {mark}", "using System;", "using System.Runtime.InteropServices;", "",
           "namespace Loom", "{"]  # fmt: skip
    for name, enum in api.enums.items():
        kind = "Code" if name == "loom_status" else type_name(name)
        out += [*_doc(enum["doc"], "    "), f"    public enum {kind}", "    {"]
        for value, number, doc in enum["values"]:
            out += _doc(doc, "        ")
            out.append(f"        {value_name(value)} = {number},")
        out += ["    }", ""]
    for name in api.handles:
        out += _handle(name)
    for item in table["order"]:
        if item["kind_of"] == "struct":
            out += _struct(api, item["name"])
        elif item["kind_of"] == "callback":
            out += _callback(api, item["name"])
    out += ["    internal static class Sys", "    {",
            '        private const string Library = "loom";',
            f"        internal const uint AbiVersion = {api.abi};", ""]  # fmt: skip
    for name in in_section_order(table, "function"):
        out += _function(api, name)
    return "\n".join(out).rstrip() + "\n    }\n}\n"

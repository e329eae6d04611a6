"""Output of api/ for WebAssembly and TypeScript: tools/generate_api.py writes it with the rest.

The module imports each kind of callback from its host. TypeScript gets numbers of enums, offsets of
fields in memory of 32 and of 64 bits, the types of functions, and the layers.
"""

import re
import textwrap

import api_layers
from api_layers import listed
from generate_api import _ARRAY, MARK, Api, Variable, vocabularies

WASM_POINTER_BYTES = 4
WIDE_POINTER_BYTES = 8
# C type -> how TypeScript reads and writes it (bindings/typescript/src/memory.ts).
WASM_KINDS = {
    "int32_t": "i32",
    "uint32_t": "u32",
    "int64_t": "i64",
    "uint64_t": "u64",
    "float": "f32",
    "double": "f64",
}


def write_callbacks(api: Api) -> str:
    """A C++ file that imports each kind of callback from the host, and returns their addresses."""
    out = [f"// {MARK}", "// clang-format off",
           "// Callbacks of the C interface that the host of the module has: imports, whose",
           "// addresses it asks for.",
           '#include "loom.h"', "",
           '#define HOST(name) __attribute__((import_module("loom_host"), import_name(name)))',
           ""]  # fmt: skip
    for name, call in api.callbacks.items():
        args = ", ".join(a.declared() for a in call["arguments"])
        out.append(f'extern "C" HOST("{name}") int32_t host_{name}({args});')
    out += ["", "// The callback of that place in callbackNames (bindings/typescript/src/ffi.ts);",
            "// null: there is none.",
            'extern "C" __attribute__((export_name("loom_host_callback")))',
            "void *loom_host_callback(int32_t index) {",
            "  switch (index) {"]  # fmt: skip
    for i, name in enumerate(api.callbacks):
        out.append(f"    case {i}: return reinterpret_cast<void *>(host_{name});")
    return "\n".join([*out, "  }", "  return nullptr;", "}", ""])


def wasm_kind(api: Api, member: Variable) -> str:
    """Code that reads and writes a value (bindings/typescript/src/memory.ts)."""
    type_ = member.type
    array = _ARRAY.match(type_)
    if array:
        return f"chars:{array[2]}" if array[1] == "char" else f"i64s:{array[2]}"
    lists = {"const char *": "text", "const int64_t *": "i64 list", "const int32_t *": "i32 list",
             "const char *const *": "text list"}  # fmt: skip
    if type_ in lists:
        return lists[type_]
    if type_.endswith("*"):
        return "pointer"
    if type_ in api.callbacks:
        return "callback"
    if type_ in api.enums:
        return f"enum:{type_script_name(type_)}"
    by_text = re.search(r"(^|: )[01](:| means) ", member.doc)
    if type_ == "int32_t" and (member.flag or by_text or member.name.startswith("has_")):
        return "bool"
    return WASM_KINDS[type_]


def type_script_name(name: str) -> str:
    return "".join(part.capitalize() for part in name[5:].split("_"))


def boundary_type(api: Api, type_: str) -> str:
    """The type of a value that crosses the boundary of the module."""
    return "bigint" if type_ in ("int64_t", "uint64_t") else "number"


def typescript_enum(enum: dict) -> list[str]:
    rows = [f"{name.lower()}: {value}" for name, value, _ in enum["values"]]
    name = type_script_name(enum["name"])
    lines = listed(f"export const {name} = {{", rows, "} as const;")
    lines = [line.replace("    ", "  ") for line in lines]
    return [f"/** {' '.join(enum['doc'].split())} */", *lines,
            f"export type {name} = keyof typeof {name};", ""]  # fmt: skip


def typescript_type(kind: str) -> str | None:
    """The type of a field as users of the package see it. None: hidden from them."""
    base, _, rest = kind.partition(":")
    if base == "enum":
        return rest
    return {"bool": "boolean", "text": "string", "chars": "string", "i64s": "number[]",
            "u64": "number | bigint", "i64 list": "readonly number[]",
            "i32 list": "readonly number[]", "text list": "readonly string[]",
            "pointer": None, "callback": None}.get(base, "number")  # fmt: skip


def is_counted(struct: dict, member: Variable) -> bool:
    """True if a field is only the length of another, or a count."""
    names = {m.name for m in struct["members"]}
    for end in ("_count", "_rank", "_size"):
        base = member.name[: -len(end)]
        if member.name.endswith(end) and (base in names or f"{base}_ids" in names):
            return True
    if member.name == "rank" and "shape" in names:
        return True
    return member.name.startswith("has_") and member.name[4:] in names


def typescript_struct(api: Api, struct: dict) -> list[str]:
    offsets, size = api.layout(struct["name"], WASM_POINTER_BYTES)
    doc = " ".join(struct["doc"].split())
    sized = "false" if struct["kind"] == "plain" else "true"
    out = [f"/** {doc} */", f"export const {struct['name']} = {{",
           f'  name: "{struct["name"]}", size: {size}, sized: {sized},',
           "  fields: {"]  # fmt: skip
    for member in struct["members"]:
        out.append(f'    {member.name}: [{offsets[member.name]}, "{wasm_kind(api, member)}"],')
    out += ["  },", "} as const;", "", f"/** {doc} */"]
    out += [f"export interface {type_script_name(struct['name'])} {{"]
    optional = "?" if struct["kind"] == "options" else ""
    names = []
    for member in struct["members"]:
        kind = typescript_type(wasm_kind(api, member))
        if member.name == "struct_size" or kind is None or is_counted(struct, member):
            continue
        if member.doc:
            out.append(f"  /** {member.doc} */")
        out.append(f"  {camel(member.name)}{optional}: {kind};")
        names.append(f'"{camel(member.name)}"')
    if optional:
        name = camel(struct["name"].removeprefix("loom_"))
        rows = textwrap.wrap(", ".join(names), 96, initial_indent="  ", subsequent_indent="  ")
        out += ["}", f"export const {name}: readonly string[] = [", *rows, "];", ""]
    else:
        out += ["}", ""]
    return out


TS_TOP = """\
// {mark}
/** The C interface as TypeScript sees it: numbers, places of fields in memory of 32 bits,
 * functions. */

export const ABI_VERSION = {abi};

"""


def write_typescript(api: Api, table: dict) -> str:
    out = []
    for enum in api.enums.values():
        out += typescript_enum(enum)
    for item in table["order"]:
        if item["kind_of"] == "struct":
            out += typescript_struct(api, api.structs[item["name"]])
    names = [f'"{name}"' for name in api.callbacks]
    lines = listed("export const callbackNames = [", names, "] as const;")
    out += [line.replace("    ", "  ") for line in lines]
    out += ["export type CallbackName = (typeof callbackNames)[number];", "",
            "/** The functions of a module. Pointers and handles are numbers, integers of 64 bits",
            " * are bigints. */",
            "export interface Functions {"]  # fmt: skip
    for name, call in api.functions.items():
        args = [f"{a.name}: {boundary_type(api, a.type)}" for a in call["arguments"]]
        returns = "void" if call["returns"] == "void" else boundary_type(api, call["returns"])
        out += [f"  /** {' '.join(call['doc'].split())} */"]
        out += [f"  {name}({', '.join(args)}): {returns};"]
    return TS_TOP.format(mark=MARK, abi=api.abi) + "\n".join([*out, "}", ""])


TS_WIDE_TOP = """\
// {mark}
/** The differences for addresses of 64 bits (memory64.ts). */

/** Of each struct its size, then the places of its fields, in the order of ffi.ts. */
export const places: Readonly<Record<string, readonly number[]>> = {{
"""


def is_address(api: Api, type_: str) -> bool:
    return type_.endswith("*") or type_ in api.callbacks


def write_wide(api: Api, table: dict) -> str:
    """The addresses, which cross the boundary as bigints, and the offsets of fields."""
    out = []
    for item in table["order"]:
        if item["kind_of"] == "struct":
            offsets, size = api.layout(item["name"], WIDE_POINTER_BYTES)
            numbers = ", ".join(str(number) for number in (size, *offsets.values()))
            out.append(f"  {item['name']}: [{numbers}],")
    out += ["};", "",
            "/** Of each function that takes or gives an address a letter for each argument, and",
            " * one for what it returns: a, an address; -, anything else. */",
            "export const addresses: Readonly<Record<string, string>> = {"]  # fmt: skip
    for name, call in api.functions.items():
        types = [*(a.type for a in call["arguments"]), call["returns"]]
        letters = "".join("a" if is_address(api, type_) else "-" for type_ in types)
        if "a" in letters:
            out.append(f'  {name}: "{letters}",')
    return TS_WIDE_TOP.format(mark=MARK) + "\n".join([*out, "};", ""])


TS_TYPES = {"int": "number", "double": "number", "bool": "boolean", "ints": "Axes"}
TS_LAYERS_TOP = """\
// {mark}
/** The layers a network is made of, as plain values: a function per kind, with fields and defaults.
 *
 * A value that is out of range is an error of the call that makes a network of the layer. Lists
 * take one number for all axes, or one per axis. */

import {{ type Axes, type Layer, layer }} from "./layer.js";

"""


def camel(name: str) -> str:
    """in_ is a word of the language in TypeScript too, so it goes by another name."""
    head, *rest = {"in_": "inputs", "out": "outputs"}.get(name, name).split("_")
    return head + "".join(part.capitalize() for part in rest)


def typescript_member(item: api_layers.Field) -> tuple[str, str]:
    """Its name, and its declaration."""
    name = camel(api_layers.python_name(item))
    return name, api_layers.plain_type(item, TS_TYPES, "string")


def quoted(text: str) -> str:
    return f'"{text}"'


def write_layers_typescript(layers: api_layers.Layers) -> str:
    out = []
    for kind in layers.public():
        fields = [(f, *typescript_member(f)) for f in kind.arguments()]
        needs = [row for row in fields if row[0].required]
        may = [row for row in fields if not row[0].required]
        args = ["children: readonly Layer[]"] if kind.children else []
        args += [f"{name}: {type_}" for _, name, type_ in needs]
        if may:
            members = "; ".join(f"{name}?: {type_}" for _, name, type_ in may)
            args.append(f"options: {{ {members} }} = {{}}")
        fixed = ["children"] if kind.children else []
        fixed += [f"{f.name}: {name}" for f, name, _ in needs]
        call = [f'"{kind.type}"', "{ " + ", ".join(fixed) + " }" if fixed else "{}"]
        if may:
            names = [f"{name}: {quoted(f.name)}" for f, name, _ in may]
            call += ["options", "{ " + ", ".join(names) + " }"]
        out += [f"/** {kind.help} */"]
        out += [f"export function {kind.name}({', '.join(args)}): Layer {{"]
        out += [f"  return layer({', '.join(call)});", "}", ""]
    return TS_LAYERS_TOP.format(mark=MARK) + "\n".join(out)


def generated(api: Api, table: dict, layers: api_layers.Layers) -> dict[str, str]:
    """Path -> text."""
    # Options that are set by name have no struct here.
    named = {s.c for v in vocabularies() for s in v.named_structs()}
    table = {**table, "order": [item for item in table["order"] if item.get("name") not in named]}
    return {
        "bindings/typescript/wasm/callbacks.cpp": write_callbacks(api),
        "bindings/typescript/src/ffi.ts": write_typescript(api, table),
        "bindings/typescript/src/ffi64.ts": write_wide(api, table),
        "bindings/typescript/src/layers.ts": write_layers_typescript(layers),
    }

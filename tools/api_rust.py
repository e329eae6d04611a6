"""Writes bindings/rust/src/sys.rs, the C interface as Rust sees it, and enums.rs, its enums."""

from api_types import comment, function_doc, in_section_order, listed, parse, type_name, value_name

_SCALARS = {"int32_t": "i32", "uint32_t": "u32", "int64_t": "i64", "uint64_t": "u64",
            "float": "f32", "double": "f64", "void": "c_void", "char": "c_char"}  # fmt: skip
# Keywords of the language, but those that r# cannot escape.
_RESERVED = set("""abstract as async await become box break const continue do dyn else enum extern
    false final fn for if impl in let loop macro match mod move mut override priv pub ref return
    static struct trait true try type typeof unsafe unsized use virtual where while
    yield""".split())


def _name(name: str) -> str:
    return f"r#{name}" if name in _RESERVED else name


def rust_type(api, text: str) -> str:
    c = parse(api, text)
    out = _SCALARS.get(c.base, c.base)
    for constant in c.pointees:
        out = f"*{'const' if constant else 'mut'} {out}"
    return f"[{out}; {c.extent}]" if c.extent else out


def _struct(api, name: str) -> list[str]:
    struct = api.structs[name]
    out = [*comment(struct["doc"], "/// "), "#[repr(C)]", "#[derive(Clone, Copy, Debug)]",
           f"pub struct {name} {{"]  # fmt: skip
    for member in struct["members"]:
        out += comment(member.doc.replace("[", "\\[").replace("]", "\\]"), "/// ", "    ")
        out.append(f"    pub {_name(member.name)}: {rust_type(api, member.type)},")
    out += ["}", "", f"impl Default for {name} {{", "    fn default() -> Self {",
            "        // SAFETY: numbers, null pointers and no callbacks are all zeros.",
            f"        let {'mut ' if struct['kind'] != 'plain' else ''}made: Self ="
            " unsafe { core::mem::zeroed() };"]  # fmt: skip
    if struct["kind"] != "plain":
        out.append("        made.struct_size = core::mem::size_of::<Self>() as u32;")
    out += ["        made", "    }", "}", "", '#[cfg(target_pointer_width = "64")]',
            "const _: () = {"]  # fmt: skip
    offsets, size = api.layout(name)
    out.append(f"    assert!(core::mem::size_of::<{name}>() == {size});")
    for field, offset in offsets.items():
        out.append(f"    assert!(core::mem::offset_of!({name}, {_name(field)}) == {offset});")
    return [*out, "};", ""]


def _arguments(api, call: dict) -> list[str]:
    return [f"{_name(a.name)}: {rust_type(api, a.type)}" for a in call["arguments"]]


def _callback(api, name: str) -> list[str]:
    call = api.callbacks[name]
    return [*comment(call["doc"], "/// "),
            *listed(f"pub type {name} = Option<unsafe extern \"C\" fn(", _arguments(api, call),
                    ") -> i32>;"), ""]  # fmt: skip


def _function(api, name: str) -> list[str]:
    call = api.functions[name]
    returns = call["returns"]
    arrow = "" if returns == "void" else f" -> {rust_type(api, returns)}"
    doc = function_doc(call).replace("[", "\\[").replace("]", "\\]")
    return [*comment(doc, "/// ", "    "),
            *listed(f"pub fn {name}(", _arguments(api, call), f"){arrow};", "    "),
            ""]  # fmt: skip


def write_sys(api, table: dict, mark: str) -> str:
    out = [f"// {mark}",
           "//! The C interface of Loom, `loom.h`, as it is; the crate has its types over it.", "",
           "#![allow(non_camel_case_types)]", "", "use core::ffi::{c_char, c_void};", "",
           "/// Of this description; another number of loom_abi_version(): do not go on.",
           f"pub const LOOM_ABI_VERSION: u32 = {api.abi};", ""]  # fmt: skip
    for name, enum in api.enums.items():
        out += [*comment(enum["doc"], "/// "), f"pub type {name} = i32;"]
        for value, number, doc in enum["values"]:
            out += comment(doc, "/// ")
            out.append(f"pub const {enum['prefix']}{value}: {name} = {number};")
        out.append("")
    for name in api.handles:
        out += ["#[repr(C)]", f"pub struct {name} {{", "    _private: [u8; 0],", "}", ""]
    for item in table["order"]:
        if item["kind_of"] == "struct":
            out += _struct(api, item["name"])
        elif item["kind_of"] == "callback":
            out += _callback(api, item["name"])
    out.append('extern "C" {')
    for name in in_section_order(table, "function"):
        out += _function(api, name)
    return "\n".join(out).rstrip() + "\n}\n"


def write_enums(api, mark: str) -> str:
    out = [f"// {mark}", "//! The enums of the C interface as Rust's own.", ""]
    for name, enum in api.enums.items():
        kind = "Code" if name == "loom_status" else type_name(name)
        first = enum["values"][0][1]
        out += [*comment(enum["doc"], "/// "), "#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]",
                "#[non_exhaustive]", "#[repr(i32)]", f"pub enum {kind} {{"]  # fmt: skip
        for value, number, doc in enum["values"]:
            out += comment(doc.replace("[", "\\[").replace("]", "\\]"), "/// ", "    ")
            out.append(f"    {value_name(value).replace('_', 'x')} = {number},")
        out += ["}", "", f"impl {kind} {{", "    /// None: a number of a newer library.",
                "    pub fn from_raw(number: i32) -> Option<Self> {", "        match number {"]
        out += [f"            {number} => Some(Self::{value_name(value).replace('_', 'x')}),"
                for value, number, _ in enum["values"]]  # fmt: skip
        out += ["            _ => None,", "        }", "    }", "}", ""]
        if first == 0:
            zero = value_name(enum["values"][0][0]).replace("_", "x")
            out += [f"impl Default for {kind} {{", "    /// The meaning of a zero option.",
                    "    fn default() -> Self {", f"        Self::{zero}", "    }", "}",
                    ""]  # fmt: skip
    return "\n".join(out)

#!/usr/bin/env python3
"""Checks the includes between rooms, and code that never appears in the library.

  tools/layering.py            check; exit 1 with one line per finding
  tools/layering.py --list     print the arrows and the rules
  tools/layering.py --root DIR check another tree

The arrows are in two lists that must agree: the loom_room() lines of CMakeLists.txt, which the
linker obeys, and ARROWS below, which a reviewer sees change. A room may include what it can reach.
"""

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from cpp_source import cpp_files, line_of, without_comments

# Room -> the rooms it names. Everything reachable from them is allowed too.
ARROWS: dict[str, list[str]] = {
    "base": [],
    "dtype": ["base"],
    "tensor": ["dtype"],
    "ops": ["tensor"],
    "backend/reference": ["ops"],
    "backend/cpu": ["ops", "backend/reference"],
    "backend/webgpu/runtime": ["ops"],
    "backend/webgpu/wgsl": ["backend/webgpu/runtime"],
    "backend/webgpu/kernels": ["backend/webgpu/wgsl"],
    "backend/webgpu/fusion": ["backend/webgpu/kernels"],
    "backend/webgpu/tuning": ["backend/webgpu/kernels"],
    "backend/webgpu": [
        "backend/reference", "backend/webgpu/fusion", "backend/webgpu/tuning",
    ],
    "layers": ["ops"],
    "grid": ["layers"],
    "io": ["tensor"],
    "text": ["base", "io"],
    "bridge": ["grid", "io"],
    "telemetry": ["io"],
    "jinja": ["text"],
    "chat": ["io"],
    "grammar": ["text"],
    "llm": ["bridge", "jinja", "grammar", "options"],
    "onnx/file": ["io"],
    "onnx/operators": ["onnx/file", "ops"],
    "onnx/import": ["bridge", "onnx/operators", "backend/reference"],
    "onnx/export": ["bridge", "onnx/file"],
    "onnx/interpreter": ["onnx/import"],
    "formats/tflite": ["onnx/import"],
    "formats/original": ["bridge"],
    "formats/universal": ["bridge"],
    "families": ["llm"],
    "formats/config": ["families"],
    "formats/entity": ["formats/config"],
    "formats/gguf": ["formats/config"],
    "formats/hf": ["formats/config"],
    "options": ["base"],
    "learn": ["grid", "options"],
    "mesh": ["learn"],
    "media": ["io"],
    "table": ["io"],
    "train_io": ["learn", "bridge", "media", "table"],
    "convert": [
        "train_io", "onnx/interpreter", "backend/reference", "formats/entity", "formats/gguf",
        "formats/hf", "onnx/export", "onnx/import", "formats/original", "formats/tflite",
        "formats/universal",
    ],
    "evolve": ["convert"],
    "api": [
        "chat", "onnx/interpreter", "evolve", "telemetry", "mesh",
        "backend/reference", "backend/cpu", "backend/webgpu",
    ],
    "net": ["base"],
    "serve": ["api", "net"],
    "remote": ["api", "net"],
    "capi": [],
    "puzzle": ["evolve"],
    "lab": ["convert", "telemetry", "puzzle", "backend/reference", "backend/cpu"],
}


# Rooms outside the library, each with the files of the program that start it.
FRONTS: dict[str, str] = {
    "cli/server/serve.cpp": "src/serve/",
    "cli/server/served_modelfile.hpp": "src/serve/",
    "cli/server/served_modelfile.cpp": "src/serve/",
    "cli/server/status.cpp": "src/net/",
    "cli/models/absorb_host.cpp": "src/serve/",
    "cli/server/donate.cpp": "src/remote/",
    "cli/shared/tls_flags.hpp": "src/net/",
    "cli/shared/tls_flags.cpp": "src/net/",
}


@dataclass(frozen=True)
class Rule:
    """A header outside the standard library, and the only places that may include it."""

    name: str
    header: str  # regular expression on the name inside <> or ""
    places: tuple[str, ...]  # path prefixes, relative to the root
    advice: str


HEADER_RULES = [
    Rule("nlohmann-json", r"nlohmann/",
         ("src/io/json/json.cpp", "cli/shared/json.cpp", "cli/shared/json_value.cpp"),
         "use io/json/json.hpp, in the program json.hpp"),
    Rule("zlib", r"zlib\.h$|zconf", ("src/io/bytes/deflate.cpp",), "use io/bytes/deflate.hpp"),
    Rule("libpng", r"png\.h$", ("src/media/png.cpp",), "use media/picture.hpp"),
    Rule("libjpeg", r"j(?:peglib|error)\.h$", ("src/media/jpeg.cpp",), "use media/picture.hpp"),
    Rule("flatbuffers", r"flatbuffers/", ("src/formats/tflite/flat.hpp",),
         "use formats/tflite/flat.hpp"),
    Rule("PCRE2", r"pcre2", ("src/text/",), "use the regular expressions of src/text"),
    Rule("CLI11", r"CLI/|CLI11", ("cli/",), "options are parsed in cli/ only"),
    Rule("fmt", r"fmt/", ("cli/",), "the library builds messages with base/text.hpp"),
    Rule("cpp-httplib", r"httplib", ("cli/",), "the library needs no network"),
    Rule("Boost", r"boost/", ("src/net/", "src/serve/http/http.cpp", "src/remote/listener.cpp"),
         "listeners use net/stream.hpp, in src/serve/http/http.cpp and src/remote/listener.cpp"),
    Rule("libcurl", r"curl/", ("cli/hub/http.cpp",), "the library needs no network"),
    Rule("libedit", r"histedit\.h$", ("cli/language/line_editor_edit.cpp",), "use line_editor.hpp"),
    Rule("OpenSSL", r"openssl/", ("cli/hub/digest.cpp", "src/remote/secret.cpp", "src/net/tls.cpp"),
         "use hub/digest.hpp, in src/remote secret.hpp, for connections net/stream.hpp"),
    Rule(
        "xxHash", r"xxhash", ("src/io/bytes/hash.cpp",), "use io/bytes/hash.hpp"
    ),
    Rule(
        "CPU intrinsics",
        r"(?:[a-z]+mmintrin|immintrin|x86intrin|x86gprintrin|cpuid|arm_\w+|wasm_simd128)\.h$",
        ("src/backend/cpu/",),
        "kernels live in src/backend/cpu; elsewhere write plain C++ or a __builtin",
    ),
    Rule(
        "an operating system header",
        r"(?:sys|linux|asm|mach|bits)/"
        r"|(?:unistd|fcntl|sched|pthread|dlfcn|dirent|netdb|poll|signal|windows|malloc|io)\.h$",
        (
            "src/base/", "src/tensor/", "src/io/", "src/backend/cpu/", "cli/",
        ),
        "threads live in base, buffers in tensor, files in io",
    ),
    Rule(
        "an input/output stream",
        r"(?:iostream|fstream|sstream|ostream|istream|iomanip|ios|streambuf|syncstream|print)$",
        ("cli/",),
        "return a Result, or build text with base/text.hpp",
    ),
]

# Rooms that src/serve may include next to the public headers, and the files with a further header.
SERVE_SEES = ("serve", "net", "base", "io", "chat", "options")
SERVE_EXCEPTIONS = {
    "src/serve/absorb_host.cpp": "src/api/network/bridge_stream.hpp",
    "src/serve/dialects/prompt_chances.cpp": "src/llm/sampling/token_chances.hpp",
}

C_STANDARD_HEADERS = {
    f"{name}.h" for name in "stddef stdint stdbool string math limits float".split()
}


@dataclass(frozen=True)
class Ban:
    """Code that never appears in the library."""

    pattern: re.Pattern
    what: str
    advice: str
    except_in: tuple[str, ...] = ()  # path prefixes
    cli_too: bool = False
    aliases_of: str = ""  # the pattern's {name} matches this type and its aliases in a file

    def in_code(self, code: str) -> re.Pattern:
        if not self.aliases_of:
            return self.pattern
        alias = rf"\busing\s+(\w+)\s*=\s*(?:\w+::)*{self.aliases_of}\s*;"
        names = "|".join([self.aliases_of, *re.findall(alias, code)])
        return re.compile(self.pattern.pattern.replace("{name}", rf"(?:{names})"))


# Types of activations, sums and ids. Code may ask for them, because that asks for the type of a
# computation, or whether rows are ids. Every other type belongs to the table.
_COMPUTE_TYPES = r"(?:f32|f64|i32|float32|float64|int32)\b"


def compared(enumerators: str) -> re.Pattern:
    """An == or != with an enumerator of {name} on one of its sides."""
    return re.compile(
        rf"[!=]=\s*(?:\w+::)*\b{{name}}::{enumerators}|\b{{name}}::{enumerators}\s*[!=]="
    )


# Comparisons that a table cannot replace, and why.
COMPARES_DTYPES = {
    "src/dtype/": "its own room",
    "src/backend/cpu/": "picks the kernel that was compiled for the bits of f16 or bf16",
    "src/backend/webgpu/": "picks the WGSL for the bits of f16, bf16 or fp8",
    "src/formats/gguf/export.cpp": "f16 or bf16 is what that format has for this tensor",
    "src/formats/hf/export.cpp": "f16 and bf16 have names of their own in that format",
    "src/convert/formats/format_safetensors.cpp": "a blob is bytes or floats, and nothing else",
    "src/api/engine/dtype.cpp": "compares the public enumeration with the table, row by row",
    "src/api/train/dataset.cpp": "which arrays of a caller are features, and which are classes",
}
COMPARES_KINDS = {
    "src/layers/": "its own room",
    "src/convert/network_decoder.cpp": "reads a decoder off the cells that decoder.cpp makes",
    "src/onnx/export/": "says which kind stands for which layer of ONNX; refuses others",
    "src/onnx/import/": "says which kind stands for which layer of ONNX; refuses others",
    "src/formats/": "says which kind stands for which layer of a foreign format; refuses others",
    "src/evolve/networks/grid_change.cpp": "which layers have units to copy, split and leave out",
    "src/evolve/networks/darts_cells.cpp": "which layers have alternatives of the same shapes",
    "src/evolve/networks/darts.cpp": "which layers draw numbers, whose differences say nothing",
    "src/evolve/merging/class_order.cpp": "whose rows are classes, which layers keep their order",
    "src/lab/layer_cases.cpp": "which shapes are worth a measurement",
}

_FREE_CALL = r"(?<![\w.>:])(?:std::|::)?"
BANS = [
    Ban(
        re.compile(r"\bcase\s+(?:\w+::)*DType::"),
        "a case on a dtype outside src/dtype",
        "ask the dtype table (dtype/dtypes.def) or add a column to it",
        ("src/dtype/",),
        cli_too=True,
    ),
    Ban(
        re.compile(r"\bcase\s+(?:\w+::)*LayerKind::"),
        "a case on a layer kind outside src/layers",
        "ask the layer's LayerDef, or add a field to it",
        ("src/layers/",),
        cli_too=True,
    ),
    Ban(
        compared(rf"(?!{_COMPUTE_TYPES})\w+"),
        "a comparison with a dtype outside src/dtype",
        "ask the dtype table, or say in tools/layering.py why this is not a question for it",
        tuple(COMPARES_DTYPES),
        cli_too=True,
        aliases_of="DType",
    ),
    Ban(
        compared(r"\w+"),
        "a comparison with a layer kind outside src/layers",
        "ask the layer's LayerDef, or say in tools/layering.py why this is not a question for it",
        tuple(COMPARES_KINDS),
        cli_too=True,
        aliases_of="LayerKind",
    ),
    Ban(re.compile(r"\bthrow\b"), "a throw", "return an Error"),
    Ban(
        re.compile(_FREE_CALL + r"(?:abort|exit|_exit|_Exit|quick_exit|terminate)\s*\("),
        "a call that ends the program",
        "return an Error",
        ("src/base/result.cpp",),  # the end of a program that reads a failed Result
    ),
    Ban(
        re.compile(_FREE_CALL + r"(?:secure_)?getenv\s*\("),
        "an environment variable read",
        "take an option from the caller",
    ),
    Ban(
        re.compile(
            _FREE_CALL
            + r"(?:v?f?printf|f?puts|putchar|f?putc|perror)\s*\(|\bstd::c(?:out|err|log)\b"
        ),
        "printing",
        "return text to the caller; only cli/ prints",
        ("src/base/result.cpp",),
    ),
]

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)


@dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def reachable(arrows: dict[str, list[str]]) -> dict[str, set[str]]:
    """For every room, the rooms it can reach (itself included)."""
    result = {}
    for room in arrows:
        seen, todo = set(), [room]
        while todo:
            here = todo.pop()
            if here not in seen:
                seen.add(here)
                todo.extend(arrows.get(here, []))
        result[room] = seen
    return result


def cmake_arrows(text: str) -> dict[str, tuple[int, list[str]]]:
    """loom_room(NAME DEPENDS ...) lines: room -> (line, rooms it names)."""
    code = re.sub(r"#[^\n]*", lambda m: " " * len(m.group(0)), text)
    rooms = {}
    for match in re.finditer(r"^[ \t]*loom_room\s*\(([^)]*)\)", code, re.MULTILINE):
        name, *words = match.group(1).split()
        depends, taking = [], False
        for word in words:
            if word.isupper():
                taking = word == "DEPENDS"
            elif taking:
                depends.append(word)
        rooms[name] = (line_of(code, match.start()), depends)
    return rooms


def check_cmake(root: Path, arrows: dict[str, list[str]]) -> list[Finding]:
    """CMakeLists.txt and ARROWS say the same, and neither has a cycle."""
    path = root / "CMakeLists.txt"
    rooms = cmake_arrows(path.read_text()) if path.is_file() else {}
    wanted = reachable(arrows)
    built = reachable({room: names for room, (_, names) in rooms.items()})
    findings = []
    for room in sorted(set(wanted) | set(built)):
        line = rooms.get(room, (1, []))[0]
        if room not in built:
            problem = f"room {room} is missing; add loom_room({room} ...)"
        elif room not in wanted:
            problem = f"room {room} is unknown; add it to ARROWS in tools/layering.py"
        elif wanted[room] != built[room]:
            more = ", ".join(sorted(built[room] - wanted[room])) or "nothing"
            less = ", ".join(sorted(wanted[room] - built[room])) or "nothing"
            problem = (
                f"room {room}: {more} too many, {less} missing; make it equal tools/layering.py"
            )
        else:
            continue
        findings.append(Finding("CMakeLists.txt", line, problem))
    for room, names in sorted(arrows.items()):
        for name in names:
            if room in wanted.get(name, set()):
                problem = f"{room} and {name} reach each other; cut one arrow"
                findings.append(Finding("tools/layering.py", 1, problem))
    return findings


def room_of(path: str, rooms) -> str | None:
    """The room of a path below src/ ("base/x.hpp"), or None."""
    fitting = [room for room in rooms if path.startswith(room + "/")]
    return max(fitting, key=len, default=None)


def resolve(root: Path, file: Path, name: str) -> Path | None:
    """The file that #include "name" means, as the compiler would find it."""
    for base in (file.parent, root / "src", root / "include"):
        candidate = (base / name).resolve()
        if candidate.is_file() and candidate.is_relative_to(root):
            return candidate
    return None


def check_arrow(root: Path, file: Path, name: str, reach: dict[str, set[str]]) -> str | None:
    """The fault of #include "name" in `file`, or None."""
    path = file.relative_to(root).as_posix()
    target = resolve(root, file, name)
    if target is None:
        return f'"{name}" is not in src/ or include/; spell the path from src/'
    to = target.relative_to(root).as_posix()
    if to.startswith("include/"):
        return None
    if path.startswith("include/"):
        return f'public header includes "{name}"; include/ sees loom/ and the standard library only'
    if path.startswith("cli/") and to.startswith("src/"):
        if path.startswith("cli/lab/") or to.startswith(FRONTS.get(path, "none")):
            return None
        return f'"{name}" is a room; the program sees loom/ alone, but for cli/lab'
    if not path.startswith("src/"):
        return None
    here, there = room_of(path[4:], reach), room_of(to[4:], reach)
    if here is None:
        return None  # reported once, for the file
    if there is None or there not in reach[here]:
        allowed = ", ".join(sorted(reach[here] - {here})) or "no other room"
        where = f'"{name}" ({there or "no room"})'
        return f"{here} may not include {where}; it sees {allowed}: move the code or pass it in"
    if here == "serve" and there not in SERVE_SEES and SERVE_EXCEPTIONS.get(path) != to:
        return f'serve includes "{name}"; it sees loom/ and {", ".join(SERVE_SEES[1:])}'
    return None


def check_header(path: str, name: str) -> str | None:
    """The fault of #include <name> (or a third-party "name") in `path`, or None."""
    for rule in HEADER_RULES:
        if re.match(rule.header, name):
            if path.startswith(rule.places):
                return None
            places = " ".join(rule.places)
            return f"<{name}> ({rule.name}) belongs in {places} only; {rule.advice}"
    unknown = "/" in name or ("." in name and name not in C_STANDARD_HEADERS)
    if unknown and not path.startswith("cli/"):
        return f"<{name}> is unknown; write a decision note and add a row to tools/layering.py"
    return None


def check_includes(root: Path, file: Path, text: str, reach: dict[str, set[str]]) -> list[Finding]:
    path = file.relative_to(root).as_posix()
    findings = []
    for match in _INCLUDE.finditer(text):
        quoted, angled = match.group(1), match.group(2)
        third_party = any(re.match(rule.header, quoted or "") for rule in HEADER_RULES)
        if quoted and not (third_party and resolve(root, file, quoted) is None):
            problem = check_arrow(root, file, quoted, reach)
        else:
            problem = check_header(path, quoted or angled)
        if problem:
            findings.append(Finding(path, line_of(text, match.start()), problem))
    return findings


def check_bans(path: str, code: str) -> list[Finding]:
    findings = []
    for ban in BANS:
        if path.startswith(ban.except_in) or (path.startswith("cli/") and not ban.cli_too):
            continue
        for match in ban.in_code(code).finditer(code):
            line = line_of(code, match.start())
            findings.append(Finding(path, line, f"{ban.what}; {ban.advice}"))
    return findings


def check_file(root: Path, file: Path, reach: dict[str, set[str]]) -> list[Finding]:
    path = file.relative_to(root).as_posix()
    text = file.read_text(encoding="utf-8", errors="replace")
    findings = check_includes(root, file, without_comments(text, keep_strings=True), reach)
    if path.startswith("src/") and room_of(path[4:], reach) is None:
        problem = "this folder is not a room; move the file, or add the room to CMakeLists.txt"
        findings.append(Finding(path, 1, problem))
    return findings + check_bans(path, without_comments(text))


def check(root: Path, arrows: dict[str, list[str]] | None = None) -> tuple[list[Finding], int]:
    """All findings of a tree, and how many files were read."""
    root = root.resolve()
    arrows = ARROWS if arrows is None else arrows
    reach = reachable(arrows)
    findings = check_cmake(root, arrows)
    files = [f for folder in ("src", "include", "cli") for f in cpp_files(root, folder)]
    files += sorted((root / "src").rglob("*.def"))
    for file in files:
        findings += check_file(root, file, reach)
    return sorted(set(findings)), len(files)


def print_rules() -> None:
    print("room -> rooms it names (and everything they reach)")
    for room, names in ARROWS.items():
        print(f"  {room:<18} -> {', '.join(names) or '(nothing)'}")
    print("header -> the only places that may include it")
    for rule in HEADER_RULES:
        print(f"  {rule.name:<28} -> {' '.join(rule.places)}")
    print("never in src/ and include/")
    for ban in BANS:
        print(f"  {ban.what}")
    for what, places in (("dtype", COMPARES_DTYPES), ("layer kind", COMPARES_KINDS)):
        print(f"comparisons with a {what} are allowed in")
        for place, reason in places.items():
            print(f"  {place:<28} {reason}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Who may include whom in Loom.")
    parser.add_argument("--list", action="store_true", help="print the arrows and the rules")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    options = parser.parse_args()
    if options.list:
        print_rules()
        return 0
    findings, files = check(options.root)
    for finding in findings:
        print(finding)
    print(f"layering: {files} files, {len(findings)} finding{'s' * (len(findings) != 1)}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

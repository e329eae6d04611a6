#!/usr/bin/env python3
"""Prints lines, files and function lengths per room and fails when a budget is passed.

  tools/budgets.py             table; exit 1 with one line per offending place
  tools/budgets.py --longest N also the N longest functions
  tools/budgets.py --root DIR  another tree

Budgets (docs/decisions say why before one is raised): median file 180 lines, longest file 600, 90th
percentile of function lengths 40 lines, longest function 100, 100 columns. The median and the 90th
percentile are taken over the product (src, include, cli); the limits hold for every file, tests and
tools too. Exempt: files whose first line is a comment starting with "generated", and *.def tables.
Functions are found by matching braces, which is exact for code laid out by clang-format.
"""

import argparse
import ast
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from cpp_source import (cpp_files, is_generated, line_of, without_comments,
                        without_preprocessor, written_by_hand)  # fmt: skip
from layering import ARROWS, room_of

FILE_MEDIAN, FILE_MAX = 180, 600
FUNCTION_P90, FUNCTION_MAX = 40, 100
COLUMNS = 100
PRODUCT = ("src", "include", "cli")
OTHERS = ("tests", "fuzz", "bench", "examples")
PYTHON = ("tools", "tests", "bench", "scripts", "bindings")
SENTENCES = ("tools/stories/",)  # lists of sentences: columns do not count
WIDE_SHOWN = 3  # per file


@dataclass(frozen=True)
class Function:
    name: str
    path: str
    line: int
    lines: int


@dataclass
class Room:
    name: str
    product: bool
    files: dict[str, int] = field(default_factory=dict)  # path -> lines
    exempt: int = 0
    functions: list[Function] = field(default_factory=list)
    wide: list[tuple[str, int, int]] = field(default_factory=list)  # path, line, columns


# ---- functions of a C++ file ---------------------------------------------------------------------

_TYPE = re.compile(r"^(?:typedef\s+)?(?:class|struct|union|enum)\b")
_TEMPLATE = re.compile(r"^template\s*<")
_SCOPE = re.compile(r"^(?:inline\s+)?namespace\b|^extern\s*\"")
_LAMBDA = re.compile(r"\[[^\[\]]*\]\s*(?:<[^{};]*>\s*)?(?:\([^;]*\))?[^;={}]*$", re.DOTALL)
_NAME = re.compile(
    r"""((?:[A-Za-z_]\w*(?:<[^<>()]*>)?::)*              # qualifiers
         (?:operator\s*(?:\(\)|\[\]|[^\s\w(]+|\w[\w\s:*&]*)  # an operator or a conversion
           |~?[A-Za-z_]\w*))\s*\(""",
    re.VERBOSE,
)
_NOT_NAMES = {"requires", "decltype", "noexcept", "alignas", "__attribute__", "explicit", "if"}
_LABEL = re.compile(r"^(?:\s*(?:public|private|protected)\s*:(?!:))+")


def _strip_template(head: str) -> str:
    """The head without its leading template<...> and requires-clause up to the declaration."""
    while _TEMPLATE.match(head):
        depth = 0
        for at in range(head.index("<"), len(head)):
            depth += (head[at] == "<") - (head[at] == ">" and head[at - 1] != "-")
            if depth == 0:
                break
        head = head[at + 1 :].lstrip()
    return re.sub(r"^(?:\[\[[^\]]*\]\]\s*|alignas\([^)]*\)\s*)+", "", head)


def _parameter_list(head: str) -> re.Match | None:
    """The name before the first parenthesis at top level that can be a parameter list."""
    for match in _NAME.finditer(head):
        if match.group(1) in _NOT_NAMES:
            continue
        before = head[: match.start()]
        if "=" in re.sub(r"operator\s*\S+|<[^<>]*>", "", before):
            return None  # an initializer: int x = f(...) {
        return match
    return None


def classify(head: str, spaced: bool) -> tuple[str, str]:
    """The kind of block that the brace after `head` opens outside functions: scope, function or
    data; and its name.

    `spaced`: a space precedes the brace. clang-format writes none before a braced initializer.
    """
    head = _strip_template(head.strip())
    if _SCOPE.match(head):
        return "scope", ""
    if not spaced or (head.count("(") > head.count(")") and not _LAMBDA.search(head)):
        return "data", ""  # a braced initializer, or a default argument
    if _LAMBDA.search(head) and "operator" not in head:
        named = re.search(r"(\w+)\s*=[^=]*$", head)
        return "function", named.group(1) if named else "lambda"
    match = _parameter_list(head)
    ends_like_function = re.search(r"\)\s*(?:const|noexcept|override|final)?\s*$", head)
    if _TYPE.match(head) and not (match and ends_like_function):
        return "scope", ""
    return ("function", match.group(1).strip()) if match else ("data", "")


def _matching(code: str, opening: int) -> int:
    """The position of the brace that closes the one at `opening` (the end of the text if none)."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(code, opening):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.start()
    return len(code)


def cpp_functions(text: str, path: str) -> list[Function]:
    """The functions of a file, class members and lambdas of tables included. A local lambda belongs
    to its enclosing function."""
    code = without_preprocessor(without_comments(text))
    found: list[Function] = []
    start = 0  # start of the current declaration
    at = 0
    stop = re.compile(r"[{};]")
    while match := stop.search(code, at):
        position = match.start()
        at = position + 1
        if match.group() != "{":
            inside = code.count("(", start, position) > code.count(")", start, position)
            start = start if inside else at  # the semicolons of a for(;;) end nothing
            continue
        label = _LABEL.match(code[start:position])
        start += label.end() if label else 0
        head = code[start:position]
        kind, name = classify(head, position > 0 and code[position - 1].isspace())
        if kind == "scope":
            start = at
        elif kind == "function":
            end = _matching(code, position)
            first = start + len(head) - len(head.lstrip())
            line = line_of(code, first)
            found.append(Function(name, path, line, line_of(code, end) - line + 1))
            start = at = end + 1
        # Data. Read on inside it if it holds lambdas; `start` stays at the declaration.
        elif _holds_lambda(code, position):
            start = at
        else:
            at = _matching(code, position) + 1
    return found


def _holds_lambda(code: str, opening: int) -> bool:
    return re.search(r"\[[^\[\]]*\]\s*\(", code[opening : _matching(code, opening)]) is not None


# ---- functions of a Python file ------------------------------------------------------------------


def python_functions(text: str, path: str) -> list[Function]:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    return [Function(n.name, path, n.lineno, n.end_lineno - n.lineno + 1) for n in nodes]


# ---- a tree --------------------------------------------------------------------------------------


def _add(room: Room, root: Path, file: Path) -> None:
    path = file.relative_to(root).as_posix()
    text = file.read_text(encoding="utf-8", errors="replace")
    if is_generated(text) or file.suffix == ".def":
        room.exempt += 1
        return
    text = written_by_hand(text)
    lines = text.splitlines()
    room.files[path] = len(lines)
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS and "https://" not in line and not path.startswith(SENTENCES):
            room.wide.append((path, number, len(line)))
    room.functions += (python_functions if file.suffix == ".py" else cpp_functions)(text, path)


def _python_files(root: Path) -> list[Path]:
    files = [p for folder in PYTHON for p in (root / folder).rglob("*.py")]
    return sorted(set(files))


def measure(root: Path) -> list[Room]:
    """Every room of a tree, in the order of the arrows, then include, cli, tests and the rest."""
    root = root.resolve()
    names = [*(f"src/{room}" for room in ARROWS), "include", "cli"]
    rooms = {name: Room(name, True) for name in names}
    sources = cpp_files(root, "src") + sorted((root / "src").rglob("*.def"))
    for file in sources:
        room = room_of(file.relative_to(root / "src").as_posix(), ARROWS)
        name = f"src/{room}" if room else "src (no room)"
        _add(rooms.setdefault(name, Room(name, True)), root, file)
    for folder in ("include", "cli", *OTHERS):
        room = rooms.setdefault(folder, Room(folder, folder in PRODUCT))
        for file in cpp_files(root, folder):
            _add(room, root, file)
    rooms["python"] = Room("python", False)
    for file in _python_files(root):
        _add(rooms["python"], root, file)
    return [room for room in rooms.values() if room.files or room.exempt]


def percentile(values: list[int], share: float) -> int:
    """Nearest-rank percentile; 0 of nothing."""
    if not values:
        return 0
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 100) * len(ordered) // 100) - 1)]


def total(rooms: list[Room], name: str) -> Room:
    both = Room(name, True)
    for room in rooms:
        both.files |= room.files
        both.exempt += room.exempt
        both.functions += room.functions
        both.wide += room.wide
    return both


_HEADER = (
    "room",
    "files",
    "lines",
    "median",
    "max",
    "funcs",
    "median",
    "p90",
    "max",
    "wide",
    "exempt",
)


def table_line(cells: tuple) -> str:
    return f"{cells[0]:<20}" + "".join(f"{cell:>8}" for cell in cells[1:])


def table_row(room: Room) -> str:
    lines = list(room.files.values())
    lengths = [f.lines for f in room.functions]
    files = (len(lines), sum(lines), percentile(lines, 0.5), max(lines, default=0))
    functions = (len(lengths), percentile(lengths, 0.5), percentile(lengths, 0.9))
    rest = (max(lengths, default=0), len(room.wide), room.exempt)
    return table_line((room.name, *files, *functions, *rest))


def room_findings(room: Room) -> list[str]:
    found = []
    for path, lines in room.files.items():
        if lines > FILE_MAX:
            found.append(f"{path}:1: {lines} lines, budget {FILE_MAX}; split the file")
        wide = [(line, columns) for where, line, columns in room.wide if where == path]
        for line, columns in wide[:WIDE_SHOWN]:
            found.append(f"{path}:{line}: {columns} columns, budget {COLUMNS}; break the line")
        if len(wide) > WIDE_SHOWN:
            more = len(wide) - WIDE_SHOWN
            found.append(f"{path}:{wide[WIDE_SHOWN][0]}: and {more} more wide lines from here")
    for f in room.functions:
        if f.lines > FUNCTION_MAX:
            size = f"{f.name} has {f.lines} lines, budget {FUNCTION_MAX}"
            found.append(f"{f.path}:{f.line}: {size}; split the function")
    return found


def findings(rooms: list[Room]) -> list[str]:
    product = total([room for room in rooms if room.product], "product")
    found = []
    median = percentile(list(product.files.values()), 0.5)
    if median > FILE_MEDIAN:
        found.append(f"src: median file has {median} lines, budget {FILE_MEDIAN}; split files")
    p90 = percentile([f.lines for f in product.functions], 0.9)
    if p90 > FUNCTION_P90:
        advice = "see --longest 40"
        found.append(f"src: functions at p90 have {p90} lines, budget {FUNCTION_P90}; {advice}")
    for room in rooms:
        found += room_findings(room)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Sizes of Loom's files and functions against the budgets."
    )
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument(
        "--longest", type=int, default=0, metavar="N", help="print the N longest functions"
    )
    options = parser.parse_args()
    rooms = measure(options.root)
    print(table_line(_HEADER))
    for room in rooms:
        print(table_row(room))
    print(table_row(total([room for room in rooms if room.product], "product")))
    functions = sorted((f for room in rooms for f in room.functions), key=lambda f: -f.lines)
    for f in functions[: options.longest]:
        print(f"{f.lines:>5} lines  {f.path}:{f.line}: {f.name}")
    found = findings(rooms)
    for line in found:
        print(line)
    files = sum(len(room.files) for room in rooms)
    print(f"budgets: {files} files, {len(found)} finding{'s' * (len(found) != 1)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

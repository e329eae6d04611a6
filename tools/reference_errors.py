"""docs/reference/errors.md: the error messages that tests/e2e/messages_test.cpp expects, word by
word, and the error codes of the interfaces."""

import re
from pathlib import Path

from reference_pages import MARK, escape

SOURCE = "tests/e2e/messages_test.cpp"
_STRING = r'(?:"(?:\\.|[^"\\])*"\s*)+'
_CASE = re.compile(r"\{\s*(" + _STRING + r"),\s*(k\w+),\s*(?:std::string\()?(" + _STRING + r")")
_CODE = re.compile(r"^  (\w+) = (\d+),(?:\s*// (.*))?$", re.M)
# Exit codes, in the order of their numbers.
EXITS = {
    "kUsage": (2, "The command line is wrong, or names an impossible output"),
    "kBadFile": (3, "An input is absent or invalid"),
    "kFailed": (1, "The system refused, or memory or a context is full"),
    "kUnsupported": (4, "This build or this machine cannot do it"),
}
TOP = """\
# Error messages

{mark}

An error of the program is one line on stderr: what is wrong, where, and what to do. These examples
are the ones that `{source}` expects, word by word. `$E` is a model file, `$S` is
a folder of a model, and `$T` is a folder for output. The program starts each line with `loom: `.

In C++ an [Error](cpp/result.md) has the same text with a code. In C the function returns the code,
and `loom_last_error()` has the text. Python raises a class for each code, for example
`loom.BadFileError` ([errors](python/errors.md)). In TypeScript a `LoomError` has `code`.

## Codes of the interfaces

| code | name | meaning |
|---|---|---|
"""


def joined(text: str) -> str:
    """The value of adjacent C++ strings."""
    parts = re.findall(r'"((?:\\.|[^"\\])*)"', text)
    return "".join(parts).replace('\\"', '"').replace("\\n", " ").replace("\\\\", "\\")


def cases(text: str) -> dict[str, list[tuple[str, str]]]:
    """The command and its message, by the name of the exit code; some lists are cut."""
    found: dict[str, list[tuple[str, str]]] = {}
    for case in _CASE.finditer(text):
        line = joined(case[3])
        if text[case.end() :].lstrip()[:1] in ("+", ")"):
            line = line.rstrip() + " ..."
        found.setdefault(case[2], []).append((joined(case[1]), line))
    return found


def codes(header: str) -> list[tuple[str, str, str]]:
    body = header.split("enum class Code", 1)[1].split("};", 1)[0]
    return [(number, name, meaning or "") for name, number, meaning in _CODE.findall(body)]


def cell(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def page(root: Path) -> str:
    lines = TOP.format(mark=MARK.format(SOURCE), source=SOURCE)
    for number, name, meaning in codes((root / "include/loom/result.hpp").read_text()):
        lines += f"| {number} | `{name}` | {escape(meaning)} |\n"
    found = cases((root / SOURCE).read_text(encoding="utf-8"))
    for kind, (number, title) in EXITS.items():
        if kind in found:
            lines += f"\n## {title} (exit code {number})\n\n| typed | message |\n|---|---|\n"
            for typed, line in found[kind]:
                lines += f"| {cell('loom ' + typed)} | {escape(line)} |\n"
    return lines

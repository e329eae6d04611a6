#!/usr/bin/env python3
"""Renames identifiers of the C++ code by a table.

  tools/sweeps/rename.py TABLE           renames, and prints how often
  tools/sweeps/rename.py TABLE --check   prints what it would do; exit 1 if a name is still found

A row has `from`, a regular expression of a whole identifier, and `to`, with a backslash and a digit
for a group. The first row that matches counts. Optional keys:
  under    folders or files that it is limited to
  called   true: only a function, so a parenthesis follows; variables of that name stay, also
           `Thing name(values);`
  member   true: only after . or ->
  public   true: also a name that include/ declares; for local variables that share such a name
Strings and #include lines keep their text, so keys of files do not change. Without `public`, an
identifier that include/ declares keeps its name. A comment is renamed if the name is spelled like
code. A file that has the new name is refused. `to` may be a list: the first that the file lacks.
"""

import argparse
import re
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from cpp_source import CPP_SUFFIXES, is_generated, without_comments  # noqa: E402

FOLDERS = ("src", "cli", "tests", "bench", "fuzz", "examples", "wasm", "bindings")
IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*\b")
# "()", or "(Type name", "(const Type& name".
PARAMETERS = re.compile(r"\(\s*(\)|(const\s+)?[A-Za-z_][\w:<>, ]*(\s|[&*]\s*)[A-Za-z_]\w*\s*[,)=])")
# Words before a call, not types.
STATEMENTS = ("return", "co_return", "co_await", "co_yield", "throw", "new", "delete", "else", "do",
              "case", "and", "or", "not", "goto", "operator")  # fmt: skip
LIKE_CODE = re.compile(r"_|[a-z][A-Z]|^k[A-Z]|\d")


@dataclass(frozen=True)
class Rename:
    old: re.Pattern
    new: tuple[str, ...]
    under: tuple[str, ...]
    called: bool
    member: bool
    public: bool

    def of(self, path: str, name: str, called: bool, member: bool) -> tuple[str, ...]:
        """New names, best first; none if the row does not apply."""
        if not path.startswith(self.under) or self.called > called or self.member > member:
            return ()
        found = self.old.fullmatch(name)
        return tuple(found.expand(new) for new in self.new) if found else ()


def table_of(path: Path) -> list[Rename]:
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["rename"]
    found = []
    for r in rows:
        new = (r["to"],) if isinstance(r["to"], str) else tuple(r["to"])
        under = tuple(r.get("under", FOLDERS))
        flags = (r.get(flag, False) for flag in ("called", "member", "public"))
        found.append(Rename(re.compile(r["from"]), new, under, *flags))
    return found


def public_names(root: Path) -> set[str]:
    found = set()
    for path in (root / "include").rglob("*"):
        if path.suffix in CPP_SUFFIXES:
            found |= set(IDENTIFIER.findall(without_comments(path.read_text(encoding="utf-8"))))
    return found


def is_variable(text: str, start: int, end: int) -> bool:
    """Whether `Type name(values)` defines a variable: a type before it, no parameters after it."""
    before = text[:start].rstrip()
    word = re.search(r"[A-Za-z_]\w*$", before)
    typed = word and word[0] not in STATEMENTS
    if not word:
        typed = re.search(r"[\w>][&*]$|\w>$", before)
    if not typed or before == text[:start]:
        return False
    return not PARAMETERS.match(text, end)


class Renaming:
    def __init__(self, root: Path, table: list[Rename]):
        self.root, self.table = root, table
        self.public = public_names(root)
        self.done: Counter = Counter()
        self.refused: list[str] = []

    def new_names(self, path: str, text: str, found: re.Match) -> tuple[str, ...]:
        public = found[0] in self.public
        called = text[found.end() : found.end() + 1] == "(" and not is_variable(text, *found.span())
        member = text[max(0, found.start() - 2) : found.start()].endswith((".", "->"))
        for rename in self.table:
            new = rename.of(path, found[0], called, member)
            if new and (rename.public or not public):
                return new
        return ()

    def text(self, path: str, text: str) -> str:
        code = without_comments(text)  # strings are blank, positions are kept
        words = without_comments(text, keep_strings=True)
        present = set(IDENTIFIER.findall(code))
        taken: dict[str, str] = {}  # new name -> old name
        pieces, at = [], 0
        for found in IDENTIFIER.finditer(text):
            name, start = found[0], found.start()
            choices = self.new_names(path, text, found)
            if not choices:
                continue
            fits = (n for n in choices if n not in present and taken.get(n, name) == name)
            new = next(fits, None)
            in_code = code[start : found.end()] == name
            in_comment = not words[start : found.end()].strip()
            if not in_code and not (in_comment and LIKE_CODE.search(name)):
                continue
            line = text[text.rfind("\n", 0, start) + 1 : start]
            if line.lstrip().startswith("#include"):
                continue
            if new is None:
                self.refused.append(f"{path}: {name}: the file has {', '.join(choices)} already")
                continue
            taken[new] = name
            self.done[f"{name} -> {new}"] += 1
            pieces += [text[at:start], new]
            at = found.end()
        return "".join(pieces) + text[at:]

    def run(self, write: bool) -> None:
        for folder in FOLDERS:
            for path in sorted((self.root / folder).rglob("*")):
                below = path.relative_to(self.root).as_posix()
                if path.suffix not in CPP_SUFFIXES | {".def"} or below.startswith("tests/data/"):
                    continue
                text = path.read_text(encoding="utf-8", errors="surrogateescape")
                if is_generated(text):
                    continue
                new = self.text(below, text)
                if write and new != text:
                    path.write_text(new, encoding="utf-8", errors="surrogateescape")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    options = parser.parse_args()
    renaming = Renaming(options.root, table_of(options.table))
    renaming.run(write=not options.check)
    for name, count in sorted(renaming.done.items()):
        print(f"{count:5} {name}")
    for line in sorted(set(renaming.refused)):
        print(line, file=sys.stderr)
    return 1 if renaming.refused or (options.check and renaming.done) else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Finds words and phrases of tools/words.toml, and fails when one of them became more frequent.

  tools/words.py                table of counts; exit 1 with a line per count that rose
  tools/words.py --write        records counts that fell in tools/words_left.toml
  tools/words.py --of NAME      path:line and text of each place of one entry
  tools/words.py --in FOLDER    places of every entry below a folder or in a file
  tools/words.py --added [BASE] places in lines added since BASE (.ci/checked); exit 1 if any.
                                --base is the same
  tools/words.py --root DIR     another tree

Generated files and pages, test data, decisions, CHANGELOG.md and the seeds of corpora are not
searched. The average number of words of a sentence of README.md is a count too.
"""

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from cpp_source import CPP_SUFFIXES, is_generated, without_comments

TABLE = "tools/words.toml"
RECORD = "tools/words_left.toml"
README = "words of a README sentence"
LONG = "sentences of more than 25 words"
FOLDERS = ("src", "include", "cli", "bindings", "web", "wasm", "tools", "scripts", "bench", "tests",
           "examples", "docs", "api", "cmake", "fuzz")  # fmt: skip
LEFT_OUT = ("tests/data/", "tests/text/golden/", "tools/words", "docs/decisions/", "api/frozen/",
            "node_modules/", "fuzz/corpus", "tests/tools/test_words.py", "docs/reference/c/",
           "docs/reference/cpp/", "docs/reference/python/", "docs/reference/typescript/",
           "docs/reference/verbs.md", "docs/reference/errors.md")  # fmt: skip
SLASHES = CPP_SUFFIXES | {".def", ".ts", ".js", ".mjs", ".rs", ".go", ".java", ".cs", ".dart"}
HASHES = {".toml", ".cmake", ".sh", ".yml"}
STORIES = "tools/stories/"  # its strings are parts of stories, not messages


@dataclass(frozen=True)
class Entry:
    name: str
    pattern: re.Pattern
    write: str
    kinds: frozenset
    exempt: frozenset  # whole matches that do not count


LONG_ENTRY = Entry(LONG, re.compile(r"(?!)"), "two sentences", frozenset(), frozenset())


@dataclass(frozen=True)
class Paragraph:
    kind: str  # comments, docstrings, docs, messages or names
    lines: tuple[tuple[int, str], ...]  # number and text of each line
    rows: frozenset = frozenset()  # numbers of lines of a table, of formulas or of code

    def text(self) -> str:
        return " ".join(text for _, text in self.lines)

    def line_of(self, offset: int) -> int:
        for number, text in self.lines:
            if offset <= len(text):
                return number
            offset -= len(text) + 1
        return self.lines[-1][0]


@dataclass(frozen=True)
class Place:
    entry: Entry
    path: str
    line: int
    text: str


def entries(root: Path) -> list[Entry]:
    table = tomllib.loads((root / TABLE).read_text(encoding="utf-8"))
    prose = frozenset({"comments", "docstrings", "docs", "messages"})
    rows = [(row, frozenset(row.get("in", prose))) for row in table.get("phrase", [])]
    rows += [(row, frozenset({"names"})) for row in table.get("name", [])]
    found = []
    for row, kinds in rows:
        key = row["name"] + (" (name)" if kinds == {"names"} else "")
        exempt = frozenset(row.get("exempt", ()))
        found.append(Entry(key, re.compile(row["pattern"]), row["write"], kinds, exempt))
    return found


# ---- prose of a file -----------------------------------------------------------------------------


def joined(kind: str, lines: list[tuple[int, str]], rows: frozenset) -> list[Paragraph]:
    """Consecutive lines as one paragraph; an empty line ends it."""
    found, block = [], []
    for number, text in lines:
        if block and (number != block[-1][0] + 1 or not text):
            found.append(Paragraph(kind, tuple(block), rows))
            block = []
        if text:
            block.append((number, text))
    if block:
        found.append(Paragraph(kind, tuple(block), rows))
    return found


def is_row(text: str, margin: str = " ") -> bool:
    """Whether a line is indented below `margin`, or has a gap between two columns."""
    return text.startswith(margin + " ") or re.search(r"\S {2,}\S", text) is not None


def after(mark: str, text: str) -> list[Paragraph]:
    """Comments that begin with `mark`, outside of strings. Those beside code stand alone."""
    bare = without_comments(text, keep_strings=True) if mark == "//" else text
    own, beside, rows = [], [], set()
    for number, (line, code) in enumerate(zip(text.split("\n"), bare.split("\n")), 1):
        if mark == "//":
            at = len(code.rstrip()) if len(line) > len(code.rstrip()) else -1
            comment = line[at:].strip() if at >= 0 and "//" in line[at:] else ""
        else:
            found = re.match(r"(.*?)(?:^|\s)(#.*)$", line)
            comment = found[2] if found and found[1].count('"') % 2 == 0 else ""
            code = found[1] if found else line
        if not comment.startswith(mark):
            continue
        words = comment.lstrip("/#!< ").strip()
        if code.strip():
            beside.append(Paragraph("comments", ((number, words),)))
        else:
            own.append((number, words))
            if is_row(comment.lstrip("/#!<")):
                rows.add(number)
    return joined("comments", own, frozenset(rows)) + beside


def blocks(text: str) -> list[Paragraph]:
    """Comments between slashes and stars, from the beginning of a line."""
    found = []
    for block in re.finditer(r"(?ms)^[ \t]*/\*+(.*?)\*/", text):
        first = text.count("\n", 0, block.start()) + 1
        lines = [line.strip().lstrip("*") for line in block[1].split("\n")]
        numbered = list(enumerate(lines, first))
        rows = frozenset(number for number, line in numbered if is_row(line))
        found += joined("comments", [(number, line.strip()) for number, line in numbered], rows)
    return found


def described(text: str) -> list[Paragraph]:
    """Strings of a table of api/, which are comments, docstrings and help of all languages."""
    found = []
    strings = r'(?s)"""(?P<long>.*?)"""|"(?P<short>(?:\\.|[^"\\\n])*)"|#[^\n]*'
    for string in re.finditer(strings, text):
        words = string["long"] or string["short"] or ""
        if " " in words.strip():
            first = text.count("\n", 0, string.start()) + 1
            found += joined("comments", list(enumerate(words.split("\n"), first)), frozenset())
    return found


def messages(text: str) -> list[Paragraph]:
    """String literals of C++ with a space in them."""
    bare = without_comments(text, keep_strings=True)
    found = []
    for number, line in enumerate(bare.split("\n"), 1):
        if line.lstrip().startswith("#include"):
            continue
        for literal in re.findall(r'"((?:\\.|[^"\\])*)"', line):
            if " " in literal.strip():
                found.append(Paragraph("messages", ((number, literal),)))
    return found


def python_prose(text: str, has_messages: bool) -> list[Paragraph]:
    """Docstrings, comments and other strings with a space in them."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (SyntaxError, tokenize.TokenError):
        return []
    found, documents = [], set()
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in nodes:
        if isinstance(node, owners) and ast.get_docstring(node, clean=False):
            first = node.body[0].value
            documents.add(first)
            lines = text.split("\n")[first.lineno - 1 : first.end_lineno]
            numbered = list(enumerate(lines, first.lineno))
            words = [(number, line.strip().strip('"')) for number, line in numbered]
            margin = " " * first.col_offset
            rows = frozenset(number for number, line in numbered if is_row(line, margin))
            found += joined("docstrings", words, rows)
    comments = [t for t in tokens if t.type == tokenize.COMMENT]
    own = [t for t in comments if not t.line[: t.start[1]].strip()]
    rows = frozenset(t.start[0] for t in own if is_row(t.string.lstrip("#!")))
    words = [(t.start[0], t.string.lstrip("#! ").strip()) for t in own]
    found += joined("comments", words, rows)
    for token in comments:
        if token.line[: token.start[1]].strip():
            words = token.string.lstrip("# ").strip()
            found.append(Paragraph("comments", ((token.start[0], words),)))
    for node in nodes if has_messages else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if " " in node.value.strip() and node not in documents:
                found.append(Paragraph("messages", ((node.lineno, node.value),)))
    return found


def markdown(text: str) -> list[Paragraph]:
    """Paragraphs outside of code blocks; a row of a table and an item of a list are their own."""
    fenced, rows = False, []
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip()
        if bare.startswith("```"):
            fenced = not fenced
            bare = ""
        elif fenced or bare.startswith(("<!--", "#")):
            bare = ""
        if bare.startswith(("- ", "| ", "* ")) or re.match(r"\d+\. ", bare):
            rows.append((number, ""))
        rows.append((number, re.sub(r"`[^`]*`", "`x`", bare)))
    found, block = [], []
    for number, bare in rows:
        if not bare:
            if block:
                found.append(Paragraph("docs", tuple(block)))
            block = []
        else:
            block.append((number, bare))
    if block:
        found.append(Paragraph("docs", tuple(block)))
    return found


def names(text: str, suffix: str) -> list[Paragraph]:
    """Lines of code without comments and strings."""
    if suffix not in CPP_SUFFIXES:
        return []
    bare = without_comments(text)
    lines = enumerate(bare.split("\n"), 1)
    return [Paragraph("names", ((n, line),)) for n, line in lines if line.strip()]


def paragraphs(path: str, text: str) -> list[Paragraph]:
    suffix = Path(path).suffix
    if suffix == ".md":
        return markdown(text)
    if suffix == ".py":
        return python_prose(text, not path.startswith(STORIES))
    if suffix in CPP_SUFFIXES:
        return after("//", text) + messages(text) + names(text, suffix)
    if suffix in SLASHES:
        return after("//", text) + blocks(text)
    if suffix in HASHES or Path(path).name == "CMakeLists.txt":
        return after("#", text) + (described(text) if path.startswith("api/") else [])
    return []


# ---- the tree ------------------------------------------------------------------------------------


def files(root: Path, below: str = "") -> list[str]:
    found = [path.name for path in root.glob("*.md") if path.name != "CHANGELOG.md"]
    for top in FOLDERS:
        for path in (root / top).rglob("*"):
            name = path.relative_to(root).as_posix()
            if path.is_file() and not any(part in name for part in LEFT_OUT):
                found.append(name)
    return sorted(name for name in found if name.startswith(below))


def any_of(table: list[Entry], kind: str) -> re.Pattern:
    """Matches where an entry of the kind may: most paragraphs have none."""
    patterns = [f"(?:{entry.pattern.pattern})" for entry in table if kind in entry.kinds]
    return re.compile("|".join(patterns) or r"(?!)")


def sentence_ends(paragraph: Paragraph) -> list[int]:
    """Offsets in the text of a paragraph. A row of a table is a sentence, and so is its rest."""
    words = paragraph.text()
    ends, at, before = {len(words)}, 0, None
    for number, text in paragraph.lines:
        if at and (number in paragraph.rows or before in paragraph.rows):
            ends.add(at)
        at, before = at + len(text) + 1, number
    ends |= {m.end() for m in re.finditer(r"[.!?:;](?= |$)", words)}
    return sorted(ends)


def long_sentences(path: str, paragraph: Paragraph) -> list[Place]:
    found, start = [], 0
    words = paragraph.text()
    if paragraph.kind in ("names", "messages") or words.startswith("|"):
        return []
    for end in sentence_ends(paragraph):
        sentence = words[start:end]
        if len(sentence.split()) > 25:
            line = paragraph.line_of(start + 1)
            found.append(Place(LONG_ENTRY, path, line, sentence.strip()[:120]))
        start = end
    return found


def places(root: Path, below: str = "") -> list[Place]:
    table = entries(root)
    kinds = ("comments", "docstrings", "docs", "messages", "names")
    first = {kind: any_of(table, kind) for kind in kinds}
    found = []
    for path in files(root, below):
        suffix = Path(path).suffix
        if suffix not in SLASHES | HASHES | {".md", ".py", ".txt"}:
            continue
        text = (root / path).read_text(encoding="utf-8", errors="replace")
        if is_generated(text) or text.startswith("// Code generated"):
            continue
        for paragraph in paragraphs(path, text):
            words = paragraph.text()
            found += long_sentences(path, paragraph)
            if not first[paragraph.kind].search(words):
                continue
            for entry in table:
                if paragraph.kind in entry.kinds:
                    hits = entry.pattern.finditer(words)
                    for hit in (hit for hit in hits if hit[0] not in entry.exempt):
                        line = paragraph.line_of(hit.start())
                        around = words[max(0, hit.start() - 40) : hit.start() + 80].strip()
                        found.append(Place(entry, path, line, around))
    return found


def sentence_words(text: str) -> float:
    """Average number of words of the sentences of a document, without tables and code."""
    lengths = []
    for paragraph in markdown(text):
        words = paragraph.text()
        if words.startswith("|"):
            continue
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words)
        for sentence in re.split(r"(?<=[.!?])\s+", words):
            count = len(re.findall(r"[\w`'./+-]+", sentence))
            if count > 2:
                lengths.append(count)
    return round(sum(lengths) / len(lengths), 1) if lengths else 0.0


def counts(root: Path, found: list[Place]) -> dict[str, float]:
    counted = Counter(place.entry.name for place in found)
    table = [*entries(root), LONG_ENTRY]
    result = {entry.name: float(counted[entry.name]) for entry in table}
    readme = root / "README.md"
    if readme.exists():
        result[README] = sentence_words(readme.read_text(encoding="utf-8"))
    return result


def recorded(root: Path) -> dict[str, float]:
    path = root / RECORD
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def check(root: Path) -> list[str]:
    """A line for each count above its record."""
    record = recorded(root)
    faults = []
    for name, value in counts(root, places(root)).items():
        limit = record.get(name, 0)
        if value > limit:
            faults.append(f"{name}: {value:g}, recorded {limit:g}; "
                          f"see tools/words.py --of '{name}'")  # fmt: skip
    return faults


def write(root: Path) -> None:
    record, now = recorded(root), counts(root, places(root))
    lines = ["# Counts of tools/words.py. A count may only fall; --write records it."]
    for name, value in now.items():
        lines.append(f'"{name}" = {min(value, record.get(name, value)):g}')
    (root / RECORD).write_text("\n".join(lines) + "\n", encoding="utf-8")


def added_lines(root: Path, base: str) -> dict[str, set[int]]:
    """Path -> numbers of lines that were added or changed since `base`."""
    command = ["git", "diff", "-M", "-U0", "--no-color", base, "--"]
    text = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    found, path = {}, ""
    for line in text.split("\n"):
        if line.startswith("+++ "):
            path = line[6:]
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            found.setdefault(path, set()).update(range(first, first + count))
    return found


def print_places(found: list[Place]) -> None:
    for place in found:
        print(f"{place.path}:{place.line}: {place.text}")
        print(f"    {place.entry.name}: write {place.entry.write}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--of", metavar="NAME")
    parser.add_argument("--in", dest="below", metavar="FOLDER")
    parser.add_argument("--added", "--base", nargs="?", const="", metavar="BASE")
    options = parser.parse_args()
    root = options.root
    if options.write:
        write(root)
        return 0
    if options.of or options.below:
        found = places(root, options.below or "")
        print_places([p for p in found if options.of in (None, p.entry.name)])
        return 0
    if options.added is not None:
        base = options.added or (root / ".ci/checked").read_text().split()[0]
        changed = added_lines(root, base)
        found = [p for p in places(root) if p.line in changed.get(p.path, ())]
        print_places(found)
        return 1 if found else 0
    record = recorded(root)
    for name, value in counts(root, places(root)).items():
        print(f"{name:36} {value:8g} {record.get(name, 0):8g}")
    faults = check(root)
    sys.stdout.flush()
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

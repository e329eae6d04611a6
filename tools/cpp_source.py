"""Reading C++ sources for the checks of this folder: which files there are, their text without
comments, strings and (on request) preprocessor lines. Every function keeps the line structure, so
that a position in the reduced text is a position in the file. Not a parser: it is good for code
that clang-format has laid out."""

import re
from pathlib import Path

CPP_SUFFIXES = {".hpp", ".cpp", ".h", ".inl", ".inc"}

# One alternative per token that may hide quotes or braces. Order matters: raw strings first.
_TOKEN = re.compile(
    r"""
    (?P<raw>(?:u8|[uUL])?R"(?P<delim>[^()\\\s]{0,16})\(.*?\)(?P=delim)")
  | (?P<line>//(?:\\\n|[^\n])*)
  | (?P<block>/\*.*?\*/)
  | (?P<str>"(?:\\.|[^"\\\n])*")
  | (?P<digits>(?<![A-Za-z_])[0-9](?:'?[0-9A-Za-z_.])*)
  | (?P<char>'(?:\\.|[^'\\\n])+')
    """,
    re.VERBOSE | re.DOTALL,
)


def cpp_files(root: Path, folder: str) -> list[Path]:
    """C++ files under root/folder, sorted, without build folders."""
    base = root / folder
    if not base.is_dir():
        return []
    found = (p for p in base.rglob("*") if p.suffix in CPP_SUFFIXES and p.is_file())
    return sorted(p for p in found if "build" not in p.relative_to(root).parts)


# A generated section in a file that is otherwise written by hand (tools/api_options_python.py).
_SECTION = re.compile(r" *# options: generated from .*?# end of options\n"
                      r'|Options, from api/options[^:\n]*:\n.*?"""', re.S)  # fmt: skip


def written_by_hand(text: str) -> str:
    """Without the parts that are generated; a docstring keeps its end."""
    return _SECTION.sub(lambda found: '"""' if found[0].endswith('"""') else "", text)


def is_generated(text: str) -> bool:
    """True when the first line is a comment that starts with 'generated'."""
    first = text.split("\n", 1)[0].strip().lower()
    return re.match(r"(//|#|/\*)\s*generated\b", first) is not None


def blank(text: str) -> str:
    """Spaces instead of every character, newlines kept."""
    return re.sub(r"[^\n]", " ", text)


def without_comments(text: str, keep_strings: bool = False) -> str:
    """Comments become spaces; string and character literals keep their quotes only."""

    def reduce(match: re.Match) -> str:
        token = match.group(0)
        if match.lastgroup == "digits":
            return token
        if match.group("line") or match.group("block"):
            return blank(token)
        if keep_strings:
            return token
        return token[0] + blank(token[1:-1]) + token[-1] if token[0] in "\"'" else blank(token)

    return _TOKEN.sub(reduce, text)


def without_preprocessor(text: str) -> str:
    """Preprocessor lines become spaces. If the branches of one #if do not each balance their
    braces, only the first branch is kept, so that braces match in the rest."""
    lines = text.split("\n")
    out: list[str] = []
    index = 0
    while index < len(lines):
        index = _copy(lines, index, out)
    return "\n".join(out)


def line_of(text: str, position: int) -> int:
    """The 1-based line of a position."""
    return text.count("\n", 0, position) + 1


def _directive(line: str) -> str:
    match = re.match(r"\s*#\s*(\w*)", line)
    return match.group(1) or "#" if match else ""


def _copy(lines: list[str], index: int, out: list[str]) -> int:
    """Copies one line, one directive or one whole #if; returns the next index."""
    directive = _directive(lines[index])
    if not directive:
        out.append(lines[index])
        return index + 1
    if directive in ("if", "ifdef", "ifndef"):
        return _copy_conditional(lines, index, out)
    return _blank_directive(lines, index, out)


def _blank_directive(lines: list[str], index: int, out: list[str]) -> int:
    while index < len(lines):
        out.append("")
        index += 1
        if not lines[index - 1].rstrip().endswith("\\"):
            break
    return index


def _copy_conditional(lines: list[str], index: int, out: list[str]) -> int:
    branches: list[tuple[int, list[str]]] = []  # where the branch starts in `out`, its lines
    index = _blank_directive(lines, index, out)
    branch: list[str] = []
    start = len(out)
    while index < len(lines):
        directive = _directive(lines[index])
        if directive in ("else", "elif", "endif"):
            branches.append((start, branch))
            out.extend(branch)
            index = _blank_directive(lines, index, out)
            start, branch = len(out), []
            if directive == "endif":
                _drop_unbalanced(branches, out)
                return index
        else:
            index = _copy(lines, index, branch)
    out.extend(branch)  # an #if without #endif: keep what there is
    return index


def _drop_unbalanced(branches: list[tuple[int, list[str]]], out: list[str]) -> None:
    joined = ["\n".join(branch) for _, branch in branches]
    if all(text.count("{") == text.count("}") for text in joined):
        return
    for start, branch in branches[1:]:
        out[start : start + len(branch)] = [""] * len(branch)

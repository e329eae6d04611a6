"""The fenced blocks of a Markdown file: line, language, text, and the note for programs that run it
(a comment on the line above: `<!-- not run: it needs a GPU -->`)."""

import re
from dataclasses import dataclass
from pathlib import Path

_NOTE = re.compile(r"<!-- (.*) -->")
# A table whose last column is run: of commands, or of code that another test runs.
_COLUMN = re.compile(r"<!-- run the last column(?: (by .*))? -->")


@dataclass(frozen=True)
class Block:
    line: int  # of the opening fence, from 1
    heading: str  # the nearest one above
    language: str
    text: str  # with a line end after its last line
    note: str  # of the comment above, "" without one


def blocks(file: Path) -> list[Block]:
    found: list[Block] = []
    heading, opened = "", -1
    lines = file.read_text().splitlines()
    for i, line in enumerate(lines):
        if line.startswith("```"):
            if opened < 0:
                opened = i
                continue
            note = _NOTE.fullmatch(lines[opened - 1]) if opened > 0 else None
            text = "".join(each + "\n" for each in lines[opened + 1 : i])
            language, note_text = lines[opened][3:].strip(), note.group(1) if note else ""
            found.append(Block(opened + 1, heading, language, text, note_text))
            opened = -1
        elif opened < 0 and line.startswith("#"):
            heading = line.lstrip("# ")
        elif opened < 0 and (column := _COLUMN.fullmatch(line)):
            text, note = last_column(lines[i + 3 :]), f"run {column[1]}" if column[1] else ""
            found.append(Block(i + 2, heading, "python" if note else "sh", text, note))
    return found


def last_column(rows: list[str]) -> str:
    """The code of the last cell of each row of a table, a line each; ends with the table."""
    out = ""
    for row in rows:
        if not row.startswith("|"):
            break
        cells = re.split(r"(?<!\\)\|", row.strip().strip("|"))
        for code in re.findall("`([^`]*)`", cells[-1]):
            out += code.replace("\\|", "|") + "\n"
    return out


def block_of(file: Path, heading: str, language: str) -> str:
    """The text of the one block of this language under this heading."""
    found = [b for b in blocks(file) if b.heading == heading and b.language == language]
    if len(found) != 1:
        what = f"{len(found)} blocks of {language} under '{heading}'"
        raise LookupError(f"{file.name}: {what}, one is wanted")
    return found[0].text

"""Tables of text as a short text and as HTML."""

import html


def short_table(text: str, most: int = 40) -> str:
    """A table of at most so many lines: rows in the middle are left out."""
    lines = text.rstrip().splitlines()
    if len(lines) <= most:
        return "\n".join(lines)
    left_out = len(lines) - most + 1
    tail = most // 3
    head = most - 1 - tail
    return "\n".join([*lines[:head], f"... {left_out} more lines ...", *lines[-tail:]])


def html_table(text: str) -> str:
    """Rows of a table whose columns have two spaces between them; the last line is not a row."""
    lines = [line.split("  ") for line in text.splitlines()]
    rows = [[cell.strip() for cell in line if cell.strip()] for line in lines[1:-1]]
    return "".join(
        "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in row) + "</tr>"
        for tag, row in zip(["th"] + ["td"] * len(rows), rows)
    )

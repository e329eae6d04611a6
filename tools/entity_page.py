#!/usr/bin/env python3
"""The example of docs/entity.md, made by its commands:

    entity_page.py LOOM           rewrites the three blocks of the page
    entity_page.py LOOM --check   only compares them; exit status 1 if they differ
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "entity.md"
COLUMNS = 92


def tiny_file(loom):
    with tempfile.TemporaryDirectory() as folder:
        net, tiny = Path(folder) / "tiny.json", Path(folder) / "tiny.entity"
        subprocess.run([loom, "new", "mlp", "--in", "2", "--out", "1", "-o", net], check=True)
        subprocess.run([loom, "convert", net, tiny, "--quiet"], check=True)
        return tiny.read_bytes()


def dump(data, begin, end):
    """As od -A d -t x1z -v."""
    lines = []
    for at in range(begin, end, 16):
        row = data[at : at + 16]
        text = "".join(chr(b) if 0x20 <= b < 0x7F else "." for b in row)
        lines.append(f"{at:07d} {row.hex(' ')}  >{text}<")
    return "\n".join(lines)


def with_example(page, data):
    payload = 64 + int.from_bytes(data[12:20], "little")
    header = data[64:payload].decode().rstrip(" ")
    wrapped = "\n".join(header[i : i + COLUMNS] for i in range(0, len(header), COLUMNS))
    blocks = [
        ("hex", dump(data, 0, 64)),
        ("json", wrapped),
        ("hex", dump(data, payload, len(data))),
    ]
    for (kind, text), found in zip(blocks, re.findall(r"```(?:hex|json)\n.*?```", page, re.S)):
        page = page.replace(found, f"```{kind}\n{text}\n```")
    return page


def main():
    page = PAGE.read_text()
    made = with_example(page, tiny_file(sys.argv[1]))
    if "--check" not in sys.argv[2:]:
        PAGE.write_text(made)
    elif page != made:
        print(f"{PAGE.name} shows another file than its commands make; run tools/entity_page.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

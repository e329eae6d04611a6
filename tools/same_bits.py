#!/usr/bin/env python3
"""Draws the diagram of README.md: one model, and the hash that each kind of processor computes.

  tools/same_bits.py           writes docs/same-bits.svg
  tools/same_bits.py --check   exit 1 if it is not the text that would be written

The hash is a row of tests/golden/hashes.txt: the logits of a language model. The script below each
processor recomputes it there and compares.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TO = ROOT / "docs" / "same-bits.svg"
DTYPE = "q4_0"
# Processors, and the script that compares the hash.
MATRIX, ARM, OTHERS, WASM = "hash_matrix.sh", "arm64_test.sh", "targets.sh", "wasm_test.sh"
PROCESSORS = [
    ("x86-64, scalar", MATRIX), ("x86-64, AVX2", MATRIX), ("x86-64, AVX-512", MATRIX),
    ("ARM64, NEON", ARM), ("ARM64, i8mm", ARM), ("RISC-V 64", OTHERS), ("Windows", OTHERS),
    ("WebAssembly", WASM),
]  # fmt: skip
WIDTH, HEIGHT, BOX, TALL, GAP = 840, 300, 186, 66, 16
STYLE = """<style>
  text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1c2333 }
  .name { font-weight: 600 } .hash { font-family: ui-monospace, Menlo, Consolas, monospace }
  .by { font-size: 11px; fill: #4d586e } .head { font-size: 17px; font-weight: 600 }
  rect { fill: #f3f5f9; stroke: #7c889d } .file { fill: #dbe7ff; stroke: #3559a8 }
  path { stroke: #7c889d; fill: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6eaf2 } .by { fill: #aab4c6 } rect { fill: #1d2430; stroke: #7c889d }
    .file { fill: #1f3157; stroke: #86a6ec }
  }
</style>"""


def golden(dtype: str) -> str:
    rows = (ROOT / "tests" / "golden" / "hashes.txt").read_text().split("\n")
    return dict(row.split() for row in rows if row)[dtype]


def box(x: float, y: float, name: str, digits: str, by: str) -> str:
    middle = x + BOX / 2
    return (f'<rect x="{x:g}" y="{y:g}" width="{BOX}" height="{TALL}" rx="6"/>'
            f'<text class="name" x="{middle:g}" y="{y + 19:g}" text-anchor="middle">{name}</text>'
            f'<text class="hash" x="{middle:g}" y="{y + 38:g}" text-anchor="middle">{digits}</text>'
            f'<text class="by" x="{middle:g}" y="{y + 56:g}" text-anchor="middle">{by}</text>'
            )  # fmt: skip


def picture() -> str:
    digits = golden(DTYPE)[:16]
    title = "One model: each processor computes the same bits"
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
           f"<title>{title}</title>", STYLE]  # fmt: skip
    middle = WIDTH / 2
    left = (WIDTH - 4 * BOX - 3 * GAP) / 2
    columns = [left + i * (BOX + GAP) for i in range(4)]
    for x in columns:
        end = x + BOX / 2
        out.append(f'<path d="M{middle:g} 66 C{middle:g} 96 {end:g} 84 {end:g} 114"/>')
    out.append(f'<rect class="file" x="{middle - 190:g}" y="14" width="380" height="52" rx="8"/>')
    out.append(f'<text class="head" x="{middle:g}" y="36" text-anchor="middle">'
               f"one model, one prompt</text>")  # fmt: skip
    out.append(f'<text class="by" x="{middle:g}" y="55" text-anchor="middle">'
               f"a language model in {DTYPE}: the hash of its outputs</text>")  # fmt: skip
    for i, (name, by) in enumerate(PROCESSORS):
        out.append(box(columns[i % 4], 114 + i // 4 * (TALL + GAP), name, digits, by))
    out.append(f'<text class="by" x="{middle:g}" y="{HEIGHT - 12}" text-anchor="middle">'
               f"Each script recomputes the hash and compares it with tests/golden/hashes.txt"
               "</text>")  # fmt: skip
    return "\n".join([*out, "</svg>"]) + "\n"


def main() -> int:
    text = picture()
    if "--check" not in sys.argv[1:]:
        TO.write_text(text, encoding="utf-8")
    elif not TO.is_file() or TO.read_text(encoding="utf-8") != text:
        print("docs/same-bits.svg is stale; run tools/same_bits.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

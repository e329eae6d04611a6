#!/usr/bin/env python3
"""Writes the generated pages of docs: the reference of C, C++, Python and TypeScript, the commands
of the program, the error messages, and the index of decisions.

  tools/reference.py                  rewrites the pages that need no program
  tools/reference.py --program LOOM   also the commands of the program, from its help
  tools/reference.py --check          writes nothing; exit 1 with a line per page that is stale
"""

import argparse
import sys
from pathlib import Path

import reference_errors
import reference_pages as pages
import reference_program
import reference_python

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = Path("docs/reference")
# Sources of what `import ... from "@loom-engine/loom"` has.
TYPESCRIPT = ("client", "common", "errors", "evolution", "files", "layer", "layers", "options")


def index(title: str, intro: str, entries: dict[str, str]) -> str:
    """A page that lists others: name of the file -> text."""
    rows = "".join(f"- [{Path(name).stem}]({name}){': ' if text else ''}{text}\n"
                   for name, text in entries.items())  # fmt: skip
    return f"# {title}\n\n{pages.MARK.format('the list of pages')}\n\n{intro}\n\n{rows}"


def first_sentence(text: str) -> str:
    """The first sentence below the mark of a page."""
    prose = text.split("do not edit. -->", 1)[1].split("\n## ", 1)[0]
    lines = [line.strip() for line in prose.strip().split("\n\n")[0].split("\n")]
    sentence = " ".join(lines).split(". ")[0].rstrip(".:")
    return f"{sentence}." if sentence and not sentence.startswith(("#", "```")) else ""


def with_index(folder: str, title: str, intro: str, found: dict[str, str]) -> dict[Path, str]:
    entries = {name: first_sentence(text) for name, text in found.items()}
    result = {REFERENCE / folder / name: text for name, text in found.items()}
    result[REFERENCE / folder / "README.md"] = index(title, intro, entries)
    return result


def cpp() -> dict[Path, str]:
    headers = [h for h in sorted((ROOT / "include/loom").glob("*.hpp")) if h.stem != "export"]
    found = {f"{header.stem}.md": pages.cpp_page(header) for header in headers}
    intro = (
        "One page for each header of `include/loom`. `#include <loom/loom.hpp>` includes all.\n"
        "[Use Loom from C++](../../how-to/cpp.md) has the first program."
    )
    return with_index("cpp", "C++", intro, found)


def c() -> dict[Path, str]:
    intro = (
        "One page for each section of `include/loom.h`.\n"
        "[c-and-python.md](../../c-and-python.md) has the rules and the first program."
    )
    return with_index("c", "C", intro, pages.c_pages(ROOT / "include/loom.h"))


def python() -> dict[Path, str]:
    intro = (
        "One page for each module. `import loom` has all names but those of `loom.sklearn` and\n"
        "`loom.bridge`. [c-and-python.md](../../c-and-python.md) has examples."
    )
    found = reference_python.pages(ROOT / "bindings/python/loom")
    return with_index("python", "Python", intro, found)


def typescript() -> dict[Path, str]:
    source = ROOT / "bindings/typescript/src"
    found = {f"{name}.md": pages.typescript_page(source / f"{name}.ts") for name in TYPESCRIPT}
    intro = (
        "The names of `@loom-engine/loom`, by source file. [web.md](../../web.md) has examples."
    )
    return with_index("typescript", "TypeScript", intro, found)


def decisions() -> dict[Path, str]:
    folder = Path("docs/decisions")
    rows = []
    for path in sorted((ROOT / folder).glob("[0-9]*.md")):
        number, _, title = path.read_text(encoding="utf-8").split("\n", 1)[0].partition(": ")
        title = title[0].upper() + title[1:]
        rows.append(f"| [{number.removeprefix('# ')}]({path.name}) | {title} |\n")
    text = (f"# Decisions\n\n{pages.MARK.format('the titles of the pages')}\n\n"
            "These pages are for developers. Each decision is one page: the situation, the\n"
            "choice, its cost. A new page changes a decision and names the old page.\n\n"
            "| number | decision |\n|---|---|\n")
    return {folder / "README.md": text + "".join(rows)}


def everything(program: Path | None) -> dict[Path, str]:
    errors = {REFERENCE / "errors.md": reference_errors.page(ROOT)}
    found = {**cpp(), **c(), **python(), **typescript(), **decisions(), **errors}
    if program is not None:
        found[REFERENCE / "verbs.md"] = reference_program.page(program)
    return found


def abandoned(found: dict[Path, str]) -> list[Path]:
    """Generated pages that nothing writes any more."""
    folders = {path.parent for path in found if path.parent.parent == REFERENCE}
    here = {p.relative_to(ROOT) for f in folders for p in (ROOT / f).glob("*.md")}
    return sorted(here - set(found))


def written(path: Path) -> str | None:
    return (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).is_file() else None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, fail if stale")
    parser.add_argument("--program", type=Path, help="the program, built")
    given = parser.parse_args()
    found = everything(given.program)
    stale = [path for path, text in found.items() if written(path) != text]
    unused = abandoned(found)
    if given.check:
        for path in [*stale, *unused]:
            print(f"{path} is stale; run tools/reference.py")
        return 1 if stale or unused else 0
    for path in stale:
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(found[path], encoding="utf-8")
    for path in unused:
        (ROOT / path).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())

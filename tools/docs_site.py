#!/usr/bin/env python3
"""Prepares the pages of the site for MkDocs, and checks the links of a site that is built.

  tools/docs_site.py stage WORK SITE   copies the pages to WORK, and writes WORK/mkdocs.yml
  tools/docs_site.py links SITE        exit 1 with a line per link that leads nowhere

Pages keep their paths, so their links stay as they are. The navigation follows the index pages: a
page is listed at the place of its first link. `scripts/docs_site.sh` runs both.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

ROOT = Path(__file__).resolve().parent.parent
CONFIG = "docs/site"
LINK = re.compile(r"\]\(([^)\s]+)\)")
SECTIONS = {  # title -> index page
    "Tutorials": "docs/tutorials/README.md",
    "How-to": "docs/how-to/README.md",
    "Reference": "docs/reference/README.md",
    "Explanation": "docs/explanation/README.md",
    "Coming from": "docs/coming-from/README.md",
}
DEVELOPERS = ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/surfaces.md", "docs/nightly.md",
              "docs/fuzz-log.md", "CHANGELOG.md", "SECURITY.md"]  # fmt: skip


def version() -> str:
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(loom VERSION ([\d.]+)", text)[1]


# --- pages


def tracked() -> list[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return subprocess.check_output(command, cwd=ROOT, text=True).splitlines()


def links(page: str) -> list[str]:
    """Paths of files of the repository that a page links to, in order."""
    found = []
    for target in LINK.findall((ROOT / page).read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:|#", target):
            path = os.path.normpath(Path(page).parent / target.split("#")[0])
            found.append(path)
    return found


def pages() -> list[str]:
    """The documents, and all pages that they link to."""
    files = set(tracked())
    queue = [f for f in sorted(files) if re.fullmatch(r"[A-Z]+\.md|docs/.*\.md", f)]
    found: list[str] = []
    while queue:
        page = queue.pop(0)
        if page not in found:
            found.append(page)
            queue += [path for path in links(page) if path.endswith(".md") and path in files]
    return found


def markdown(text: str) -> str:
    """In the dialect of Python-Markdown: lists follow a blank line, and are indented by 4."""
    out: list[str] = []
    fenced = False
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        item = re.match(r"( *)(?:[-*]|\d+\.) ", line)
        if item and not fenced:
            before = out[-1] if out else ""
            line = " " * len(item[1]) + line
            if before.strip() and not re.match(r" *(?:[-*]|\d+\.) |  ", before):
                out.append("")
        out.append(line)
    return "\n".join(out)


def copy(work: Path) -> list[str]:
    found = pages()
    others = {path for page in found for path in links(page) if not path.endswith(".md")}
    for page in found:
        to = work / "pages" / page
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(markdown((ROOT / page).read_text(encoding="utf-8")), encoding="utf-8")
    for path in sorted(others):
        source, to = ROOT / path, work / "pages" / path
        if source.is_file():
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, to)
    for name in ("site.css", "site.js"):
        shutil.copyfile(ROOT / CONFIG / name, work / "pages" / name)
    return found


# --- navigation


def section(index: str, left: set[str]) -> list:
    """An index page and the pages that it links to; an index among them is a section."""
    entries: list = [index]
    left.discard(index)
    for page in links(index):
        if page in left:
            left.discard(page)
            if page.endswith("/README.md") and page.startswith("docs/"):
                entries.append({title(page): section(page, left)})
            else:
                entries.append(page)
    return entries


def title(page: str) -> str:
    first = (ROOT / page).read_text(encoding="utf-8").split("\n", 1)[0]
    return first.removeprefix("# ")


def navigation(found: list[str]) -> list:
    left = set(found) - set(SECTIONS.values()) - {"README.md", "docs/README.md"}
    own = {page for page in left if page in DEVELOPERS or page.startswith("docs/decisions/")}
    left -= own
    nav: list = [{"Loom": "README.md"}]
    nav += [{name: section(index, left)} for name, index in SECTIONS.items()]
    decisions = sorted(page for page in own if page.startswith("docs/decisions/0"))
    rest = [page for page in DEVELOPERS if page in own]
    reasons = {"Decisions": ["docs/decisions/README.md", *decisions]}
    nav.append({"Developers": ["docs/README.md", *rest, *sorted(left), reasons]})
    return nav


def stage(work: Path, site: Path) -> None:
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    found = copy(work)
    own = {"docs_dir": str(work / "pages"), "site_dir": str(site / version()),
           "nav": navigation(found)}  # fmt: skip
    text = (ROOT / CONFIG / "mkdocs.yml").read_text(encoding="utf-8")
    # A JSON value is YAML too.
    text += "".join(f"{name}: {json.dumps(value)}\n" for name, value in own.items())
    (work / "mkdocs.yml").write_text(text, encoding="utf-8")


def finish(site: Path) -> None:
    """The list of versions, and a page that leads to the newest one."""
    names = [p.parent.name for p in site.glob("*/search") if re.match(r"\d", p.parent.name)]
    names.sort(key=lambda name: [int(part) for part in name.split(".")], reverse=True)
    versions = [{"version": name, "title": name, "aliases": ["latest"] if i == 0 else []}
                for i, name in enumerate(names)]  # fmt: skip
    (site / "versions.json").write_text(json.dumps(versions) + "\n", encoding="utf-8")
    (site / "index.html").write_text(
        f'<!doctype html>\n<html lang="en">\n<title>Loom</title>\n<meta http-equiv="refresh" '
        f'content="0; url={names[0]}/">\n<a href="{names[0]}/">Documents of Loom</a>\n</html>\n',
        encoding="utf-8",
    )  # fmt: skip


# --- links of the built site


class Page(HTMLParser):
    def __init__(self, text: str):
        super().__init__()
        self.ids: set[str] = set()
        self.targets: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.ids.add(value)
            elif name in ("href", "src") and value and tag != "base":
                self.targets.append(value)


def broken_links(site: Path) -> list[str]:
    files = {path.resolve(): path for path in site.rglob("*.html")}
    parsed = {path: Page(path.read_text(encoding="utf-8")) for path in files}
    wrong = []
    for path, page in parsed.items():
        if path.name == "404.html":
            continue
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if parts.scheme not in ("http", "https", "mailto", "data"):
                    wrong.append(f"{files[path]}: {target}")
                continue
            address, anchor = urldefrag(unquote(target))
            there = (path.parent / address).resolve() if address else path
            there = there / "index.html" if there.is_dir() else there
            if not there.exists():
                wrong.append(f"{files[path]}: {target} leads nowhere")
            elif anchor and there in parsed and anchor not in parsed[there].ids:
                wrong.append(f"{files[path]}: {target}: no such heading")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["stage", "links"])
    parser.add_argument("folders", type=Path, nargs="+")
    given = parser.parse_args()
    folders = [folder.resolve() for folder in given.folders]
    if given.what == "stage":
        stage(*folders)
        return 0
    finish(folders[0])
    wrong = broken_links(folders[0])
    for line in wrong[:40]:
        print(line)
    print(f"{len(wrong)} links lead nowhere")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

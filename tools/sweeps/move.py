#!/usr/bin/env python3
"""Moves rooms and files of rooms by tools/sweeps/moves.toml, and rewrites every mention of them.

  tools/sweeps/move.py           moves by git, rewrites #include lines, CMake lists and documents
  tools/sweeps/move.py --list    prints how many files each folder would have
"""

import argparse
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENDINGS = {".cpp", ".hpp", ".inl", ".def", ".h"}
UNTOUCHED = ("tests/data/", "tests/text/golden/", "fuzz/corpus", "tools/sweeps/", "CHANGELOG.md")


def folders(table: dict, path: str = "") -> dict[str, dict[str, str]]:
    """Path of a room -> stem of a file -> folder."""
    found: dict[str, dict[str, str]] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            found |= folders(value, f"{path}/{key}".lstrip("/"))
        else:
            found.setdefault(path, {}).update({stem: key for stem in value.split()})
    return found


def tracked() -> list[str]:
    return subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).split("\n")[:-1]


def renamed(name: str, renames: dict[str, str]) -> str:
    """The path after the renames of folders; a longer name of a folder wins."""
    for old in sorted(renames, key=len, reverse=True):
        if name.startswith(old + "/"):
            return renames[old] + name[len(old):]
    return name


def moves(table: dict) -> dict[str, str]:
    """Old path -> new path."""
    found = {}
    rooms = folders({key: value for key, value in table.items() if key != "renamed"})
    for name in tracked():
        to = renamed(name, table.get("renamed", {}))
        path = Path(to)
        folder = rooms.get(path.parent.as_posix(), {}).get(path.name.split(".")[0])
        if folder and path.suffix in ENDINGS:
            to = f"{path.parent.as_posix()}/{folder}/{path.name}"
        if to != name:
            found[name] = to
    return found


def relative_includes(old: str, new: str, text: str, moved: dict[str, str]) -> str:
    """Includes of the program name a header from the folder of the file."""

    def rewrite(found: re.Match) -> str:
        here = (ROOT / old).parent / found[1]
        try:
            target = here.resolve().relative_to(ROOT).as_posix()
        except ValueError:
            return found[0]
        if target not in moved and target not in KNOWN:
            return found[0]
        to, start = Path(moved.get(target, target)), Path(new).parent
        up = 0
        while not to.is_relative_to(start):
            start, up = start.parent, up + 1
        return f'#include "{"../" * up}{to.relative_to(start).as_posix()}"'

    return re.sub(r'#include "([^"\n]+)"', rewrite, text)


def mentions(moved: dict[str, str]) -> tuple[re.Pattern, dict[str, str]]:
    """Paths as a text may spell them: with and without `src/`."""
    names = {}
    for old, new in moved.items():
        names[old] = new
        if old.startswith("src/"):
            names[old[4:]] = new[4:]
    longest = sorted(names, key=len, reverse=True)
    pattern = r"(?<![\w/.-])(?:" + "|".join(map(re.escape, longest)) + r")\b(?!/)"
    return re.compile(pattern if longest else r"(?!)"), names


def mentions_of_folders(renames: dict[str, str]) -> tuple[re.Pattern, dict[str, str]]:
    """Paths of folders: with src/ or tests/ in any text, without it if they have a slash."""
    names = dict(renames)
    names |= {old[4:]: new[4:] for old, new in renames.items()
              if old.startswith("src/") and "/" in old[4:]}
    longest = sorted(names, key=len, reverse=True)
    pattern = r"(?<![\w/.-])(?:" + "|".join(map(re.escape, longest)) + r")\b(?![-_.]\w)"
    return re.compile(pattern if longest else r"(?!)"), names


def rewritten(name: str, text: str, pattern: re.Pattern, names: dict[str, str]) -> str:
    text = pattern.sub(lambda found: names[found[0]], text)
    if Path(name).suffix in (".cmake", ".txt"):  # ${src}/api/gpu.cpp
        text = re.sub(r"(\}/)([\w/.]+)", lambda m: m[1] + names.get(m[2], m[2]), text)
    if name == "tests/golden/CMakeLists.txt":  # set(files io/hash llm/decoder)
        bare = {old.rsplit(".", 1)[0]: new.rsplit(".", 1)[0] for old, new in names.items()}
        text = re.sub(r"[a-z][\w/]+", lambda m: bare.get(m[0], m[0]), text)
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    table = tomllib.loads((ROOT / "tools/sweeps/moves.toml").read_text(encoding="utf-8"))
    moved = moves(table)
    counts: Counter = Counter()
    for name in tracked():
        if name.startswith(("src/", "cli/")) and Path(name).suffix in ENDINGS:
            counts[Path(moved.get(name, name)).parent.as_posix()] += 1
    if options.list:
        for folder, count in counts.most_common(40):
            print(f"{count:4} {folder}")
        return 0
    KNOWN.update(name for name in tracked() if name.startswith(("src/", "cli/")))
    pattern, names = mentions(moved)
    rooms, room_names = mentions_of_folders(table.get("renamed", {}))
    for name in tracked():
        path = ROOT / name
        if name.startswith(UNTOUCHED) or not path.is_file() or path.is_symlink():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        new = text
        if Path(name).suffix in ENDINGS | {".cpp"}:
            new = relative_includes(name, moved.get(name, name), new, moved)
        new = rewritten(name, new, pattern, names)
        new = rooms.sub(lambda found: room_names[found[0]], new)
        if new != text:
            path.write_text(new, encoding="utf-8")
    for old, new in moved.items():
        (ROOT / new).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", old, new], cwd=ROOT, check=True)
    print(f"{len(moved)} files moved")
    return 0


KNOWN: set[str] = set()

if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Prints the sources of loom_hash, one path or folder a line. They are the linked rooms with those
that they reach, and the files that tests/golden/CMakeLists.txt adds, with their headers. The files
that build and run them are sources too. Changes elsewhere do not change its hashes."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from layering import ARROWS, reachable  # noqa: E402

BUILT_BY = (
    "CMakeLists.txt", "CMakePresets.json", "cmake/", "include/",
    "tests/golden/", "tests/CMakeLists.txt",
    "scripts/common.sh", "scripts/sample.sh", "scripts/arm64_test.sh", "scripts/install_arm64.sh",
)  # fmt: skip


def rooms(text: str) -> set[str]:
    """Those of target_link_libraries(loom_hash ...), and all that they reach."""
    linked = re.search(r"target_link_libraries\(loom_hash PRIVATE ([^)]*)\)", text)[1].split()
    reach = reachable(ARROWS)
    by_target = {f"loom_{room.replace('/', '_')}": room for room in ARROWS}
    return set().union(*(reach[by_target[target]] for target in linked))


def files(text: str) -> list[str]:
    """Those that it compiles itself."""
    return [f"src/{name}.cpp" for name in re.search(r"set\(files\s([^)]*)\)", text)[1].split()]


def headers(paths: list[str]) -> set[str]:
    """Our own headers that these files include."""
    found: set[str] = set()
    todo = list(paths)
    while todo:
        text = (ROOT / todo.pop()).read_text()
        names = {f"src/{name}" for name in re.findall(r'^#include "([^"]+)"', text, re.MULTILINE)}
        new = {name for name in names - found if (ROOT / name).is_file()}
        found |= new
        todo += new
    return found


def main() -> None:
    text = (ROOT / "tests/golden/CMakeLists.txt").read_text()
    folders = [f"src/{room}/" for room in sorted(rooms(text))]
    compiled = files(text)
    apart = {*compiled, *headers([*compiled, "tests/golden/hash_program.cpp"])}
    of_no_room = sorted(path for path in apart if not path.startswith(tuple(folders)))
    print("\n".join([*folders, *of_no_room, *BUILT_BY]))


if __name__ == "__main__":
    main()

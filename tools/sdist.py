#!/usr/bin/env python3
"""Turns a copy of the sources into the folder of the Python package's source archive.

  tools/sdist.py FOLDER     writes FOLDER/pyproject.toml; scripts/release.sh calls it

The package is built from bindings/python of a clone. In the archive the same files have the root of
the archive as the project, because an archive cannot name files above itself.
"""

import sys
from pathlib import Path

PACKAGE = "bindings/python"
# (text of bindings/python/pyproject.toml, text of the root)
CHANGES = [
    ('readme = "README.md"', f'readme = "{PACKAGE}/README.md"'),
    ('license-files = ["LICENSE", "NOTICE"]', f'license-files = ["LICENSE", "{PACKAGE}/NOTICE"]'),
    ('wheel.packages = ["loom"]', f'wheel.packages = ["{PACKAGE}/loom"]'),
    ('cmake.version = ">=3.25"', f'cmake.version = ">=3.25"\ncmake.source-dir = "{PACKAGE}"'),
    ('input = "../../CMakeLists.txt"', 'input = "CMakeLists.txt"'),
]


def project_of(text: str) -> str:
    """The project file for the root of the archive."""
    for old, new in CHANGES:
        if text.count(old) != 1:
            raise SystemExit(f"{PACKAGE}/pyproject.toml: {old} must be there once")
        text = text.replace(old, new)
    return text


def main() -> int:
    folder = Path(sys.argv[1])
    own = folder / PACKAGE / "pyproject.toml"
    (folder / "pyproject.toml").write_text(project_of(own.read_text()))
    own.unlink()
    link = folder / PACKAGE / "LICENSE"
    if link.is_symlink():
        link.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())

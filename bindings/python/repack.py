"""Writes a wheel again with the best compression of its format, which builders do not ask for.

python repack.py FILE.whl
"""

import os
import sys
import zipfile


def repack(path: str) -> None:
    """In place; names, times and contents stay, so RECORD holds."""
    made = path + ".tmp"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(made, "w") as new:
        for entry in old.infolist():
            new.writestr(entry, old.read(entry), zipfile.ZIP_DEFLATED, compresslevel=9)
    os.replace(made, path)


if __name__ == "__main__":
    repack(sys.argv[1])

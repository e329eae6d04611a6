#!/usr/bin/env python3
"""The requirements of a wheel: only glibc, of at least the version in its manylinux tag.

  tests/python/audit.py WHEEL     prints the lowest manylinux tag; exit 1 for stray libraries

auditwheel reads the symbols of the library inside of the wheel. 2.28 would take an older toolchain:
GCC 12 finds exceptions by a function that glibc has since 2.35.
"""

import re
import subprocess
import sys
import zipfile

HIGHEST = (2, 35)
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"}


def main() -> int:
    wheel = sys.argv[1]
    libraries = [n for n in zipfile.ZipFile(wheel).namelist() if ".so" in n or n.endswith(".a")]
    if libraries != ["loom/libloom.so"]:
        print(f"the wheel holds {libraries}; it should hold one library")
        return 1
    ran = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True
    )
    said = " ".join(ran.stdout.split())
    print(said)
    tag = re.search(r'"manylinux_(\d+)_(\d+)_\w+"', said)
    if tag is None:
        print(f"auditwheel names no manylinux tag: {ran.stderr}")
        return 1
    outside = set(re.findall(r"\b(lib[\w+-]+\.so[.\d]*)", said)) - SYSTEM - {"libloom.so"}
    outside -= {f for f in outside if f.startswith("libloom")}
    found = (int(tag[1]), int(tag[2]))
    print(f"holds from glibc {found[0]}.{found[1]} on; libraries of others: {sorted(outside)}")
    return 0 if found <= HIGHEST and not outside else 1


if __name__ == "__main__":
    sys.exit(main())

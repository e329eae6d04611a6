#!/usr/bin/env python3
"""Runs the tests of the Python package and closes with "N passed, N failed, N skipped".

The package is the installed one, or with LOOM_LIBRARY=build/dev/libloom.so that of the tree:

    LOOM_LIBRARY=build/dev/libloom.so PYTHONPATH=bindings/python tests/python/run.py
"""

import os
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    sys.path[:0] = [str(HERE), str(HERE.parent / "tools")]
    from counted import run_counted

    import loom

    where = "the tree" if "LOOM_LIBRARY" in os.environ else Path(loom.__file__).parent.parent.name
    print(f"loom {loom.__version__} of {where}")
    return run_counted(unittest.defaultTestLoader.discover(str(HERE), pattern="test_*.py"))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())

#!/usr/bin/env python3
"""Runs every test of this folder and closes with "N passed, N failed, N skipped"."""

import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(HERE), str(HERE.parent.parent / "tools")]
    suite = unittest.defaultTestLoader.discover(str(HERE), pattern="test_*.py")
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(suite)
    broken = [getattr(test, "test_case", test) for test, _ in result.failures + result.errors]
    failed, skipped = len({test.id() for test in broken}), len(result.skipped)
    print(f"{result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

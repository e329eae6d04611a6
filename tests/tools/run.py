#!/usr/bin/env python3
"""Runs every test of this folder and closes with "N passed, N failed, N skipped"."""

import sys
import unittest
from pathlib import Path

from counted import run_counted

HERE = Path(__file__).resolve().parent


def main() -> int:
    sys.path[:0] = [str(HERE), str(HERE.parent.parent / "tools")]
    return run_counted(unittest.defaultTestLoader.discover(str(HERE), pattern="test_*.py"))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())

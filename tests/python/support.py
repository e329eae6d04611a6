"""Code that the tests of the Python package share: where the tree and the programs are, and data.

LOOM_PROGRAM and LOOM_CAPI_TEST name the program `loom` and the C test of a build; without them the
comparisons with those are skipped.
"""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
STORIES = ROOT / "models" / "stories.entity"
PROGRAM = os.environ.get("LOOM_PROGRAM", "")
CAPI_TEST = os.environ.get("LOOM_CAPI_TEST", "")

needs_program = unittest.skipUnless(PROGRAM, "LOOM_PROGRAM does not name the program")
needs_capi_test = unittest.skipUnless(CAPI_TEST, "LOOM_CAPI_TEST does not name the C test")


def run(*command: object, env: "dict[str, str] | None" = None) -> str:
    """The output of a command; an error with all of it where it fails."""
    ran = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=600,
        env={**os.environ, **(env or {})},
    )  # fmt: skip
    if ran.returncode != 0:
        raise AssertionError(f"{command}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


class Scratch(unittest.TestCase):
    """Tests with a folder of their own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)


def points(samples: int = 240) -> "tuple[np.ndarray, np.ndarray]":
    """The points of tests/capi/main.c."""
    state, values = 88172645463325252, []
    for _ in range(samples * 4):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        values.append(np.float32(state >> 40) / np.float32(1 << 23) - np.float32(1))
    x = np.array(values, np.float32).reshape(samples, 4)
    first = x[:, 0] + x[:, 1] > np.float32(0.3)
    second = x[:, 2] - x[:, 3] > 0
    return x, np.where(first, 0, np.where(second, 1, 2)).astype(np.int32)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()

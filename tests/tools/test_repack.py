"""Wheels that are written again: equal bytes, their library, their tag and RECORD."""

import base64
import hashlib
import os
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bindings/python"))
import repack  # noqa: E402

INFO = "loom_engine-1.0.dist-info/"


def small_wheel(folder: Path, year: int) -> Path:
    path = folder / "loom_engine-1.0-py3-none-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as made:
        for name, text in (
            ("loom/__init__.py", "x = 1\n"),
            ("loom/libloom.so", "old"),
            (INFO + "WHEEL", "Wheel-Version: 1.0\nTag: py3-none-linux_x86_64\n\n"),
            (INFO + "RECORD", "stale"),
        ):
            made.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), text)
    return path


class Repack(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        environment = mock.patch.dict(os.environ, {"SOURCE_DATE_EPOCH": "1700000000"})
        environment.start()
        self.addCleanup(environment.stop)

    def test_wheels_of_equal_contents_have_equal_bytes(self):
        made = [Path(repack.repack(str(small_wheel(self.folder, year)))).read_bytes() for year in
                (1990, 2020)]  # fmt: skip
        self.assertEqual(made[0], made[1])

    def test_the_library_and_the_platform_are_those_asked_for(self):
        library = self.folder / "x.dll"
        library.write_bytes(b"new")
        to = self.folder / "out"
        to.mkdir()
        made = Path(repack.repack(str(small_wheel(self.folder, 2000)), str(to),
                                  f"{library}=loom/loom.dll", "win_amd64"))  # fmt: skip
        self.assertEqual(made.name, "loom_engine-1.0-py3-none-win_amd64.whl")
        with zipfile.ZipFile(made) as read:
            self.assertNotIn("loom/libloom.so", read.namelist())
            self.assertEqual(read.read("loom/loom.dll"), b"new")
            self.assertIn(b"Tag: py3-none-win_amd64\n", read.read(INFO + "WHEEL"))

    def test_the_record_is_true_and_last(self):
        made = repack.repack(str(small_wheel(self.folder, 2000)))
        with zipfile.ZipFile(made) as read:
            self.assertEqual(read.namelist()[-1], INFO + "RECORD")
            rows = [row.split(",") for row in read.read(INFO + "RECORD").decode().splitlines()]
            for name, digest, size in rows[:-1]:
                data = read.read(name)
                found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
                self.assertEqual(digest, "sha256=" + found.decode())
                self.assertEqual(int(size), len(data))
            self.assertEqual(rows[-1], [INFO + "RECORD", "", ""])


if __name__ == "__main__":
    unittest.main()

"""The package wgpu: its WebGPU library is found without an import of the package."""

import sys
import tempfile
import unittest
from pathlib import Path

from loom._gpu import wgpu_library


class WgpuLibrary(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.package = Path(folder.name, "wgpu")
        (self.package / "resources").mkdir(parents=True)
        (self.package / "__init__.py").write_text("raise ImportError('must not be imported')\n")
        sys.path.insert(0, folder.name)
        self.addCleanup(sys.path.remove, folder.name)

    def test_its_library_is_found(self):
        for name in ("webgpu.h", "libwgpu_native-release.so"):
            (self.package / "resources" / name).write_text("")
        expected = str(self.package / "resources" / "libwgpu_native-release.so")
        self.assertEqual(wgpu_library(), expected)

    def test_a_package_without_a_library_is_as_none(self):
        self.assertIsNone(wgpu_library())


if __name__ == "__main__":
    unittest.main()

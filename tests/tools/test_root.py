"""The root of the repository has only the expected entries. Programs that run there leave files,
and a commit of everything would include them."""

import shutil
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = {
    ".clang-format", ".clang-tidy", ".editorconfig", ".gitattributes", ".gitignore",
    "ARCHITECTURE.md", "CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json", "COMPATIBILITY.md",
    "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md",
}


class Root(unittest.TestCase):
    @unittest.skipUnless(shutil.which("git") and (ROOT / ".git").exists(), "no git tree")
    def test_it_holds_no_file_that_nobody_meant(self):
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                                check=True).stdout.split("\n")
        self.assertEqual({name for name in listed if name and "/" not in name} - FILES, set())


if __name__ == "__main__":
    unittest.main()

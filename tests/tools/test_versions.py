"""The version: every file has that of CMakeLists.txt, and a new one reaches all of them."""

import tempfile
import unittest
from pathlib import Path

import versions

ROOT = Path(__file__).resolve().parents[2]


def small_tree(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


class Versions(unittest.TestCase):
    def test_every_file_has_the_version_of_the_project(self):
        for name, text in versions.expected().items():
            with self.subTest(file=name):
                self.assertEqual((ROOT / name).read_text(), text)

    def test_the_newest_section_of_the_changelog_is_this_release(self):
        found = versions.RELEASED.search((ROOT / "CHANGELOG.md").read_text())
        self.assertEqual(found[1], versions.current())

    def test_a_new_version_is_written_into_each_place_and_into_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            root = small_tree(Path(folder), {
                "CMakeLists.txt": "project(loom VERSION 1.20.3 LANGUAGES CXX)\n",
                "docs/numerics.md": "This page is the contract, version 7 (see below)\n",
                "package.json": '{\n  "version": "0.1.0",\n  "other": { "version": "0.1.0" }\n}\n',
            })  # fmt: skip
            texts = versions.expected(root, [("package.json", versions.JSON)])
        self.assertEqual(
            texts["package.json"],
            '{\n  "version": "1.20.3",\n  "other": { "version": "0.1.0" }\n}\n',
        )
        self.assertIn("#define LOOM_VERSION 12003\n", texts["include/loom/version.hpp"])
        self.assertIn('"loom numerics 7"', texts["include/loom/version.hpp"])

    def test_a_file_without_its_version_is_an_error_that_names_it(self):
        with tempfile.TemporaryDirectory() as folder:
            root = small_tree(Path(folder), {
                "CMakeLists.txt": "project(loom VERSION 1.2.3 LANGUAGES CXX)\n",
                "docs/numerics.md": "This page is the contract, version 2\n",
                "package.json": "{}\n",
            })  # fmt: skip
            with self.assertRaisesRegex(SystemExit, "package.json: no version"):
                versions.expected(root, [("package.json", versions.JSON)])


if __name__ == "__main__":
    unittest.main()

"""Recipes of packages: each is valid for its own reader, and lists what the build needs.

tools/versions.py compares their versions (test_versions.py). Tools of others run if they are
here."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

import sdist

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
LIBRARY_NEEDS = {"nlohmann", "xxhash", "pcre2", "zlib"}


def ran(*command: str) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


class Recipes(unittest.TestCase):
    def test_each_lists_the_libraries_that_every_build_needs(self):
        for name in ("vcpkg/vcpkg.json", "conan/conanfile.py", "conda/meta.yaml"):
            text = (PACKAGING / name).read_text()
            for library in LIBRARY_NEEDS:
                with self.subTest(recipe=name, library=library):
                    self.assertIn(library, text)

    def test_the_port_of_vcpkg_is_json_and_passes_options_that_exist(self):
        port = json.loads((PACKAGING / "vcpkg/vcpkg.json").read_text())
        self.assertEqual(port["dependencies"][2:], sorted(port["dependencies"][2:]))
        text = (ROOT / "cmake/options.cmake").read_text()
        options = set(re.findall(r"^option\((\w+)", text, re.M))
        for name in ("vcpkg/portfile.cmake", "conan/conanfile.py"):
            passed = set(re.findall(r"\bLOOM_[A-Z_]+", (PACKAGING / name).read_text()))
            self.assertEqual(passed - options, set(), name)

    def test_the_recipe_of_conan_is_python(self):
        ast.parse((PACKAGING / "conan/conanfile.py").read_text())

    @unittest.skipUnless(shutil.which("ruby"), "ruby is not installed")
    def test_the_formula_is_ruby(self):
        self.assertEqual(ran("ruby", "-c", str(PACKAGING / "homebrew/loom.rb")).returncode, 0)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
    def test_systemd_reads_the_unit(self):
        with tempfile.TemporaryDirectory() as folder:
            unit = Path(folder, "loom.service")
            text = (PACKAGING / "loom.service").read_text()
            text = re.sub(r"^Documentation=.*\n", "", text, flags=re.M)
            unit.write_text(text.replace("/usr/bin/loom", sys.executable))
            said = ran("systemd-analyze", "verify", "--man=no", str(unit))
        self.assertNotIn("loom.service:", said.stderr)

    def test_the_image_runs_without_rights_and_tells_its_health(self):
        text = (PACKAGING / "Dockerfile").read_text()
        self.assertRegex(text, r"(?m)^USER [1-9][0-9]+$")
        self.assertEqual(len(re.findall(r"(?m)^FROM ", text)), 2)
        self.assertIn("HEALTHCHECK", text)


class SourceArchive(unittest.TestCase):
    def test_its_project_names_files_of_the_archive(self):
        text = (ROOT / "bindings/python/pyproject.toml").read_text()
        project = tomllib.loads(sdist.project_of(text))
        build = project["tool"]["scikit-build"]
        named = [project["project"]["readme"], *project["project"]["license-files"],
                 *build["wheel"]["packages"], build["metadata"]["version"]["input"],
                 build["cmake"]["source-dir"]]  # fmt: skip
        for name in named:
            self.assertTrue((ROOT / name).exists(), name)

    def test_a_project_file_that_has_changed_is_an_error(self):
        with self.assertRaisesRegex(SystemExit, "must be there once"):
            sdist.project_of("[project]\n")


if __name__ == "__main__":
    unittest.main()

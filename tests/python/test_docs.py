"""The blocks of Python in README.md and docs, run as they are written."""

import contextlib
import importlib.util
import io
import os
import shutil
import sys
import unittest
from pathlib import Path

import loom
from loom import _library
from support import ROOT, Scratch, run

if sys.version_info < (3, 9):
    raise unittest.SkipTest("the reader of documents needs Python 3.9")
sys.path.append(str(ROOT / "tests" / "tools"))
from markdown import blocks  # noqa: E402

PAGE = ROOT / "docs" / "c-and-python.md"


def code(language, page=PAGE):
    return [block for block in blocks(page) if block.language == language]


def mine(page):
    return [block for block in blocks(page) if block.note == "run by tests/python/test_docs.py"]


def lines(text):
    return [line.rstrip() for line in text.rstrip().splitlines()]


class Page(Scratch):
    def setUp(self):
        super().setUp()
        (self.folder / "models").symlink_to(ROOT / "models")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    @unittest.skipIf(importlib.util.find_spec("sklearn") is None, "scikit-learn is not installed")
    def test_the_python_runs(self):
        names, printed = {"__name__": "__main__"}, io.StringIO()
        found = code("python")
        self.assertEqual(len(found), 8)
        for block in found:
            program = compile("\n" * block.line + block.text, str(PAGE), "exec")
            with contextlib.redirect_stdout(printed):
                exec(program, names)
        self.assertIn("('(0, 0, 0, 0)/weight', (16, 2), 'int8')", printed.getvalue())
        self.assertEqual(names["story"].stop, "string")
        self.assertGreater(float(printed.getvalue().split()[-1]), 0.9)

    @unittest.skipIf(importlib.util.find_spec("sklearn") is None, "scikit-learn is not installed")
    def test_the_page_of_absorbing_runs(self):
        printed = io.StringIO()
        [block] = code("python", ROOT / "docs" / "absorb.md")
        with contextlib.redirect_stdout(printed):
            exec(compile(block.text, "absorb.md", "exec"), {"__name__": "__main__"})
        self.assertEqual(printed.getvalue().count("the proof holds"), 2)

    def test_the_python_of_every_other_page_runs_and_prints_the_text_below_it(self):
        pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*/*.md"))]
        pages = [page for page in pages if page.parent.name != "decisions" and mine(page)]
        self.assertGreaterEqual(len(pages), 10)
        for page in pages:
            with self.subTest(page=page.name):
                self.follow(page)

    def follow(self, page):
        names, printed = {"__name__": "__main__"}, ""
        for block in mine(page):
            if block.language == "text":
                self.assertEqual(lines(printed), lines(block.text), f"line {block.line}")
                continue
            if "sklearn" in block.text and importlib.util.find_spec("sklearn") is None:
                self.skipTest("scikit-learn is not installed")
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile("\n" * block.line + block.text, str(page), "exec"), names)
            printed = output.getvalue()

    def test_the_c_compiles_and_runs(self):
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            self.skipTest("no C compiler is installed")
        [block] = code("c")
        (self.folder / "doc.c").write_text(block.text)
        # The wheel holds the library under one name; programs look for the one with its version.
        library = self.folder / "libloom.so"
        version = ".".join(loom.__version__.split(".")[:2])
        for name in ("libloom.so", f"libloom.so.{version}"):
            (self.folder / name).symlink_to(Path(_library._path()).resolve())
        for dialect in ("-std=c99", "-std=c11"):
            flags = [dialect, "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{ROOT / 'include'}"]
            run(compiler, *flags, "doc.c", "-o", "doc", library, f"-Wl,-rpath,{library.parent}")
            printed = run("./doc")
            self.assertTrue(printed.startswith("accuracy 1.00\n, there was a brave boy"), printed)


if __name__ == "__main__":
    unittest.main()

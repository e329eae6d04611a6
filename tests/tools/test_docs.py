"""The documents: every link and every path they name exists, within the limits we set for them."""

import re
import subprocess
import sys
import unittest
from pathlib import Path

from markdown import block_of

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_PATH = re.compile(
    r"`((?:src|include|cli|tests|tools|scripts|docs|cmake|models|fuzz|bench)/[^`\s]*)`"
)
# Paths that only exist after a build, and names that the reader chooses.
_NOT_A_FILE = re.compile(r"[*<>{}…]|foo|NAME|\bx/")
# Files that a command writes.
_WRITES = re.compile(r"(?:-o |--(?:svg|plot|genome) |quantize \S+ |convert \S+ )([\w-]+\.[a-z]+)")


class Docs(unittest.TestCase):
    def test_every_relative_link_leads_somewhere(self):
        for doc in DOCS:
            for target in re.findall(r"\]\(([^)\s]+)\)", doc.read_text()):
                if not re.match(r"[a-z]+:|#", target):
                    with self.subTest(doc=doc.name, link=target):
                        there = doc.parent / target.split("#")[0]
                        self.assertTrue(there.exists(), f"{doc.name} links to {target}")

    def test_every_path_in_backticks_exists(self):
        for doc in DOCS:
            for path in _PATH.findall(doc.read_text()):
                if not _NOT_A_FILE.search(path):
                    with self.subTest(doc=doc.name, path=path):
                        there = ROOT / path.rstrip(".,:")
                        self.assertTrue(there.exists(), f"{doc.name} names {path}")

    def test_every_file_and_room_that_the_architecture_names_exists(self):
        text = (ROOT / "ARCHITECTURE.md").read_text()
        files = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).split()
        folders = {folder.as_posix() for path in files for folder in Path(path).parents}
        for name in re.findall(r"`((?:[\w-]+/)*[\w-]+\.(?:cpp|hpp|inl|def|py|md|json|h))`", text):
            with self.subTest(file=name):
                found = [p for p in files if p.endswith("/" + name) or p == name]
                self.assertTrue(found, f"no file is called {name}")
        rooms = re.search(r"\| room \|.*?\n\n", text, re.S)[0]
        for row in rooms.strip().splitlines()[2:]:
            for room in re.findall(r"`([^`]+)`", row.split("|")[1]):
                with self.subTest(room=room):
                    self.assertIn(f"src/{room}", folders)

    def test_the_page_of_cpp_shows_the_program_of_the_examples(self):
        shown = block_of(ROOT / "docs" / "how-to" / "cpp.md", "From C++", "cpp")
        self.assertEqual(shown, (ROOT / "examples" / "hello.cpp").read_text())

    def test_the_readme_counts_what_the_tables_hold(self):
        readme = (ROOT / "README.md").read_text()
        tables = {
            "{} layer kinds": ("src/layers/core/registry.def", "LOOM_LAYER("),
            "{} number types": ("src/dtype/dtypes.def", "LOOM_DTYPE("),
        }
        for text, (table, row) in tables.items():
            lines = (ROOT / table).read_text().splitlines()
            count = sum(line.startswith(row) for line in lines)
            self.assertIn(text.format(count), readme)

    def test_the_sample_data_are_what_their_program_writes(self):
        command = [sys.executable, str(ROOT / "tools" / "samples" / "make.py"), "--check"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertEqual((ran.returncode, ran.stdout), (0, ""))

    def test_the_pictures_of_the_rooms_are_what_their_program_draws(self):
        command = [sys.executable, str(ROOT / "tools" / "house.py"), "--check"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    def test_every_decision_is_in_the_index(self):
        index = (ROOT / "docs" / "decisions" / "README.md").read_text()
        for decision in sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md")):
            self.assertIn(f"({decision.name})", index)

    def test_every_page_is_in_an_index(self):
        folders = ("tutorials", "how-to", "explanation", "reference", "coming-from", "")
        index = "".join((ROOT / "docs" / f / "README.md").read_text() for f in folders)
        for page in [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*/*.md")]:
            if page.parent.name != "decisions" and page.name != "README.md":
                with self.subTest(page=page.name):
                    self.assertRegex(index, rf"\((?:[\w./-]*/)?{re.escape(page.name)}[)#]")

    def test_the_generated_pages_are_what_their_programs_write(self):
        for tool in ("reference.py", "same_bits.py"):
            command = [sys.executable, str(ROOT / "tools" / tool), "--check"]
            ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
            self.assertEqual((ran.returncode, ran.stdout + ran.stderr), (0, ""))

    def test_lessons_write_files_of_different_names(self):
        """Two lessons in one folder, in any order: an output that exists is an error."""
        pages = [ROOT / "README.md", *(ROOT / "docs/tutorials").glob("*.md"),
                 *(ROOT / "docs/how-to").glob("*.md"), ROOT / "docs/tables.md"]  # fmt: skip
        written: dict[str, set[str]] = {}
        for page in pages:
            for name in _WRITES.findall(page.read_text()):
                written.setdefault(name, set()).add(page.name)
        shared = {name: names for name, names in written.items() if len(names) > 1}
        self.assertEqual(shared, {})

    def test_the_readme_fits_on_a_few_screens(self):
        self.assertLess(len((ROOT / "README.md").read_text().split()), 1500)

    def test_the_architecture_stays_short(self):
        self.assertLessEqual(len((ROOT / "ARCHITECTURE.md").read_text().splitlines()), 250)

    def test_the_readme_keeps_the_markers_that_scripts_fill(self):
        readme = (ROOT / "README.md").read_text()
        for name in ("bench", "api"):
            begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
            self.assertLess(readme.index(begin), readme.index(end))


if __name__ == "__main__":
    unittest.main()

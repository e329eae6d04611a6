"""The tests that docs/living.md names exist."""
import fnmatch
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.M)
SUITE = re.compile(r"INSTANTIATE_TEST_SUITE_P\(\s*(\w+),\s*(\w+),", re.M)


def names_of_tests():
    """Per room, "Suite.Name", with the prefix of an instance where tests take parameters."""
    rooms = {}
    for path in (ROOT / "tests").rglob("*_test.cpp"):
        room = path.relative_to(ROOT / "tests").parts[0]
        text = path.read_text(encoding="utf-8")
        plain = {f"{suite}.{name}" for suite, name in TEST.findall(text)}
        for prefix, suite in SUITE.findall(text):
            plain |= {f"{prefix}/{n}/kmeans" for n in plain if n.startswith(suite + ".")}
        rooms.setdefault(room, set()).update(plain)
    return rooms


class Living(unittest.TestCase):
    def test_every_name_is_a_test_of_a_program_that_its_row_names(self):
        rooms = names_of_tests()
        page = (ROOT / "docs" / "living.md").read_text(encoding="utf-8")
        rows = [line.split("|") for line in page.splitlines() if line.count("|") == 4]
        checked = 0
        for _, _, programs, tests, _ in rows:
            known = set()
            for program in re.findall(r"`test_(\w+)`", programs):
                self.assertIn(program, rooms, "no such room of tests")
                known |= rooms[program]
            for pattern in re.findall(r"`([^`]+)`", tests):
                wanted = pattern if "." in pattern else pattern + ".*"
                found = fnmatch.filter(known, wanted)
                self.assertTrue(found, f"{pattern} is not a test of {programs.strip()}")
                checked += 1
        self.assertGreater(checked, 40)

    def test_all_sixteen_lines_are_there(self):
        page = (ROOT / "docs" / "living.md").read_text(encoding="utf-8")
        lines = re.findall(r"^\| \*\*(\d+)\. ", page, re.M)
        self.assertEqual(lines, [str(i) for i in range(1, 17)])


if __name__ == "__main__":
    unittest.main()

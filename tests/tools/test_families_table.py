"""docs/families.md and its data are those of the families in the tree."""

import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import families_table  # noqa: E402


class FamiliesTable(unittest.TestCase):
    def test_the_page_lists_every_class_once_with_a_reason_if_it_does_not_open(self):
        text, errors = families_table.page()
        self.assertEqual(errors, [])
        self.assertEqual(families_table.PAGE.read_text(encoding="utf-8"), text)


if __name__ == "__main__":
    unittest.main()

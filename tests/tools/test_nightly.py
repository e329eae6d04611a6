"""The parts of the night: their table, their page, and which of them are due."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "nightly"))
import changed  # noqa: E402
import night  # noqa: E402

PARTS = night.read_parts()
TEXT = f"before\n{night.BEGIN}\n{night.END}\nafter\n"


def row(ran: str, result: str = "ok") -> night.Row:
    return night.Row(ran, "abc", result, "3", "1 passed, 0 failed, 0 skipped")


class Nightly(unittest.TestCase):
    def test_every_part_fits_into_its_limit_and_says_what_it_sees(self):
        for name, part in PARTS.items():
            self.assertLessEqual(part["minutes"] * 60, night.LIMIT, name)
            self.assertTrue(part["sees"], name)

    def test_the_page_has_a_row_for_every_part(self):
        text = night.PAGE.read_text()
        self.assertEqual(text, night.with_rows(text, PARTS, night.read_rows(text)))

    def test_a_row_is_read_as_it_was_written(self):
        rows = {name: row("2026-11-27") for name in PARTS}
        text = night.with_rows(TEXT, PARTS, rows)
        self.assertEqual(rows, night.read_rows(text))
        self.assertTrue(text.startswith("before\n") and text.endswith("\nafter\n"))

    def test_a_word_names_the_parts_that_begin_with_it(self):
        self.assertEqual(["wasm-gpu"], night.named(PARTS, ["wasm-gpu"]))
        self.assertIn("gpu-1", night.named(PARTS, ["gpu"]))
        self.assertNotIn("wasm-gpu", night.named(PARTS, ["gpu"]))
        with self.assertRaises(SystemExit):
            night.named(PARTS, ["nonsense"])

    def test_unfinished_parts_come_first_then_those_that_never_ran_then_the_oldest(self):
        parts = {name: {"minutes": 10} for name in "abcd"}
        rows = {"a": row("2026-11-25"), "b": row("2026-11-24")}
        rows["d"] = row("2026-11-26", "unfinished")
        self.assertEqual(["d"], night.due(parts, rows, 10))
        self.assertEqual(["c", "d"], night.due(parts, rows, 29))
        self.assertEqual(["b", "c", "d"], night.due(parts, rows, 30))

    def test_the_counts_of_all_commands_of_a_part_add_up(self):
        both = (
            "x: 9 passed, 0 failed, 0 skipped\n1 passed, 0 failed, 0 skipped\n"
            "2 passed, 0 failed, 1 skipped\n"
        )
        self.assertEqual(("ok", "3 passed, 0 failed, 1 skipped"), night.verdict(0, both))
        self.assertEqual("FAILED", night.verdict(1, both)[0])
        self.assertEqual("FAILED", night.verdict(0, "1 passed, 1 failed, 0 skipped\n")[0])
        self.assertEqual("skipped", night.verdict(0, "0 passed, 0 failed, 1 skipped\n")[0])
        self.assertEqual("unfinished", night.verdict(None, both)[0])

    def test_a_sanitizer_leaves_no_suite_out(self):
        for sanitizer in ("address,undefined", "thread"):
            words = [p["run"].split() for p in PARTS.values() if f" {sanitizer} " in p["run"]]
            rest = [row for row in words if "--but" in row]
            self.assertEqual(1, len(rest))
            others = [row for row in words if row[2] not in ("--but", "--build")]
            self.assertEqual({word for row in others for word in row[2:]}, set(rest[0][3:]))

    def test_every_fuzz_target_runs_in_one_part(self):
        targets = sorted(path.stem.removeprefix("fuzz_") for path in ROOT.glob("fuzz/fuzz_*.cpp"))
        words = [p["run"].split()[1:] for p in PARTS.values() if "nightly/fuzz.sh" in p["run"]]
        self.assertEqual(targets, sorted(word for row in words for word in row))

    def test_the_tests_that_a_part_names_are_in_its_program(self):
        suites = changed.suites()
        for name, part in PARTS.items():
            named = re.findall(r"test_(\w+) .*--gtest_filter='\w+/(\w+)\.\*'", part["run"])
            for program, tests in named:
                suite = suites[program]
                files = (ROOT / "tests" / suite.folder).glob("*_test.cpp")
                text = "".join(file.read_text() for file in files if suite.has(file.name))
                self.assertTrue(f"TEST_P({tests}," in text, f"{name}: test_{program}")

    def test_a_part_that_is_stopped_leaves_no_process(self):
        # As ninja does it: a process group for each compiler.
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(night, "LIMIT", 1):
            mark = Path(folder) / "pid"
            command = f"set -m; sleep 600 & echo $! >{mark}; wait"
            self.assertIsNone(night.run_limited(command, Path(folder) / "log"))
            words = ["ps", "-o", "stat=", "-p", mark.read_text().strip()]
            state = subprocess.run(words, capture_output=True, text=True).stdout.strip()
            self.assertIn(state[:1], ("", "Z"))  # Z: its end was not read yet

    def test_a_command_without_counts_is_one_test(self):
        google = r"[  PASSED  ] 12 tests.\n[  SKIPPED ] 2 tests, listed below:\n"
        rows = (
            (["true"], "1 passed, 0 failed, 0 skipped", 0),
            (["false"], "0 passed, 1 failed, 0 skipped", 1),
            (["printf", google], "12 passed, 0 failed, 2 skipped", 0),
        )
        for command, last, status in rows:
            ran = subprocess.run(
                [ROOT / "bench/nightly/counted.sh", *command], capture_output=True, text=True
            )
            self.assertEqual((last, status), (ran.stdout.splitlines()[-1], ran.returncode))


if __name__ == "__main__":
    unittest.main()

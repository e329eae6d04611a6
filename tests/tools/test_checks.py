"""The table of checks, its budget and its skips agree with each other and with the repository. The
runner reports which check failed and how."""

import fnmatch
import os
import re
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import changed
import check
from layering import ARROWS

ROOT = Path(__file__).resolve().parent.parent.parent
KEYS = {"says", "run", "needs", "paths", "rooms", "text", "cores", "lazy", "whole", "builds"}


def tracked() -> list[str]:
    return subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()


class Table(unittest.TestCase):
    def setUp(self):
        self.checks = check.read_checks()

    def test_rows_have_known_keys_and_what_they_need_comes_before_them(self):
        seen: set[str] = set()
        for name, row in self.checks.items():
            self.assertLessEqual(set(row), KEYS, name)
            self.assertLessEqual(set(row.get("needs", [])), seen, name)
            self.assertLessEqual(set(row.get("rooms", [])), set(ARROWS), name)
            seen.add(name)

    def test_every_program_that_a_row_starts_is_there(self):
        for name, row in self.checks.items():
            for word in row["run"].split():
                if "/" in word and not word.startswith("build/"):
                    self.assertTrue((ROOT / word).exists(), f"{name}: {word}")

    @unittest.skipUnless((ROOT / ".git").exists(), "no git here")
    def test_every_path_of_a_row_names_a_file(self):
        files = tracked()
        for name, row in self.checks.items():
            for pattern in row.get("paths", []):
                self.assertTrue(
                    any(changed.matches(f, pattern) for f in files), f"{name}: {pattern}"
                )

    def test_every_test_file_is_in_a_suite(self):
        suites = changed.suites()
        for file in (ROOT / "tests").glob("*/*_test.cpp"):
            mine = [suite for suite in suites.values() if suite.folder == file.parent.name]
            self.assertTrue(any(suite.has(file.name) for suite in mine), file)

    def test_parts_that_are_left_out_change_no_class(self):
        """Only some rooms get LOOM_WITHOUT_x, and others read their headers. A member that only one
        of them has would move the others."""
        guard = re.compile(
            r"^#if[^\n]*LOOM_WITHOUT_(?!TRAINING)[^\n]*\n(.*?)^#(?:endif|else)", re.M | re.S
        )
        for header in (ROOT / "src").rglob("*.hpp"):
            for held in guard.findall(header.read_text()):
                lines = [line for line in held.splitlines() if line.strip()]
                self.assertTrue(all(line.startswith("#include ") for line in lines), header)

    def test_the_rooms_of_suites_are_rooms(self):
        for name, suite in changed.suites().items():
            self.assertTrue(suite.rooms, name)
            self.assertLessEqual(set(suite.rooms), set(ARROWS), name)

    def test_each_check_has_a_budget_and_together_they_keep_twenty_minutes_of_two_cores(self):
        budget = check.read_budget()
        self.assertEqual(set(budget), set(self.checks))
        self.assertLessEqual(sum(budget.values()), 2 * 1200)

    def test_the_build_of_no_suite_is_that_of_the_program(self):
        table = {"": "loom_cli", "test_io": "test_io loom_cli", "all": "all"}
        with tempfile.TemporaryDirectory() as folder:
            fake = Path(folder) / "cmake"
            fake.write_text('#!/bin/sh\nprintf "%s " "$@"\n')
            fake.chmod(0o755)
            env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
            for targets, want in table.items():
                words = ["scripts/build_checks.sh", "dev", *targets.split()]
                ran = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True)
                self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
                self.assertTrue(ran.stdout.rstrip().endswith(f"--target {want}"), ran.stdout)

    def test_skips_are_allowed_for_checks_that_are_there(self):
        self.assertLessEqual(set(check.read_skips()), set(self.checks))


class Runner(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.old, check.LOGS = check.LOGS, Path(self.folder.name)
        self.addCleanup(setattr, check, "LOGS", self.old)

    def run_rows(self, cores: int = 2, **commands: str) -> dict[str, check.Outcome]:
        rows = {name: {"run": command} for name, command in commands.items()}
        return self.board(rows, cores)

    def board(self, rows: dict[str, dict], cores: int = 2) -> dict[str, check.Outcome]:
        board = check.Board(rows, {n: r["run"] for n, r in rows.items()}, dict(os.environ), cores)
        with open(os.devnull, "w") as quiet:
            old, check.say = check.say, lambda text: print(text, file=quiet)
            try:
                board.run()
            finally:
                check.say = old
        return board.done

    def test_counts_come_from_the_last_line_that_has_them(self):
        table = {
            "echo '3 passed, 0 failed, 1 skipped'": (3, 0, 1),
            "echo '3 passed, 2 failed, 1 skipped'; exit 1": (3, 2, 1),
            "echo 'part: 9 passed, 0 failed, 0 skipped'; echo '3 passed, 0 failed'": (3, 0, 0),
            "true": (1, 0, 0),
            "false": (0, 1, 0),
            "echo '3 passed, 0 failed, 0 skipped'; exit 1": (3, 1, 0),
        }
        for command, counts in table.items():
            self.assertEqual(self.run_rows(x=command)["x"].counts, counts, command)

    def test_a_check_that_a_signal_ends_says_which(self):
        outcome = self.run_rows(x="echo before; kill -SEGV $$")["x"]
        said = check.report("x", outcome)
        self.assertIn("SIGSEGV", said)
        self.assertIn("before", said)

    def test_what_needs_a_broken_check_is_not_run_and_has_failed(self):
        done = self.board({"a": {"run": "false"}, "b": {"run": "touch ran", "needs": ["a"]}})
        self.assertEqual(done["b"].counts, (0, 1, 0))
        self.assertIn("a failed", done["b"].notes[0])

    def test_checks_wait_for_what_they_need_and_run_side_by_side_where_they_can(self):
        meet = Path(self.folder.name) / "meet"
        tries = "for _ in $(seq 600); do test -e {0}.%s && exit 0; sleep 0.1; done; exit 1"
        wait = f"touch {meet}.%s; " + tries.format(meet)
        done = self.board(
            {
                "a": {"run": wait % ("a", "b")},
                "b": {"run": wait % ("b", "a")},
                "c": {"run": f"test -e {meet}.b", "needs": ["a", "b"], "cores": 2},
            }
        )
        self.assertEqual([o.counts for o in done.values()], [(1, 0, 0)] * 3)

    def test_a_skip_that_is_not_allowed_is_a_failure(self):
        done = self.run_rows(unheard="echo '1 passed, 0 failed, 1 skipped'")
        old, check.say = check.say, lambda text: None
        try:
            check.check_skips(done)
        finally:
            check.say = old
        self.assertTrue(done["unheard"].failed)
        self.assertEqual(done["unheard"].counts, (1, 1, 1))

    def test_processor_time_counts_what_children_used(self):
        spin = "timeout 1 bash -c 'while :; do :; done' || true"
        self.assertGreater(self.run_rows(x=spin)["x"].processor, 0.05)


if __name__ == "__main__":
    unittest.main()

"""The shell scripts: safe settings, help, clear errors, and the line that sums up."""

import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import ctest_summary
import xml.etree.ElementTree as xml

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPTS = sorted([*ROOT.glob("scripts/*.sh"), *ROOT.glob("tools/*.sh"), ROOT / ".ci" / "run"])
WITH_OPTIONS = (
    "test.sh", "install_deps.sh", "install_gpu.sh", "gpu_test.sh", "install_arm64.sh",
    "arm64_test.sh", "install_wasm.sh", "install_wasm64.sh", "wasm_test.sh", "wasm_package.sh",
    "release.sh", "release_check.sh",
)  # fmt: skip


def run(*command: str) -> subprocess.CompletedProcess:
    with tempfile.TemporaryDirectory() as elsewhere:
        return subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, timeout=60)


class Scripts(unittest.TestCase):
    def test_every_script_is_valid_bash(self):
        for script in SCRIPTS:
            with self.subTest(script.name):
                self.assertEqual(run("bash", "-n", str(script)).stderr, "")

    def test_every_script_stops_at_the_first_error(self):
        for script in SCRIPTS:
            if script.name not in ("common.sh", "sample.sh"):  # these are sourced
                self.assertIn("\nset -euo pipefail\n", script.read_text(), script.name)

    def test_no_script_names_a_machine(self):
        for script in SCRIPTS:
            with self.subTest(script.name):
                self.assertIsNone(re.search(r"https?://|/home/|/root/|/work/", script.read_text()))

    def test_help_works_from_any_folder(self):
        for name in ("quickstart.sh", *WITH_OPTIONS):
            with self.subTest(name):
                result = run(str(ROOT / "scripts" / name), "--help")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(f"scripts/{name}", result.stdout)

    def test_an_unknown_option_is_one_clear_line(self):
        for name in WITH_OPTIONS:
            with self.subTest(name):
                result = run(str(ROOT / "scripts" / name), "--nonsense")
                self.assertNotEqual(result.returncode, 0)
                self.assertEqual(result.stderr.count("\n"), 1)
                self.assertIn("--nonsense", result.stderr)


class CtestSummary(unittest.TestCase):
    CASES = [
        ('<testcase status="run"/>', "passed"),
        ('<testcase status="fail"><failure message="x"/></testcase>', "failed"),
        ('<testcase status="disabled"/>', "skipped"),
        (
            '<testcase status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>',
            "skipped",
        ),
        (
            '<testcase status="notrun"><skipped message="Unable to find executable"/></testcase>',
            "failed",
        ),
        # As GoogleTest writes them.
        ('<testcase status="run" result="completed"/>', "passed"),
        ('<testcase status="run" result="completed"><failure message="x"/></testcase>', "failed"),
        ('<testcase status="run" result="skipped"><skipped message="x"/></testcase>', "skipped"),
    ]

    def test_outcomes_are_read_as_they_are_written(self):
        for text, wanted in self.CASES:
            with self.subTest(text):
                self.assertEqual(ctest_summary.outcome(xml.fromstring(text)), wanted)


if __name__ == "__main__":
    unittest.main()

"""The base of the checks of WebAssembly and pages: tests/web/common.sh, tests/web/sample.mjs."""

import json
import shutil
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def counted(script: str) -> subprocess.CompletedProcess:
    """Runs `count` over a command, and then `finish`."""
    lines = ["set -euo pipefail", "source scripts/common.sh", "source tests/web/common.sh"]
    command = ["bash", "-c", "\n".join([*lines, f"count 'a run' bash -c '{script}'", "finish"])]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


class Count(unittest.TestCase):
    def test_counts_are_added_and_the_time_is_told(self):
        ran = counted("echo noise; echo a run: 3 passed, 0 failed, 1 skipped")
        self.assertEqual((ran.returncode, ran.stdout), (0, "3 passed, 0 failed, 1 skipped\n"))
        self.assertRegex(ran.stderr, r"a run: .*1 skipped, [0-9]+ s, [0-9]+ \+ [0-9]+ s of proc")

    def test_a_run_that_a_signal_ends_tells_the_signal_and_its_last_lines(self):
        ran = counted("echo so far; kill -SEGV $$")
        self.assertEqual((ran.returncode, ran.stdout), (1, "0 passed, 1 failed, 0 skipped\n"))
        self.assertIn("a run ended without a result: status 139 (signal SEGV)", ran.stderr)
        self.assertIn("so far", ran.stderr)

    def test_a_run_without_output_tells_its_status(self):
        for status in (0, 7, 255):
            with self.subTest(status):
                ran = counted(f"exit {status}")
                self.assertEqual(ran.stdout, "0 passed, 1 failed, 0 skipped\n")
                self.assertEqual(ran.returncode, 1)
                self.assertIn(f"status {status}, ", ran.stderr)

    def test_a_run_that_fails_after_its_counts_has_failed(self):
        ran = counted("echo 3 passed, 0 failed, 0 skipped; kill -ABRT $$")
        self.assertEqual((ran.returncode, ran.stdout), (1, "3 passed, 1 failed, 0 skipped\n"))
        self.assertIn("signal ABRT", ran.stderr)

    def test_failures_are_counted_once(self):
        ran = counted("echo why; echo 3 passed, 2 failed, 0 skipped; exit 1")
        self.assertEqual((ran.returncode, ran.stdout), (1, "3 passed, 2 failed, 0 skipped\n"))
        self.assertIn("why", ran.stderr)


@unittest.skipUnless(shutil.which("node"), "Node.js is not installed")
class Sample(unittest.TestCase):
    NAMES = [f"case {i}" for i in range(200)]

    def ask(self, expression: str):
        module = (ROOT / "tests/web/sample.mjs").as_uri()
        script = (
            f"import {{ tenth, shareOf }} from '{module}';"
            f"const names = {json.dumps(self.NAMES)};"
            f"console.log(JSON.stringify({expression}))"
        )
        command = ["node", "--input-type=module", "-e", script]
        return json.loads(subprocess.run(command, capture_output=True, text=True).stdout)

    def test_a_tenth_is_about_a_tenth_and_the_same_for_one_seed(self):
        first, again, other = self.ask("['1', '1', '2'].map((seed) => tenth(names, 'x', seed))")
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)
        self.assertTrue(8 <= len(first) <= 40, len(first))

    def test_a_tenth_of_few_is_one(self):
        counts = self.ask("[...Array(50)].map((_, i) => tenth(['a', 'b'], 'x', String(i)).length)")
        self.assertEqual(min(counts), 1)

    def test_variants_share_all_names_and_each_runs_the_first(self):
        variants = "['a', 'b', 'c']"
        shares = self.ask(f"{variants}.map((v) => shareOf(names, {variants}, v, 'x', '5'))")
        self.assertTrue(all(share[0] == "case 0" for share in shares))
        later = [name for share in shares for name in share[1:]]
        self.assertEqual(sorted(later), sorted(self.NAMES[1:]))

    def test_the_whole_is_everything(self):
        self.assertEqual(self.ask("tenth(names, 'x', 'whole')"), self.NAMES)
        self.assertEqual(self.ask("shareOf(names, ['a', 'b'], 'b', 'x', 'whole')"), self.NAMES)


if __name__ == "__main__":
    unittest.main()

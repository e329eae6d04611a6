"""tests/tools/run_blocks.py on small documents, with a make-believe loom."""

import io
import tempfile
import time
import unittest
from contextlib import redirect_stdout
from pathlib import Path

import run_blocks
from markdown import block_of, blocks

LOOM = """#!/usr/bin/env bash
case "$1" in
  fail) echo "loom: no such thing" >&2; exit 3 ;;
  write) echo made >"$2" ;;
  *) echo "loss 0.5  $# words, $RANDOM samples/s, 0.$RANDOM s" ;;
esac
"""


def sh(text: str) -> str:
    return f"```sh\n{text}\n```\n\n"


def shown(text: str) -> str:
    return f"<!-- output -->\n```text\n{text}\n```\n\n"


# Each case: a document, and how many blocks pass, fail and are skipped.
CASES = {
    "commands that succeed": (sh("loom a\nloom b"), (1, 0, 0)),
    "a command that fails in the middle": (sh("loom fail\nloom b"), (0, 1, 0)),
    "a command that fails in a pipe": (sh("loom fail | cat"), (0, 1, 0)),
    "a pipe whose reader had enough": (sh("yes | head -n 1"), (1, 0, 0)),
    "a variable that no one sets": (sh("loom $NOWHERE"), (0, 1, 0)),
    "a program that is not there": (sh("lom a"), (0, 1, 0)),
    "files of a block are there for the next one": (
        sh("loom write x.txt") + sh("grep made x.txt"),
        (2, 0, 0),
    ),
    "models and data are where the tree has them": (
        sh("test -s models/stories.entity\ntest -s examples/data/fruit.csv"),
        (1, 0, 0),
    ),
    "output as shown, but for times and rates": (
        sh("loom a b") + shown("loss 0.5  2 words, 1 samples/s, 9.9 s"),
        (2, 0, 0),
    ),
    "other output than shown": (
        sh("loom a b") + shown("loss 0.6  2 words, 1 samples/s, 9.9 s"),
        (1, 1, 0),
    ),
    "more output than shown": (
        sh("loom a b\nloom a b") + shown("loss 0.5  2 words, 1 samples/s, 9.9 s"),
        (1, 1, 0),
    ),
    "output of a block that failed": (sh("loom fail") + shown("loss 0.5"), (0, 2, 0)),
    "output without commands": (shown("loss 0.5"), (0, 1, 0)),
    "text without a comment": ("```text\nhello\n```\n", (0, 1, 0)),
    "what is not run says why": ("<!-- not run: a GPU -->\n" + sh("loom fail"), (0, 0, 1)),
    "what another test runs": ("<!-- run by tests/tools/run.py -->\n" + sh("x"), (0, 0, 0)),
    "what another test should run, which is gone": (
        "<!-- run by tests/tools/gone.py -->\n" + sh("x"),
        (0, 1, 0),
    ),
    "other languages": ("```json\n{}\n```\n```hex\n00\n```\n", (0, 0, 0)),
}


class RunBlocks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.loom, self.file = Path(folder.name) / "loom", Path(folder.name) / "page.md"
        self.loom.write_text(LOOM)
        self.loom.chmod(0o755)

    def check(self, text: str, update: bool = False) -> tuple[int, int, int]:
        self.file.write_text(text)
        with redirect_stdout(io.StringIO()):
            counts = run_blocks.Document(self.file, update).check(self.loom)
        return counts["passed"], counts["failed"], counts["skipped"]

    def test_every_kind_of_block_is_judged(self):
        for name, (text, wanted) in CASES.items():
            with self.subTest(name):
                self.assertEqual(self.check("# Page\n\n" + text), wanted)

    def test_what_a_failing_block_left_running_is_ended(self):
        start = time.monotonic()
        self.assertEqual(self.check("# Page\n\n" + sh("sleep 100 &\nloom fail")), (0, 1, 0))
        self.assertLess(time.monotonic() - start, 50)

    def test_stale_output_is_rewritten_when_asked_to(self):
        text = "# A\n\n" + sh("loom write x.txt\ncat x.txt") + shown("unmade") + "The end.\n"
        self.assertEqual(self.check(text, update=True), (2, 0, 0))
        self.assertEqual(self.file.read_text(), text.replace("unmade", "made"))

    def test_blocks_know_their_place(self):
        text = "# A\n\n" + sh("# no heading") + "## B\n<!-- note -->\n```cpp\nx\n```\n"
        self.file.write_text(text)
        first, second = blocks(self.file)
        self.assertEqual((first.line, first.heading, first.note), (3, "A", ""))
        self.assertEqual((second.line, second.heading, second.note), (9, "B", "note"))
        self.assertEqual(block_of(self.file, "B", "cpp"), "x\n")
        self.assertRaises(LookupError, block_of, self.file, "B", "sh")


if __name__ == "__main__":
    unittest.main()

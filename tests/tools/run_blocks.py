#!/usr/bin/env python3
"""Runs the command blocks of the documents as a reader would, and compares the output they show.

    run_blocks.py build/dev/cli/loom              every document
    run_blocks.py build/dev/cli/loom README.md    one
    run_blocks.py --update build/dev/cli/loom     also rewrites shown output that is stale

The blocks of a document run one after another in a fresh folder, with `loom` on PATH. The folder
has `models` and `examples`, as in the repository. Every command must succeed. A comment on the line
above gives a block another role:

    <!-- output -->           on ```text: the whole output of the ```sh block above
    <!-- run by PATH -->      another test runs or compares it
    <!-- not run: WHY -->     no test runs it; counted as skipped

`<!-- run the last column -->` above a table runs the code of its last cells as one block.

Closes with "N passed, N failed, N skipped".
"""

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
from markdown import Block, blocks  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "models" / "README.md",
        *sorted(f for f in (ROOT / "docs").rglob("*.md") if "decisions" not in str(f))]  # fmt: skip
# Stops at the first command that fails, and reports its line in the block. Status 141 is not a
# failure: it is the signal for a closed reader (`| head -3`).
STRICT = """set -Euo pipefail
failed() {
  (( $1 == 141 )) || { printf 'line %s of the block: %s\\n' "$(($2 - 5))" "$3" >&2; exit "$1"; }
}
trap 'failed $? "$LINENO" "$BASH_COMMAND"' ERR
"""
# Figures that differ from run to run: times, rates, and the memory a process took.
_VARYING = re.compile(r"\d[\d,.]*(?= (?:s|ms|us|MB|kB|samples/s|tokens/s|tok/s)\b)")
_VARYING_JSON = re.compile(r'("(?:\w+_per_s|seconds|threads|isa|peak_rss_bytes)":)[^,}]+')


class Workspace:
    """A folder as after a clone and a build, without files that Git ignores."""

    def __init__(self, folder: Path, loom: Path):
        self.folder = folder / "loom"
        for name in ("models", "examples"):
            shutil.copytree(ROOT / name, self.folder / name)
        self.bin = folder / "bin"
        self.bin.mkdir()
        (self.bin / "loom").symlink_to(loom)

    def run(self, script: str, limit: float = 900) -> subprocess.CompletedProcess:
        """Also ends processes that the block left running (a server, if a command failed)."""
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            ran = subprocess.Popen(
                ["bash", "-c", f"{STRICT}{script}\n:"],
                cwd=self.folder, env={**os.environ, "PATH": path},
                stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
            )  # fmt: skip
            try:
                ran.wait(limit)
            except subprocess.TimeoutExpired:
                err.write(f"stopped after {limit} s\n")
            with contextlib.suppress(ProcessLookupError):
                os.killpg(ran.pid, signal.SIGKILL)
            status = ran.wait()
            out.seek(0), err.seek(0)
            return subprocess.CompletedProcess(ran.args, status, out.read(), err.read())


def steady(text: str) -> list[str]:
    """Lines that must not differ from one run to the next; spaces at line ends do not count."""
    lines = (_VARYING_JSON.sub(r"\1#", line.rstrip()) for line in text.rstrip("\n").splitlines())
    return [_VARYING.sub("#", line) for line in lines]


class Document:
    def __init__(self, file: Path, update: bool):
        self.file, self.update = file, update
        self.name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name
        self.counts: Counter[str] = Counter()
        self.printed: str | None = None  # by the last block that ran

    def say(self, block: Block, outcome: str, text: str) -> None:
        self.counts[outcome] += 1
        print(f"{self.name}:{block.line}: {outcome}{': ' if text else ''}{text}", flush=True)

    def block(self, block: Block, workspace: Workspace) -> None:
        if block.note.startswith("not run: "):
            self.say(block, "skipped", block.note.removeprefix("not run: "))
        elif block.note.startswith("run by "):
            self.elsewhere(block, block.note.removeprefix("run by "))
        elif block.language == "sh" and block.note == "":
            self.commands(block, workspace)
        elif block.language == "text" and block.note == "output":
            self.output(block)
        else:
            self.say(block, "failed", "no comment above says what this block is")

    def elsewhere(self, block: Block, test: str) -> None:
        if (ROOT / test).is_file():
            print(f"{self.name}:{block.line}: run by {test}")
        else:
            self.say(block, "failed", f"run by {test}, which is not there")

    def commands(self, block: Block, workspace: Workspace) -> None:
        ran = workspace.run(block.text)
        self.printed = ran.stdout if ran.returncode == 0 else None
        if ran.returncode == 0:
            self.say(block, "passed", "")
        else:
            self.say(block, "failed", f"exit {ran.returncode}\n{(ran.stdout + ran.stderr)[-2000:]}")

    def output(self, block: Block) -> None:
        if self.printed is None:
            self.say(block, "failed", "no block above has run")
        elif steady(block.text) == steady(self.printed):
            self.say(block, "passed", "the output is as shown")
        elif self.update:
            self.rewrite(block)
            self.say(block, "passed", "the output was stale; rewritten")
        else:
            self.say(block, "failed", f"other output than shown (--update):\n{self.printed}")

    def rewrite(self, block: Block) -> None:
        """Earlier blocks may have grown: the block is found by its text."""
        old, text = f"```text\n{block.text}```", self.file.read_text()
        self.file.write_text(text.replace(old, f"```text\n{self.printed.rstrip()}\n```", 1))

    def check(self, loom: Path) -> Counter[str]:
        mine = [b for b in blocks(self.file) if b.language in ("sh", "text") or b.note]
        if mine:
            with tempfile.TemporaryDirectory() as folder:
                workspace = Workspace(Path(folder), loom)
                for block in mine:
                    self.block(block, workspace)
        return self.counts


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--update", action="store_true", help="rewrite stale output")
    parser.add_argument("loom", type=Path, help="the program, built")
    parser.add_argument("documents", type=Path, nargs="*", help="default: all")
    given = parser.parse_args()
    if not given.loom.is_file():
        parser.error(f"{given.loom} is not there; build it first")
    counts: Counter[str] = Counter()
    for file in [f.resolve() for f in given.documents] or DOCS:
        counts += Document(file, given.update).check(given.loom.resolve())
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())

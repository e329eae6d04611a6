#!/usr/bin/env python3
"""The first run, as README.md shows it: the story, and how the starter answers about absent parts.

check_story.py build/dev/cli/loom

The starter (target loom_starter) must be in the same folder; without it its parts are skipped.
"""

import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
REST = "cmake --build --preset release"
# Requests that the starter cannot serve: arguments, and the words of its answer besides REST.
ABSENT = [
    ("train x.json x.csv", "there is no command 'loom train'"),
    ("info {file}.onnx", "reader for ONNX files"),
    ("info {file}.npz", "reader for .npz files"),
    ("run models/stories.entity -p Once --device gpu", "backend for GPUs"),
]
NPZ = b"PK\x03\x04"


def run(program: Path, arguments: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(program), *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300
    )


def told(ran: subprocess.CompletedProcess) -> str:
    tail = "\n".join((ran.stdout + ran.stderr).splitlines()[-40:])
    signal = f", signal {-ran.returncode}" if ran.returncode < 0 else ""
    return f"exit {ran.returncode}{signal}:\n{tail}"


def wrong_story(program: Path) -> str:
    """The difference of README.md and the program; "" if there is none."""
    shown = re.search(
        r"^3/3 Running: (\S+) (.*)\n\n([^`]+)```", (ROOT / "README.md").read_text(), re.M
    )
    if not shown:
        return "README.md: no '3/3 Running: ...' followed by a story"
    ran = run(program, shlex.split(shown.group(2)))
    if ran.returncode != 0 or ran.stdout.split() != shown.group(3).split():
        return "README.md shows another story than the program writes, " + told(ran)
    return ""


def wrong_answers(starter: Path) -> str:
    """The answer about an absent part that does not say how to build it; "" if all do."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model"
        file.with_suffix(".onnx").write_bytes(b"\x08\x08")
        file.with_suffix(".npz").write_bytes(NPZ)
        for line, names in ABSENT:
            ran = run(starter, line.format(file=file).split())
            if ran.returncode == 0 or names not in ran.stderr or REST not in ran.stderr:
                return f"loom {line}: '{names}' and '{REST}' are not in the answer, " + told(ran)
    return ""


def part(name: str, check, program: Path) -> str:
    """Runs one part and prints its line; returns "passed", "failed" or "skipped"."""
    begin = time.monotonic()
    if not program.is_file():
        print(f"{name}: skipped, the target loom_starter was not built")
        return "skipped"
    wrong = check(program)
    result = "failed" if wrong else "passed"
    print(f"{name}: {result}, {time.monotonic() - begin:.1f} s")
    if wrong:
        print(wrong)
    return result


def main() -> int:
    program = Path(sys.argv[1]).resolve() if len(sys.argv) == 2 else Path()
    if not program.is_file():
        print("usage: check_story.py LOOM (a built program)", file=sys.stderr)
        return 2
    starter = program.parent.parent / "starter" / "loom"
    results = [
        part("the story", wrong_story, program),
        part("the story by the starter", wrong_story, starter),
        part("what the starter lacks", wrong_answers, starter),
    ]
    print(", ".join(f"{results.count(r)} {r}" for r in ("passed", "failed", "skipped")))
    return 1 if "failed" in results else 0


if __name__ == "__main__":
    sys.exit(main())

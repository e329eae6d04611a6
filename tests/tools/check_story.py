#!/usr/bin/env python3
"""Runs the command that README.md shows as the first run, and compares what it writes.

check_story.py build/dev/cli/loom
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def main() -> int:
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_file():
        print("usage: check_story.py LOOM (a built program)", file=sys.stderr)
        return 2
    shown = re.search(
        r"^3/3 Running: (\S+) (.*)\n\n([^`]+)```", (ROOT / "README.md").read_text(), re.M
    )
    if not shown:
        print("README.md: no '3/3 Running: ...' followed by a story")
        return 1
    command = [str(Path(sys.argv[1]).resolve()), *shlex.split(shown.group(2))]
    ran = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=300)
    if ran.returncode != 0 or ran.stdout.split() != shown.group(3).split():
        print(f"README.md shows another story than the program writes (exit {ran.returncode}):")
        print(ran.stdout)
        return 1
    print("README.md shows the story that the program writes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

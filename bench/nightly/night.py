#!/usr/bin/env python3
"""Runs nightly parts and keeps their last lines in docs/nightly.md; bench/nightly.sh calls it.

A part ends after 25 minutes; its row then says "unfinished", and its next run continues the builds.
The output of each part is in build/nightly/PART.log.
"""

import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
from changed import git  # noqa: E402
from check import how_it_ended  # noqa: E402

PARTS = ROOT / "bench" / "nightly" / "parts.toml"
PAGE = ROOT / "docs" / "nightly.md"
LOGS = ROOT / "build" / "nightly"
LIMIT = 25 * 60
DUE_MINUTES = 300
BEGIN, END = "<!-- parts -->", "<!-- end of parts -->"
HEAD = (
    "| part | what only it sees | ran | commit | result | minutes | last line |\n"
    "|---|---|---|---|---|---|---|\n"
)


@dataclass
class Row:
    """The last run of a part, as docs/nightly.md keeps it."""

    ran: str = "never"
    commit: str = ""
    result: str = ""
    minutes: str = ""
    last: str = ""


def read_parts() -> dict[str, dict]:
    return tomllib.loads(PARTS.read_text())


def read_rows(text: str) -> dict[str, Row]:
    """Part -> its last run."""
    rows = {}
    for line in text[text.index(BEGIN) : text.index(END)].splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if len(cells) >= 6 and cells[0] not in ("part", "---"):
            cells += [""] * (7 - len(cells))
            rows[cells[0]] = Row(*cells[2:7])
    return rows


def with_rows(text: str, parts: dict[str, dict], rows: dict[str, Row]) -> str:
    """The page with a line for each part."""
    lines = []
    for name, part in parts.items():
        row = rows.get(name, Row())
        cells = [name, part["sees"], row.ran, row.commit, row.result, row.minutes, row.last]
        lines.append("| " + " | ".join(cells) + " |")
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    return before + "\n" + HEAD + "\n".join(lines) + "\n" + after


def named(parts: dict[str, dict], words: list[str]) -> list[str]:
    """The parts that the words name; a word also names the parts that begin with it and "-"."""
    chosen = []
    for word in words:
        found = [name for name in parts if name == word or name.startswith(word + "-")]
        if not found:
            sys.exit(f"error: unknown part '{word}'; bench/nightly.sh --list shows the parts")
        chosen += [name for name in found if name not in chosen]
    return chosen


def due(parts: dict[str, dict], rows: dict[str, Row], minutes: float) -> list[str]:
    """The parts that fit into the minutes: unfinished ones, those that never ran, the oldest."""

    def age(name: str) -> tuple[int, str]:
        row = rows.get(name, Row())
        if row.result == "unfinished":
            return 0, row.ran
        return (1, "") if row.ran == "never" else (2, row.ran)

    chosen, left = [], minutes
    for name in sorted(parts, key=age):
        if parts[name]["minutes"] <= left:
            chosen.append(name)
            left -= parts[name]["minutes"]
    order = list(parts)
    return sorted(chosen, key=order.index)


def commit() -> str:
    """The commit of the tree; "+": with changes that are not committed."""
    changed = git("status", "--porcelain", "--", ".", ":!docs/nightly.md")
    return (git("rev-parse", "--short", "HEAD") or "unknown").strip() + ("+" if changed else "")


def run_limited(command: str, log: Path) -> int | None:
    """The exit status; nothing if the time was over. All processes of the part have ended then."""
    with log.open("wb") as to:
        child = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=to, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            return child.wait(LIMIT)
        except BaseException as stopped:
            end_group(child)
            if isinstance(stopped, subprocess.TimeoutExpired):
                return None
            raise


def end_group(child: subprocess.Popen) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
            child.wait(10)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


def verdict(status: int | None, text: str) -> tuple[str, str]:
    """Result and last line. The commands of a part count together."""
    if status is None:
        return "unfinished", f"stopped after {LIMIT // 60} minutes"
    sums = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", text, re.M)
    if not sums:
        return ("ok" if status == 0 else "FAILED"), last_line(text)
    passed, failed, skipped = (sum(int(words[i]) for words in sums) for i in range(3))
    line = f"{passed} passed, {failed} failed, {skipped} skipped"
    if status != 0 or failed:
        return "FAILED", line
    return ("skipped" if passed == 0 and skipped else "ok"), line


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return (lines[-1] if lines else "no output").replace("|", "/")[:160]


def run_part(name: str, command: str) -> Row:
    log = LOGS / f"{name}.log"
    start, before = time.monotonic(), os.times()
    status = run_limited(command, log)
    minutes, after = (time.monotonic() - start) / 60, os.times()
    used = (after.children_user + after.children_system
            - before.children_user - before.children_system) / 60  # fmt: skip
    text = log.read_text(errors="replace")
    result, last = verdict(status, text)
    took = f"{minutes:.1f} min ({used:.1f} of processor time)"
    print(f"== {name}: {result}, {took}, {last}", flush=True)
    if result == "FAILED":
        print(f"{name}: {how_it_ended(status)}; the end of {log.relative_to(ROOT)}:")
        print("\n".join(text.splitlines()[-40:]), flush=True)
    return Row(time.strftime("%Y-%m-%d", time.gmtime()), commit(), result, f"{minutes:.0f}", last)


def show(parts: dict[str, dict], rows: dict[str, Row]) -> None:
    for name, part in parts.items():
        row = rows.get(name, Row())
        last_run = f"{row.ran:10} {row.commit:10} {row.result:10} {row.last}"
        print(f"{name:16} {part['minutes']:3} min  {last_run}")


def main() -> int:
    words, parts, rows = sys.argv[1:], read_parts(), read_rows(PAGE.read_text())
    if words[:1] == ["--list"]:
        show(parts, rows)
        return 0
    if words[:1] == ["--due"]:
        chosen = due(parts, rows, float(words[1]) if len(words) > 1 else DUE_MINUTES)
    else:
        chosen = named(parts, words) if words else list(parts)
    LOGS.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in chosen:
        row = run_part(name, parts[name]["run"])
        failed = failed or row.result == "FAILED"
        text = PAGE.read_text()
        PAGE.write_text(with_rows(text, parts, {**read_rows(text), name: row}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

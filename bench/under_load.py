#!/usr/bin/env python3
"""Runs every test suite many times next to spinning processes, to find dependence on time.

  bench/under_load.py                         20 runs of each suite next to four spinning processes.
  bench/under_load.py --minutes 25            a part of that; the same command continues.
  bench/under_load.py --suites 'serve|remote' the suites whose name has a match.
  bench/under_load.py --cores 0,1             on two cores, also next to others with other cores.
  bench/under_load.py --status                the table alone.

A suite is a row of build/PRESET/tests/programs.json that is built, and runs whole.
build/under_load/state.json has the counts, log.txt a line per run, SUITE.failure.log the output of
the last failure. A rebuilt suite starts again. Several of these programs share the work. Last line:
runs that passed, failed, and skipped all their tests. Exit status 0: none failed. A failed run is
never repeated.
"""

import argparse
import contextlib
import fcntl
import hashlib
import json
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from ctest_summary import outcome  # noqa: E402

FOLDER = ROOT / "build" / "under_load"
LONGEST = 3600  # seconds; a run that has not ended by then has failed
# Ends when its parent does, however that ends: the pipe closes.
SPIN = ("import os, sys, threading\n"
        "threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0))).start()\n"
        "while True: pass\n")  # fmt: skip


@dataclass
class Suite:
    name: str
    command: list[str]
    gtest: bool
    files: list[Path]  # the files that define it

    def version(self) -> str:
        """Says whether a run is a run of the same suite."""
        return hashlib.sha256("".join(map(hash_of, self.files)).encode()).hexdigest()[:16]


HASHES: dict[tuple[Path, int, int], str] = {}


def hash_of(path: Path) -> str:
    about = path.stat()
    key = (path, about.st_mtime_ns, about.st_size)
    if key not in HASHES:
        HASHES[key] = hashlib.sha256(path.read_bytes()).hexdigest()
    return HASHES[key]


# ---- which suites there are ----------------------------------------------------------------------


def files_of(row: dict, loom: Path) -> Iterator[Path]:
    """The programs and scripts of a command; tests of the program depend on it as well."""
    if row["suite"] in ("test_e2e", "test_gpu") and loom.exists():
        yield loom
    for word in row["command"]:
        path = Path(word.rpartition("=")[2])
        if path.is_dir():
            yield from sorted(path.glob("*.py"))
        elif path.is_file() and path.is_absolute():
            yield path


def suites_of(build: Path) -> list[Suite]:
    """Those of tests/programs.json whose programs exist."""
    listed, loom = build / "tests" / "programs.json", build / "cli" / "loom"
    rows = json.loads(listed.read_text(encoding="utf-8")) if listed.exists() else []
    suites = []
    for row in rows:
        made = [Path(word.rpartition("=")[2]) for word in row["command"] if str(build) in word]
        if all(path.exists() for path in made):
            files = list(files_of(row, loom))
            suites.append(Suite(row["name"], row["command"], row["gtest"], files))
    return suites


# ---- what is known of them -----------------------------------------------------------------------


class State:
    """Counts by suite, shared by all programs that run at a time."""

    def __init__(self, folder: Path, together: int = 1):
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self.log = folder / "state.json", folder / "log.txt"
        self.together = together  # runs of one suite at a time

    @contextlib.contextmanager
    def open(self) -> Iterator[dict]:
        with open(self.path, "a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            text = file.read()
            rows = json.loads(text) if text else {}
            yield rows
            new = json.dumps(rows, indent=1, sort_keys=True)
            if new != text:
                file.truncate(0)
                file.write(new)

    def read(self, suites: list[Suite]) -> dict[str, dict]:
        with self.open() as rows:
            for suite in suites:
                row = rows.get(suite.name, {})
                if row.get("version") != suite.version():
                    rows[suite.name] = {"version": suite.version(), "runs": [], "failed": 0,
                                        "skipped": 0, "taken": []}  # fmt: skip
            return {suite.name: rows[suite.name] for suite in suites}

    def take(self, suites: list[Suite], runs: int, left: float) -> Suite | None:
        """The suite with the fewest runs, if it is not done and is likely to end in time."""
        self.read(suites)
        with self.open() as rows:

            def begun(suite: Suite) -> int:
                return len(rows[suite.name]["runs"]) + len(rows[suite.name]["taken"])

            def waits(suite: Suite) -> bool:
                row = rows[suite.name]
                row["taken"] = [process for process in row["taken"] if alive(process)]
                fits = max((r["seconds"] for r in row["runs"]), default=0) <= left
                return begun(suite) < runs and fits and len(row["taken"]) < self.together

            free = [suite for suite in suites if waits(suite)]
            if not free:
                return None
            suite = min(free, key=begun)
            rows[suite.name]["taken"].append(os.getpid())
            return suite

    def give_back(self, suite: Suite) -> None:
        with self.open() as rows:
            rows[suite.name]["taken"].remove(os.getpid())

    def add(self, suite: Suite, run: dict) -> None:
        with self.open() as rows:
            row = rows[suite.name]
            row["runs"].append({k: run[k] for k in ("seconds", "processor")})
            row["failed"] += run["result"] == "failed"
            row["skipped"] += run["result"] == "skipped"
            count = len(row["runs"])
        line = (
            f"{time.strftime('%Y-%m-%d %H:%M:%S')} {suite.name} {count}: {run['result']}, "
            f"{run['seconds']:.1f} s, processor {run['processor']:.1f} s, {run['why']}"
        )
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(line + "\n")
        print(line, flush=True)


def alive(process: int) -> bool:
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


# ---- running -------------------------------------------------------------------------------------


class Load:
    """Processes that spin while this one lives."""

    def __init__(self, count: int):
        self.processes = [
            subprocess.Popen([sys.executable, "-c", SPIN], stdin=subprocess.PIPE)
            for _ in range(count)
        ]

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()


def status_words(status: int) -> str:
    if status >= 0:
        return f"status {status}"
    with contextlib.suppress(ValueError):
        return f"signal {-status} ({signal.Signals(-status).name})"
    return f"signal {-status}"


def verdict(suite: Suite, status: int, report: Path) -> tuple[str, str]:
    """The result of a run, and why."""
    if not suite.gtest:
        return ("passed" if status == 0 else "failed"), status_words(status)
    counts: Counter[str] = Counter()
    with contextlib.suppress(OSError, xml.ParseError):  # one that was killed leaves no whole report
        counts = Counter(map(outcome, xml.parse(report).getroot().iter("testcase")))
    why = ", ".join([status_words(status), *(f"{n} {what}" for what, n in counts.items())])
    if status != 0 or counts["failed"] or not counts:
        return "failed", why
    return ("passed" if counts["passed"] else "skipped"), why


def told(output: Path) -> str:
    """The end of a run's output, without the tests that passed."""
    lines = output.read_text(encoding="utf-8", errors="replace").splitlines()
    passing = re.compile(r"\[(?: RUN      |       OK |----------)\]")
    return "\n".join([line for line in lines[:-1] if not passing.match(line)] + lines[-1:])[-3000:]


def run_once(suite: Suite, state: State) -> None:
    work = FOLDER / "work" / f"{suite.name}.{os.getpid()}"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    report, output = work / "report.xml", work / "output.log"
    # A separate scratch folder, and no GPU, as in the unit tests of a change.
    env = {k: v for k, v in os.environ.items() if k != "LOOM_WEBGPU_LIB"}
    env |= {"TMPDIR": str(work), "TEST_TMPDIR": str(work)}
    command = suite.command + ([f"--gtest_output=xml:{report}"] if suite.gtest else [])
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(output, "wb") as file:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file,
                                 stderr=subprocess.STDOUT, cwd=work, env=env,
                                 start_new_session=True)  # fmt: skip
        try:
            status = child.wait(LONGEST)
            late = ""
        except subprocess.TimeoutExpired:
            status, late = -signal.SIGKILL, f" after {LONGEST} s without an end"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)  # also processes that it left running
            child.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    result, why = verdict(suite, status, report)
    if result == "failed":
        shutil.copy(output, FOLDER / f"{suite.name}.failure.log")
        print(told(output), flush=True)
    state.add(suite, {"seconds": time.monotonic() - start, "result": result, "why": why + late,
                      "processor": after.ru_utime + after.ru_stime
                      - before.ru_utime - before.ru_stime})  # fmt: skip
    shutil.rmtree(work, ignore_errors=True)


def run_part(suites: list[Suite], state: State, runs: int, minutes: float) -> None:
    """Runs suites in turn until all have their runs, or the next one would not end in time."""
    end, left = time.monotonic() + minutes * 60, math.inf  # a part runs one suite at least
    while left > 0:
        suite = state.take(suites, runs, left)
        if suite is None:
            return
        try:
            run_once(suite, state)
        finally:
            state.give_back(suite)
        left = end - time.monotonic()


# ---- telling -------------------------------------------------------------------------------------


def tell(rows: dict[str, dict], runs: int) -> int:
    """Prints a line per suite and the closing line; the number of failed runs."""
    for name, row in rows.items():
        seconds = [r["seconds"] for r in row["runs"]]
        processor = [r["processor"] for r in row["runs"]]
        if seconds:
            print(
                f"{name}: {len(seconds)} runs, {row['failed']} failed, slowest "
                f"{max(seconds):.1f} s, processor {max(processor):.1f} s at most"
                + (f"; see {name}.failure.log" if row["failed"] else "")
            )
    done = sum(len(row["runs"]) >= runs for row in rows.values())
    print(
        f"{done} of {len(rows)} suites have their {runs} runs"
        + ("" if done == len(rows) else "; the same command goes on")
    )
    failed = sum(row["failed"] for row in rows.values())
    skipped = sum(row["skipped"] for row in rows.values())
    passed = sum(len(row["runs"]) for row in rows.values()) - failed - skipped
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--preset", default="dev")
    parser.add_argument("--runs", type=int, default=20, help="of each suite (20)")
    parser.add_argument("--spinning", type=int, default=4, help="processes beside it (4)")
    parser.add_argument("--minutes", type=float, default=1e6, help="of this part (no end)")
    parser.add_argument("--suites", default="", help="a regular expression; all suites without it")
    parser.add_argument("--cores", default="", help="numbers such as 0,1; all cores without it")
    parser.add_argument("--together", type=int, default=1,
                        help="runs of one suite at a time, by programs with cores of their own (1)")
    parser.add_argument("--status", action="store_true", help="run nothing")
    args = parser.parse_args()
    suites = [s for s in suites_of(ROOT / "build" / args.preset) if re.search(args.suites, s.name)]
    if not suites:
        print(f"no suite in build/{args.preset} matches '{args.suites}'; build it first")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    state = State(FOLDER, args.together)
    if not args.status:
        if args.cores:
            os.sched_setaffinity(0, {int(core) for core in args.cores.split(",")})
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        load = Load(args.spinning)
        try:
            run_part(suites, state, args.runs, args.minutes)
        finally:
            load.end()
    return 1 if tell(state.read(suites), args.runs) else 0


if __name__ == "__main__":
    sys.exit(main())

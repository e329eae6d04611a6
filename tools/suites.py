#!/usr/bin/env python3
"""Runs test programs of a build as a whole, as many at once as there are cores.

  tools/suites.py PRESET all            every test program of build/PRESET, and script tests
  tools/suites.py PRESET test_io ...    these

A program runs once for all its tests; long ones run in shares (GTEST_TOTAL_SHARDS). GPU tests skip,
even on a machine with a GPU: the check "gpu" runs them. Prints failures, and "N passed, N failed, N
skipped".
"""

import json
import os
import re
import resource
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from ctest_summary import outcome

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "checks" / "suites"
SLOWEST = ROOT / "build" / "checks" / "slowest.json"
TIMEOUT = 1800
SHARE_SECONDS = 20.0  # a program that took longer last time is cut into shares of about this


@dataclass
class Run:
    """One process: a program, or a share of it."""

    name: str
    command: list[str]
    gtest: bool
    shards: int = 1
    shard: int = 0
    seconds: float = 0.0  # duration of the last run

    @property
    def label(self) -> str:
        return self.name if self.shards == 1 else f"{self.name}.{self.shard}"


@dataclass
class Result:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    tests: list[tuple[float, str]] = field(default_factory=list)
    said: str = ""


def times_file(preset: str) -> Path:
    return WORK / f"times.{preset}.json"


def last_times(preset: str) -> dict[str, float]:
    file = times_file(preset)
    return json.loads(file.read_text()) if file.is_file() else json.loads(FIRST_TIMES)


# Durations without a record: those on two cores of 2026.
FIRST_TIMES = '{"test_learn_kinds": 60, "test_learn": 40, "test_e2e": 60, "test_conformance": 40}'


def programs(preset: str, wanted: list[str]) -> list[Run]:
    """The processes to run, longest first."""
    folder = ROOT / "build" / preset / "tests"
    listed = json.loads((folder / "programs.json").read_text())
    times, runs = last_times(preset), []
    for row in listed:
        if wanted != ["all"] and row["suite"] not in wanted:
            continue
        took = times.get(row["name"], 1.0)
        shards = max(1, min(8, round(took / SHARE_SECONDS))) if row["gtest"] else 1
        runs += [
            Run(row["name"], row["command"], row["gtest"], shards, i, took / shards)
            for i in range(shards)
        ]
    return sorted(runs, key=lambda run: -run.seconds)


def run_one(run: Run) -> Result:
    report, log = WORK / f"{run.label}.xml", WORK / f"{run.label}.log"
    report.unlink(missing_ok=True)
    told = {k: v for k, v in os.environ.items() if k != "LOOM_WEBGPU_LIB"}
    told.update(GTEST_TOTAL_SHARDS=str(run.shards), GTEST_SHARD_INDEX=str(run.shard))
    start = time.monotonic()
    with log.open("wb") as to:
        words = run.command + ([f"--gtest_output=xml:{report}"] if run.gtest else [])
        try:
            status = subprocess.run(
                words,
                cwd=WORK,
                env=told,
                stdin=subprocess.DEVNULL,
                stdout=to,
                stderr=subprocess.STDOUT,
                timeout=TIMEOUT,
            ).returncode
        except subprocess.TimeoutExpired:
            status = None
    return read_result(run, status, time.monotonic() - start, report, log)


def read_result(run: Run, status: int | None, seconds: float, report: Path, log: Path) -> Result:
    """The result of a process. Without a report it has failed in the test that it began last."""
    result = Result(seconds=seconds)
    text = log.read_text(errors="replace")
    if report.is_file() and status is not None:
        for case in xml.parse(report).getroot().iter("testcase"):
            count = outcome(case)
            setattr(result, count, getattr(result, count) + 1)
            name = f"{case.get('classname')}.{case.get('name')}"
            result.tests.append((float(case.get("time", 0)), f"{run.name} {name}"))
            if count == "failed":
                result.said += failure_of(text, name)
        if status != 0 and result.failed == 0:
            result.failed = 1
            result.said += f"{run.label}: {ending(status)} after its tests\n" + text[-3000:]
        return result
    if run.gtest or status is None or status < 0:
        begun = re.findall(r"^\[ RUN +\] (\S+)", text, re.MULTILINE)
        result.failed = 1
        result.said = (
            f"{run.label}: {ending(status)} in {begun[-1] if begun else 'its start'}\n"
            + text[-3000:]
        )
        return result
    result.passed, result.failed = (1, 0) if status == 0 else (0, 1)
    result.tests.append((seconds, run.name))
    result.said = "" if status == 0 else f"{run.label}: {ending(status)}\n" + text[-6000:]
    return result


def ending(status: int | None) -> str:
    if status is None:
        return f"did not end within {TIMEOUT} s"
    return f"ended by signal {-status}" if status < 0 else f"ended with status {status}"


def failure_of(text: str, name: str) -> str:
    """The output of a program for one test."""
    start = text.find(f"[ RUN      ] {name}\n")
    end = text.find(f"] {name}", start + len(name) + 14) if start >= 0 else -1
    body = text[start:end] if start >= 0 and end > start else ""
    return f"FAILED: {name}\n{body[:3000]}\n"


def main() -> int:
    if len(sys.argv) < 3 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    WORK.mkdir(parents=True, exist_ok=True)
    runs = programs(sys.argv[1], sys.argv[2:])
    if not runs:
        print(f"no test program of build/{sys.argv[1]} has the name {' or '.join(sys.argv[2:])}")
        return 2
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = list(pool.map(run_one, runs))
    times: dict[str, float] = last_times(sys.argv[1])
    for name in {run.name for run in runs}:
        times[name] = sum(r.seconds for run, r in zip(runs, results) if run.name == name)
    times_file(sys.argv[1]).write_text(json.dumps(times, indent=1, sort_keys=True))
    for name in sorted({run.name for run in runs}, key=lambda name: -times[name]):
        parts = [r for run, r in zip(runs, results) if run.name == name]
        print(
            f"{name}: {sum(r.passed for r in parts)} passed, "
            f"{sum(r.failed for r in parts)} failed, {sum(r.skipped for r in parts)} skipped, "
            f"{times[name]:.1f} s in {len(parts)} processes"
        )
    tests = sorted((t for r in results for t in r.tests), reverse=True)[:10]
    SLOWEST.write_text(json.dumps(tests))
    for result in results:
        if result.said:
            print(result.said)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:.0f} s of processor time")
    sums = [sum(getattr(r, what) for r in results) for what in ("passed", "failed", "skipped")]
    print("{} passed, {} failed, {} skipped".format(*sums))
    return 1 if sums[1] else 0


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())

#!/usr/bin/env python3
"""Runs the checks of tests/checks.toml, which a change must pass. scripts/test.sh calls it.

  tools/check.py                    everything that a change must pass.
  tools/check.py --changed [BASE]   the part that the change since BASE can break (changed.py).
  tools/check.py --whole            also the nightly part of each check.
  tools/check.py --only NAME...     these checks and their dependencies.
  tools/check.py --list             the checks; --plan: the checks that would run, and why.

As many checks run at once as there are cores. The output of each is in build/checks/NAME.log and
ends with "N passed, N failed, N skipped"; the last line sums up. If CI=true, a skip that .ci/skips
does not allow is a failure.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import changed
from changed import ROOT, Change

LOGS = ROOT / "build" / "checks"
COUNTS = re.compile(r"^(?:.*\s)?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")
TOLD = re.compile(
    r"(^|[^a-z])(FAILED|FAIL|Failure|[Ee]rror|not ok|ended without|ended with)([^a-z]|$)"
)


@dataclass
class Outcome:
    """The result of a check: seconds of the clock, and of the processor by all its processes."""

    status: int
    seconds: float
    processor: float
    counts: tuple[int, int, int]
    notes: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return self.status != 0 or self.counts[1] > 0 or bool(self.notes)


def read_checks() -> dict[str, dict]:
    """The rows of tests/checks.toml, in their order."""
    return tomllib.loads((ROOT / "tests" / "checks.toml").read_text())


def read_budget() -> dict[str, float]:
    """Check -> processor seconds that .ci/budget gives it, with everything compiled."""
    rows = (
        line.split("#")[0].split() for line in (ROOT / ".ci" / "budget").read_text().splitlines()
    )
    return {row[0]: float(row[1]) for row in rows if row}


def read_skips() -> dict[str, int]:
    """Check -> skips that .ci/skips allows."""
    rows = (
        line.split("#")[0].split() for line in (ROOT / ".ci" / "skips").read_text().splitlines()
    )
    return {row[0]: int(row[1]) for row in rows if row}


# --- the choice


def choose(checks: dict[str, dict], change: Change, whole: bool) -> dict[str, str]:
    """Check -> the reason to run it. Dependencies of checks are included."""
    rooms = change.rooms() if change.known else {}
    reasons = {}
    for name, row in checks.items():
        reason = changed.check_reason(row, change, rooms)
        if name == "suites" and not reason and chosen_suites(change):
            reason = "its suites"
        if reason or whole:
            reasons[name] = reason or "--whole"
    for name in list(reasons):
        for needed in needs_of(checks, name):
            reasons.setdefault(needed, f"{name} needs it")
    return {name: reasons[name] for name in checks if name in reasons}


def needs_of(checks: dict[str, dict], name: str) -> list[str]:
    """The dependencies of a check, also indirect ones."""
    found: list[str] = []
    for needed in checks[name].get("needs", []):
        found += [needed, *needs_of(checks, needed)]
    return found


def chosen_suites(change: Change) -> dict[str, str]:
    """Test program -> the reason to run it."""
    rooms = change.rooms() if change.known else {}
    reasons = {
        n: changed.suite_reason(n, row, change, rooms) for n, row in changed.suites().items()
    }
    return {name: reason for name, reason in reasons.items() if reason}


def unchanged_lazy(checks: dict[str, dict], change: Change) -> set[str]:
    """Lazy checks that the change does not affect, and that no other check needs."""
    if not change.known:
        return set()
    rooms = change.rooms()
    kept = {
        name
        for name, row in checks.items()
        if not row.get("lazy") or changed.check_reason(row, change, rooms)
    }
    for name in list(kept):
        kept.update(needs_of(checks, name))
    return set(checks) - kept


def plan_lines(change: Change, reasons: dict[str, str]) -> list[str]:
    """The plan with reasons, for a person."""
    if not change.known:
        return ["no base is known, so everything runs"]
    lines = [f"{len(change.files)} files changed since {change.base[:10]}"]
    if change.comments:
        lines.append(f"in comments alone: {len(change.comments)} files")
    rooms = change.rooms()
    if rooms:
        lines.append("rooms: " + " ".join(rooms))
    lines += [f"  {name}: {reason}" for name, reason in reasons.items()]
    if "suites" in reasons:
        lines += [f"  suite {name}: {reason}" for name, reason in chosen_suites(change).items()]
    return lines


# --- one check


def environment(change: Change) -> dict[str, str]:
    """Environment of checks: the changed files, and the seed of samples."""
    told = dict(os.environ)
    told.pop("LOOM_CHANGED_FILES", None)
    if change.known:
        listing = LOGS / "changed_files"
        listing.write_text("".join(f"{path}\n" for path in change.files))
        told["LOOM_CHANGED_FILES"] = str(listing)
    tree = (changed.git("rev-parse", "HEAD^{tree}") or "0").strip()
    told.setdefault("LOOM_SAMPLE_SEED", str(int(tree[:8], 16)))
    return told


def run_check(name: str, command: str, told: dict[str, str], quietly: bool) -> Outcome:
    """Runs one check to its end; its output is in its log."""
    log = LOGS / f"{name}.log"
    start = time.monotonic()
    with log.open("wb") as to:
        words = (["nice", "-n", "10"] if quietly else []) + [
            "bash",
            "-euo",
            "pipefail",
            "-c",
            command,
        ]
        child = subprocess.Popen(
            words,
            cwd=ROOT,
            env=told,
            stdin=subprocess.DEVNULL,
            stdout=to,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        RUNNING.add(child.pid)
        _, status, used = os.wait4(child.pid, 0)
        RUNNING.discard(child.pid)
        child.returncode = os.waitstatus_to_exitcode(status)
    return outcome_of(
        log, child.returncode, time.monotonic() - start, used.ru_utime + used.ru_stime
    )


def outcome_of(log: Path, status: int, seconds: float, processor: float) -> Outcome:
    """Reads the counts of a log. A check without counts is one test."""
    counts = None
    for line in log.read_text(errors="replace").splitlines():
        match = COUNTS.match(line.strip())
        if match:
            counts = tuple(int(word or 0) for word in match.groups())
    if counts is None:
        counts = (1, 0, 0) if status == 0 else (0, 1, 0)
    elif status != 0 and counts[1] == 0:
        counts = (counts[0], 1, counts[2])
    return Outcome(status, seconds, processor, counts)


def how_it_ended(status: int) -> str:
    """An exit status in words."""
    if status < 0:
        return f"ended by signal {-status} ({signal.Signals(-status).name})"
    return f"ended with status {status}"


def report(name: str, outcome: Outcome) -> str:
    """The lines of a failed check with the cause: those that name a failure, then the last ones."""
    lines = (LOGS / f"{name}.log").read_text(errors="replace").splitlines()
    telling = [line for line in lines if TOLD.search(line)][-20:]
    shown = [line[:300] for line in telling + ["..."] + lines[-40:]]
    return "\n".join([f"failed: {name}, {how_it_ended(outcome.status)}", *outcome.notes, *shown])


# --- all of them

RUNNING: set[int] = set()


def stop_all(*_) -> None:
    """Ends every check that runs, with all its processes."""
    for pid in list(RUNNING):
        try:
            os.killpg(pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
    os._exit(130)


class Board:
    """The checks of one run: starts each once its dependencies are done and cores are free."""

    def __init__(
        self, checks: dict[str, dict], commands: dict[str, str], told: dict[str, str], cores: int
    ):
        self.checks, self.commands, self.told, self.cores = checks, commands, told, cores
        self.waiting = list(commands)
        self.done: dict[str, Outcome] = {}
        self.busy: dict[str, int] = {}
        self.changed = threading.Condition()

    def run(self) -> None:
        with self.changed:
            while self.waiting or self.busy:
                name = self.next()
                if name is None:
                    if self.busy:
                        self.changed.wait()
                    continue
                self.waiting.remove(name)
                self.busy[name] = self.share(name)
                threading.Thread(target=self.one, args=(name,), daemon=True).start()

    def share(self, name: str) -> int:
        return min(self.checks[name].get("cores", 1), self.cores)

    def next(self) -> str | None:
        """The first check that can start. If its dependency failed, it has failed without a run."""
        free = self.cores - sum(self.busy.values())
        for name in self.waiting:
            needs = [n for n in self.checks[name].get("needs", []) if n in self.commands]
            broken = [n for n in needs if n in self.done and self.done[n].status != 0]
            if broken and self.checks[name].get("strict", True):
                self.waiting.remove(name)
                self.finish(name, Outcome(1, 0, 0, (0, 1, 0), [f"not run: {broken[0]} failed"]))
                return self.next()
            if all(n in self.done for n in needs) and self.share(name) <= free:
                return name
            if (
                self.share(name) > free
                and all(n in self.done for n in needs)
                and self.share(name) > 1
            ):
                return None  # it waits for all cores; nothing may overtake it forever
        return None

    def one(self, name: str) -> None:
        outcome = run_check(name, self.commands[name], self.told, self.share(name) == 0)
        with self.changed:
            self.finish(name, outcome)
            self.changed.notify_all()

    def finish(self, name: str, outcome: Outcome) -> None:
        self.busy.pop(name, None)
        self.done[name] = outcome
        if outcome.notes:
            (LOGS / f"{name}.log").write_text("\n".join(outcome.notes) + "\n")
        say_outcome(name, outcome)


def say(text: str) -> None:
    print(text, flush=True)


def say_outcome(name: str, outcome: Outcome) -> None:
    passed, failed, skipped = outcome.counts
    verdict = "FAILED" if outcome.failed else "ok"
    say(
        f"== {name}: {verdict}, {outcome.seconds:.0f} s "
        f"({outcome.processor:.0f} s of processor time), "
        f"{passed} passed, {failed} failed, {skipped} skipped"
    )
    if outcome.failed:
        say(report(name, outcome))


def check_skips(done: dict[str, Outcome]) -> None:
    """Counts a skip that the list does not allow as a failure of its check."""
    allowed = read_skips()
    for name, outcome in done.items():
        if outcome.counts[2] > allowed.get(name, 0):
            outcome.notes.append(
                f"{name}: {outcome.counts[2]} skipped, .ci/skips allows {allowed.get(name, 0)}"
            )
            passed, failed, skipped = outcome.counts
            outcome.counts = (passed, failed + 1, skipped)
            say_outcome(name, outcome)


def summary(done: dict[str, Outcome], left_out: set[str], started: float) -> int:
    """The table of times, the slowest tests, the failures again, and the sum."""
    budget = read_budget()
    say("\ncheck, seconds, processor seconds, of its budget")
    for name, outcome in sorted(done.items(), key=lambda item: -item[1].processor):
        given = budget.get(name, 0)
        over = "  over its budget" if outcome.processor > 1.25 * given + 5 else ""
        say(f"  {name:14} {outcome.seconds:6.0f} {outcome.processor:6.0f} {given:6.0f}{over}")
    for name in sorted(left_out):
        say(f"  {name:14} left out: nothing that it can feel has changed")
    slowest = LOGS / "slowest.json"
    if slowest.is_file() and "suites" in done:
        say("the slowest tests")
        for seconds, test in json.loads(slowest.read_text()):
            say(f"  {seconds:6.1f} s {test}")
    for name, outcome in done.items():
        if outcome.failed:
            say("\n" + report(name, outcome))
    sums = [sum(outcome.counts[i] for outcome in done.values()) for i in range(3)]
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    say(
        f"\n{minutes} min {seconds} s, "
        f"{sum(o.processor for o in done.values()):.0f} s of processor time"
    )
    say("{} passed, {} failed, {} skipped".format(*sums))
    return 1 if sums[1] else 0


def record(change: Change) -> None:
    """Writes to build/checked that HEAD passed everything, if all is committed."""
    if changed.git("status", "--porcelain") == "":
        head = (changed.git("rev-parse", "HEAD") or "").strip()
        (ROOT / "build" / "checked").write_text(f"{head} {time.strftime('%Y-%m-%d')}\n")


def commands_of(checks: dict[str, dict], names, args, change: Change) -> dict[str, str]:
    """Check -> its command line."""
    programs = ["all"]
    if args.changed is not None and change.known:
        programs = [changed.program_of(name) for name in chosen_suites(change)]
    builds = {target for name in names for target in checks[name].get("builds", [])}
    targets = programs + sorted(builds - set(programs))
    commands = {}
    for name in names:
        row = checks[name]
        command = row["run"] + (f" {row['whole']}" if args.whole and row.get("whole") else "")
        command = command.replace("{preset}", args.preset)
        command = command.replace("{suites}", " ".join(programs)).replace(
            "{targets}", " ".join(targets)
        )
        commands[name] = command
    return commands


class Parser(argparse.ArgumentParser):
    def error(self, message: str):
        sys.exit(
            f"error: {message.replace('unrecognized arguments:', 'unknown option')}; try --help"
        )


def parse() -> argparse.Namespace:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changed", nargs="?", const="", metavar="BASE")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--preset", default="dev")
    args = parser.parse_args()
    unknown = [name for name in args.only if name not in read_checks()]
    if unknown:
        parser.error(f"there is no check '{unknown[0]}'; --list shows them")
    return args


def main() -> int:
    args, checks, started = parse(), read_checks(), time.monotonic()
    if args.list:
        for name, row in checks.items():
            print(f"{name:14} {row['says']}")
        return 0
    change = changed.read_change(args.changed or changed.recorded_base())
    if args.changed is None:
        reasons = {name: "all run" for name in checks}
    else:
        reasons = choose(checks, change, args.whole)
    if args.only:
        wanted = {n for name in args.only for n in [name, *needs_of(checks, name)]}
        reasons = {name: "asked for" for name in checks if name in wanted}
    left_out = set() if args.whole or args.only else unchanged_lazy(checks, change)
    reasons = {name: reason for name, reason in reasons.items() if name not in left_out}
    if args.plan or args.changed is not None:
        print("\n".join(plan_lines(change, reasons)), flush=True)
    if args.plan:
        return 0
    LOGS.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop_all)
    board = Board(
        checks, commands_of(checks, reasons, args, change), environment(change), os.cpu_count() or 1
    )
    board.run()
    if os.environ.get("CI") == "true":
        check_skips(board.done)
    status = summary(board.done, left_out, started)
    if status == 0 and args.changed is None and not args.only:
        record(change)
    return status


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())

"""What a change reaches: its files, the rooms of src/ that stand on them, and the checks of
tests/checks.toml and suites of tests/CMakeLists.txt that can feel it.

  tools/changed.py [BASE]      prints the files, the rooms, the checks and the suites with reasons

BASE is a commit. Without it the last commit that is recorded as checked counts (build/checked
of this clone, else .ci/checked), if HEAD descends from it. Files that are not committed count too.
"""

import argparse
import fnmatch
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from cpp_source import CPP_SUFFIXES, without_comments
from layering import ARROWS, reachable, room_of

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ("build/checked", ".ci/checked")

# Files that every check stands on, and those that every suite does.
EVERYTHING = ("CMakeLists.txt", "CMakePresets.json", "cmake/")
EVERY_SUITE = (*EVERYTHING, "tests/CMakeLists.txt", "tests/support/")


def git(*words: str, root: Path = ROOT) -> str | None:
    """What git prints, or None where it fails."""
    ran = subprocess.run(
        ["git", *words], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    return ran.stdout if ran.returncode == 0 else None


def recorded_base(root: Path = ROOT) -> str | None:
    """The last commit that is recorded as wholly checked, if HEAD descends from it."""
    for record in RECORDS:
        file = root / record
        words = file.read_text().split() if file.is_file() else []
        if words and git("merge-base", "--is-ancestor", words[0], "HEAD", root=root) is not None:
            return words[0]
    return None


def matches(path: str, pattern: str) -> bool:
    """Whether a pattern names the path: a folder ends in "/", others are patterns of a shell."""
    return path.startswith(pattern) if pattern.endswith("/") else fnmatch.fnmatch(path, pattern)


def any_matches(path: str, patterns) -> str | None:
    """The first pattern that names the path."""
    return next((p for p in patterns if matches(path, p)), None)


def same_code(before: str, after: str) -> bool:
    """Whether two texts of a C++ file differ in comments and space alone."""
    before, after = (
        re.sub(r"\s+", " ", without_comments(t, keep_strings=True)) for t in (before, after)
    )
    return before == after


@dataclass
class Change:
    """The files of a change. Without a known base everything counts as changed."""

    known: bool
    base: str = ""
    files: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)  # C++ files whose code is as it was

    def rooms(self) -> dict[str, str]:
        """Room of src/ -> one of the files for which it is reached."""
        direct: dict[str, str] = {}
        for path in self.files:
            room = room_of(path[4:], ARROWS) if path.startswith("src/") else None
            if room:
                direct.setdefault(room, path)
            if path.startswith("include/"):
                direct.setdefault("api", path)
        reach = reachable(ARROWS)
        result = {}
        for room in ARROWS:
            for there in sorted(reach[room] & set(direct), key=lambda r: r != room):
                result.setdefault(room, direct[there])
        if "api" in result:
            result.setdefault("capi", result["api"])
        return result


def read_change(base: str | None, root: Path = ROOT) -> Change:
    """The change since `base`, what is not committed included."""
    if base is None:
        return Change(known=False)
    listed = git("diff", "--name-only", "--no-renames", base, root=root)
    if listed is None:
        return Change(known=False)
    fresh = git("ls-files", "--others", "--exclude-standard", root=root) or ""
    change = Change(known=True, base=base)
    for path in sorted(set(listed.split("\n") + fresh.split("\n")) - {""}):
        before = (
            git("show", f"{base}:{path}", root=root) if Path(path).suffix in CPP_SUFFIXES else None
        )
        now = root / path
        if (
            before is not None
            and now.is_file()
            and same_code(before, now.read_text(errors="replace"))
        ):
            change.comments.append(path)
        else:
            change.files.append(path)
    return change


def suites(root: Path = ROOT) -> dict[str, dict]:
    """Test program -> its folder of tests/, the files that it is made of, and its rooms."""
    text = (root / "tests" / "CMakeLists.txt").read_text()
    found = {}
    for match in re.finditer(r"^[ \t]*loom_tests\(([^)]*)\)", text, re.MULTILINE):
        name, *words = match.group(1).replace('"', "").split()
        row = {"folder": name, "files": "", "except": "", "rooms": [], "sources": []}
        taking = ""
        for word in words:
            if word in ("ROOMS", "SOURCES", "FOLDER", "FILES", "EXCEPT"):
                taking = word.lower()
            elif word == "ALONE":
                taking = ""
            elif taking in ("rooms", "sources"):
                row[taking].append(word)
            elif taking:
                row[taking] = word
        found[name] = row
    for name, row in OTHER_SUITES.items():
        found[name] = {"folder": name, "files": "", "sources": [], **row}
    fuzz = (root / "fuzz" / "CMakeLists.txt").read_text()
    for name, room in re.findall(r"^[ \t]*loom_fuzz\((\w+) (\w+)\)", fuzz, re.MULTILINE):
        rooms = [r for r in ARROWS if r.replace("/", "_") == room]
        found[f"fuzz_{name}"] = {
            "folder": "",
            "files": "",
            "rooms": rooms,
            "sources": [f"fuzz/corpus/{name}/", f"fuzz/fuzz_{name}.cpp"],
        }
    return found


# Suites that run the program `loom`, which stands on every room.
RUN_THE_PROGRAM = ("e2e",)

# Programs that loom_tests() does not make.
OTHER_SUITES: dict[str, dict] = {
    "conformance": {"rooms": ["learn", "backend/cpu"]},
    "webgpu": {"rooms": ["backend/webgpu", "backend/cpu"], "sources": ["conformance/"]},
    "capi": {"rooms": ["capi", "api"]},
}


def program_of(suite: str) -> str:
    """The target of a suite. Corpora of fuzz targets are suites of their own."""
    return suite if suite.startswith("fuzz_") else f"test_{suite}"


def suite_reason(name: str, row: dict, change: Change, rooms: dict[str, str]) -> str | None:
    """Why a suite has to run, or None."""
    if not change.known:
        return "no base is known"
    for path in change.files:
        if any_matches(path, EVERY_SUITE):
            return path
        below = path.removeprefix("tests/")
        if any(below.startswith(source) for source in row["sources"]):
            return path
        if below == path or not row["folder"]:
            continue
        if below.startswith(row["folder"] + "/"):
            file = below.rsplit("/", 1)[-1]
            if not file.endswith("_test.cpp") or has_file(row, file):
                return path
        elif re.search(r"\.(hpp|inl|def)$", path) and includes_header(name, row, below):
            return path
    if name in RUN_THE_PROGRAM:
        path = next(
            (p for p in change.files if p.startswith(("cli/", "src/", "include/", "models/"))), None
        )
        if path:
            return path
    return next((rooms[room] for room in row["rooms"] if room in rooms), None)


def has_file(row: dict, file: str) -> bool:
    """Whether a file *_test.cpp of the suite's folder is one of its files."""
    wanted, unwanted = row["files"], row.get("except")
    return not (wanted and not re.match(wanted, file)) and not (
        unwanted and re.match(unwanted, file)
    )


def includes_header(name: str, row: dict, header: str, root: Path = ROOT) -> bool:
    """Whether a file of the suite includes a header of another folder of tests/."""
    folder = root / "tests" / row["folder"]
    return (
        any(f'"{header}"' in file.read_text(errors="replace") for file in folder.glob("*.?pp"))
        if folder.is_dir()
        else False
    )


def check_reason(check: dict, change: Change, rooms: dict[str, str]) -> str | None:
    """Why a check of tests/checks.toml has to run, or None. Checks that name nothing always run."""
    if not change.known:
        return "no base is known"
    paths, above = check.get("paths"), check.get("rooms", [])
    if paths is None and not above:
        return "always"
    files = change.files + (change.comments if check.get("text") else [])
    for path in files:
        if any_matches(path, paths or []) or (
            not check.get("text") and any_matches(path, EVERYTHING)
        ):
            return path
    return next((rooms[room] for room in above if room in rooms), None)


def main() -> int:
    import check

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("base", nargs="?", help="a commit; else the one that is recorded")
    change = read_change(parser.parse_args().base or recorded_base())
    for line in check.plan_lines(change, check.choose(check.read_checks(), change, whole=False)):
        print(line)
    return 0


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())

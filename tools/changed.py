"""Effects of a change: its files, the rooms of src/ that depend on them, and the checks of
tests/checks.toml and suites of tests/CMakeLists.txt that may be affected.

  tools/changed.py [BASE]      prints the files, the rooms, the checks and the suites with reasons

BASE is a commit. The default is the last commit that is recorded as checked (build/checked of this
clone, else .ci/checked), if HEAD descends from it. Uncommitted files count too.
"""

import argparse
import fnmatch
import functools
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from cpp_source import CPP_SUFFIXES, without_comments
from layering import ARROWS, reachable, room_of

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ("build/checked", ".ci/checked")

# Files that every check depends on, and those that every suite does.
EVERYTHING = ("CMakeLists.txt", "CMakePresets.json", "cmake/")
EVERY_SUITE = (*EVERYTHING, "tests/CMakeLists.txt", "tests/support/")


def git(*words: str, root: Path = ROOT) -> str | None:
    """The output of git, or None if it fails."""
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
    """True if a pattern names the path: a folder ends in "/", others are patterns of a shell."""
    return path.startswith(pattern) if pattern.endswith("/") else fnmatch.fnmatch(path, pattern)


def any_matches(path: str, patterns) -> str | None:
    """The first pattern that names the path."""
    return next((p for p in patterns if matches(path, p)), None)


def same_code(before: str, after: str) -> bool:
    """True if two texts of a C++ file differ in comments and space alone."""
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
        """Room of src/ -> one of the files that affect it."""
        direct: dict[str, str] = {}
        for path in self.files:
            room = room_of(path[4:], ARROWS) if path.startswith("src/") else None
            if room:
                direct.setdefault(room, path)
            for room in rooms_of_header(path) if path.startswith("include/") else ():
                direct.setdefault(room, path)
        reach = reachable(ARROWS)
        result = {}
        for room in ARROWS:
            for there in sorted(reach[room] & set(direct), key=lambda r: r != room):
                result.setdefault(room, direct[there])
        if "api" in result:
            result.setdefault("capi", result["api"])
        return result


@functools.cache
def rooms_of_header(path: str, root: Path = ROOT) -> tuple[str, ...]:
    """The rooms that include a public header, or one that includes it; the interface always."""
    headers, reached = sorted((root / "include").rglob("*.h*")), {path.removeprefix("include/")}
    for _ in headers:
        more = {
            h.relative_to(root / "include").as_posix() for h in headers if includes_of(h) & reached
        }
        if more <= reached:
            break
        reached |= more
    found = {"api"}
    for file in (root / "src").rglob("*.?pp"):
        if includes_of(file) & reached:
            found.add(room_of(file.relative_to(root / "src").as_posix(), ARROWS))
    return tuple(sorted(found - {None}))


def read_change(base: str | None, root: Path = ROOT) -> Change:
    """The change since `base`, with uncommitted files."""
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


@dataclass(frozen=True)
class Suite:
    """A test program: the rooms that it links, and where its sources are."""

    rooms: tuple[str, ...]
    folder: str = ""  # of tests/; its *_test.cpp that match `files` and not `unless`
    files: str = ""
    unless: str = ""
    sources: tuple[str, ...] = ()  # further files and folders, from the root

    def has(self, file: str) -> bool:
        """True if a file *_test.cpp of the folder is one of its files."""
        return not (self.files and not re.match(self.files, file)) and not (
            self.unless and re.match(self.unless, file)
        )


# Networks of every layer kind, which suites link with KINDS.
KINDS = ("src/lab/kind_networks.cpp", "src/lab/training_hash.cpp", "src/lab/training_hash.hpp")

# Suites that run the program `loom`, which depends on every room, and the other files they run.
RUN_THE_PROGRAM = {
    "e2e": ("cli/", "src/", "include/", "tests/hub/", "tests/chat/", "tests/anomaly/*.py",
            "tools/entity_page.py"),
}  # fmt: skip

# Programs that loom_tests() does not make.
OTHER_SUITES = {
    "conformance": Suite(("learn", "backend/cpu"), "conformance"),
    "webgpu": Suite(
        ("backend/webgpu", "backend/cpu"), "webgpu", sources=("tests/conformance/",)
    ),
    "capi": Suite(("capi", "api"), "capi", sources=("tests/capi/",)),
}  # fmt: skip


def suite_of(words: list[str]) -> Suite:
    """The words of loom_tests(NAME ...)."""
    row: dict[str, list[str]] = {key: [] for key in SUITE_WORDS}
    taking = ""
    for word in words[1:]:
        if word in SUITE_WORDS:
            taking = word
        else:
            row[taking].append(word)
    sources = [f"tests/{file}" for file in row["SOURCES"]]
    return Suite(
        rooms=tuple(row["ROOMS"]),
        folder="".join(row["FOLDER"]) or words[0],
        files="".join(row["FILES"]),
        unless="".join(row["EXCEPT"]),
        sources=(*sources, *(KINDS if "KINDS" in words else ())),
    )


SUITE_WORDS = ("ROOMS", "SOURCES", "FOLDER", "FILES", "EXCEPT", "ALONE", "KINDS")


@functools.cache
def suites(root: Path = ROOT) -> dict[str, Suite]:
    """Suite -> its description in tests/CMakeLists.txt and fuzz/CMakeLists.txt."""
    text = (root / "tests" / "CMakeLists.txt").read_text()
    found = {}
    for match in re.finditer(r"^[ \t]*loom_tests\(([^)]*)\)", text, re.MULTILINE):
        words = match.group(1).replace('"', "").split()
        found[words[0]] = suite_of(words)
    found.update(OTHER_SUITES)
    fuzz = (root / "fuzz" / "CMakeLists.txt").read_text()
    for words in re.findall(r"^[ \t]*loom_fuzz\((\w+ \w+[^)]*)\)", fuzz, re.MULTILINE):
        name, room, *more = words.split()
        rooms = tuple(r for r in ARROWS if r.replace("/", "_") == room)
        sources = (f"fuzz/corpus/{name}/", f"fuzz/fuzz_{name}.cpp", "fuzz/replay.cpp", *more)
        found[f"fuzz_{name}"] = Suite(rooms, sources=sources)
    return found


def program_of(suite: str) -> str:
    """The target of a suite. Corpora of fuzz targets are separate suites."""
    return suite if suite.startswith("fuzz_") else f"test_{suite}"


@functools.cache
def members(suite: Suite, root: Path = ROOT) -> frozenset[str]:
    """The sources of a suite below tests/, and the headers there that they include."""
    todo = [p for p in (root / "tests" / suite.folder).glob("*_test.cpp") if suite.has(p.name)]
    todo += [root / source for source in suite.sources if source.endswith(".cpp")]
    found: set[str] = set()
    while todo:
        file = Path(os.path.normpath(todo.pop()))
        path = file.relative_to(root).as_posix()
        if path in found or not file.is_file():
            continue
        found.add(path)
        for name in includes_of(file):
            todo += [p for p in (root / "tests" / name, file.parent / name) if p.is_file()]
    return frozenset(found)


@functools.cache
def includes_of(file: Path) -> frozenset[str]:
    """The names in #include lines of a file."""
    text = file.read_text(errors="replace")
    return frozenset(re.findall(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', text, re.MULTILINE))


@functools.cache
def data_of(suite: Suite, root: Path = ROOT) -> frozenset[str]:
    """The files and folders of the repository that a suite reads: source_path("models/...")."""
    texts = ((root / path).read_text(errors="replace") for path in members(suite, root))
    codes = (without_comments(text, keep_strings=True) for text in texts)
    named = (re.findall(r'source_path\("([^"]+)"', code) for code in codes)
    return frozenset(path.rstrip("/") for paths in named for path in paths)


def suite_reason(name: str, suite: Suite, change: Change, rooms: dict[str, str]) -> str | None:
    """The reason to run a suite, or None."""
    if not change.known:
        return "no base is known"
    program = RUN_THE_PROGRAM.get(name, ())
    for path in change.files:
        if any_matches(path, (*EVERY_SUITE, *program)) or is_read_by(suite, path):
            return path
    return next((rooms[room] for room in suite.rooms if room in rooms), None)


def is_read_by(suite: Suite, path: str) -> bool:
    """True if a file is compiled into a suite or read by it."""
    if path in members(suite) or any(path.startswith(source) for source in suite.sources):
        return True
    if any(path == data or path.startswith(f"{data}/") for data in data_of(suite)):
        return True
    # Golden files and scripts of its folder, and test files that are gone.
    inside = bool(suite.folder) and path.startswith(f"tests/{suite.folder}/")
    if path.endswith("_test.cpp"):
        return inside and suite.has(path.rsplit("/", 1)[-1])
    return inside and not path.endswith((".hpp", ".py"))


def check_reason(check: dict, change: Change, rooms: dict[str, str]) -> str | None:
    """The reason to run a check of tests/checks.toml, or None. Checks without names always run."""
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

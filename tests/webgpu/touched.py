#!/usr/bin/env python3
"""Which GPU tests a change touches, read from the tree: kernels by the ops that they compute, tests
by the ops and headers that they name.

  tests/webgpu/touched.py FILE          FILE: the changed paths, one a line
  tests/webgpu/touched.py --all-known   a line for each file of the GPU: what a change of it touches
  tests/webgpu/touched.py --choose SEED FILE [ALWAYS...] <LIST
      LIST is what --gtest_list_tests prints: the filter of the tests that are touched, those that
      an ALWAYS pattern names (parts: those that choose among their cases), a tenth of the others

Prints "everything", or the words that LOOM_GPU_TOUCHED takes: ops, suites of tests and layer kinds.
Code that everything uses (the runtime, the WGSL that kernels share) touches everything, as does a
file
of the GPU that no rule knows. Other files touch nothing.
"""

import fnmatch
import functools
import re
import sys
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
WEBGPU, KERNELS, FUSION = (
    "src/backend/webgpu/", "src/backend/webgpu/kernels/", "src/backend/webgpu/fusion/"
)  # fmt: skip
SCRIPTS = ("scripts/gpu_test.sh", "scripts/install_gpu.sh", "tests/webgpu/touched.py")
EVERYTHING = frozenset({"everything"})
OF_TRAINING = frozenset({"GpuTraining"})  # ops that no layer records: gradients, losses, updates
OF_DECODERS = frozenset({"GpuDecoder"})
ONE_IN = 10
WITH_PARTS = "parts"  # the pattern of tests that choose among their cases themselves

Words = frozenset[str]


@functools.cache
def text_of(path: str) -> str:
    file = ROOT / path
    return file.read_text() if file.is_file() else ""


@functools.cache
def ops() -> dict[str, str]:
    """Op -> its struct."""
    return dict(re.findall(r"^LOOM_OP\((\w+), (\w+)\)", text_of("src/ops/ops.def"), re.MULTILINE))


@functools.cache
def files(folder: str) -> tuple[str, ...]:
    found = (ROOT / folder).rglob("*")
    return tuple(sorted(str(p.relative_to(ROOT)) for p in found if p.suffix in (".cpp", ".hpp")))


def union(parts) -> Words:
    return frozenset().union(*parts)


@functools.cache
def names_in(path: str) -> Words:
    return frozenset(re.findall(r"\w+", text_of(path)))


@functools.cache
def includes(path: str) -> Words:
    return frozenset(re.findall(r'^#include "([^"]+)"', text_of(path), re.MULTILINE))


@functools.cache
def includers(path: str, folder: str) -> tuple[str, ...]:
    name = path.removeprefix("src/").removeprefix("tests/")
    return tuple(p for p in files(folder) if name in includes(p))


# ---- ops ----


@functools.cache
def ops_named(path: str) -> Words:
    """The ops whose structs or drivers a file names."""
    names = names_in(path)
    return frozenset(op for op, args in ops().items() if {args, f"conform_{op}"} & names)


@functools.cache
def ops_computed(path: str) -> Words:
    """The ops whose kernels a file of KERNELS describes."""
    begin = r"^Status (?:kernels::)?(\w+)\(Frame& \w+, const \w+Args&"
    return frozenset(re.findall(begin, text_of(path), re.MULTILINE)) & frozenset(ops())


@functools.cache
def declared(header: str) -> Words:
    lines = re.findall(r"^[A-Za-z].*", text_of(header), re.MULTILINE)
    functions = (re.match(r"[^(=]*?(\w+)\(", line) for line in lines)
    constants = (re.findall(r"\bk[A-Z]\w*", line) for line in lines if line.startswith("extern"))
    return frozenset(f[1] for f in functions if f) | union(map(frozenset, constants))


@functools.cache
def defined(path: str) -> dict[str, Words]:
    """Headers of KERNELS that a file includes -> their functions and texts that it defines."""
    lines = re.findall(r"^[A-Za-z][^(=\n{]*\b(\w+)(?:\(| = |\{)", text_of(path), re.MULTILINE)
    headers = (h for h in files(KERNELS) if path in includers(h, KERNELS))
    return {h: found for h in headers if (found := declared(h) & frozenset(lines))}


@functools.cache
def users(path: str) -> Words:
    """The files of WEBGPU that name what this one declares or defines."""
    if path.endswith(".hpp"):
        return frozenset(includers(path, WEBGPU))
    return frozenset(
        p for h, names in defined(path).items() if not h.endswith("/kernels.hpp")
        for p in includers(h, WEBGPU) if p != path and names & names_in(p)
    )  # fmt: skip


def made_with(path: str, seen: set[str]) -> set[str]:
    """The file, and the files whose kernels use it."""
    if path not in seen:
        seen.add(path)
        for other in users(path):
            if other.startswith((KERNELS, FUSION)):
                made_with(other, seen)
    return seen


def ops_of_includers(path: str) -> Words:
    """The ops of the kernels that include a header."""
    return union(ops_computed(p) for p in includers(path, KERNELS))


# ---- tests ----


def suites(path: str) -> Words:
    return frozenset(re.findall(r"^TEST(?:_P|_F)?\((\w+),", text_of(path), re.MULTILINE))


def test_files() -> tuple[str, ...]:
    return tuple(p for p in files("tests/webgpu") + files("tests/gpu") if p.endswith("_test.cpp"))


def suites_that(names) -> Words:
    return union(suites(p) for p in test_files() if not is_driver(p) and names(p))


def is_driver(path: str) -> bool:
    return path.endswith("webgpu/conformance_test.cpp")


@functools.cache
def fused_suites() -> Words:
    """The suites of fused commands."""
    return OF_DECODERS | suites_that(lambda p: re.search(r"/(?:fused\w*|beside)_test\.cpp$", p))


@functools.cache
def kinds_with(op: str) -> Words:
    """Layer kinds, as GpuLayers names them, whose file records the op or that of a gradient."""
    forward = re.sub(r"_d[xw]$", "", op)
    return union(
        kinds_of(p) for p in files("src/layers") if re.search(rf"\.{forward}\(\{{?", text_of(p))
    )


@functools.cache
def kinds_of_decoders() -> Words:
    named = re.findall(r"LayerKind::(\w+)", text_of("src/llm/decoder.cpp"))
    return frozenset(f"kind:{kind}" for kind in named)


@functools.cache
def kinds_of(path: str) -> Words:
    """The layer kinds that a file of src/layers defines."""
    named = set(re.findall(r"^const LayerDef (k\w+)", text_of(path), re.MULTILINE))
    registry = text_of("src/layers/core/registry.def")
    rows = re.findall(r"^LOOM_LAYER\(\d+, (\w+), (k\w+)\)", registry, re.MULTILINE)
    return frozenset(f"kind:{kind}" for kind, name in rows if name in named)


def with_tests(touched: Words) -> Words:
    """The ops and all tests that name them."""
    if not touched or touched == frozenset(ops()):
        return EVERYTHING
    of_ops = suites_that(lambda p: ops_named(p) & touched)
    kinds = union(kinds_with(op) or OF_TRAINING for op in touched)
    return touched | of_ops | kinds | (OF_DECODERS if kinds & kinds_of_decoders() else frozenset())


# ---- rules ----


def of_kernel(path: str) -> Words:
    if path.endswith("/kernels.hpp"):
        return EVERYTHING
    made = made_with(path, set())
    fused = fused_suites() if any(p.startswith(FUSION) for p in made) else frozenset()
    computed = union(ops_computed(p) for p in made)
    return with_tests(computed) | fused if computed else fused or EVERYTHING


def of_ops_file(path: str) -> Words:
    """A family of structs, the checks of one, or a header of kernels; all else is shared."""
    text = text_of(path)
    if path.startswith("src/ops/args/") or re.search(r"^Status check\(const \w+Args&", text, re.M):
        return with_tests(ops_named(path))
    return with_tests(ops_of_includers(path))


def of_reference(path: str) -> Words:
    users = includers(path, "src/backend/reference")
    return with_tests(ops_named(path) or union(ops_named(p) for p in users))


def of_conformance(path: str) -> Words:
    if "/support" in path:
        return EVERYTHING
    users = (path, *includers(path, "tests/conformance"))
    return union(ops_named(p) for p in users) or EVERYTHING


def of_test(path: str) -> Words:
    users = [p for p in (path, *includers(path, "tests")) if p in test_files()]
    return EVERYTHING if not users or any(map(is_driver, users)) else union(map(suites, users))


def of_room(path: str) -> Words:
    """A room of the GPU that a test includes by name; without one it touches everything."""
    headers = [p for p in files(str(Path(path).parent)) if Path(p).stem == Path(path).stem]
    return suites_that(lambda p: any(p in includers(h, "tests") for h in headers)) or EVERYTHING


RULES = (
    (KERNELS, of_kernel),
    (FUSION, lambda path: fused_suites()),
    (WEBGPU + "tuning/", of_room),
    (WEBGPU + "runtime/submission_thread", of_room),
    (WEBGPU, lambda path: EVERYTHING),
    ("src/ops/", of_ops_file),
    ("src/backend/reference/", of_reference),
    ("src/layers/", kinds_of),
    ("tests/conformance/", of_conformance),
    ("tests/webgpu/", of_test),
    ("tests/gpu/", of_test),
    *((script, lambda path: EVERYTHING) for script in SCRIPTS),
)


def touched_by(path: str) -> Words:
    for prefix, rule in RULES:
        if path.startswith(prefix):
            return rule(path)
    return frozenset()


def touched(paths: list[str]) -> Words:
    words = union(map(touched_by, paths))
    return EVERYTHING if EVERYTHING <= words else words


# ---- choosing tests ----


def listed(lines) -> list[str]:
    """The names that --gtest_list_tests prints."""
    names, suite = [], ""
    for line in lines:
        word = line.split("#")[0].strip()
        if line.startswith(" ") and word:
            names.append(suite + word)
        elif word.endswith("."):
            suite = word
    return names


def is_touched(test: str, words: Words) -> bool:
    suite, _, case = test.partition(".")
    parameter = case.rpartition("/")[2] if "/" in case else ""
    return bool({suite.rpartition("/")[2], case} & words) or plain(parameter) in {
        plain(w.removeprefix("kind:")) for w in words if w.startswith("kind:")
    }


@functools.cache
def with_parts() -> Words:
    """Suites that choose a part of their own cases (sample.hpp)."""
    users = includers("tests/webgpu/sample.hpp", "tests")
    return union(suites(p) for p in users) | {"GpuConformance"}


def plain(name: str) -> str:
    return name.replace("_", "").lower()


def choose(seed: str, tests: list[str], words: Words, always: list[str]) -> list[str]:
    """The named tests and a tenth of the others, by the seed; at least one if there is any."""
    def asked(test: str) -> bool:
        return is_touched(test, words) or any(fnmatch.fnmatch(test, a) for a in always)

    if WITH_PARTS in always:
        always = [*always, *(f"{suite}.*" for suite in with_parts())]

    def drawn(test: str) -> int:
        return zlib.crc32(f"{seed} {test}".encode())

    rest = sorted((t for t in tests if not asked(t)), key=drawn)
    sample = set(rest[: -(-len(rest) // ONE_IN)])
    return [t for t in tests if asked(t) or t in sample]


def main() -> int:
    match sys.argv[1:]:
        case ["--all-known"]:
            folders = ("src/backend/webgpu", "src/ops", "src/backend/reference", "src/layers")
            for path in (p for folder in folders for p in files(folder)):
                print(f"{path}: {' '.join(sorted(touched_by(path)))}")
        case ["--choose", seed, changes, *always]:
            words, tests = touched(Path(changes).read_text().split("\n")), listed(sys.stdin)
            chosen = choose(seed, tests, words, always)
            print(f"sample {seed}: {len(chosen):,} of {len(tests):,} tests", file=sys.stderr)
            print(":".join(chosen))
        case [changes] if not changes.startswith("-"):
            print(" ".join(sorted(touched(Path(changes).read_text().split("\n")))))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
